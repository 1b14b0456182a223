//! What status remembers of a `RedkeyCluster`, as the engine's memory and back.

use candor_api::RedkeyClusterStatus;
use candor_api::redkey::status::{ClusterStatus, ClusterSubstatus, OperationKind, SeatTopology, ShardTopology};

use super::rows::Row;
use crate::kinds::{count, number};
use crate::memory::{LastPod, Memory, ShardMemory};
use crate::model::{MemberRef, ShardIndex};
use crate::observation::Observation;
use crate::seats::{Ordinal, Seats};

/// Which ordinal is remembered in which shard.
pub fn seats(status: &RedkeyClusterStatus) -> Seats {
    let shards = status.topology.iter();
    let seats = shards.flat_map(|shard| {
        let members = shard.members.iter();
        members.map(|one| (count(one.ordinal), ShardIndex(count(shard.shard))))
    });
    seats.collect()
}

/// What status remembers.
pub fn memory(status: &RedkeyClusterStatus) -> Memory {
    let shard = |entry: &ShardTopology| {
        let known = entry.members.iter();
        let members = known.filter_map(|one| Some((count(one.ordinal), one.node_id.parse().ok()?)));
        let pods = entry.members.iter().filter(|one| !one.pod_uid.is_empty());
        let before = ShardMemory {
            slots: entry.slots.parse().unwrap_or_default(),
            members: members.collect(),
            pods: pods.map(|one| (count(one.ordinal), last_pod(one))).collect(),
            keys: u64::try_from(entry.keys).unwrap_or(0),
            lost: entry.data_lost,
        };
        (ShardIndex(count(entry.shard)), before)
    };
    let running = status.operation.as_ref();
    let is = |kind: OperationKind| running.is_some_and(|running| running.kind == kind);
    Memory {
        formed: status.formed,
        topology: status.topology.iter().map(shard).collect(),
        attempts: running.map_or(0, |running| count(running.attempts)),
        failovers_rejected: 0,
        candidate: None,
        rolling: rolling(status),
        growing: is(OperationKind::ScaleUp) || is(OperationKind::Upgrade),
        shrinking: is(OperationKind::ScaleDown),
    }
}

/// The member that a slow upgrade replaces: the one at the partition of the stored row.
fn rolling(status: &RedkeyClusterStatus) -> Option<MemberRef> {
    let row = Row::of(status);
    let replacing = matches!(
        row.substatus,
        Some(ClusterSubstatus::SlowUpgrading | ClusterSubstatus::RollingConfig)
    );
    let upgrading = row.status == Some(ClusterStatus::Upgrading) && replacing;
    let ordinal: Ordinal = row.partition.filter(|_| upgrading)?;
    let shard = *seats(status).get(&ordinal)?;
    Some(MemberRef { shard, node: ordinal })
}

fn last_pod(member: &SeatTopology) -> LastPod {
    LastPod {
        uid: member.pod_uid.clone(),
        node: member.node_name.clone(),
        claim: member.claim_uid.clone(),
        terminated: member.pod_terminated,
    }
}

/// Memory in the form of status, with a seat for every ordinal. Roles are those observed in this reconcile; while a
/// shard has no primary, the previous ones.
pub(crate) fn topology(
    memory: &Memory,
    seats: &Seats,
    observed: &Observation,
    before: &[ShardTopology],
) -> Vec<ShardTopology> {
    let mut shards: Vec<ShardIndex> = memory.topology.keys().chain(seats.values()).copied().collect();
    shards.sort();
    shards.dedup();
    let entry = |shard: ShardIndex| {
        let nothing = ShardMemory::default();
        let now = memory.topology.get(&shard).unwrap_or(&nothing);
        let reported = before.iter().find(|reported| reported.shard == number(shard.0));
        let reported = reported.map(|reported| reported.members.as_slice()).unwrap_or_default();
        let primary = observed.primary(shard).map(|(_, facts)| facts.id);
        let seated = seats
            .iter()
            .filter(|(_, of)| **of == shard)
            .map(|(ordinal, _)| *ordinal);
        let mut ordinals: Vec<Ordinal> = seated.chain(now.members.keys().copied()).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        let member = |ordinal: Ordinal| {
            let id = now.members.get(&ordinal);
            let was = reported.iter().find(|one| one.ordinal == number(ordinal));
            let pod = now.pods.get(&ordinal).cloned().unwrap_or_default();
            SeatTopology {
                ordinal: number(ordinal),
                node_id: id.map(ToString::to_string).unwrap_or_default(),
                is_primary: match primary {
                    Some(primary) => id == Some(&primary),
                    None => was.is_some_and(|was| was.is_primary),
                },
                pod_uid: pod.uid,
                node_name: pod.node,
                claim_uid: pod.claim,
                pod_terminated: pod.terminated,
            }
        };
        ShardTopology {
            shard: number(shard.0),
            slots: now.slots.to_string(),
            keys: i64::try_from(now.keys).unwrap_or(i64::MAX),
            members: ordinals.into_iter().map(member).collect(),
            data_lost: now.lost,
        }
    };
    shards.into_iter().map(entry).collect()
}
