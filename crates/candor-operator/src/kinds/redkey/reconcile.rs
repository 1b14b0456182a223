//! One reconcile of a `RedkeyCluster`: observe, plan, act, report, write.

use std::sync::Arc;
use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_api::redkey::status::ClusterStatus;
use candor_engine::kinds::redkey::operation::{Input, Planned, plan, stored};
use candor_engine::kinds::redkey::report::{Report, ReportInput, Robin, report};
use candor_engine::kinds::redkey::rows::{Progress, admits};
use candor_engine::outcome::Outcome;
use candor_engine::plan::Stage;
use candor_engine::step::Step;
use jiff::Timestamp;
use kube::{Api, Resource};
use kube_status::events::Recorder;
use kube_status::writer::{WriteError, Written};

use super::act::act;
use super::deletion;
use super::follow::follow;
use super::observe::{Observed, observe};
use super::robin::agent::planning::is_for_servers;
use crate::decisions;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;
use crate::runtime::metrics::Trouble;
use crate::write::truncate;

/// Requeue delay after a failure that will pass.
const SOON: Duration = Duration::from_millis(50);
/// Requeue at once.
const AT_ONCE: Duration = Duration::ZERO;
/// Requeue delay while something else must happen first.
const LATER: Duration = Duration::from_millis(500);

/// Reconciles a cluster; returns when to reconcile again, `None` if it is deleted.
pub async fn reconcile(context: &Arc<Context>, key: &ClusterKey) -> Option<Duration> {
    if !context.caches.has_redkeys() {
        return Some(SOON);
    }
    let Some(cluster) = context.caches.redkeys.get_in(&key.namespace, &key.name) else {
        context.forget(key);
        return None;
    };
    let other_operator = context.other_operator.find(context, key).await;
    if cluster.metadata.deletion_timestamp.is_some() {
        return match other_operator {
            // It removes its own finalizers.
            Some(_) => Some(LATER),
            None => leave(context, key, &cluster).await,
        };
    }
    if context.settings.dry_run {
        return Some(dry_run(context, key, &cluster, other_operator.as_deref()).await);
    }
    let paused = candor_engine::kinds::redkey::operation::is_paused(&cluster);
    if !paused && other_operator.is_none() {
        match deletion::hold(context, key, &cluster).await {
            Ok(false) => {}
            Ok(true) => return Some(AT_ONCE),
            Err(error) => {
                tracing::warn!(cluster = %key, %error, "finalizer could not be written");
                return Some(back_off(context, key));
            }
        }
    }
    match Box::pin(live(context, key, &cluster, other_operator.as_deref())).await {
        Ok(next) => Some(next),
        Err(error) if error.is_gone() || error.is_race() => Some(SOON),
        Err(error) => {
            tracing::warn!(cluster = %key, %error, "status could not be written");
            Some(back_off(context, key))
        }
    }
}

fn back_off(context: &Context, key: &ClusterKey) -> Duration {
    context
        .states
        .with(key, |state| state.attempts.back_off(Timestamp::now()))
}

fn planned(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    observed: &Observed,
    other_operator: Option<&str>,
) -> Planned {
    let attempts = context.states.attempts(key);
    plan(&Input {
        cluster,
        other_operator,
        set: observed.set.as_ref(),
        revision: &observed.revision,
        members: &observed.members,
        base: &observed.base,
        attempts: &attempts,
        node_timeout: observed.node_timeout,
        now: Timestamp::now(),
    })
}

async fn live(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    other_operator: Option<&str>,
) -> Result<Duration, WriteError> {
    let robin = follow(context, key, cluster);
    if other_operator.is_none() {
        robin.replace_overdue(context, key).await;
    }
    let mut observed = observe(context, key, cluster, robin.frame.as_deref()).await;
    let mut planned = planned(context, key, cluster, &observed, other_operator);
    if robin.frame.is_some() && planned.plan.steps.iter().any(needs_proof) {
        // Nothing is deleted on Robin's word alone.
        observed = observe(context, key, cluster, None).await;
        planned = self::planned(context, key, cluster, &observed, other_operator);
    }
    decisions::log(context, key, &planned.plan);
    let ours: Vec<Step> = planned
        .plan
        .steps
        .iter()
        .filter(|step| robin.stands_in || !is_for_servers(step))
        .cloned()
        .collect();
    let robin_acts = ours.len() < planned.plan.steps.len();
    let (rescues, steps): (Vec<Step>, Vec<Step>) = ours.into_iter().partition(Step::is_rescue);
    let admitted = admitted(cluster, &planned);
    let now = if admitted { steps } else { Vec::new() };
    let mut outcomes = act(context, key, &observed, &planned, &rescues).await;
    outcomes.extend(act(context, key, &observed, &planned, &now).await);
    let mut attempts = context.states.attempts(key);
    attempts.record(&planned.observed, &planned.plan, &mut outcomes, Timestamp::now());
    let written = tell(context, key, cluster, &robin.state, &observed, &planned, &outcomes).await?;
    if written {
        context.robins.refresh(key);
    }
    let failed = outcomes.iter().any(|one| one.result.is_err());
    let next = if written || !admitted {
        AT_ONCE
    } else if failed && rescues.is_empty() {
        attempts.back_off(Timestamp::now())
    } else if !outcomes.is_empty() {
        SOON
    } else if robin_acts {
        // Robin reports every change at once.
        LATER
    } else if planned.plan.stage == Stage::Healthy {
        planned.plan.requeue_after
    } else {
        attempts
            .wait_in(&planned.plan.stage, Timestamp::now())
            .min(planned.plan.requeue_after)
    };
    context.states.with(key, |state| state.attempts = attempts);
    Ok(next)
}

/// Whether a step must be planned from the operator's own observation.
fn needs_proof(step: &Step) -> bool {
    matches!(step, Step::DeleteMember(_) | Step::RollMember(_))
}

/// Whether the steps may be executed: status already says so. The row of a stage is written before its work, and a
/// step that would make Ready untrue runs only after Ready is False.
fn admitted(cluster: &RedkeyCluster, planned: &Planned) -> bool {
    if cluster.status.is_none() {
        return false;
    }
    let row = stored(cluster);
    match planned.progress {
        Progress::Running { work, restarted } => admits(row, work) && !restarted,
        Progress::Unchanged => true,
        Progress::Steady(status) => {
            let ready = row.status == Some(ClusterStatus::Ready) && is_ready(cluster);
            let announced = row.status == Some(status) || !matches!(status, ClusterStatus::ScalingDown);
            announced && (!ready || !planned.plan.pending().any(Step::disturbs))
        }
    }
}

fn is_ready(cluster: &RedkeyCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| &status.conditions);
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// Builds the report and writes it; returns whether status changed.
async fn tell(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    robin: &Robin,
    observed: &Observed,
    planned: &Planned,
    outcomes: &[Outcome],
) -> Result<bool, WriteError> {
    let Report { mut status, events } = report(&ReportInput {
        cluster,
        planned,
        outcomes,
        robin,
        revision: &observed.revision,
        selector: &observed.selector(key),
        adopted: observed
            .kept
            .as_ref()
            .map(|kept| kept.adopted.as_str())
            .unwrap_or_default(),
        ignored: &observed.ignored,
        password: observed.password_change,
        now: Timestamp::now(),
    });
    if !context.leadership.is_ours() {
        return Ok(false);
    }
    truncate::fit_messages(&mut status.conditions);
    if events.is_empty()
        && is_only_progress(cluster, &status)
        && context.states.with(key, |state| state.hold_progress()).is_some()
    {
        return Ok(false);
    }
    let api: Api<RedkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let written = context.writer.apply(&api, cluster, &status).await;
    let about = cluster.object_ref(&());
    for notice in events {
        tracing::info!(cluster = %key, reason = notice.reason, note = notice.note, "event");
        context.redkey_events.record(&about, notice);
    }
    note_state(context, key, &status);
    match written? {
        Written::Unchanged => Ok(false),
        Written::Changed(newer) => {
            context.caches.redkeys.put(*newer);
            context.states.with(key, crate::runtime::state::ClusterState::written);
            context.metrics.status_writes.get_or_create(&key.into()).inc();
            Ok(true)
        }
    }
}

/// Whether only the counters of the running operation changed.
fn is_only_progress(cluster: &RedkeyCluster, after: &candor_api::RedkeyClusterStatus) -> bool {
    let bare = |status: &candor_api::RedkeyClusterStatus| {
        let mut bare = status.clone();
        bare.topology.clear();
        if let Some(operation) = &mut bare.operation {
            (operation.slots_moved, operation.slots_total) = (None, None);
        }
        bare
    };
    let before = cluster.status.as_ref();
    before.is_some_and(|before| before != after && bare(before) == bare(after))
}

fn note_state(context: &Context, key: &ClusterKey, status: &candor_api::RedkeyClusterStatus) {
    let ready = status
        .conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == "True");
    context.metrics.ready.get_or_create(&key.into()).set(i64::from(ready));
    let operation = status.operation.as_ref().map(|running| format!("{:?}", running.kind));
    context.metrics.is_in(key, &status.status, operation.as_deref());
    let troubles = status.conditions.iter().filter_map(|one| {
        Some(Trouble {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            condition: one.type_.clone(),
            reason: one.reason.clone(),
            severity: format!("{:?}", one.severity()?),
            resource: key.kind.name(),
        })
    });
    context.metrics.has_troubles(key, troubles.collect());
}

async fn leave(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster) -> Option<Duration> {
    context.monitor.forget(key);
    context.robins.forget(key);
    if context.settings.dry_run {
        return Some(LATER);
    }
    match deletion::leave(context, key, cluster).await {
        Ok(true) => None,
        Ok(false) => Some(LATER),
        Err(error) => {
            tracing::warn!(cluster = %key, error, "deletion could not be finished");
            Some(back_off(context, key))
        }
    }
}

async fn dry_run(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    other_operator: Option<&str>,
) -> Duration {
    let observed = observe(context, key, cluster, None).await;
    let planned = planned(context, key, cluster, &observed, other_operator);
    let steps: Vec<String> = planned.plan.steps.iter().map(|step| format!("{step:?}")).collect();
    decisions::log_dry_run(context, key, &planned.plan.stage.to_string(), &steps.join(", "));
    planned.plan.requeue_after.max(Duration::from_secs(1))
}
