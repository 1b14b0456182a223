//! Events for transitions between the previous and the new status.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::valkey::events::ClusterEvent;
use kube_status::events::Notice;
use kube_status::{find, is_true};

use crate::assess::{lost_in, new_reasons};
use crate::kinds::valkey::promotions as promoted;
use crate::kinds::valkey::report::ReportInput;
use crate::kinds::valkey::report::condition_set::loss;
use crate::memory::Memory;
use crate::model::MemberRef;
use crate::plan::{Lost, Stage};
use crate::slots::SlotMove;
use crate::step::Step;

/// More moves than this are recorded as one event.
const SEPARATE_MOVES: usize = 12;

/// A slot migration that starts or has completed.
pub(super) fn moves(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Vec<Notice> {
    let running = before.operation.as_ref().and_then(|running| running.slots_total);
    let planned = input.plan.steps.iter().find_map(|step| match step {
        Step::MoveSlots { moves, .. } => Some(moves),
        _ => None,
    });
    match (running, planned) {
        (None, Some(moves)) => begun(input, moves),
        (Some(total), None) if input.plan.stage.follows_migration() && total > 0 => {
            vec![ClusterEvent::SlotsRebalanced.notice(format!("Moved {total} slots"))]
        }
        _ => Vec::new(),
    }
}

fn begun(input: &ReportInput<'_>, moves: &[SlotMove]) -> Vec<Notice> {
    let mut drained: Vec<_> = moves
        .iter()
        .map(|one| one.from)
        .filter(|from| from.0 >= input.desired.shards)
        .collect();
    drained.sort();
    drained.dedup();
    let draining = drained.iter().map(|shard| {
        let slots: usize = moves
            .iter()
            .filter(|one| one.from == *shard)
            .map(|one| one.slots.len())
            .sum();
        ClusterEvent::SlotsDraining.notice(format!("Draining {slots} slots from shard {shard}"))
    });
    let draining: Vec<Notice> = draining.collect();
    let slots = |moves: &[SlotMove]| moves.iter().map(|one| one.slots.len()).sum::<usize>();
    let moving: Vec<Notice> = if moves.len() > SEPARATE_MOVES {
        let message = format!("Moving {} slots in {} moves", slots(moves), moves.len());
        vec![ClusterEvent::SlotsRebalancing.notice(message)]
    } else {
        let reported = |one: &SlotMove| {
            let message = format!(
                "Moving {} slots from shard {} to shard {}",
                one.slots.len(),
                one.from,
                one.to
            );
            ClusterEvent::SlotsRebalancing.notice(message)
        };
        moves.iter().map(reported).collect()
    };
    draining.into_iter().chain(moving).collect()
}

/// Shards that lost a primary, a replica, or their data.
pub(super) fn losses(input: &ReportInput<'_>, before: &ValkeyClusterStatus, memory: &Memory) -> Vec<Notice> {
    let degraded = find(&before.conditions, ClusterCondition::Degraded);
    let reported = |reason: ClusterReason, message: &str| {
        degraded.is_some_and(|one| one.reason == reason.as_ref() && one.message.contains(message))
    };
    // After a failover the old primary is missing as a replica: it is the same loss, recorded once.
    let known = |one: &Lost| {
        let lines = degraded.filter(|one| one.reason == ClusterReason::PrimaryLost.as_ref());
        let mut message = lines.iter().flat_map(|one| one.message.split([' ', ';']));
        let name = one.member.map(|member| member.to_string());
        name.is_some_and(|name| message.any(|word| word == name))
    };
    let events = |lost: &[Lost], who: &str, reason, event: ClusterEvent| {
        let old =
            |one: &Lost| reported(reason, &lost_in(who, one)) || (reason == ClusterReason::ReplicaLost && known(one));
        let fresh = lost.iter().filter(|one| !old(one));
        fresh
            .map(|one| event.notice(format!("{} {}", lost_in(who, one), one.observed)))
            .collect::<Vec<_>>()
    };
    let mut all = match &input.plan.stage {
        Stage::PrimaryLost(lost) => events(lost, "Primary", ClusterReason::PrimaryLost, ClusterEvent::PrimaryLost),
        Stage::ReplicaLost(lost) => events(lost, "Replica", ClusterReason::ReplicaLost, ClusterEvent::ReplicaLost),
        _ => Vec::new(),
    };
    let gone = memory.topology.iter().filter(|(shard, now)| {
        let was = input.memory.topology.get(shard).is_some_and(|before| before.lost);
        now.lost && !was
    });
    let gone = gone.filter_map(|(shard, _)| loss(input, *shard));
    all.extend(gone.map(|message| ClusterEvent::DataLost.notice(message)));
    all
}

/// Reasons that become events when they first appear, or when their message changes.
const TROUBLES: [(ClusterReason, ClusterEvent); 10] = [
    (ClusterReason::QuorumLost, ClusterEvent::QuorumLost),
    (ClusterReason::PodUnschedulable, ClusterEvent::PodUnschedulable),
    (ClusterReason::PodNotStarting, ClusterEvent::PodNotStarting),
    (ClusterReason::ForeignNode, ClusterEvent::ForeignNode),
    (ClusterReason::ConfigurationRefused, ClusterEvent::ConfigurationRefused),
    (ClusterReason::UsersRefused, ClusterEvent::UsersRefused),
    (ClusterReason::UsersInvalid, ClusterEvent::SpecInvalid),
    (ClusterReason::SpecInvalid, ClusterEvent::SpecInvalid),
    (ClusterReason::VolumeFailed, ClusterEvent::VolumeFailed),
    (ClusterReason::DowngradeRefused, ClusterEvent::DowngradeRefused),
];

/// Problems that a user should know about.
pub(super) fn troubles(before: &ValkeyClusterStatus, after: &ValkeyClusterStatus) -> Vec<Notice> {
    let new = new_reasons(&TROUBLES, &before.conditions, &after.conditions);
    new.into_iter().map(|(event, message)| event.notice(message)).collect()
}

/// Shards with a new primary.
pub(super) fn promotions(before: &ValkeyClusterStatus, after: &ValkeyClusterStatus) -> Vec<Notice> {
    let notice = |(member, id): (MemberRef, &str)| {
        let message = format!("Member {member} ({id}) is the primary of shard {}", member.shard);
        ClusterEvent::FailoverCompleted.notice(message)
    };
    promoted(&before.topology, &after.topology).map(notice).collect()
}

/// What the cluster waits for, and that it is ready.
pub(super) fn status(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    after: &ValkeyClusterStatus,
) -> Vec<Notice> {
    let reason = |status: &ValkeyClusterStatus| {
        let ready = find(&status.conditions, ClusterCondition::Ready);
        ready.map(|one| one.reason.clone()).unwrap_or_default()
    };
    let begins = |desired: ClusterReason| reason(after) == desired.as_ref() && reason(before) != desired.as_ref();
    let mut events = Vec::new();
    match &input.plan.stage {
        Stage::Creating { shards } if begins(ClusterReason::MissingShards) => {
            let message = format!("{shards} of {} shards exist", input.desired.shards);
            events.push(ClusterEvent::WaitingForShards.notice(message));
        }
        Stage::Creating { .. } if begins(ClusterReason::MissingReplicas) => {
            events.push(ClusterEvent::WaitingForReplicas.notice("Waiting for replicas to be created"));
        }
        Stage::Replicating { shard } if begins(ClusterReason::MissingReplicas) => {
            events.push(ClusterEvent::WaitingForReplicas.notice(format!("Waiting for replicas in shard {shard}")));
        }
        _ => {}
    }
    let ready = |status: &ValkeyClusterStatus| is_true(&status.conditions, ClusterCondition::Ready);
    if ready(after) && !ready(before) {
        let (shards, replicas) = (input.desired.shards, input.desired.replicas);
        let message = format!("Cluster ready with {shards} shards and {replicas} replicas");
        events.push(ClusterEvent::ClusterReady.notice(message));
    }
    events
}
