//! `RedkeyCluster` in the terms of the screens.

use std::collections::BTreeMap;

use candor_api::RedkeyCluster;
use candor_api::redkey::MAINTENANCE;
use candor_api::redkey::conditions::{RedkeyCondition, RedkeyReason};
use candor_api::redkey::events::RedkeyEvent;
use candor_api::redkey::status::{self, ClusterStatus, ClusterSubstatus, OperationKind, OperationMode};
use candor_api::valkey::advice::Advice;
use candor_api::valkey::status::MemberRole;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_status::{Reason, Status};

use super::valkey::negative_types;
use super::{Cluster, Kind, Member, MemberId, Operation, ShardSlots, Stage};
use crate::commands::describe::typed;

/// The cluster, with the state of the members that have a pod.
pub fn view(cluster: &RedkeyCluster, pods: &[Pod]) -> Cluster {
    let status = cluster.status.clone().unwrap_or_default();
    let slots = status.topology.iter().filter_map(|shard| {
        Some(ShardSlots {
            shard: u32::try_from(shard.shard).ok()?,
            slots: shard.slots.clone(),
            keys: u64::try_from(shard.keys).ok(),
        })
    });
    let stage = stage(&status);
    Cluster {
        kind: Kind::RedkeyCluster,
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
        created: cluster.metadata.creation_timestamp.as_ref().map(|time| time.0),
        deleting: cluster.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        generation: cluster.metadata.generation,
        observed_generation: status.observed_generation,
        state: status.status.clone(),
        reason: reason(&status),
        paused: is_paused(cluster),
        shards: cluster.spec.primaries,
        replicas: cluster.spec.replicas_per_primary,
        ready_shards: status.primaries,
        slots: slots.collect(),
        members: members(&cluster.name_any(), &status, pods),
        operation: status.operation.as_ref().map(|one| operation(one, stage.as_ref())),
        conditions: status.conditions,
        stage,
    }
}

/// The reason of a fault, or else of Ready.
fn reason(status: &status::RedkeyClusterStatus) -> String {
    let find = |type_: &str| status.conditions.iter().find(|one| one.type_ == type_);
    let degraded = find("Degraded").filter(|one| Status::of(one) == Status::True);
    let found = degraded.or_else(|| find("Ready"));
    found.map(|one| one.reason.clone()).unwrap_or_default()
}

/// Whether `spec.paused` or the annotation asks for maintenance.
pub fn is_paused(cluster: &RedkeyCluster) -> bool {
    let annotation = cluster.annotations().get(MAINTENANCE);
    cluster.spec.paused || annotation.is_some_and(|value| value == "true")
}

/// The ordinal of a pod, by its name.
pub fn ordinal(cluster: &str, pod: &str) -> Option<u32> {
    candor_operator::kinds::redkey::objects::names::ordinal(cluster, pod)
}

/// The members that status has, with their seats and nodes, and those that have a pod.
fn members(cluster: &str, status: &status::RedkeyClusterStatus, pods: &[Pod]) -> Vec<Member> {
    let mut all: BTreeMap<u32, Member> = BTreeMap::new();
    let new = |ordinal: u32| Member::new(MemberId::Ordinal(ordinal), None);
    let role = |is_primary: bool| {
        if is_primary {
            MemberRole::Primary
        } else {
            MemberRole::Replica
        }
    };
    for shard in &status.topology {
        for seat in &shard.members {
            let Ok(ordinal) = u32::try_from(seat.ordinal) else {
                continue;
            };
            let member = all.entry(ordinal).or_insert_with(|| new(ordinal));
            member.shard = u32::try_from(shard.shard).ok();
            member.node_id.clone_from(&seat.node_id);
            member.role = Some(role(seat.is_primary));
        }
    }
    let of_node = |id: &str| status.nodes.get(id).and_then(|node| ordinal(cluster, &node.name));
    for (id, node) in &status.nodes {
        let Some(ordinal) = ordinal(cluster, &node.name) else {
            continue;
        };
        let member = all.entry(ordinal).or_insert_with(|| new(ordinal));
        member.node_id.clone_from(id);
        member.role = Some(role(node.is_primary));
        member.pod.clone_from(&node.name);
        member.ip.clone_from(&node.ip);
        member.replica_of = of_node(&node.replica_of).map(MemberId::Ordinal);
    }
    for pod in pods {
        let Some(MemberId::Ordinal(ordinal)) = Kind::RedkeyCluster.member_of(pod) else {
            continue;
        };
        observe(all.entry(ordinal).or_insert_with(|| new(ordinal)), pod);
    }
    let shards: BTreeMap<MemberId, Option<u32>> = all.values().map(|member| (member.id, member.shard)).collect();
    let mut members: Vec<Member> = all.into_values().collect();
    for member in &mut members {
        // A replica without a seat belongs to the shard of its primary.
        let of_primary = member.replica_of.and_then(|of| shards.get(&of).copied().flatten());
        member.shard = member.shard.or(of_primary);
    }
    members
}

/// The state of a member with a ready pod.
const READY: &str = "Ready";

/// Adds what its pod reports.
fn observe(member: &mut Member, pod: &Pod) {
    member.pod = pod.name_any();
    let Ok(reading) = kube_status::readers::read_value(&typed(pod)) else {
        return;
    };
    member.ready = match reading.status() {
        Status::True => Some(true),
        Status::False => Some(false),
        Status::Unknown => None,
    };
    member.severity = reading.severity();
    member.since = became_ready_or_not(pod);
    member.reason = match member.ready {
        Some(true) => READY.to_owned(),
        _ => reading.reason,
    };
    if member.ready != Some(true) {
        member.message = reading.message;
    }
}

/// When a pod's condition Ready last changed.
fn became_ready_or_not(pod: &Pod) -> Option<jiff::Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == READY)?;
    Some(ready.last_transition_time.as_ref()?.0)
}

/// The stage of the operation, with its meaning in plain words.
fn stage(status: &status::RedkeyClusterStatus) -> Option<Stage> {
    let name = &status.substatus.status;
    if name.is_empty() {
        return None;
    }
    let partition = Some(&status.substatus.upgrading_partition).filter(|partition| !partition.is_empty());
    let known = ClusterSubstatus::parse(name);
    // At the end of an upgrade the partition stays 0, and the stage is about the extra server.
    let about_pod = matches!(
        known,
        Some(ClusterSubstatus::SlowUpgrading | ClusterSubstatus::RollingConfig)
    );
    let pod = partition.filter(|_| about_pod);
    let of_pod = pod.map_or(String::new(), |pod| format!(" of pod {pod}"));
    let stopped = [ClusterStatus::Error, ClusterStatus::Maintenance]
        .iter()
        .any(|one| one.name() == status.status);
    let meaning = known
        .map(|known| meaning(known, &status.status, pod))
        .unwrap_or_default();
    Some(Stage {
        name: name.clone(),
        step: format!("{}step {name}{of_pod}", if stopped { "stopped at " } else { "" }),
        meaning: if stopped { String::new() } else { meaning },
        partition: partition.cloned(),
    })
}

/// What happens in a stage.
fn meaning(stage: ClusterSubstatus, status: &str, pod: Option<&String>) -> String {
    let down = status == ClusterStatus::ScalingDown.name();
    let text = match stage {
        ClusterSubstatus::FastScaling => "the StatefulSet is recreated with another number of pods; keys are purged",
        ClusterSubstatus::FastUpgrading => "the StatefulSet is recreated from the new template; keys are purged",
        ClusterSubstatus::EndingFastScaling | ClusterSubstatus::EndingFastUpgrading => {
            "Robin forms the recreated cluster"
        }
        ClusterSubstatus::PodScaling if down => "pods without slots are removed",
        ClusterSubstatus::PodScaling => "new pods start",
        ClusterSubstatus::RobinScaling if down => "slots leave the servers that are removed",
        ClusterSubstatus::RobinScaling => "slots move to the new primaries",
        ClusterSubstatus::EndingScaling => "Robin checks that slots are balanced",
        ClusterSubstatus::ScalingUp => "an extra primary joins",
        ClusterSubstatus::SlowUpgrading => {
            return pod.map_or_else(
                || "the upgrade begins with the extra primary".to_owned(),
                |pod| format!("the slots of pod {pod} move to other primaries"),
            );
        }
        ClusterSubstatus::RollingConfig => {
            let pod = pod.map_or(String::new(), |pod| format!(" {pod}"));
            return format!("pod{pod} is recreated and rejoins");
        }
        ClusterSubstatus::EndingSlowUpgrading => "the slots of the extra primary move back",
        ClusterSubstatus::ScalingDown => "the extra primary is removed",
    };
    text.to_owned()
}

fn operation(operation: &status::Operation, stage: Option<&Stage>) -> Operation {
    let kind = match operation.kind {
        OperationKind::Create => "Creating",
        OperationKind::ScaleUp => "Scaling up",
        OperationKind::ScaleDown => "Scaling down",
        OperationKind::Upgrade => "Upgrading",
        OperationKind::Heal => "Healing",
        OperationKind::Hibernate => "Hibernating",
    };
    let moves_keys = matches!(
        operation.kind,
        OperationKind::ScaleUp | OperationKind::ScaleDown | OperationKind::Upgrade
    );
    let mode = match operation.mode {
        OperationMode::Fast => " (fast: purges keys)",
        OperationMode::Slow => " (slow: keeps every key)",
    };
    Operation {
        kind: format!("{kind}{}", if moves_keys { mode } else { "" }),
        started_at: operation.started_at.0,
        attempts: operation.attempts,
        member: String::new(),
        step: 0,
        steps: 0,
        slots_moved: operation.slots_moved,
        slots_total: operation.slots_total,
        stage: stage.map(Stage::text).unwrap_or_default(),
    }
}

/// The advice for a reason.
pub fn advice(reason: &str) -> Option<Advice> {
    let known = RedkeyReason::ALL.iter().find(|known| known.name() == reason);
    known.map(|known| known.advice())
}

/// Condition types for which `True` means a problem.
pub fn negative() -> Vec<&'static str> {
    negative_types::<RedkeyCondition>()
}

/// The state that an event leads to.
pub fn state_after(event: &str) -> Option<&'static str> {
    match RedkeyEvent::ALL.iter().copied().find(|known| known.name() == event)? {
        RedkeyEvent::RedkeyClusterReady => Some("Ready"),
        RedkeyEvent::RedkeyClusterScalingUp => Some("ScalingUp"),
        RedkeyEvent::RedkeyClusterScalingDown | RedkeyEvent::RedkeyClusterScaledToZero => Some("ScalingDown"),
        RedkeyEvent::RedkeyClusterUpgrading => Some("Upgrading"),
        RedkeyEvent::ClusterError | RedkeyEvent::NotEnoughMemory | RedkeyEvent::PreflightFailed => Some("Error"),
        RedkeyEvent::PrimaryLost
        | RedkeyEvent::ReplicaLost
        | RedkeyEvent::QuorumLost
        | RedkeyEvent::SlotsUncovered
        | RedkeyEvent::DataLost => Some("Configuring"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_stage_has_a_meaning_and_names_its_pod() {
        let read = |status: &str, substatus: &str, partition: &str| {
            let status = json!({"status": status, "substatus": {"status": substatus, "upgradingPartition": partition}});
            stage(&serde_json::from_value(status).unwrap())
        };
        for (status, substatus, partition, step, meaning) in [
            (
                "Upgrading",
                "RollingConfig",
                "2",
                "step RollingConfig of pod 2",
                "pod 2 is recreated and rejoins",
            ),
            (
                "Upgrading",
                "SlowUpgrading",
                "",
                "step SlowUpgrading",
                "the upgrade begins with the extra primary",
            ),
            (
                "Upgrading",
                "ScalingDown",
                "0",
                "step ScalingDown",
                "the extra primary is removed",
            ),
            ("ScalingUp", "PodScaling", "", "step PodScaling", "new pods start"),
            (
                "ScalingDown",
                "PodScaling",
                "",
                "step PodScaling",
                "pods without slots are removed",
            ),
            (
                "Error",
                "RollingConfig",
                "2",
                "stopped at step RollingConfig of pod 2",
                "",
            ),
            ("Upgrading", "Rebooting", "", "step Rebooting", ""),
        ] {
            let found = read(status, substatus, partition).unwrap();
            assert_eq!((found.step.as_str(), found.meaning.as_str()), (step, meaning));
        }
        assert_eq!(read("Ready", "", ""), None);
        for substatus in ClusterSubstatus::ALL {
            assert!(!read("Upgrading", substatus.name(), "").unwrap().meaning.is_empty());
        }
    }

    #[test]
    fn maintenance_is_asked_for_by_the_spec_or_the_annotation() {
        let paused = |spec: bool, annotation: Option<&str>| {
            let mut cluster = RedkeyCluster::new("a", candor_api::RedkeyClusterSpec::default());
            cluster.spec.paused = spec;
            let annotation = annotation.map(|value| (MAINTENANCE.to_owned(), value.to_owned()));
            cluster.annotations_mut().extend(annotation);
            is_paused(&cluster)
        };
        assert!(paused(true, None) && paused(false, Some("true")));
        assert!(!paused(false, None) && !paused(false, Some("false")));
    }
}
