//! Events for transitions between the previous and the new status.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::valkey::events::ClusterEvent;
use candor_api::valkey::status::{MemberRole, ShardTopology};
use kube_status::events::Notice;
use kube_status::{find, is_true};

use crate::kinds::valkey::report::ReportInput;
use crate::kinds::valkey::report::verdict::{loss, lost_in};
use crate::memory::Memory;
use crate::plan::{Lost, Stage};
use crate::slots::SlotMove;
use crate::step::Step;

/// More moves than this are recorded as one event.
const TOLD_MOVES: usize = 12;

/// A slot migration that starts or has completed.
pub(super) fn moves(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Vec<Notice> {
    let running = before.operation.as_ref().and_then(|running| running.slots_total);
    let planned = input.plan.steps.iter().find_map(|step| match step {
        Step::MoveSlots { moves, .. } => Some(moves),
        _ => None,
    });
    // The stages that follow once every slot is in its desired shard. A fault in between does not complete the
    // migration.
    let past = matches!(
        input.plan.stage,
        Stage::Removing
            | Stage::Rejected { .. }
            | Stage::Rolling { .. }
            | Stage::FailingOver { .. }
            | Stage::Configuring { .. }
            | Stage::Foreign(_)
            | Stage::Writing
            | Stage::Healthy
    );
    match (running, planned) {
        (None, Some(moves)) => begun(input, moves),
        (Some(total), None) if past && total > 0 => {
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
    let moving: Vec<Notice> = if moves.len() > TOLD_MOVES {
        let message = format!("Moving {} slots in {} moves", slots(moves), moves.len());
        vec![ClusterEvent::SlotsRebalancing.notice(message)]
    } else {
        let told = |one: &SlotMove| {
            let message = format!(
                "Moving {} slots from shard {} to shard {}",
                one.slots.len(),
                one.from,
                one.to
            );
            ClusterEvent::SlotsRebalancing.notice(message)
        };
        moves.iter().map(told).collect()
    };
    draining.into_iter().chain(moving).collect()
}

/// Shards that lost a primary, a replica, or their data.
pub(super) fn losses(input: &ReportInput<'_>, before: &ValkeyClusterStatus, memory: &Memory) -> Vec<Notice> {
    let degraded = find(&before.conditions, ClusterCondition::Degraded);
    let told = |reason: ClusterReason, message: &str| {
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
        let old = |one: &Lost| told(reason, &lost_in(who, one)) || (reason == ClusterReason::ReplicaLost && known(one));
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
    let message = |status: &ValkeyClusterStatus, reason: ClusterReason| {
        let said = status.conditions.iter().find(|one| one.reason == reason.as_ref());
        said.map(|one| one.message.clone())
    };
    let fresh = TROUBLES.iter().filter_map(|(reason, event)| {
        let now = message(after, *reason)?;
        (message(before, *reason).as_ref() != Some(&now)).then(|| event.notice(now))
    });
    fresh.collect()
}

/// Shards with a new primary. A shard that came back empty is a loss and not a failover.
pub(super) fn promotions(before: &ValkeyClusterStatus, after: &ValkeyClusterStatus) -> Vec<Notice> {
    let primary = |shard: &ShardTopology| {
        let head = shard.members.iter().find(|one| one.role == Some(MemberRole::Primary));
        head.map(|one| (one.node, one.node_id.clone()))
    };
    let changed = after.topology.iter().filter_map(|now| {
        let was = before.topology.iter().find(|was| was.shard == now.shard)?;
        let (old, new) = (primary(was)?, primary(now)?);
        (old.1 != new.1 && !was.data_lost).then_some((now.shard, new))
    });
    changed
        .map(|(shard, (node, id))| {
            let message = format!("Member {shard}-{node} ({id}) is the primary of shard {shard}");
            ClusterEvent::FailoverCompleted.notice(message)
        })
        .collect()
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
