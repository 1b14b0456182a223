//! Optional conditions: present only while there is something to report.

use std::collections::BTreeMap;

use candor_api::valkey::DATA_LOSS_ACKNOWLEDGED;
use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::{Condition, ValkeyClusterStatus, ValkeyNode, ValkeyNodeSpec, ValkeyNodeStatus};
use kube_status::merge::Standard;
use kube_status::{Aggregate, ConditionType, Draft, Status, find};

use super::verdict::{Said, loss, reason_of, said};
use super::{Looked, name};
use crate::kinds::valkey::number;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{About, Applied, Claim, Facts};
use crate::plan::{Refusal, Stage};
use crate::step::Step;

pub(super) fn all(
    looked: &Looked<'_>,
    before: &ValkeyClusterStatus,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Draft<'static>> {
    let bad = |type_, said: Option<Said>| said.map(|said| Draft::bad(type_, said.reason).message(said.message));
    let paused = looked.wanted.paused.then(|| {
        said(
            ClusterReason::PausedByUser,
            "spec.paused is set: the operator reports status and makes no changes",
        )
    });
    [
        bad(ClusterCondition::Paused, paused),
        bad(ClusterCondition::DataLost, data_lost(looked, before)),
        bad(ClusterCondition::ConfigurationApplied, configuration(looked)),
        bad(ClusterCondition::UsersApplied, users(looked)),
        bad(ClusterCondition::StorageReady, storage(looked)),
        nodes_ready(looked, nodes),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Shards with lost data: reported from the reconcile that declares the loss until a user acknowledges it.
fn data_lost(looked: &Looked<'_>, before: &ValkeyClusterStatus) -> Option<Said> {
    let standing = find(&before.conditions, ClusterCondition::DataLost).filter(|one| !is_acknowledged(looked, one));
    let mut words: Vec<String> = standing.map(|one| one.message.clone()).into_iter().collect();
    words.extend(newly_lost(looked).filter_map(|shard| loss(looked, shard)));
    (!words.is_empty()).then(|| said(ClusterReason::DataLost, words.join("; ")))
}

/// Shards that this reconcile declares lost.
pub(super) fn newly_lost<'a>(looked: &'a Looked<'_>) -> impl Iterator<Item = ShardIndex> + 'a {
    looked.plan.steps.iter().filter_map(|step| match step {
        Step::DeclareLost { shard, .. } => Some(*shard),
        _ => None,
    })
}

fn is_acknowledged(looked: &Looked<'_>, loss: &Condition) -> bool {
    let annotations = looked.cluster.metadata.annotations.as_ref();
    let seen = annotations.and_then(|all| all.get(DATA_LOSS_ACKNOWLEDGED));
    seen.is_some_and(|seen| *seen == loss.last_transition_time.0.to_string())
}

/// What desired members report about a run-time setting.
fn answers<'a>(looked: &'a Looked<'_>, part: fn(&Facts) -> &Applied) -> impl Iterator<Item = (MemberRef, &'a Applied)> {
    let wanted = looked.seen.answering().filter(|(at, _)| looked.wanted.wants(*at));
    wanted.map(move |(at, facts)| (at, part(facts)))
}

/// What servers rejected, else how many members still wait. While a cluster is being created, waiting is part of the
/// creation and not reported.
fn applied(
    looked: &Looked<'_>,
    parts: &[fn(&Facts) -> &Applied],
    refused: ClusterReason,
    pending: ClusterReason,
) -> Option<Said> {
    let all = || parts.iter().flat_map(|part| answers(looked, *part));
    let words = all().find_map(|(at, applied)| match applied {
        Applied::Refused(words) => Some(format!("member {at}: {words}")),
        _ => None,
    });
    let mut waiting: Vec<MemberRef> = all()
        .filter(|(_, applied)| **applied == Applied::No)
        .map(|(at, _)| at)
        .collect();
    waiting.sort();
    waiting.dedup();
    let told = looked.memory.formed || matches!(looked.plan.stage, Stage::Configuring { .. });
    match (words, waiting.len()) {
        (Some(words), _) => Some(said(refused, words)),
        (None, left) if left > 0 && told => {
            let of = looked.wanted.members().count();
            Some(said(pending, format!("{left} of {of} members wait for it")))
        }
        _ => None,
    }
}

fn invalid(looked: &Looked<'_>, about: About) -> Option<Said> {
    let problems = looked.seen.problems.iter().filter(|problem| problem.about == about);
    let words: Vec<&str> = problems.map(|problem| problem.words.as_str()).collect();
    (!words.is_empty()).then(|| said(reason_of(Refusal::Invalid(about)), words.join("; ")))
}

fn configuration(looked: &Looked<'_>) -> Option<Said> {
    let downgrade = match &looked.plan.stage {
        Stage::Refused {
            refusal: Refusal::Downgrade,
            words,
        } => Some(said(ClusterReason::DowngradeRefused, words.clone())),
        _ => None,
    };
    let parts: [fn(&Facts) -> &Applied; 2] = [|facts| &facts.config, |facts| &facts.certificate];
    let (refused, pending) = (ClusterReason::ConfigurationRefused, ClusterReason::ConfigurationPending);
    invalid(looked, About::Configuration)
        .or(downgrade)
        .or_else(|| applied(looked, &parts, refused, pending))
}

fn users(looked: &Looked<'_>) -> Option<Said> {
    let parts: [fn(&Facts) -> &Applied; 1] = [|facts| &facts.users];
    let (refused, pending) = (ClusterReason::UsersRefused, ClusterReason::UsersPending);
    invalid(looked, About::Users).or_else(|| applied(looked, &parts, refused, pending))
}

/// The worst problem of any volume, or of any other disk that a server writes to.
fn storage(looked: &Looked<'_>) -> Option<Said> {
    let mut answering = looked.seen.answering().filter(|(at, _)| looked.wanted.wants(*at));
    let full = answering.find_map(|(at, facts)| {
        let words = facts.disk_failed.as_ref()?;
        Some(said(ClusterReason::VolumeFailed, format!("member {at}: {words}")))
    });
    let claims = || {
        let wanted = looked.seen.members.iter().filter(|(at, _)| looked.wanted.wants(**at));
        wanted
            .filter(|_| looked.wanted.persistence)
            .map(|(at, member)| (at, &member.claim))
    };
    let failed = claims().find_map(|(at, claim)| match claim {
        Claim::Failed(words) => Some(said(ClusterReason::VolumeFailed, format!("member {at}: {words}"))),
        _ => None,
    });
    let pending = claims().find_map(|(at, claim)| match claim {
        Claim::Pending(words) => Some(said(ClusterReason::VolumePending, format!("member {at}: {words}"))),
        _ => None,
    });
    let growing = claims().filter(|(_, claim)| matches!(claim, Claim::TooSmall | Claim::Resizing));
    let growing = match growing.count() {
        0 => None,
        1 => Some(said(ClusterReason::VolumeResizing, "1 volume grows")),
        more => Some(said(ClusterReason::VolumeResizing, format!("{more} volumes grow"))),
    };
    invalid(looked, About::Storage)
        .or(full)
        .or(failed)
        .or(pending)
        .or(growing)
}

/// The summary of the members' Ready conditions. Reported once the cluster was complete, and only while it is not
/// good.
fn nodes_ready(looked: &Looked<'_>, nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>) -> Option<Draft<'static>> {
    if !looked.memory.formed || nodes.is_empty() || looked.plan.stage == Stage::Deleting {
        return None;
    }
    let cluster = name(looked.cluster);
    let window = |(at, status): (&MemberRef, &ValkeyNodeStatus)| {
        let spec = ValkeyNodeSpec {
            cluster: cluster.to_owned(),
            shard: number(at.shard.0),
            node: number(at.node),
        };
        let mut node = ValkeyNode::new(&format!("{cluster}-{at}"), spec);
        node.status = Some(status.clone());
        node
    };
    let wanted = nodes.iter().filter(|(at, _)| looked.wanted.wants(**at));
    let windows: Vec<ValkeyNode> = wanted.map(window).collect();
    let words = Standard::new().reasons(
        ClusterReason::NodesNotReady,
        ClusterReason::NodesUnknown,
        ClusterReason::AllNodesReady,
    );
    let aggregate = Aggregate::new("Ready")
        .target(ClusterCondition::NodesReady.name())
        .strategy(&words);
    aggregate.of(&windows).ok().filter(|draft| draft.status != Status::True)
}
