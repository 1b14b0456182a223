//! The condition that decides the state of a cluster, and behind a symptom the condition that names its cause. Pure.

use candor_api::Condition;
use jiff::Timestamp;
use kube_status::tree::Tone;
use kube_status::{Polarity, Status};

use super::names::Names;
use super::{Cluster, Member};

/// Reasons that say only that something is missing or under way: a more specific condition replaces their message.
const GENERIC: [&str; 7] = [
    "Reconciling",
    "MissingShards",
    "MissingReplicas",
    "NodesNotReady",
    "Configuring",
    "Initializing",
    "PodUnschedulable",
];
/// Reasons that say what is lost, and not always why: a more specific condition is added to their message.
const SYMPTOMS: [&str; 3] = ["PrimaryLost", "ReplicaLost", "SlotsUncovered"];
/// Conditions that name a cause, and the reasons that are one. Others are part of a normal operation.
const ROOTS: [(&str, &[&str]); 3] = [
    ("StorageReady", &["VolumePending", "VolumeFailed"]),
    (
        "ConfigurationApplied",
        &[
            "ConfigurationRefused",
            "SpecInvalid",
            "DowngradeRefused",
            "ConfigInvalid",
            "ConfigRejected",
            "SecretInvalid",
        ],
    ),
    ("UsersApplied", &["UsersRefused", "UsersInvalid"]),
];
/// Reasons of a member whose message is the scheduler's or the kubelet's.
const OF_POD: [&str; 2] = ["PodUnschedulable", "PodNotStarting"];

/// What decides the state of a cluster.
#[derive(Clone, Debug)]
pub struct Cause {
    /// The type of the condition.
    pub type_: String,
    /// The severity.
    pub tone: Tone,
    /// The reason, of the root cause where one is known.
    pub reason: String,
    /// The message, with the root cause where one is known.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

impl Cause {
    /// The cause of a cluster's state: a fault first, then not Ready, then an operation in progress.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let mut cause = decider(cluster)?;
        if let Some((reason, message)) = root(cluster, &cause) {
            if SYMPTOMS.contains(&cause.reason.as_str()) {
                let symptom = without_full_stop(&cause.message, &cause.reason);
                let (member, rest) = message.split_once(": ").unwrap_or(("", &message));
                let named = !member.is_empty() && symptom.contains(member);
                cause.message = format!("{symptom}: {}", if named { rest } else { &message });
            } else {
                cause.message = message;
            }
            cause.reason = reason;
        }
        cause.message = Names::of(cluster).apply(without_preemption(&cause.message));
        Some(cause)
    }

    fn read(cluster: &Cluster, condition: &Condition) -> Self {
        let polarity = polarity(cluster, &condition.type_);
        Self {
            type_: condition.type_.clone(),
            tone: Tone::of(Status::of(condition), polarity, condition.severity()),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: condition.last_transition_time.0,
        }
    }
}

fn decider(cluster: &Cluster) -> Option<Cause> {
    if let Some(degraded) = is_true(cluster, "Degraded") {
        return Some(Cause::read(cluster, degraded));
    }
    let running = running(cluster);
    let Some(ready) = cluster.condition("Ready") else {
        return running.map(|one| Cause::read(cluster, one));
    };
    let ready_is = Cause::read(cluster, ready);
    match (Status::of(ready), running, is_true(cluster, "Paused")) {
        // The operation in progress says more than "Cluster is Reconciling", and what prevents the first object says
        // more than "Waiting for all shards to be created".
        (_, Some(running), _) if ready.reason == "Reconciling" || running.reason == "Initializing" => Some(Cause {
            tone: ready_is.tone,
            since: ready_is.since,
            ..Cause::read(cluster, running)
        }),
        // Where the state is a pause, its reason is the pause.
        (Status::True, _, Some(paused)) if cluster.state != "Ready" => Some(Cause::read(cluster, paused)),
        _ => Some(ready_is),
    }
}

/// Reason and message of the condition or member that names the root cause.
fn root(cluster: &Cluster, cause: &Cause) -> Option<(String, String)> {
    let is_ready = cluster.ready() == Some(Status::True);
    let vague = GENERIC.contains(&cause.reason.as_str()) || SYMPTOMS.contains(&cause.reason.as_str());
    if is_ready || !vague || cluster.deleting.is_some() {
        return None;
    }
    // What prevents the first object is specific enough.
    if cause.reason == "Initializing" && cause.type_ == "Progressing" {
        return None;
    }
    let condition = ROOTS.iter().find_map(|(type_, reasons)| {
        let found = cluster.condition(type_)?;
        let is_bad = Status::of(found) == Status::False && reasons.contains(&found.reason.as_str());
        is_bad.then(|| (found.reason.clone(), found.message.clone()))
    });
    let of_pod = |member: &&Member| {
        let known = cause
            .message
            .contains(without_full_stop(&member.message, &member.reason));
        OF_POD.contains(&member.reason.as_str()) && !known
    };
    condition.or_else(|| {
        let member = cluster.members.iter().find(of_pod)?;
        let message = without_full_stop(&member.message, &member.reason);
        Some((member.reason.clone(), format!("member {}: {message}", member.id)))
    })
}

/// The scheduler's message without its second half, which repeats the first for a preemption.
fn without_preemption(message: &str) -> &str {
    let parts = [". no new claims to deallocate, preemption:", ". preemption:"];
    let end = parts.iter().filter_map(|part| message.find(part)).min();
    &message[..end.unwrap_or(message.len())]
}

/// A condition that is True.
pub fn is_true<'a>(cluster: &'a Cluster, type_: &str) -> Option<&'a Condition> {
    cluster.condition(type_).filter(|one| Status::of(one) == Status::True)
}

/// The condition of the operation in progress.
pub fn running(cluster: &Cluster) -> Option<&Condition> {
    let mut types = cluster.kind.operation_types().iter();
    types.find_map(|type_| is_true(cluster, type_))
}

/// Whether True or False is the good status of a condition.
pub fn polarity(cluster: &Cluster, type_: &str) -> Polarity {
    if cluster.kind.negative().contains(&type_) {
        Polarity::Negative
    } else {
        Polarity::Positive
    }
}

/// The message without its full stop, so that text can follow; the reason if the message is empty.
pub fn without_full_stop<'a>(message: &'a str, reason: &'a str) -> &'a str {
    let message = message.trim().trim_end_matches('.');
    if message.is_empty() { reason } else { message }
}
