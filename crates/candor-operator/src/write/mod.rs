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
use kube::{Api, Resource, ResourceExt};
use kube_status::events::Recorder;
use kube_status::writer::{WriteError, Written};

use crate::act::apply::{apply, delete};
use crate::act::ownership::Owner;
use crate::objects::{self, labels};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;
use crate::runtime::limits::at_once;

/// The result of a status write.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing changed.
    Unchanged,
    /// The status was written.
    Written,
    /// Only progress changed, and it may be written after this time.
    Held(Duration),
}

/// Writes a report.
pub async fn write(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    report: &Report,
) -> Result<Told, WriteError> {
    let before = cluster.status.clone().unwrap_or_default();
    let mut status = report.status.clone();
    truncate::fit(&mut status);
    // Outcomes are reported only once: they are written without delay.
    if report.events.is_empty()
        && is_only_progress(&before, &status)
        && let Some(wait) = context.states.with(key, |state| state.hold_progress())
    {
        return Ok(Told::Held(wait));
    }
    let api: Api<ValkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let written = context.writer.apply(&api, cluster, &status).await;
    // Events are recorded even if the status write failed: the outcomes are final.
    let about = cluster.object_ref(&());
    for notice in &report.events {
        tracing::info!(cluster = %key, reason = notice.reason, note = notice.note, "told");
        context.events.record(&about, notice.clone());
    }
    let told = match written? {
        Written::Unchanged => Told::Unchanged,
        Written::Changed(newer) => {
            context.caches.clusters.put(*newer);
            context.states.with(key, crate::runtime::state::ClusterState::written);
            context.metrics.status_writes.get_or_create(&key.into()).inc();
            Told::Written
        }
    };
    Ok(told)
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
    let same_but_for_words = |(one, other): (&Condition, &Condition)| {
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
        && before.conditions.iter().zip(&after.conditions).all(same_but_for_words)
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
    let windows = Owner::of(context, key).list(&context.caches.valkey_nodes);
    let left = windows
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
        Err(error) if error.is_race() || error.is_gone() => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

fn has_workload(context: &Context, key: &ClusterKey, at: MemberRef) -> bool {
    let name = objects::names::workload(&key.name, at);
    let (owner, caches) = (Owner::of(context, key), &context.caches);
    owner.get(&caches.deployments, &name).is_some() || owner.get(&caches.stateful_sets, &name).is_some()
}
