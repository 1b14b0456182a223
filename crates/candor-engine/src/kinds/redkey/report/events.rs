//! The events of a `RedkeyCluster`: one per transition.

use std::collections::BTreeSet;

use candor_api::RedkeyClusterStatus;
use candor_api::redkey::conditions::{RedkeyCondition as C, RedkeyReason as R};
use candor_api::redkey::events::RedkeyEvent as E;
use candor_api::redkey::status::{ClusterStatus, ShardTopology};
use candor_api::valkey::FAILOVER_REFUSED;
use kube_status::events::Notice;
use kube_status::{find, is_true};
use valkey_admin::NodeId;

use super::fault::{Fault, repeated};
use super::{Ignored, PasswordChange, ReportInput};
use crate::assess::new_reasons;
use crate::model::MemberRef;
use crate::observation::Member;
use crate::outcome::{Change, CommandKind, Did, ObjectKind, Outcome, Rejected};
use crate::step::{FailoverBy, Step};

/// Every event of this reconcile.
pub(super) fn all(
    input: &ReportInput<'_>,
    before: &RedkeyClusterStatus,
    after: &RedkeyClusterStatus,
    fault: Option<&Fault>,
) -> Vec<Notice> {
    let mut events = Vec::new();
    events.extend(
        input
            .outcomes
            .iter()
            .filter_map(|outcome| outcome_event(input, before, outcome)),
    );
    events.extend(rejected(input, before));
    events.extend(forgotten(input));
    events.extend(reverted(input));
    events.extend(password(input));
    events.extend(moves(before, after));
    events.extend(promotions(before, after));
    events.extend(transitions(before, after));
    events.extend(losses(before, after));
    events.extend(errors(before, after, fault));
    events.extend(edited(input, before));
    events.extend(ignored(input, before));
    events
}

/// Parts of the spec that have no effect: one event when a part is ignored for the first time.
fn ignored(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Vec<Notice> {
    let reported = find(&before.conditions, C::ConfigurationApplied).map(|one| one.message.as_str());
    let fresh = |one: &&Ignored| !reported.is_some_and(|reported| reported.contains(one.message()));
    let notice = |one: &Ignored| match one {
        Ignored::Config(message) => E::ConfigIgnored.notice(message.clone()),
        Ignored::Override(message) => E::OverrideIgnored.notice(message.clone()),
        Ignored::RobinTemplate(message) => E::RobinTemplateReplaced.notice(message.clone()),
    };
    input.ignored.iter().filter(fresh).map(notice).collect()
}

/// Objects that were edited by hand.
fn reverted(input: &ReportInput<'_>) -> Vec<Notice> {
    let written = input.outcomes.iter().filter(|one| one.step == Step::WriteObjects);
    let changes = written.filter_map(|one| one.result.as_ref().ok()).flatten();
    let reverted = changes.filter(|change| change.did == Did::Reverted);
    reverted
        .map(|change| {
            let (kind, name) = (kind_of(change.kind), &change.name);
            E::DriftReverted.notice(format!("{kind} {name} was edited and is as desired again"))
        })
        .collect()
}

/// The kind of an object, as Kubernetes names it.
fn kind_of(kind: ObjectKind) -> String {
    match kind {
        ObjectKind::HeadlessService | ObjectKind::ClientService => "Service".to_owned(),
        ObjectKind::SystemSecret | ObjectKind::AclSecret => "Secret".to_owned(),
        ObjectKind::Claim => "PersistentVolumeClaim".to_owned(),
        ObjectKind::PreflightPod => "Pod".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The password that all servers have now, stored for servers that start later.
fn password(input: &ReportInput<'_>) -> Option<Notice> {
    let stored = input.outcomes.iter().any(|one| {
        let changes = one.result.as_ref().ok().filter(|_| one.step == Step::WriteObjects);
        let secret = |change: &Change| change.kind == ObjectKind::SystemSecret && change.did == Did::Updated;
        changes.is_some_and(|changes| changes.iter().any(secret))
    });
    let message = match input.password.filter(|_| stored)? {
        PasswordChange::Set => "All servers have the new password; none was restarted",
        PasswordChange::Removed => "No server needs a password any more; none was restarted",
    };
    Some(E::PasswordApplied.notice(message))
}

/// The existing operator was found to run.
pub(super) fn other_operator(before: &RedkeyClusterStatus, message: &str) -> Vec<Notice> {
    let reported = find(&before.conditions, C::Paused).filter(|one| one.reason == R::OtherOperatorActive.as_ref());
    let news = reported.is_none_or(|one| one.message != message);
    news.then(|| E::OtherOperatorActive.notice(message))
        .into_iter()
        .collect()
}

/// Conditions that turned True.
fn transitions(before: &RedkeyClusterStatus, after: &RedkeyClusterStatus) -> Vec<Notice> {
    let table = [
        (C::Ready, E::RedkeyClusterReady),
        (C::ScalingUp, E::RedkeyClusterScalingUp),
        (C::ScalingDown, E::RedkeyClusterScalingDown),
        (C::Upgrading, E::RedkeyClusterUpgrading),
    ];
    let fresh = table.into_iter().filter_map(|(type_, event)| {
        let on = is_true(&after.conditions, type_) && !is_true(&before.conditions, type_);
        let reported = find(&after.conditions, type_).filter(|_| on)?;
        Some(event.notice(reported.message.clone()))
    });
    fresh.collect()
}

/// Losses that are new, or have another message.
fn losses(before: &RedkeyClusterStatus, after: &RedkeyClusterStatus) -> Vec<Notice> {
    let table = [
        (R::PrimaryLost, E::PrimaryLost),
        (R::ReplicaLost, E::ReplicaLost),
        (R::QuorumLost, E::QuorumLost),
        (R::SlotsUncovered, E::SlotsUncovered),
        (R::ForeignNode, E::ForeignNode),
        (R::PodUnschedulable, E::PodUnschedulable),
        (R::PodNotStarting, E::PodNotStarting),
        (R::PreflightFailed, E::PreflightFailed),
        (R::NotEnoughMemory, E::NotEnoughMemory),
        (R::ConfigRejected, E::ConfigRejected),
        (R::SecretInvalid, E::SecretInvalid),
    ];
    let new = new_reasons(&table, &before.conditions, &after.conditions);
    let mut events: Vec<Notice> = new.into_iter().map(|(event, message)| event.notice(message)).collect();
    let lost = |status: &RedkeyClusterStatus| {
        let reported = find(&status.conditions, C::DataLost).filter(|one| one.status == "True");
        reported.map(|one| one.message.clone())
    };
    if let Some(now) = lost(after).filter(|now| lost(before).as_ref() != Some(now)) {
        events.push(E::DataLost.notice(now));
    }
    let robin = |status: &RedkeyClusterStatus| {
        let reported = find(&status.conditions, C::RobinReady)?;
        let bad = [R::RobinTerminated, R::RobinUnresponsive].map(|one| one.as_ref().to_owned());
        Some((bad.contains(&reported.reason), reported.message.clone()))
    };
    match (robin(before), robin(after)) {
        (was, Some((true, now))) if was.as_ref().is_none_or(|(bad, _)| !bad) => events.push(E::RobinLost.notice(now)),
        (Some((true, _)), Some((false, _))) if is_true(&after.conditions, C::RobinReady) => {
            events.push(E::RobinRecovered.notice("Robin responds again"));
        }
        _ => {}
    }
    events
}

/// The status became Error, or its message changed.
fn errors(before: &RedkeyClusterStatus, after: &RedkeyClusterStatus, fault: Option<&Fault>) -> Option<Notice> {
    let is_error = |status: &RedkeyClusterStatus| status.status == ClusterStatus::Error.name();
    let message = fault.map(|fault| fault.message.clone())?;
    let reported = find(&before.conditions, C::Ready).map(|one| one.message.as_str());
    let news = is_error(after) && (!is_error(before) || reported != Some(&message));
    news.then(|| E::ClusterError.notice(message))
}

/// A status that a person wrote has no effect.
fn edited(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Option<Notice> {
    let by_hand = before.status == ClusterStatus::Maintenance.name()
        && !input.planned.desired.paused
        // The operator writes Maintenance only together with this condition.
        && find(&before.conditions, C::Paused).is_none();
    by_hand.then(|| {
        E::StatusEdited.notice(
            "The status was set to Maintenance by hand, which has no effect: set the annotation \
             redkey.inditex.dev/maintenance: \"true\" instead",
        )
    })
}

/// Shards with a new primary.
fn promotions(before: &RedkeyClusterStatus, after: &RedkeyClusterStatus) -> Vec<Notice> {
    let primary = |shard: &ShardTopology| {
        let primary = shard
            .members
            .iter()
            .find(|one| one.is_primary && !one.node_id.is_empty());
        primary.map(|one| one.node_id.clone())
    };
    let changed = after.topology.iter().filter_map(|now| {
        let was = before.topology.iter().find(|was| was.shard == now.shard)?;
        let (old, new) = (primary(was)?, primary(now)?);
        // A server that was replaced, or a shard that came back empty, is no failover.
        let stayed = was.members.iter().any(|one| one.node_id == new);
        (old != new && stayed && !was.data_lost).then_some((now.shard, new))
    });
    changed
        .map(|(shard, node)| E::FailoverCompleted.notice(format!("Node {node} is the primary of shard {shard}")))
        .collect()
}

/// Slots that begin to move, or have moved.
fn moves(before: &RedkeyClusterStatus, after: &RedkeyClusterStatus) -> Option<Notice> {
    let total = |status: &RedkeyClusterStatus| status.operation.as_ref().and_then(|one| one.slots_total);
    match (total(before), total(after)) {
        (None, Some(total)) => Some(E::SlotsRebalancing.notice(format!("Moving {total} slots"))),
        (Some(total), None) => Some(E::SlotsRebalanced.notice(format!("Moved {total} slots"))),
        _ => None,
    }
}

/// A step that was executed, successfully or not.
fn outcome_event(input: &ReportInput<'_>, before: &RedkeyClusterStatus, outcome: &Outcome) -> Option<Notice> {
    let failure = outcome.result.as_ref().err();
    let message = failure.map(|failure| failure.message.as_str());
    let unanswered = failure.is_some_and(|failure| failure.unanswered);
    match (&outcome.step, message) {
        (Step::RecreateSet, None) => {
            let keys: i64 = before.topology.iter().map(|shard| shard.keys).sum();
            Some(E::KeysPurged.notice(format!(
                "Recreating the cluster without its keys: {keys} were last seen"
            )))
        }
        (Step::StopServers, None) => {
            let from = before.primaries;
            Some(E::RedkeyClusterScaledToZero.notice(format!("Scaling down from {from} to 0")))
        }
        (Step::WriteObjects, None) => adopted(outcome).or_else(|| pdb(outcome)),
        (Step::AddSlots { slots, .. }, None) => {
            Some(E::PrimaryCreated.notice(format!("Created primary with slots {slots}")))
        }
        (Step::Replicate { primary, .. }, None) => {
            Some(E::ReplicaCreated.notice(format!("Created replica for primary {primary}")))
        }
        (Step::AddSlots { .. } | Step::Replicate { .. } | Step::Meet { .. }, Some(message)) if !unanswered => {
            Some(E::NodeAddFailed.notice(format!("Failed to add node: {message}")))
        }
        (Step::MoveSlots { .. }, Some(message)) if !unanswered => {
            Some(E::SlotRebalanceFailed.notice(format!("Failed to move slots: {message}")))
        }
        (Step::Failover { to, by }, message) => Some(failover(input, *to, *by, message)),
        (Step::ClearFailoverRequest { rejected: Some(why) }, None) => {
            Some(E::FailoverFailed.notice(format!("{FAILOVER_REFUSED}: {why}")))
        }
        _ => None,
    }
}

/// Commands of Robin that servers reject: one event when a message is new.
fn rejected(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Vec<Notice> {
    let said = find(&before.conditions, C::Ready).map(|one| one.message.as_str());
    let fresh = repeated(input).filter(|one| said != Some(&one.message));
    let notice = |one: &Rejected| {
        let message = &one.message;
        Some(match one.kind {
            CommandKind::MoveSlots => E::SlotRebalanceFailed.notice(format!("Failed to move slots: {message}")),
            CommandKind::Join => E::NodeAddFailed.notice(format!("Failed to add node: {message}")),
            CommandKind::Failover => E::FailoverFailed.notice(format!("Failed to fail over: {message}")),
            CommandKind::Forget => E::NodeForgetFailed.notice(format!("Failed to forget a node: {message}")),
            CommandKind::Other => return None,
        })
    };
    fresh.filter_map(notice).collect()
}

fn adopted(outcome: &Outcome) -> Option<Notice> {
    let changes = outcome.result.as_ref().ok()?;
    let change = changes.iter().find(|change| change.did == Did::Adopted)?;
    Some(E::ClusterAdopted.notice(format!(
        "Took over StatefulSet {} of the existing operator: no server is restarted, and its pod template is kept until \
         the next upgrade",
        change.name
    )))
}

fn pdb(outcome: &Outcome) -> Option<Notice> {
    let changes = outcome.result.as_ref().ok()?;
    let updated = changes.iter().any(|change| {
        change.kind == ObjectKind::PodDisruptionBudget && !matches!(change.did, Did::Rejected | Did::Reverted)
    });
    updated.then(|| E::UpdatePdb.notice("PDB configuration updated"))
}

fn failover(input: &ReportInput<'_>, to: MemberRef, by: FailoverBy, message: Option<&str>) -> Notice {
    let member = input.planned.observed.members.get(&to);
    let node = member
        .and_then(Member::ip)
        .map_or_else(|| to.to_string(), |ip| ip.to_string());
    let shard = to.shard;
    match (message, by) {
        (Some(message), _) => {
            E::FailoverFailed.notice(format!("Failed to fail over shard {shard} to node {node}: {message}"))
        }
        (None, FailoverBy::Takeover) => {
            E::ReplicasTakenOver.notice(format!("Node {node} took over shard {shard} without a vote"))
        }
        (None, _) => E::FailoverInitiated.notice(format!("Failing over shard {shard} to node {node}")),
    }
}

/// Nodes that are gone for good: one event each, however many servers had to forget them.
fn forgotten(input: &ReportInput<'_>) -> Vec<Notice> {
    let mut reported: BTreeSet<NodeId> = BTreeSet::new();
    let mut events = Vec::new();
    for outcome in input.outcomes {
        let Step::Forget { node, .. } = &outcome.step else {
            continue;
        };
        if !reported.insert(*node) {
            continue;
        }
        events.push(match &outcome.result {
            Ok(_) => E::StaleNodeForgotten.notice(format!("Forgot stale node {node}")),
            Err(failure) => E::NodeForgetFailed.notice(format!("Failed to forget node {node}: {}", failure.message)),
        });
    }
    events
}
