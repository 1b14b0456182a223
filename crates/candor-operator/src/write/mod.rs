//! Publishes the status of the cluster, the `ValkeyNode` objects of its members, and events. At most one status write
//! per reconcile, none if nothing changed, and mere progress at most once a second.

pub(crate) mod truncate;

use std::collections::BTreeMap;
use std::time::Duration;

use candor_api::{Condition, ValkeyCluster, ValkeyClusterStatus, ValkeyNode, ValkeyNodeStatus};
use candor_engine::kinds::valkey;
use candor_engine::kinds::valkey::report::Report;
use candor_engine::model::MemberRef;
use candor_engine::outcome::ObjectKind;
use futures::future::join;
use kube::{Api, ResourceExt};
use kube_status::events::{EventPublisher, Notice, Recorder};
use kube_status::writer::{WriteError, Written};
use serde::Serialize;

use crate::act::apply::{Object, apply, delete};
use crate::act::ownership::Owner;
use crate::objects::{self, labels};
use crate::runtime::cache::{Cache, ClusterKey};
use crate::runtime::context::Context;
use crate::runtime::limits::at_once;
use crate::runtime::metrics::Trouble;

/// The result of a status write.
#[derive(Debug, PartialEq, Eq)]
pub enum Published {
    /// Nothing changed.
    Unchanged,
    /// The status was written.
    Written,
    /// Only progress changed, and it may be written after this time.
    Held(Duration),
}

/// What is written of a cluster, whatever its kind.
pub(crate) struct Writing<'a, K, S> {
    pub cluster: &'a K,
    pub status: &'a S,
    pub events: &'a [Notice],
    /// Only the counters of the running operation changed.
    pub only_progress: bool,
    pub cache: &'a Cache<K>,
    pub recorder: &'a EventPublisher,
}

/// Writes status and records events.
pub(crate) async fn publish<K, S>(
    context: &Context,
    key: &ClusterKey,
    writing: Writing<'_, K, S>,
) -> Result<Published, WriteError>
where
    K: Object,
    S: Serialize,
{
    // Outcomes are reported only once: they are written without delay.
    if writing.events.is_empty()
        && writing.only_progress
        && let Some(wait) = context.states.with(key, |state| state.hold_progress())
    {
        return Ok(Published::Held(wait));
    }
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let written = context.writer.apply(&api, writing.cluster, writing.status).await;
    // Events are recorded even if the status write failed: the outcomes are final.
    let about = writing.cluster.object_ref(&());
    for notice in writing.events {
        tracing::info!(cluster = %key, reason = notice.reason, note = notice.note, "event");
        writing.recorder.record(&about, notice.clone());
    }
    match written? {
        Written::Unchanged => Ok(Published::Unchanged),
        Written::Changed(newer) => {
            writing.cache.put(*newer);
            context.states.with(key, crate::runtime::state::ClusterState::written);
            context.metrics.status_writes.get_or_create(&key.into()).inc();
            Ok(Published::Written)
        }
    }
}

/// Whether Ready is True.
pub(crate) fn is_ready(conditions: &[Condition]) -> bool {
    conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Updates the metrics of a cluster from its status.
pub(crate) fn note_state(
    context: &Context,
    key: &ClusterKey,
    state: &str,
    operation: Option<&str>,
    conditions: &[Condition],
) {
    let ready = conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == "True");
    context.metrics.ready.get_or_create(&key.into()).set(i64::from(ready));
    context.metrics.is_in(key, state, operation);
    let troubles = conditions.iter().filter_map(|one| {
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

/// Writes the report of a `ValkeyCluster`.
pub async fn write(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    report: &Report,
) -> Result<Published, WriteError> {
    let before = cluster.status.clone().unwrap_or_default();
    let mut status = report.status.clone();
    truncate::fit(&mut status);
    let writing = Writing {
        cluster,
        status: &status,
        events: &report.events,
        only_progress: is_only_progress(&before, &status),
        cache: &context.caches.clusters,
        recorder: &context.events,
    };
    publish(context, key, writing).await
}

/// Whether two statuses differ only in the operation's counters and the messages that repeat them.
fn is_only_progress(before: &ValkeyClusterStatus, after: &ValkeyClusterStatus) -> bool {
    fn bare(status: &ValkeyClusterStatus) -> ValkeyClusterStatus {
        let mut bare = status.clone();
        bare.message.clear();
        bare.topology.clear();
        bare.conditions.clear();
        if let Some(operation) = &mut bare.operation {
            (operation.step, operation.steps) = (0, 0);
            (operation.slots_moved, operation.slots_total) = (None, None);
        }
        bare
    }
    let same_but_for_text = |(one, other): (&Condition, &Condition)| {
        let apart = |one: &Condition| {
            (
                one.type_.clone(),
                one.status.clone(),
                one.reason.clone(),
                one.severity(),
            )
        };
        apart(one) == apart(other) && one.observed_generation == other.observed_generation
    };
    before != after
        && bare(before) == bare(after)
        && before.conditions.len() == after.conditions.len()
        && before.conditions.iter().zip(&after.conditions).all(same_but_for_text)
}

/// Writes the `ValkeyNode` objects: creates missing ones and updates changed statuses. It also deletes the `ValkeyNode`
/// of a member that has nothing else left: an operator may have terminated between the two deletions.
pub async fn write_nodes(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    statuses: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<String> {
    let writes = statuses
        .iter()
        .map(|(at, status)| write_node(context, key, cluster, *at, status));
    let desired = valkey::desired(cluster);
    let valkey_nodes = Owner::of(context, key).list(&context.caches.valkey_nodes);
    let left = valkey_nodes
        .iter()
        .filter_map(|node| labels::member_of(node.labels()))
        .filter(|at| !statuses.contains_key(at) && !desired.includes(*at) && !has_workload(context, key, *at))
        .map(|at| delete_node(context, key, at));
    let (written, deleted) = join(at_once(writes.collect()), at_once(left.collect())).await;
    written.into_iter().chain(deleted).filter_map(Result::err).collect()
}

async fn delete_node(context: &Context, key: &ClusterKey, at: MemberRef) -> Result<(), String> {
    let name = objects::names::node(&key.name, at);
    delete(
        context,
        &context.caches.valkey_nodes,
        key,
        ObjectKind::ValkeyNode,
        &name,
    )
    .await
    .map(drop)
    .map_err(|failure| format!("ValkeyNode {name}: {}", failure.message))
}

async fn write_node(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    at: MemberRef,
    status: &ValkeyNodeStatus,
) -> Result<(), String> {
    let name = objects::names::node(&key.name, at);
    if !valkey::desired(cluster).includes(at) {
        // The member is being removed: its `ValkeyNode` is deleted with it and never created again.
        if !has_workload(context, key, at) {
            return delete_node(context, key, at).await;
        }
        if context.caches.valkey_nodes.get(key, &name).is_none() {
            return Ok(());
        }
    }
    let desired = objects::node(cluster, at);
    apply(
        context,
        &context.caches.valkey_nodes,
        key,
        ObjectKind::ValkeyNode,
        &desired,
    )
    .await
    .map_err(|failure| format!("ValkeyNode {name}: {}", failure.message))?;
    let Some(live) = context.caches.valkey_nodes.get(key, &name) else {
        return Ok(());
    };
    let api: Api<ValkeyNode> = Api::namespaced(context.client.clone(), &key.namespace);
    let mut status = status.clone();
    truncate::fit_messages(&mut status.conditions);
    match context.writer.apply(&api, &live, &status).await {
        Ok(Written::Changed(newer)) => {
            context.caches.valkey_nodes.put(*newer);
            Ok(())
        }
        Ok(Written::Unchanged) => Ok(()),
        // Another writer changed it meanwhile: the watch delivers the new version, and the next reconcile writes it.
        Err(error) if error.is_race() || error.is_not_found() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn has_workload(context: &Context, key: &ClusterKey, at: MemberRef) -> bool {
    let name = objects::names::workload(&key.name, at);
    let (owner, caches) = (Owner::of(context, key), &context.caches);
    owner.get(&caches.deployments, &name).is_some() || owner.get(&caches.stateful_sets, &name).is_some()
}
