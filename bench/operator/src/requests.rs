//! The operator's requests to the API server, from the sandbox's request log.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// The user name of the operator in the request log.
pub const OPERATOR: &str = "candor-operator";

/// Request counts of the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Lists and gets.
    pub reads: u32,
    /// Watches that were started.
    pub watches: u32,
    /// Requests that change something.
    pub writes: u32,
}

/// Counts for as long as the program runs.
#[derive(Clone, Debug, Default)]
pub struct Requests(Arc<Mutex<Counted>>);

impl Requests {
    /// Listens to the request log. Call it once.
    pub fn listen() -> Self {
        let requests = Self::default();
        let log = Log(requests.clone());
        tracing_subscriber::registry().with(log).init();
        requests
    }

    /// The counts so far.
    pub fn so_far(&self) -> Counted {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Log(Requests);

impl<S: Subscriber> Layer<S> for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>, _: Context<'_, S>) -> bool {
        metadata.target() == "kube_sandbox::requests"
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        if line.user != OPERATOR {
            return;
        }
        let mut counted = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        if line.method != "GET" {
            counted.writes += 1;
        } else if line.path.contains("watch=") {
            counted.watches += 1;
        } else {
            counted.reads += 1;
        }
    }
}

#[derive(Default)]
struct Line {
    method: String,
    path: String,
    user: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "path" => value.clone_into(&mut self.path),
            "user" => value.clone_into(&mut self.user),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let words = format!("{value:?}");
        match field.name() {
            "method" => self.method = words,
            "path" => self.path = words,
            "user" => self.user = words,
            _ => {}
        }
    }
}
