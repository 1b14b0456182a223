//! One reconcile of one cluster, as a linear sequence: observe, plan, act, report, write. The same line for every kind.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_engine::outcome::Outcome;
use candor_engine::step::Step;
use jiff::Timestamp;
use kube_status::finalizer::FinalizerError;
use kube_status::writer::WriteError;

use crate::decisions;
use crate::kinds::redkey::reconcile::Redkey;
use crate::kinds::valkey::reconcile::Valkey;
use crate::kinds::{Begun, Kind};
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::context::Context;
use crate::write::Published;

/// Requeue delay after the cluster was found to be deleted, until the watch reports it.
const RETRY: Duration = Duration::from_secs(1);
/// Requeue at once: after a conflict with another writer, or to continue.
pub(crate) const AT_ONCE: Duration = Duration::ZERO;
/// Requeue delay while steps are in progress.
pub(crate) const SOON: Duration = Duration::from_millis(50);

/// Why a reconcile could not be completed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Finalizer(#[from] FinalizerError),
    #[error("finalizers could not be written")]
    Finalizers(#[from] kube::Error),
    #[error("deletion could not be finished: {0}")]
    Deletion(String),
}

/// The result of a reconcile.
pub(crate) struct Done {
    pub published: Published,
    pub next: Duration,
}

/// Reconciles a cluster; returns when to reconcile again, `None` if it is deleted.
pub async fn reconcile(context: Arc<Context>, key: ClusterKey) -> Option<Duration> {
    match key.kind {
        ClusterKind::Valkey => Box::pin(measured::<Valkey>(&context, &key)).await,
        ClusterKind::Redkey => Box::pin(measured::<Redkey>(&context, &key)).await,
    }
}

async fn measured<K: Kind>(context: &Arc<Context>, key: &ClusterKey) -> Option<Duration> {
    let Some(cluster) = K::cached(context, key) else {
        context.forget(key);
        return None;
    };
    let begun = Instant::now();
    let (outcome, next) = match line::<K>(context, key, cluster).await {
        Ok(Some(Done { published, next })) => match published {
            Published::Written => ("written", Some(next)),
            Published::Unchanged => ("unchanged", Some(next)),
            Published::Held(wait) => ("unchanged", Some(next.min(wait))),
        },
        Ok(None) => ("gone", None),
        Err(ReconcileError::Write(error)) if error.is_not_found() => ("gone", Some(RETRY)),
        Err(ReconcileError::Write(error)) if error.is_race() => {
            tracing::debug!(cluster = %key, %error, "another writer was faster");
            ("raced", Some(SOON))
        }
        Err(error) => {
            tracing::warn!(cluster = %key, error = %chain(&error), "the reconcile could not be finished");
            let next = back_off(context, key);
            ("failed", Some(next.max(asked_to_wait(&error))))
        }
    };
    context.metrics.reconciled(outcome, begun.elapsed());
    next
}

/// The line.
async fn line<K: Kind>(
    context: &Arc<Context>,
    key: &ClusterKey,
    cluster: Arc<K::Cluster>,
) -> Result<Option<Done>, ReconcileError> {
    let mut observed = match K::observe(context, key, cluster).await? {
        Begun::Observed(observed) => observed,
        Begun::Ended(done) => return Ok(done),
    };
    let mut attempts = context.states.attempts(key);
    let planned = observed.plan(context, key, &attempts).await;
    let plan = observed.decision(&planned).0;
    decisions::log(context, key, plan);
    // Status is written first. A step that would make the published status untrue runs only after status has announced
    // it, and a new cluster publishes a status before anything else. A failover that restores service does not wait.
    let admitted = observed.is_admitted(&planned);
    let ours = plan.steps.iter().filter(|step| observed.executes(step)).cloned();
    let (urgent, steps): (Vec<Step>, Vec<Step>) = ours.partition(Step::restores_service);
    let delegated = urgent.len() + steps.len() < plan.steps.len();
    let now = if admitted { steps } else { Vec::new() };
    let mut outcomes = observed.act(context, key, &planned, &urgent).await;
    outcomes.extend(observed.act(context, key, &planned, &now).await);
    let (plan, observation) = observed.decision(&planned);
    attempts.record(observation, plan, &mut outcomes, Timestamp::now());
    let published = observed.publish(context, key, &planned, &mut outcomes).await?;
    let plan = observed.decision(&planned).0;
    let failed = outcomes.iter().any(|one| one.result.is_err());
    let next = if !admitted || (published == Published::Written && K::CONTINUES_AFTER_WRITE) {
        AT_ONCE
    } else if failed && !outcomes.iter().any(restores_service) {
        attempts.back_off(Timestamp::now())
    } else if !outcomes.is_empty() {
        SOON
    } else if delegated {
        K::DELEGATED
    } else if plan.stage.is_settled() {
        plan.requeue_after
    } else {
        attempts.wait_in(&plan.stage, Timestamp::now()).min(plan.requeue_after)
    };
    context.states.with(key, |state| state.attempts = attempts);
    Ok(Some(Done { published, next }))
}

fn restores_service(outcome: &Outcome) -> bool {
    outcome.step.restores_service()
}

/// The requeue delay after a failure.
fn back_off(context: &Context, key: &ClusterKey) -> Duration {
    context
        .states
        .with(key, |state| state.attempts.back_off(Timestamp::now()))
}

/// How long the API server asked the operator to wait.
fn asked_to_wait(error: &ReconcileError) -> Duration {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    let answer = causes.find_map(|cause| {
        let boxed = cause.downcast_ref::<Box<kube::Error>>().map(|error| &**error);
        boxed.or_else(|| cause.downcast_ref::<kube::Error>())
    });
    let seconds = match answer {
        Some(kube::Error::Api(status)) => status.details.as_ref().map_or(0, |details| details.retry_after_seconds),
        _ => 0,
    };
    Duration::from_secs(seconds.into())
}

/// The message of an error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"))
}
