//! The line itself: fetch, observe, plan, act, report, write.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::runtime::controller::Action;
use kube::{Api, Client, Resource, ResourceExt};
use kube_status::events::Recorder;
use kube_status::finalizer::{DELETING, Finalization, Finalizer};
use kube_status::merge::MergeError;
use kube_status::writer::{StatusWriter, WriteError};
use kube_status::{Conditioned, find, is_true};

use crate::act::act;
use crate::api::DittoServer;
use crate::cleanup::{FINALIZER, Farewell};
use crate::conditions::{CONTROLLER, ServerCondition};
use crate::observe::{Observation, observe};
use crate::plan::Plan;
use crate::report::{Outcome, Story, report};

/// How long until a failure is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// How long until a healthy server is reconciled without a change.
const HEARTBEAT: Duration = Duration::from_secs(300);

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What every reconcile needs.
pub struct Context {
    /// The API.
    pub client: Client,
    /// Where events go.
    pub events: Arc<dyn Recorder>,
    finalizer: Finalizer<Arc<dyn Recorder>>,
    writer: StatusWriter,
    clock: Clock,
}

impl Context {
    /// A context with this client, recorder and clock.
    pub fn new(client: Client, events: Arc<dyn Recorder>, clock: Clock) -> Self {
        let time = clock.clone();
        Self {
            client,
            finalizer: Finalizer::new(FINALIZER, events.clone()).clock(move || time()),
            events,
            writer: StatusWriter::new(CONTROLLER),
            clock,
        }
    }
}

/// Why a reconcile could not even report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server could not be read.
    #[error("the DittoServer could not be read")]
    Read(#[from] kube::Error),
    /// The conditions could not be summarised.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The status could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// One reconcile of a server. Its last act is always to write the status, unless it is unchanged.
pub async fn reconcile(cached: Arc<DittoServer>, context: Arc<Context>) -> Result<Action, Error> {
    let api: Api<DittoServer> = Api::namespaced(context.client.clone(), &cached.namespace().unwrap_or_default());
    // Read anew: a status is computed from what stands, and written only if that still stands.
    let Some(mut server) = api.get_opt(&cached.name_any()).await? else {
        return Ok(Action::await_change());
    };
    let farewell = Farewell {
        client: &context.client,
        events: &*context.events,
    };
    let before = find(server.conditions(), DELETING);
    let finalization = Box::pin(context.finalizer.reconcile(&api, &server, &(), before, &farewell));
    let halted = match finalization.await {
        Ok(Finalization::Live) => None,
        Ok(Finalization::Held(held)) => {
            server = *held;
            None
        }
        Ok(Finalization::Deleting { draft, retry_after }) => Some(Outcome::Deleting(draft, retry_after)),
        Ok(Finalization::Released | Finalization::NotHeld) => return Ok(Action::await_change()),
        Err(error) => Some(Outcome::Stopped(error.to_string())),
    };
    let observed = observe(&context.client, &server).await;
    let plan = Plan::of(&server, &observed);
    let outcome = match halted {
        Some(outcome) => outcome,
        None => proceed(&context, &server, &observed, &plan).await,
    };
    let story = Story {
        server: &server,
        observed: &observed,
        plan: &plan,
        outcome: &outcome,
    };
    publish(&context, &api, &story).await
}

/// Does what a live server needs, and returns the outcome.
async fn proceed(context: &Context, server: &DittoServer, observed: &Observation, plan: &Plan) -> Outcome {
    let disturbs = matches!(observed.stateful_set, Ok(Some(_))) && plan.has_server();
    // Status leads, action follows: what stands as Ready is not disturbed before the status admits it.
    if disturbs && is_true(server.conditions(), ServerCondition::Ready) {
        return Outcome::Announced;
    }
    match act(&context.client, server, &plan.steps).await {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::Failed(error),
    }
}

/// Writes the status and then its events; returns when to reconcile again.
async fn publish(context: &Context, api: &Api<DittoServer>, story: &Story<'_>) -> Result<Action, Error> {
    let (status, notices) = report(story, (context.clock)())?;
    match context.writer.apply(api, story.server, &status).await {
        // The server changed meanwhile: what was computed is outdated.
        Err(error) if error.is_race() => return Ok(Action::requeue(Duration::ZERO)),
        Err(error) if error.is_not_found() => return Ok(Action::await_change()),
        written => drop(written?),
    }
    for notice in notices {
        context.events.record(&story.server.object_ref(&()), notice);
    }
    let is_ready = is_true(&status.conditions, ServerCondition::Ready);
    Ok(Action::requeue(match story.outcome {
        Outcome::Announced => Duration::ZERO,
        Outcome::Deleting(_, retry_after) => *retry_after,
        Outcome::Done if is_ready && story.plan.steps.is_empty() => HEARTBEAT,
        Outcome::Done | Outcome::Failed(_) | Outcome::Stopped(_) => RETRY,
    }))
}

/// What to do after an error: it is in the log, and tried again.
#[allow(clippy::needless_pass_by_value)] // the controller's signature
pub fn on_error(server: Arc<DittoServer>, error: &Error, _: Arc<Context>) -> Action {
    tracing::warn!(
        server = server.name_any(),
        error = error as &dyn std::error::Error,
        "reconcile failed"
    );
    Action::requeue(RETRY)
}
