//! One reconcile of a `RedkeyCluster`: what differs from other kinds.

use std::sync::Arc;
use std::time::Duration;

use candor_api::redkey::status::{ClusterStatus, OperationKind};
use candor_api::{RedkeyCluster, RedkeyClusterStatus};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::redkey::operation::{Input, Planned, is_paused, plan, stored};
use candor_engine::kinds::redkey::report::{Report, ReportInput, report};
use candor_engine::kinds::redkey::rows::{Progress, admits};
use candor_engine::observation::Observation;
use candor_engine::outcome::Outcome;
use candor_engine::plan::Plan;
use candor_engine::step::Step;
use jiff::Timestamp;
use kube::api::Patch;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::act::{act, params};
use super::deletion;
use super::observe::{Observed, observe};
use super::robin::agent::planning::is_for_servers;
use super::robin_state::{Followed, follow};
use crate::decisions;
use crate::kinds::{Begun, Kind};
use crate::reconcile::{AT_ONCE, Done, ReconcileError, SOON};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;
use crate::write::{self, Published, Writing, note_state, publish, truncate};

/// Requeue delay while something else must happen first: Robin reports every change at once.
const LATER: Duration = Duration::from_millis(500);

/// An observed cluster.
pub(crate) struct Redkey {
    cluster: Arc<RedkeyCluster>,
    observed: Observed,
    robin: Followed,
    /// The existing operator, if it runs.
    other_operator: Option<String>,
}

impl Kind for Redkey {
    type Cluster = RedkeyCluster;
    type Planned = Planned;
    const CONTINUES_AFTER_WRITE: bool = true;
    const DELEGATED: Duration = LATER;

    fn cached(context: &Context, key: &ClusterKey) -> Option<Arc<RedkeyCluster>> {
        context.caches.redkeys.get_in(&key.namespace, &key.name)
    }

    async fn observe(
        context: &Arc<Context>,
        key: &ClusterKey,
        cluster: Arc<RedkeyCluster>,
    ) -> Result<Begun<Self>, ReconcileError> {
        if !context.caches.has_redkeys() {
            return Ok(ended(SOON));
        }
        let other_operator = context.other_operator.find(context, key).await;
        if cluster.metadata.deletion_timestamp.is_some() {
            return match other_operator {
                // It removes its own finalizers.
                Some(_) => Ok(ended(LATER)),
                None => leave(context, key, &cluster).await,
            };
        }
        if context.settings.dry_run {
            let next = dry_run(context, key, &cluster, other_operator.as_deref()).await;
            return Ok(ended(next));
        }
        if !is_paused(&cluster) && other_operator.is_none() && deletion::hold(context, key, &cluster).await? {
            return Ok(ended(AT_ONCE));
        }
        let robin = follow(context, key, &cluster);
        if other_operator.is_none() {
            robin.replace_overdue(context, key).await;
        }
        let observed = observe(context, key, &cluster, robin.frame.as_deref()).await;
        if robin.is_of_unknown_version() {
            let other = other_operator.as_deref();
            let planned = planned(&cluster, &observed, other, &context.states.attempts(key));
            if begins(&cluster, &planned) {
                return Ok(ended(LATER));
            }
        }
        Ok(Begun::Observed(Self {
            cluster,
            observed,
            robin,
            other_operator,
        }))
    }

    async fn plan(&mut self, context: &Context, key: &ClusterKey, attempts: &Attempts) -> Planned {
        let other_operator = self.other_operator.as_deref();
        // Robin executes the commands to servers, and counts what they reject.
        let attempts = &match &self.robin.frame {
            Some(frame) => attempts.with_rejected(&frame.rejected),
            None => attempts.clone(),
        };
        let mut planned = planned(&self.cluster, &self.observed, other_operator, attempts);
        if self.robin.frame.is_some() && planned.plan.steps.iter().any(ends_servers) {
            // Nothing is deleted on Robin's word alone.
            self.observed = observe(context, key, &self.cluster, None).await;
            planned = self::planned(&self.cluster, &self.observed, other_operator, attempts);
        }
        if let Some(due) = self.robin.due_in() {
            planned.plan.requeue_after = planned.plan.requeue_after.min(due);
        }
        planned
    }

    fn decision<'a>(&'a self, planned: &'a Planned) -> (&'a Plan, &'a Observation) {
        (&planned.plan, &planned.observed)
    }

    fn is_admitted(&self, planned: &Planned) -> bool {
        admitted(&self.cluster, planned)
    }

    fn executes(&self, step: &Step) -> bool {
        // A Robin that may be alive and was not heard may be moving slots to the server.
        let waits = self.robin.is_uncertain() && ends_servers(step);
        !waits && (self.robin.stands_in || !is_for_servers(step))
    }

    async fn act(&self, context: &Context, key: &ClusterKey, planned: &Planned, steps: &[Step]) -> Vec<Outcome> {
        act(context, key, &self.cluster, &self.observed, planned, steps).await
    }

    async fn publish(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        planned: &Planned,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Published, ReconcileError> {
        let observed = &self.observed;
        let Report { mut status, events } = report(&ReportInput {
            cluster: &self.cluster,
            planned,
            outcomes,
            robin: &self.robin.state,
            rejected: self.robin.frame.as_ref().map_or(&[], |frame| &frame.rejected),
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
            return Ok(Published::Unchanged);
        }
        truncate::fit_messages(&mut status.conditions);
        let writing = Writing {
            cluster: &*self.cluster,
            status: &status,
            events: &events,
            only_progress: is_only_progress(&self.cluster, &status),
            cache: &context.caches.redkeys,
            recorder: &context.redkey_events,
        };
        let published = publish(context, key, writing).await;
        let operation = status.operation.as_ref().map(|running| format!("{:?}", running.kind));
        note_state(context, key, &status.status, operation.as_deref(), &status.conditions);
        let published = published?;
        remove_foreign_nodes(context, key, &status).await;
        if published == Published::Written {
            context.robins.refresh(key);
        }
        Ok(published)
    }
}

/// Removes the entries of `status.nodes` that another operator, or a person, has written: an apply leaves them alone.
async fn remove_foreign_nodes(context: &Context, key: &ClusterKey, status: &RedkeyClusterStatus) {
    let Some(stored) = Redkey::cached(context, key) else {
        return;
    };
    let nodes = stored.status.iter().flat_map(|stored| stored.nodes.keys());
    let foreign = nodes.filter(|id| !status.nodes.contains_key(*id));
    let foreign: serde_json::Map<String, Value> = foreign.map(|id| (id.clone(), Value::Null)).collect();
    if foreign.is_empty() {
        return;
    }
    let api: Api<RedkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {"uid": stored.uid()}, "status": {"nodes": foreign}});
    match api.patch_status(&key.name, &params(), &Patch::Merge(patch)).await {
        Ok(newer) => drop(context.caches.redkeys.put(newer)),
        Err(error) => tracing::warn!(cluster = %key, %error, "foreign entries of status.nodes stay for now"),
    }
}

/// Ends a reconcile without a status write.
fn ended(next: Duration) -> Begun<Redkey> {
    let published = Published::Unchanged;
    Begun::Ended(Some(Done { published, next }))
}

fn planned(cluster: &RedkeyCluster, observed: &Observed, other_operator: Option<&str>, attempts: &Attempts) -> Planned {
    plan(&Input {
        cluster,
        other_operator,
        set: observed.set.as_ref(),
        revision: &observed.revision,
        members: &observed.members,
        base: &observed.base,
        attempts,
        node_timeout: observed.node_timeout,
        now: Timestamp::now(),
    })
}

/// Whether the plan begins an operation on a complete cluster.
fn begins(cluster: &RedkeyCluster, planned: &Planned) -> bool {
    let status = cluster.status.as_ref();
    let idle = status.is_some_and(|status| status.formed && status.operation.is_none());
    let kind = planned.operation.map(|running| running.kind);
    idle && matches!(
        kind,
        Some(OperationKind::ScaleUp | OperationKind::ScaleDown | OperationKind::Upgrade)
    )
}

/// Whether a step deletes pods of servers: it must be planned from the operator's own observation. `StopServers` is not
/// one of them: a user asks for it.
fn ends_servers(step: &Step) -> bool {
    matches!(
        step,
        Step::DeleteMember(_) | Step::RollMember(_) | Step::RecreateSet | Step::DeleteOrphanedPod(_)
    )
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
    let status = cluster.status.as_ref();
    status.is_some_and(|status| write::is_ready(&status.conditions))
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

async fn leave(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster) -> Result<Begun<Redkey>, ReconcileError> {
    context.monitor.forget(key);
    context.robins.forget(key);
    if context.settings.dry_run {
        return Ok(ended(LATER));
    }
    match deletion::leave(context, key, cluster).await {
        Ok(true) => Ok(Begun::Ended(None)),
        Ok(false) => Ok(ended(LATER)),
        Err(message) => Err(ReconcileError::Deletion(message)),
    }
}

async fn dry_run(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    other_operator: Option<&str>,
) -> Duration {
    let observed = observe(context, key, cluster, None).await;
    let planned = planned(cluster, &observed, other_operator, &context.states.attempts(key));
    let steps: Vec<String> = planned.plan.steps.iter().map(|step| format!("{step:?}")).collect();
    decisions::log_dry_run(context, key, &planned.plan.stage.to_string(), &steps.join(", "));
    planned.plan.requeue_after.max(Duration::from_secs(1))
}
