//! One reconcile of a `ValkeyCluster`: what differs from other kinds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use candor_api::{ValkeyCluster, ValkeyNode};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::valkey;
use candor_engine::kinds::valkey::report::{Report, ReportInput, report};
use candor_engine::model::MemberRef;
use candor_engine::observation::Observation;
use candor_engine::outcome::Outcome;
use candor_engine::plan::{Plan, plan};
use candor_engine::step::Step;
use jiff::{SignedDuration, Timestamp};
use kube::{Api, ResourceExt};
use kube_status::finalizer::Finalization;

use crate::act::act;
use crate::act::deletion::Leaving;
use crate::act::ownership::Owner;
use crate::dry_run::dry_run;
use crate::kinds::{Begun, Kind};
use crate::objects::labels;
use crate::observe::{Observed, observe};
use crate::reconcile::{AT_ONCE, Done, ReconcileError, chain};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;
use crate::write::{self, Published, note_state, write_nodes};

/// How long a deletion waits for a status write that sets Ready to False.
const OVERDUE: SignedDuration = SignedDuration::from_secs(30);

/// An observed cluster.
pub(crate) struct Valkey {
    cluster: Arc<ValkeyCluster>,
    observed: Observed,
}

impl Kind for Valkey {
    type Cluster = ValkeyCluster;
    type Planned = Plan;
    const CONTINUES_AFTER_WRITE: bool = false;
    const DELEGATED: Duration = AT_ONCE;

    fn cached(context: &Context, key: &ClusterKey) -> Option<Arc<ValkeyCluster>> {
        context.caches.clusters.get_in(&key.namespace, &key.name)
    }

    async fn observe(
        context: &Arc<Context>,
        key: &ClusterKey,
        cluster: Arc<ValkeyCluster>,
    ) -> Result<Begun<Self>, ReconcileError> {
        if context.settings.dry_run {
            let next = dry_run(context, key, &cluster).await;
            let published = Published::Unchanged;
            return Ok(Begun::Ended(Some(Done { published, next })));
        }
        let Some(cluster) = held(context, key, cluster).await? else {
            return Ok(Begun::Ended(None));
        };
        if cluster.metadata.deletion_timestamp.is_some() {
            return leave(context, key, &cluster).await.map(Begun::Ended);
        }
        let observed = observe(context, key, &cluster).await;
        Ok(Begun::Observed(Self { cluster, observed }))
    }

    async fn plan(&mut self, _: &Context, _: &ClusterKey, attempts: &Attempts) -> Plan {
        plan_of(&self.observed, attempts)
    }

    fn decision<'a>(&'a self, plan: &'a Plan) -> (&'a Plan, &'a Observation) {
        (plan, &self.observed.observation)
    }

    fn is_admitted(&self, plan: &Plan) -> bool {
        self.cluster.status.is_some()
            && (!is_ready(&self.cluster) || !plan.pending().any(Step::disturbs))
            && plan.is_announced(&self.observed.memory)
    }

    fn executes(&self, _: &Step) -> bool {
        true
    }

    async fn act(&self, context: &Context, key: &ClusterKey, _: &Plan, steps: &[Step]) -> Vec<Outcome> {
        act(context, key, &self.cluster, &self.observed, steps).await
    }

    async fn publish(
        &mut self,
        context: &Context,
        key: &ClusterKey,
        plan: &Plan,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Published, ReconcileError> {
        let cluster = answered(context, key, self.cluster.clone(), outcomes);
        publish(context, key, &cluster, &self.observed, plan, outcomes).await
    }
}

/// The plan from an observation.
fn plan_of(observed: &Observed, attempts: &Attempts) -> Plan {
    let now = Timestamp::now();
    plan(
        &observed.desired,
        &observed.observation,
        &observed.memory,
        attempts,
        now,
    )
}

/// Removing a request changes the cluster's resource version: status is written over the new version.
fn answered(
    context: &Context,
    key: &ClusterKey,
    cluster: Arc<ValkeyCluster>,
    outcomes: &[Outcome],
) -> Arc<ValkeyCluster> {
    let answered =
        |outcome: &Outcome| matches!(outcome.step, Step::ClearFailoverRequest { .. }) && outcome.result.is_ok();
    if !outcomes.iter().any(answered) {
        return cluster;
    }
    let newer = context.caches.clusters.get_in(&key.namespace, &key.name);
    let same = |newer: &Arc<ValkeyCluster>| {
        newer.uid() == cluster.uid() && newer.metadata.generation == cluster.metadata.generation
    };
    newer.filter(same).unwrap_or(cluster)
}

/// The cluster with the operator's finalizer; `None` if it is deleted.
async fn held(
    context: &Context,
    key: &ClusterKey,
    cluster: Arc<ValkeyCluster>,
) -> Result<Option<Arc<ValkeyCluster>>, ReconcileError> {
    if cluster.metadata.deletion_timestamp.is_some() || valkey::desired(&cluster).paused {
        return Ok(Some(cluster));
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let leaving = Leaving { context, key };
    match context.finalizer.reconcile(&api, &cluster, &(), None, &leaving).await? {
        Finalization::Live | Finalization::Deleting { .. } => Ok(Some(cluster)),
        Finalization::Held(held) => Ok(Some(context.caches.clusters.put(*held))),
        Finalization::Released | Finalization::NotHeld => Ok(None),
    }
}

/// Cleans up a cluster that is being deleted, and reports it.
async fn leave(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Result<Option<Done>, ReconcileError> {
    // Status is written first here too: no member is deleted while Ready is still True, unless the status write fails
    // for too long.
    if is_ready(cluster) {
        match publish_leaving(context, key, cluster).await {
            Ok(published) => {
                return Ok(Some(Done {
                    published,
                    next: AT_ONCE,
                }));
            }
            Err(error) if is_overdue(cluster) => {
                tracing::warn!(cluster = %key, error = %chain(&error), "deleted without a status that says so");
            }
            Err(error) => return Err(error),
        }
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let leaving = Leaving { context, key };
    match context.finalizer.reconcile(&api, cluster, &(), None, &leaving).await? {
        Finalization::Deleting { retry_after, .. } => {
            let published = publish_leaving(context, key, cluster).await?;
            Ok(Some(Done {
                published,
                next: retry_after,
            }))
        }
        Finalization::Live | Finalization::Held(_) | Finalization::Released | Finalization::NotHeld => Ok(None),
    }
}

fn is_overdue(cluster: &ValkeyCluster) -> bool {
    let asked = cluster.metadata.deletion_timestamp.as_ref();
    asked.is_some_and(|asked| Timestamp::now().duration_since(asked.0) > OVERDUE)
}

async fn publish_leaving(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
) -> Result<Published, ReconcileError> {
    context.monitor.forget(key);
    let observation = Observation {
        deleting: true,
        objects_ready: true,
        ..Observation::default()
    };
    let observed = Observed::unseen(cluster, observation);
    let plan = plan_of(&observed, &Attempts::default());
    publish(context, key, cluster, &observed, &plan, &[]).await
}

/// Builds the report and writes it.
async fn publish(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    observed: &Observed,
    plan: &Plan,
    outcomes: &[Outcome],
) -> Result<Published, ReconcileError> {
    let nodes = valkey_nodes(context, key);
    let Report { status, nodes, events } = report(&ReportInput {
        cluster,
        nodes: &nodes,
        desired: &observed.desired,
        observed: &observed.observation,
        memory: &observed.memory,
        plan,
        outcomes,
        now: Timestamp::now(),
    });
    let report = Report { status, nodes, events };
    if !context.leadership.is_ours() {
        tracing::info!(cluster = %key, "the lease is over: the next operator reports this");
        return Ok(Published::Unchanged);
    }
    let published = write::write(context, key, cluster, &report).await?;
    if published == Published::Written {
        note_failovers(context, key, cluster, &report);
    }
    let state = report
        .status
        .state
        .map(|state| format!("{state:?}"))
        .unwrap_or_default();
    let operation = report.status.operation.as_ref();
    let operation = operation.map(|running| format!("{:?}", running.kind));
    note_state(context, key, &state, operation.as_deref(), &report.status.conditions);
    for problem in write_nodes(context, key, cluster, &report.nodes).await {
        tracing::warn!(cluster = %key, problem, "a ValkeyNode could not be written");
    }
    Ok(published)
}

/// The current `ValkeyNode` objects.
fn valkey_nodes(context: &Context, key: &ClusterKey) -> BTreeMap<MemberRef, ValkeyNode> {
    let nodes = Owner::of(context, key).list(&context.caches.valkey_nodes);
    nodes
        .into_iter()
        .filter_map(|node| Some((labels::member_of(node.labels())?, ValkeyNode::clone(&node))))
        .collect()
}

/// Counts shards that have another primary than the previous status had.
fn note_failovers(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster, report: &Report) {
    let before = cluster.status.as_ref().map(|status| status.topology.as_slice());
    for (member, _) in valkey::promotions(before.unwrap_or_default(), &report.status.topology) {
        context.metrics.took_over(key, member);
    }
}

fn is_ready(cluster: &ValkeyCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| write::is_ready(&status.conditions))
}
