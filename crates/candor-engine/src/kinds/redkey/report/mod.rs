//! The report of a reconcile of a `RedkeyCluster`: a pure function of the plan, its outcomes and the previous status.
//!
//! | you look for | it is in |
//! |---|---|
//! | status, substatus, the running operation, the servers | here |
//! | what is wrong, and since when | `fault` |
//! | conditions | `conditions` |
//! | events | `events` |

mod conditions;
mod events;
mod fault;

use std::collections::BTreeMap;

use candor_api::redkey::status::{ClusterStatus, NodeStatus, Operation, OperationKind, ShardTopology};
use candor_api::{RedkeyCluster, RedkeyClusterStatus};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_status::events::Notice;
use kube_status::whole_seconds;

use super::memory;
use super::operation::{Planned, Running, stored};
use super::rows::{Progress, Row, next};
use crate::assess::{self, is_overdue, retain_keys};
use crate::kinds::number;
use crate::memory::Memory;
use crate::outcome::{CommandKind, Outcome, Rejected};
use crate::step::Step;

/// The state of Robin, as the operator observes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Robin {
    /// It responds and confirms this generation.
    Ready,
    /// It responds, and does not confirm this generation yet.
    Working,
    /// Its pod does not respond yet.
    Starting,
    /// Its pod is terminated or does not start; the operator executes its steps.
    Terminated(String),
    /// It does not respond; the operator observes by itself.
    Unresponsive(String),
    /// It speaks another version of the protocol and is being replaced.
    Outdated(String),
    /// No server runs, and Robin neither.
    Hibernating,
}

/// All inputs of a report. The previous status is `cluster.status`.
#[derive(Clone, Copy, Debug)]
pub struct ReportInput<'a> {
    /// The cluster with its last status.
    pub cluster: &'a RedkeyCluster,
    /// The plan, and what it was made from.
    pub planned: &'a Planned,
    /// The results of its steps.
    pub outcomes: &'a [Outcome],
    /// The state of Robin.
    pub robin: &'a Robin,
    /// Commands of Robin that servers reject again and again.
    pub rejected: &'a [Rejected],
    /// The revision of the pod template that the spec asks for.
    pub revision: &'a str,
    /// The label selector of the servers.
    pub selector: &'a str,
    /// The revision that servers of the existing operator stand for; empty if there are none.
    pub adopted: &'a str,
    /// Parts of the spec that have no effect, with the reason.
    pub ignored: &'a [Ignored],
    /// All servers have another password than the stored one.
    pub password: Option<PasswordChange>,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// A part of the spec that has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// A line of `spec.config`.
    Config(String),
    /// A field of `spec.override`.
    Override(String),
    /// The image or the command in `spec.robin.template`.
    RobinTemplate(String),
}

impl Ignored {
    /// Which part, and why.
    pub fn message(&self) -> &str {
        match self {
            Self::Config(message) | Self::Override(message) | Self::RobinTemplate(message) => message,
        }
    }
}

/// What happened to the password of all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordChange {
    /// They have another one.
    Set,
    /// They have none.
    Removed,
}

/// What the operator publishes after a reconcile.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status.
    pub status: RedkeyClusterStatus,
    /// The events to record.
    pub events: Vec<Notice>,
}

/// Builds the report of a reconcile.
pub fn report(input: &ReportInput<'_>) -> Report {
    let nothing = RedkeyClusterStatus::default();
    let before = input.cluster.status.as_ref().unwrap_or(&nothing);
    if let Some(message) = &input.planned.other_operator {
        return stands_back(input, before, message);
    }
    let after = remembered(input, before);
    let fault = fault::of(input);
    let error_since = fault::since(input, before, fault.as_ref());
    let overdue = fault.is_some() && is_overdue(error_since, input.now);
    let row = row(input, overdue);
    let unseen = input.planned.plan.stage.is_unseen();
    let mut status = RedkeyClusterStatus {
        nodes: if unseen { before.nodes.clone() } else { nodes(input) },
        primaries: owners(&after),
        selector: input.selector.to_owned(),
        observed_generation: if unseen {
            before.observed_generation
        } else {
            input.cluster.metadata.generation
        },
        formed: formed(input, before, &after),
        adopted: input.adopted.to_owned(),
        topology: topology(input, before, &after),
        operation: operation(input, before, row),
        error_since: error_since.map(Time),
        conditions: Vec::new(),
        ..RedkeyClusterStatus::default()
    };
    row.write(&mut status);
    status.conditions = conditions::all(input, before, &status, fault.as_ref());
    retain_keys(&mut status, before, |status| {
        status.topology.iter_mut().map(|shard| &mut shard.keys).collect()
    });
    let events = events::all(input, before, &status, fault.as_ref());
    Report { status, events }
}

/// The row to write.
fn row(input: &ReportInput<'_>, overdue: bool) -> Row {
    let stored = stored(input.cluster);
    let progress = match input.planned.progress {
        Progress::Steady(ClusterStatus::Maintenance) => input.planned.progress,
        _ if overdue => Progress::Steady(ClusterStatus::Error),
        progress => progress,
    };
    // Ready is written only when Robin confirms this generation, unless Robin is known to be gone.
    let waits = matches!(input.robin, Robin::Working | Robin::Starting | Robin::Outdated(_))
        && stored.status != Some(ClusterStatus::Ready);
    let next = next(stored, progress);
    if waits && next.status == Some(ClusterStatus::Ready) && input.cluster.spec.primaries > 0 {
        return if stored.status.is_none() {
            Row::bare(ClusterStatus::Initializing)
        } else {
            stored
        };
    }
    next
}

/// The existing operator writes status: only the condition that says so is added to it.
fn stands_back(input: &ReportInput<'_>, before: &RedkeyClusterStatus, message: &str) -> Report {
    let mut status = before.clone();
    status.conditions = conditions::other_operator(input, before, message);
    let events = events::other_operator(before, message);
    Report { status, events }
}

/// Whether the cluster was complete once. A cluster that is being taken over counts as complete when nothing is left to
/// do.
fn formed(input: &ReportInput<'_>, before: &RedkeyClusterStatus, after: &Memory) -> bool {
    if input.planned.adopting {
        before.formed || (input.planned.plan.stage.is_settled() && input.cluster.spec.primaries > 0)
    } else {
        after.formed
    }
}

/// What is remembered after this reconcile.
fn remembered(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Memory {
    let planned = input.planned;
    if !planned.remembers {
        return memory::memory(before);
    }
    if input.cluster.spec.primaries == 0 {
        // Without volumes nothing comes back that could be remembered.
        let spec = &input.cluster.spec;
        let without_volumes = spec.ephemeral || spec.delete_pvc == Some(true);
        let gone = without_volumes && planned.plan.stage.is_settled();
        return if gone {
            Memory::default()
        } else {
            memory::memory(before)
        };
    }
    planned.memory.after(&planned.desired, &planned.observed, &planned.plan)
}

fn topology(input: &ReportInput<'_>, before: &RedkeyClusterStatus, after: &Memory) -> Vec<ShardTopology> {
    let planned = input.planned;
    let kept = !planned.remembers || planned.plan.stage.keeps_members();
    if kept || (input.cluster.spec.primaries == 0 && !after.topology.is_empty()) {
        return before.topology.clone();
    }
    if input.cluster.spec.primaries == 0 {
        return Vec::new();
    }
    memory::topology(after, &planned.seats, &planned.observed, &before.topology)
}

fn owners(after: &Memory) -> i32 {
    let owning = after.topology.values().filter(|shard| !shard.slots.is_empty());
    i32::try_from(owning.count()).unwrap_or(i32::MAX)
}

/// The responding servers by node id.
fn nodes(input: &ReportInput<'_>) -> BTreeMap<String, NodeStatus> {
    let observed = &input.planned.observed;
    let node = |(at, facts): (crate::model::MemberRef, &crate::observation::Facts)| {
        let member = observed.members.get(&at)?;
        let pod = member.pod.as_ref()?;
        let primary = facts.me().and_then(|me| me.primary);
        let status = NodeStatus {
            name: pod.name.clone(),
            ip: pod.ip.map(|ip| ip.to_string()).unwrap_or_default(),
            is_primary: primary.is_none(),
            replica_of: primary.map(|id| id.to_string()).unwrap_or_default(),
        };
        Some((facts.id.to_string(), status))
    };
    observed.answering().filter_map(node).collect()
}

/// The running operation after this reconcile.
fn operation(input: &ReportInput<'_>, before: &RedkeyClusterStatus, row: Row) -> Option<Operation> {
    let was = before.operation.as_ref();
    let stopped = matches!(
        input.planned.progress,
        Progress::Unchanged | Progress::Steady(ClusterStatus::Error | ClusterStatus::Maintenance)
    );
    if stopped && was.is_some() {
        return was.cloned();
    }
    let Running { kind, mode, extra } = input.planned.operation?;
    if row == Row::bare(ClusterStatus::Ready) {
        return None;
    }
    // A new cluster and a heal have rows of their own; the operation is remembered where it decides something.
    if matches!(kind, OperationKind::Create | OperationKind::Heal) {
        return None;
    }
    let same = was.filter(|was| was.kind == kind && was.mode == mode);
    let done = same.map_or_else(assess::Progress::default, |same| assess::Progress {
        attempts: same.attempts,
        slots: same.slots_moved.zip(same.slots_total),
    });
    // Only slot migrations are counted: other steps have rows of their own.
    let moves = input
        .outcomes
        .iter()
        .filter(|one| matches!(one.step, Step::MoveSlots { .. }));
    let done = done.after(&input.planned.plan.stage, moves);
    // Robin counts its own attempts, from one again after a success.
    let rejected = input.rejected.iter().find(|one| one.kind == CommandKind::MoveSlots);
    let rejected = rejected.map_or(0, |one| i32::try_from(one.times).unwrap_or(assess::COUNTED));
    Some(Operation {
        kind,
        mode,
        started_at: same.map_or_else(|| Time(whole_seconds(input.now)), |same| same.started_at.clone()),
        attempts: done.attempts.max(rejected).min(assess::COUNTED),
        from_primaries: same.map_or(before.primaries, |same| same.from_primaries),
        slots_moved: done.slots.map(|(moved, _)| moved),
        slots_total: done.slots.map(|(_, total)| total),
        extra_node: extra.map(number),
        revision: if kind == OperationKind::Upgrade {
            input.revision.to_owned()
        } else {
            String::new()
        },
    })
}
