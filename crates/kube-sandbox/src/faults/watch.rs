//! What happens to the events of a watch on their way: late, merged, lost, cut off, expired.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use http_body::Frame;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::BoxError;

use super::fault::WatchFault;
use super::handle::{Done, Faults};
use super::layer::ResponseBody;
use super::request::RequestInfo;

/// Which watch this is, for the log.
pub(super) struct Origin {
    pub faults: Faults,
    pub number: u64,
    pub info: RequestInfo,
}

impl Origin {
    fn record(&self, rule: &str, done: Done) {
        self.faults.record(self.number, &self.info, rule, done);
    }
}

/// The body with its events disturbed. It is pumped by a task that ends with the body on either side.
pub(super) fn disturb(body: ResponseBody, origin: Origin, faults: Vec<(String, WatchFault)>) -> ResponseBody {
    let (out, into) = mpsc::channel(16);
    let pump = Pump {
        origin,
        faults,
        seen: 0,
        waiting: VecDeque::new(),
    };
    tokio::spawn(pump.run(body, out));
    let events = futures::stream::unfold(into, |mut into| async { into.recv().await.map(|event| (event, into)) });
    StreamBody::new(events).boxed_unsync()
}

type Out = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

struct Pump {
    origin: Origin,
    faults: Vec<(String, WatchFault)>,
    /// Events that came from the server, bookmarks apart.
    seen: u64,
    /// Events held back, the next to go first.
    waiting: VecDeque<Event>,
}

/// One event, held until it is due.
struct Event {
    due: Instant,
    change: String,
    object: String,
    line: Bytes,
}

impl Event {
    fn name(&self) -> String {
        format!("{} {}", self.change, self.object)
    }
}

/// What an event of the server led to.
enum Next {
    Go,
    End,
}

impl Pump {
    async fn run(mut self, body: ResponseBody, out: Out) {
        let mut frames = BodyStream::new(body);
        let mut rest = BytesMut::new();
        let mut open = true;
        while open || !self.waiting.is_empty() {
            let due = self.waiting.front().map(|event| event.due);
            tokio::select! {
                () = out.closed() => return,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if let Some(event) = self.waiting.pop_front()
                        && out.send(Ok(Frame::data(event.line))).await.is_err()
                    {
                        return;
                    }
                }
                frame = frames.next(), if open => match frame {
                    Some(Ok(frame)) => {
                        rest.extend_from_slice(&frame.into_data().unwrap_or_default());
                        while open && let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                            let line = rest.split_to(end + 1).freeze();
                            if matches!(self.take(line), Next::End) {
                                open = false;
                            }
                        }
                    }
                    Some(Err(error)) => {
                        let _ = out.send(Err(error)).await;
                        return;
                    }
                    None => open = false,
                },
            }
        }
    }

    /// One event of the server: where the faults put it.
    fn take(&mut self, line: Bytes) -> Next {
        let event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let change = event["type"].as_str().unwrap_or_default().to_owned();
        let metadata = &event["object"]["metadata"];
        let object = match metadata["namespace"].as_str() {
            Some(namespace) => format!("{namespace}/{}", metadata["name"].as_str().unwrap_or_default()),
            None => metadata["name"].as_str().unwrap_or_default().to_owned(),
        };
        let mut event = Event {
            due: Instant::now(),
            change,
            object,
            line,
        };
        if !matches!(event.change.as_str(), "ADDED" | "MODIFIED" | "DELETED") {
            self.wait(event);
            return Next::Go;
        }
        self.seen += 1;
        let mut window = Duration::ZERO;
        for (rule, fault) in self.faults.clone() {
            match fault {
                WatchFault::Lag(by) => event.due += by,
                WatchFault::Coalesce(within) => window = within,
                WatchFault::Lose { from, count } if self.seen >= from && self.seen - from < count => {
                    self.origin.record(&rule, Done::EventLost(event.name()));
                    return Next::Go;
                }
                WatchFault::Cut { after } if self.seen > after => {
                    self.origin.record(&rule, Done::WatchEnded);
                    return Next::End;
                }
                WatchFault::Expire { after } if self.seen > after => {
                    self.origin.record(&rule, Done::WatchEnded);
                    event.line = expired();
                    "ERROR".clone_into(&mut event.change);
                    self.wait(event);
                    return Next::End;
                }
                WatchFault::Lose { .. } | WatchFault::Cut { .. } | WatchFault::Expire { .. } => {}
            }
        }
        event.due += window;
        if window.is_zero() {
            self.wait(event);
        } else {
            self.merge(event, window);
        }
        Next::Go
    }

    /// Order is kept whatever the waits: an event never overtakes an earlier one.
    fn wait(&mut self, mut event: Event) {
        if let Some(last) = self.waiting.back() {
            event.due = event.due.max(last.due);
        }
        self.waiting.push_back(event);
    }

    /// Joins the batch that is being held, or begins one. Within it the newest event of an object stands for all of
    /// its events, at the place of the newest, so that versions still come in order.
    fn merge(&mut self, mut event: Event, window: Duration) {
        if let Some(batch) = self.waiting.front().map(|first| first.due)
            && event.due.saturating_duration_since(batch) < window
        {
            event.due = batch;
        }
        let earlier = self
            .waiting
            .iter()
            .rposition(|held| held.due == event.due && held.object == event.object && held.change != "BOOKMARK");
        let Some(at) = earlier else {
            self.wait(event);
            return;
        };
        let held = self.waiting[at].change.clone();
        if held == "DELETED" {
            self.wait(event);
            return;
        }
        self.waiting.remove(at);
        let rules: Vec<String> = self
            .faults
            .iter()
            .filter(|(_, fault)| matches!(fault, WatchFault::Coalesce(_)))
            .map(|(rule, _)| rule.clone())
            .collect();
        for rule in rules {
            self.origin.record(&rule, Done::EventMerged(event.name()));
        }
        match (held.as_str(), event.change.as_str()) {
            // It was created and deleted within the batch.
            ("ADDED", "DELETED") => {}
            ("ADDED", "MODIFIED") => {
                let mut value: Value = serde_json::from_slice(&event.line).unwrap_or_default();
                value["type"] = json!("ADDED");
                event.line = Bytes::from(format!("{value}\n"));
                "ADDED".clone_into(&mut event.change);
                self.wait(event);
            }
            _ => self.wait(event),
        }
    }
}

/// The event with which a server ends a watch after its version was compacted.
fn expired() -> Bytes {
    let status = crate::status::ApiError::gone("too old resource version").to_value();
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status})))
}
