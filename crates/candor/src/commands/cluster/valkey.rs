//! `ValkeyCluster` in the terms of the screens.

use std::collections::BTreeMap;

use candor_api::valkey::advice::Advice;
use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::valkey::events::ClusterEvent;
use candor_api::valkey::status::{self, OperationKind};
use candor_api::{ValkeyCluster, ValkeyNode};
use candor_engine::model::{MemberRef, ShardIndex};
use kube::ResourceExt;
use kube_status::{ConditionType, Metav1, Polarity, Reason};

use super::{Cluster, Kind, Member, MemberId, Operation, ShardSlots};

/// The cluster, with the state of the members that have a `ValkeyNode`.
pub fn view(cluster: &ValkeyCluster, nodes: &[ValkeyNode]) -> Cluster {
    let status = cluster.status.clone().unwrap_or_default();
    let slots = status.topology.iter().filter_map(|shard| {
        Some(ShardSlots {
            shard: u32::try_from(shard.shard).ok()?,
            slots: shard.slots.clone(),
            keys: u64::try_from(shard.keys).ok(),
        })
    });
    Cluster {
        kind: Kind::ValkeyCluster,
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
        created: cluster.metadata.creation_timestamp.as_ref().map(|time| time.0),
        deleting: cluster.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        generation: cluster.metadata.generation,
        observed_generation: status.observed_generation,
        state: status.state.map(|state| format!("{state:?}")).unwrap_or_default(),
        reason: status.reason.clone(),
        stage: None,
        paused: cluster.spec.paused == Some(true),
        shards: cluster.spec.shards,
        replicas: cluster.spec.replicas.unwrap_or(0),
        ready_shards: status.ready_shards,
        slots: slots.collect(),
        members: members(&status.topology, nodes),
        operation: status.operation.as_ref().map(operation),
        conditions: status.conditions,
    }
}

fn place(shard: i32, node: i32) -> Option<MemberRef> {
    Some(MemberRef {
        shard: ShardIndex(u32::try_from(shard).ok()?),
        node: u32::try_from(node).ok()?,
    })
}

/// The members that status remembers, and those that have a `ValkeyNode`.
fn members(topology: &[status::ShardTopology], nodes: &[ValkeyNode]) -> Vec<Member> {
    let mut all: BTreeMap<MemberRef, Member> = BTreeMap::new();
    let new = |at: MemberRef| Member::new(MemberId::Place(at), Some(at.shard.0));
    for shard in topology {
        for remembered in &shard.members {
            let Some(at) = place(shard.shard, remembered.node) else {
                continue;
            };
            let member = all.entry(at).or_insert_with(|| new(at));
            member.node_id.clone_from(&remembered.node_id);
            member.role = remembered.role;
        }
    }
    for node in nodes {
        let Some(at) = place(node.spec.shard, node.spec.node) else {
            continue;
        };
        let member = all.entry(at).or_insert_with(|| new(at));
        let status = node.status.clone().unwrap_or_default();
        let ready = status.conditions.iter().find(|one| one.plain().type_ == "Ready");
        member.role = status.role.or(member.role);
        member.pod = status.pod_name;
        member.ip = status.pod_ip;
        member.ready = Some(status.ready);
        member.reason = ready.map(|one| one.reason.clone()).unwrap_or_default();
        member.severity = ready.and_then(Metav1::severity);
        member.message = ready.map(|one| one.message.clone()).unwrap_or_default();
        member.since = ready.map(|one| one.last_transition_time.0);
    }
    all.into_values().collect()
}

fn operation(operation: &status::Operation) -> Operation {
    let kind = match operation.kind {
        OperationKind::Create => "Creating",
        OperationKind::Heal => "Healing",
        OperationKind::ScaleOut => "Scaling out",
        OperationKind::ScaleIn => "Scaling in",
        OperationKind::Roll => "Rolling",
        OperationKind::Rebalance => "Rebalancing",
        OperationKind::Failover => "Failing over",
        OperationKind::Configure => "Configuring",
        OperationKind::Delete => "Deleting",
    };
    Operation {
        kind: kind.to_owned(),
        started_at: operation.started_at.0,
        attempts: operation.attempts,
        member: operation.member.clone(),
        step: operation.step,
        steps: operation.steps,
        slots_moved: operation.slots_moved,
        slots_total: operation.slots_total,
        stage: String::new(),
    }
}

/// Events about written objects and about the steps of forming a cluster.
const HOUSEKEEPING: [ClusterEvent; 17] = [
    ClusterEvent::ServiceCreated,
    ClusterEvent::ConfigMapCreated,
    ClusterEvent::DeploymentCreated,
    ClusterEvent::StatefulSetCreated,
    ClusterEvent::PersistentVolumeClaimCreated,
    ClusterEvent::InternalSecretsCreated,
    ClusterEvent::InternalSecretsUpdated,
    ClusterEvent::PodDisruptionBudgetCreated,
    ClusterEvent::PodDisruptionBudgetUpdated,
    ClusterEvent::PodDisruptionBudgetDeleted,
    ClusterEvent::ValkeyNodeCreated,
    ClusterEvent::ValkeyNodeDeleted,
    ClusterEvent::NodeAdding,
    ClusterEvent::NodeAdded,
    ClusterEvent::ClusterMeet,
    ClusterEvent::StaleNodeForgotten,
    ClusterEvent::WaitingForReplicas,
];

/// Whether an event is about a written object, or about a step of forming the cluster.
pub fn is_housekeeping(event: &str) -> bool {
    HOUSEKEEPING.iter().any(|known| known.name() == event)
}

/// The advice for a reason.
pub fn advice(reason: &str) -> Option<Advice> {
    let known = ClusterReason::ALL.iter().find(|known| known.name() == reason);
    known.map(|known| known.advice())
}

/// Condition types for which `True` means a problem.
pub fn negative() -> Vec<&'static str> {
    negative_types::<ClusterCondition>()
}

/// The same for any declaration of conditions.
pub fn negative_types<T: ConditionType>() -> Vec<&'static str> {
    let bad = T::ALL.iter().filter(|type_| type_.polarity() == Polarity::Negative);
    bad.map(|type_| type_.name()).collect()
}

/// The state that an event leads to.
pub fn state_after(event: &str) -> Option<&'static str> {
    match ClusterEvent::ALL.iter().copied().find(|known| known.name() == event)? {
        ClusterEvent::ClusterReady => Some("Ready"),
        ClusterEvent::PrimaryLost
        | ClusterEvent::ReplicaLost
        | ClusterEvent::QuorumLost
        | ClusterEvent::DataLost
        | ClusterEvent::PodUnschedulable
        | ClusterEvent::PodNotStarting
        | ClusterEvent::ForeignNode
        | ClusterEvent::SlotRebalanceFailed
        | ClusterEvent::DrainFailed
        | ClusterEvent::NodeAddFailed => Some("Degraded"),
        ClusterEvent::SpecInvalid
        | ClusterEvent::DowngradeRefused
        | ClusterEvent::ConfigurationRefused
        | ClusterEvent::UsersRefused => Some("Failed"),
        ClusterEvent::WaitingForShards
        | ClusterEvent::WaitingForReplicas
        | ClusterEvent::SlotsRebalancing
        | ClusterEvent::SlotsDraining
        | ClusterEvent::NodeAdding => Some("Reconciling"),
        ClusterEvent::ServiceCreated => Some("Initializing"),
        _ => None,
    }
}
