//! Optional conditions: present only while there is something to report.

use std::collections::BTreeMap;

use candor_api::valkey::DATA_LOSS_ACKNOWLEDGED;
use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::{ValkeyClusterStatus, ValkeyNode, ValkeyNodeSpec, ValkeyNodeStatus};
use kube_status::merge::Standard;
use kube_status::{Aggregate, ConditionType, Draft, Status, find};

use super::condition_set::{ConditionText, reason_of, text};
use super::{ReportInput, name};
use crate::assess;
use crate::kinds::number;
use crate::model::MemberRef;
use crate::observation::{About, Applied, Claim, Facts};
use crate::plan::{Rejection, Stage};

pub(super) fn all(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Draft<'static>> {
    let bad =
        |type_, text: Option<ConditionText>| text.map(|text| Draft::bad(type_, text.reason).message(text.message));
    let paused = input.desired.paused.then(|| {
        text(
            ClusterReason::PausedByUser,
            "spec.paused is set: the operator reports status and makes no changes",
        )
    });
    [
        bad(ClusterCondition::Paused, paused),
        bad(ClusterCondition::DataLost, data_lost(input, before)),
        bad(ClusterCondition::ConfigurationApplied, configuration(input)),
        bad(ClusterCondition::UsersApplied, users(input)),
        bad(ClusterCondition::StorageReady, storage(input)),
        nodes_ready(input, nodes),
        bad(ClusterCondition::PrimariesSpread, primaries_spread(input, before)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Shards with lost data: reported from the reconcile that declares the loss until a user acknowledges it.
fn data_lost(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Option<ConditionText> {
    let reported = find(&before.conditions, ClusterCondition::DataLost);
    let annotations = input.cluster.metadata.annotations.as_ref();
    let acknowledged = annotations.and_then(|all| all.get(DATA_LOSS_ACKNOWLEDGED));
    let message = assess::data_lost(reported, acknowledged, input.plan)?;
    Some(text(ClusterReason::DataLost, message))
}

/// Primaries that are piled up in a zone, while nothing else is wrong. What was reported stays while zones are unknown.
fn primaries_spread(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Option<ConditionText> {
    let reported = find(&before.conditions, ClusterCondition::PrimariesSpread);
    let metadata = &input.cluster.metadata;
    let message = assess::piled_up(reported, &input.plan.stage, input.observed, metadata)?;
    Some(text(ClusterReason::PrimariesPiledUp, message))
}

/// What desired members report about a run-time setting.
fn answers<'a>(
    input: &'a ReportInput<'_>,
    part: fn(&Facts) -> &Applied,
) -> impl Iterator<Item = (MemberRef, &'a Applied)> {
    let desired = input.observed.answering().filter(|(at, _)| input.desired.includes(*at));
    desired.map(move |(at, facts)| (at, part(facts)))
}

/// What servers rejected, else how many members still wait. While a cluster is being created, waiting is part of the
/// creation and not reported.
fn applied(
    input: &ReportInput<'_>,
    parts: &[fn(&Facts) -> &Applied],
    rejected: ClusterReason,
    pending: ClusterReason,
) -> Option<ConditionText> {
    let all = || parts.iter().flat_map(|part| answers(input, *part));
    let message = all().find_map(|(at, applied)| match applied {
        Applied::Rejected(message) => Some(format!("member {at}: {message}")),
        _ => None,
    });
    let mut waiting: Vec<MemberRef> = all()
        .filter(|(_, applied)| **applied == Applied::No)
        .map(|(at, _)| at)
        .collect();
    waiting.sort();
    waiting.dedup();
    let reported = input.memory.formed || matches!(input.plan.stage, Stage::Configuring { .. });
    match (message, waiting.len()) {
        (Some(message), _) => Some(text(rejected, message)),
        (None, left) if left > 0 && reported => {
            let of = input.desired.members().count();
            Some(text(pending, format!("{left} of {of} members wait for it")))
        }
        _ => None,
    }
}

fn invalid(input: &ReportInput<'_>, about: About) -> Option<ConditionText> {
    let problems = input.observed.problems.iter().filter(|problem| problem.about == about);
    let messages: Vec<&str> = problems.map(|problem| problem.message.as_str()).collect();
    (!messages.is_empty()).then(|| text(reason_of(Rejection::Invalid(about)), messages.join("; ")))
}

fn configuration(input: &ReportInput<'_>) -> Option<ConditionText> {
    let downgrade = match &input.plan.stage {
        Stage::Rejected {
            rejection: Rejection::Downgrade,
            message,
        } => Some(text(ClusterReason::DowngradeRefused, message.clone())),
        _ => None,
    };
    let parts: [fn(&Facts) -> &Applied; 2] = [|facts| &facts.config, |facts| &facts.certificate];
    let (rejected, pending) = (ClusterReason::ConfigurationRefused, ClusterReason::ConfigurationPending);
    invalid(input, About::Configuration)
        .or(downgrade)
        .or_else(|| applied(input, &parts, rejected, pending))
}

fn users(input: &ReportInput<'_>) -> Option<ConditionText> {
    let parts: [fn(&Facts) -> &Applied; 1] = [|facts| &facts.users];
    let (rejected, pending) = (ClusterReason::UsersRefused, ClusterReason::UsersPending);
    invalid(input, About::Users).or_else(|| applied(input, &parts, rejected, pending))
}

/// The worst problem of any volume, or of any other disk that a server writes to.
fn storage(input: &ReportInput<'_>) -> Option<ConditionText> {
    let mut answering = input.observed.answering().filter(|(at, _)| input.desired.includes(*at));
    let full = answering.find_map(|(at, facts)| {
        let message = facts.disk_failed.as_ref()?;
        Some(text(ClusterReason::VolumeFailed, format!("member {at}: {message}")))
    });
    let claims = || {
        let desired = input
            .observed
            .members
            .iter()
            .filter(|(at, _)| input.desired.includes(**at));
        desired
            .filter(|_| input.desired.persistence)
            .map(|(at, member)| (at, &member.claim))
    };
    let failed = claims().find_map(|(at, claim)| match claim {
        Claim::Failed(message) => Some(text(ClusterReason::VolumeFailed, format!("member {at}: {message}"))),
        _ => None,
    });
    let pending = claims().find_map(|(at, claim)| match claim {
        Claim::Pending(message) => Some(text(ClusterReason::VolumePending, format!("member {at}: {message}"))),
        _ => None,
    });
    let growing = claims().filter(|(_, claim)| matches!(claim, Claim::TooSmall | Claim::Resizing));
    let growing = match growing.count() {
        0 => None,
        1 => Some(text(ClusterReason::VolumeResizing, "1 volume grows")),
        more => Some(text(ClusterReason::VolumeResizing, format!("{more} volumes grow"))),
    };
    invalid(input, About::Storage)
        .or(full)
        .or(failed)
        .or(pending)
        .or(growing)
}

/// The summary of the members' Ready conditions. Reported once the cluster was complete, and only while it is not
/// good.
fn nodes_ready(input: &ReportInput<'_>, nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>) -> Option<Draft<'static>> {
    if !input.memory.formed || nodes.is_empty() || input.plan.stage == Stage::Deleting {
        return None;
    }
    let cluster = name(input.cluster);
    let valkey_node = |(at, status): (&MemberRef, &ValkeyNodeStatus)| {
        let spec = ValkeyNodeSpec {
            cluster: cluster.to_owned(),
            shard: number(at.shard.0),
            node: number(at.node),
        };
        let mut node = ValkeyNode::new(&format!("{cluster}-{at}"), spec);
        node.status = Some(status.clone());
        node
    };
    let desired = nodes.iter().filter(|(at, _)| input.desired.includes(**at));
    let valkey_nodes: Vec<ValkeyNode> = desired.map(valkey_node).collect();
    let message = Standard::new().reasons(
        ClusterReason::NodesNotReady,
        ClusterReason::NodesUnknown,
        ClusterReason::AllNodesReady,
    );
    let aggregate = Aggregate::new("Ready")
        .target(ClusterCondition::NodesReady.name())
        .strategy(&message);
    aggregate
        .of(&valkey_nodes)
        .ok()
        .filter(|draft| draft.status != Status::True)
}
