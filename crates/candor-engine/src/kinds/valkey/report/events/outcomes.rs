//! Events for executed steps, successful or not.

use std::collections::{BTreeMap, BTreeSet};

use candor_api::ValkeyNodeStatus;
use candor_api::valkey::FAILOVER_REFUSED;
use candor_api::valkey::events::ClusterEvent;
use kube_status::events::Notice;
use valkey_admin::NodeId;

use crate::kinds::valkey::report::{ReportInput, name};
use crate::model::MemberRef;
use crate::observation::{Facts, Member, Workload};
use crate::outcome::{Change, Did, Failure, ObjectKind, Outcome};
use crate::step::{FailoverBy, Step};

/// Objects that were written, or could not be.
pub(super) fn objects(input: &ReportInput<'_>) -> Vec<Notice> {
    let there = |at: &MemberRef| {
        let member = input.observed.members.get(at);
        member.is_some_and(|member| member.workload != Workload::Absent)
    };
    let of = input.desired.members().count();
    let mut made = input.desired.members().filter(there).count();
    let mut events = Vec::new();
    for outcome in input.outcomes {
        let (changes, failure) = match &outcome.result {
            Ok(changes) => (changes, None),
            Err(failure) => (&failure.done, Some(failure)),
        };
        for change in changes {
            let workload = matches!(change.kind, ObjectKind::Deployment | ObjectKind::StatefulSet);
            made += usize::from(workload && change.did == Did::Created);
            events.extend(written(change, made, of));
        }
        events.extend(failure.and_then(unwritten));
    }
    events
}

fn written(change: &Change, made: usize, of: usize) -> Option<Notice> {
    use ClusterEvent as E;
    let event = match (change.kind, change.did) {
        (ObjectKind::HeadlessService, Did::Created) => E::ServiceCreated.notice("Created headless Service"),
        (ObjectKind::ClientService, Did::Created) => E::ServiceCreated.notice("Created client Service"),
        (ObjectKind::ConfigMap, Did::Created) => E::ConfigMapCreated.notice("Created ConfigMap with configuration"),
        (ObjectKind::AclSecret | ObjectKind::SystemSecret, Did::Created) => {
            E::InternalSecretsCreated.notice(format!("Created Secret {}", change.name))
        }
        (ObjectKind::AclSecret | ObjectKind::SystemSecret, Did::Updated) => {
            E::InternalSecretsUpdated.notice(format!("Updated Secret {}", change.name))
        }
        (ObjectKind::PodDisruptionBudget, Did::Created) => {
            E::PodDisruptionBudgetCreated.notice("Created PodDisruptionBudget")
        }
        (ObjectKind::PodDisruptionBudget, Did::Updated) => {
            E::PodDisruptionBudgetUpdated.notice("Updated PodDisruptionBudget")
        }
        (ObjectKind::PodDisruptionBudget, Did::Deleted) => {
            E::PodDisruptionBudgetDeleted.notice("Deleted PodDisruptionBudget")
        }
        (ObjectKind::Deployment, Did::Created) => {
            E::DeploymentCreated.notice(format!("Created deployment {made} of {of}"))
        }
        (ObjectKind::StatefulSet, Did::Created) => {
            E::StatefulSetCreated.notice(format!("Created statefulset {made} of {of}"))
        }
        (ObjectKind::Claim, Did::Created) => {
            E::PersistentVolumeClaimCreated.notice(format!("Created PersistentVolumeClaim {}", change.name))
        }
        (ObjectKind::ValkeyNode, Did::Deleted) => {
            E::ValkeyNodeDeleted.notice(format!("Deleted ValkeyNode {}", change.name))
        }
        _ => return None,
    };
    Some(event)
}

/// The event says whether creating or updating the object failed.
fn unwritten(failure: &Failure) -> Option<Notice> {
    use ClusterEvent as E;
    let (kind, existed) = failure.object?;
    let (created, updated, what) = match kind {
        ObjectKind::HeadlessService => (E::ServiceCreationFailed, E::ServiceUpdateFailed, "headless Service"),
        ObjectKind::ClientService => (E::ServiceCreationFailed, E::ServiceUpdateFailed, "client Service"),
        ObjectKind::ConfigMap => (E::ConfigMapCreationFailed, E::ConfigMapUpdateFailed, "ConfigMap"),
        ObjectKind::AclSecret | ObjectKind::SystemSecret => (
            E::InternalSecretsCreationFailed,
            E::InternalSecretsUpdateFailed,
            "Secret",
        ),
        ObjectKind::PodDisruptionBudget => (
            E::PodDisruptionBudgetCreationFailed,
            E::PodDisruptionBudgetUpdateFailed,
            "PodDisruptionBudget",
        ),
        ObjectKind::Deployment | ObjectKind::ValkeyNode => {
            (E::DeploymentCreationFailed, E::DeploymentUpdateFailed, "deployment")
        }
        // It is temporary; a condition reports what prevents its creation.
        ObjectKind::PreflightPod | ObjectKind::ServiceAccount | ObjectKind::Role | ObjectKind::RoleBinding => {
            return None;
        }
        ObjectKind::StatefulSet => (E::StatefulSetCreationFailed, E::StatefulSetUpdateFailed, "statefulset"),
        ObjectKind::Claim => (
            E::PersistentVolumeClaimCreationFailed,
            E::PersistentVolumeClaimUpdateFailed,
            "PersistentVolumeClaim",
        ),
    };
    let (event, verb) = if existed {
        (updated, "update")
    } else {
        (created, "create")
    };
    Some(event.notice(format!("Failed to {verb} {what}: {}", failure.message)))
}

/// `ValkeyNode` objects that this report creates or deletes.
pub(super) fn valkey_nodes(input: &ReportInput<'_>, nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>) -> Vec<Notice> {
    let cluster = name(input.cluster);
    // A member that is leaving has already lost its `ValkeyNode`, and does not get a new one.
    let made = nodes
        .keys()
        .filter(|at| input.desired.includes(**at) && !input.nodes.contains_key(at));
    let made = made.map(|at| ClusterEvent::ValkeyNodeCreated.notice(format!("Created ValkeyNode {cluster}-{at}")));
    let gone = input.nodes.keys().filter(|at| !nodes.contains_key(at));
    let gone = gone.map(|at| ClusterEvent::ValkeyNodeDeleted.notice(format!("Deleted ValkeyNode {cluster}-{at}")));
    made.chain(gone).collect()
}

/// Members that are joining the cluster: they meet, get slots, or become replicas. Every pair meets, and one meeting
/// of each new member is recorded as an event.
pub(super) fn joins(input: &ReportInput<'_>) -> Vec<Notice> {
    let mut events = adding(input);
    for outcome in input.outcomes {
        match (&outcome.step, &outcome.result) {
            (Step::AddSlots { member, slots }, Ok(_))
                if facts(input, *member).is_some_and(|facts| facts.slots().is_empty()) =>
            {
                events.extend(added(input, *member));
                events.push(ClusterEvent::PrimaryCreated.notice(format!("Created primary with slots {slots}")));
            }
            (Step::Replicate { member, primary }, Ok(_)) if is_new(input, *member) => {
                events.extend(added(input, *member));
                let message = format!("Created replica for primary {primary}");
                events.push(ClusterEvent::ReplicaCreated.notice(message));
            }
            (step, Err(failure)) => events.extend(rejected(input, step, failure)),
            _ => {}
        }
    }
    events
}

/// The members that meet another member for the first time, and the member that they meet.
fn adding(input: &ReportInput<'_>) -> Vec<Notice> {
    let meetings: Vec<(MemberRef, MemberRef)> = input.outcomes.iter().filter_map(meeting).collect();
    let blank = |at: &MemberRef| facts(input, *at).is_some_and(|facts| facts.map.0.len() <= 1);
    let all: BTreeSet<MemberRef> = meetings.iter().flat_map(|(one, other)| [*one, *other]).collect();
    let first = all.iter().find(|at| !blank(at)).or_else(|| all.first()).copied();
    let mut events = Vec::new();
    for at in all.iter().filter(|at| blank(at)) {
        events.push(ClusterEvent::NodeAdding.notice(format!("Adding node {} to cluster", address(input, *at))));
        let partners = meetings
            .iter()
            .filter_map(|(one, other)| match (one == at, other == at) {
                (true, _) => Some(*other),
                (_, true) => Some(*one),
                _ => None,
            });
        let partner = partners.min_by_key(|partner| (Some(*partner) != first, *partner));
        if let Some(partner) = partner.filter(|_| Some(*at) != first) {
            let (one, other) = (address(input, *at), address(input, partner));
            events.push(ClusterEvent::ClusterMeet.notice(format!("Node {one} met node {other}")));
        }
    }
    events
}

fn meeting(outcome: &Outcome) -> Option<(MemberRef, MemberRef)> {
    match (&outcome.step, &outcome.result) {
        (Step::Meet { at, with }, Ok(_)) => Some((*at, *with)),
        _ => None,
    }
}

/// A new member has joined. In a cluster of one member there was no meeting, so its adding is announced here too.
fn added(input: &ReportInput<'_>, at: MemberRef) -> Vec<Notice> {
    if !is_new(input, at) {
        return Vec::new();
    }
    let node = address(input, at);
    let joined = ClusterEvent::NodeAdded.notice(format!("Node {node} joined cluster"));
    if input.desired.members().count() == 1 {
        let adding = ClusterEvent::NodeAdding.notice(format!("Adding node {node} to cluster"));
        return vec![adding, joined];
    }
    vec![joined]
}

fn rejected(input: &ReportInput<'_>, step: &Step, failure: &Failure) -> Vec<Notice> {
    let message = &failure.message;
    let special = match step {
        Step::Meet { at, with } => {
            let (one, other) = (address(input, *at), address(input, *with));
            ClusterEvent::ClusterMeetFailed.notice(format!("Node {one} failed to meet node {other}: {message}"))
        }
        Step::AddSlots { slots, .. } => {
            ClusterEvent::SlotAssignmentFailed.notice(format!("Failed to assign slots {slots}: {message}"))
        }
        Step::Replicate { primary, .. } => ClusterEvent::ReplicaCreationFailed
            .notice(format!("Failed to create replica for primary {primary}: {message}")),
        _ => return Vec::new(),
    };
    vec![
        special,
        ClusterEvent::NodeAddFailed.notice(format!("Failed to add node: {message}")),
    ]
}

/// Failovers, failed slot migrations, forgotten nodes.
pub(super) fn others(input: &ReportInput<'_>) -> Vec<Notice> {
    let mut events = Vec::new();
    let mut forgotten: BTreeSet<NodeId> = BTreeSet::new();
    for outcome in input.outcomes {
        let message = outcome.result.as_ref().err().map(|failure| failure.message.as_str());
        match &outcome.step {
            Step::Failover { to, by } => events.push(failover(input, *to, *by, message)),
            Step::ClearFailoverRequest { rejected: Some(why) } if message.is_none() => {
                events.push(ClusterEvent::FailoverFailed.notice(format!("{FAILOVER_REFUSED}: {why}")));
            }
            Step::MoveSlots { moves, .. } if !is_unanswered(outcome) => events.extend(message.map(|message| {
                let draining = moves.iter().any(|one| one.from.0 >= input.desired.shards);
                if draining {
                    ClusterEvent::DrainFailed.notice(format!("Failed to drain slots: {message}"))
                } else {
                    ClusterEvent::SlotRebalanceFailed.notice(format!("Failed to move slots: {message}"))
                }
            })),
            Step::Forget { node, .. } => match message {
                Some(message) => {
                    events.push(
                        ClusterEvent::NodeForgetFailed.notice(format!("Failed to forget node {node}: {message}")),
                    );
                }
                None if forgotten.insert(*node) => {
                    events.push(ClusterEvent::StaleNodeForgotten.notice(format!("Forgot stale node {node}")));
                }
                None => {}
            },
            _ => {}
        }
    }
    events
}

fn is_unanswered(outcome: &Outcome) -> bool {
    outcome.result.as_ref().is_err_and(|failure| failure.unanswered)
}

fn failover(input: &ReportInput<'_>, to: MemberRef, by: FailoverBy, message: Option<&str>) -> Notice {
    let (shard, member) = (to.shard, named(input, to));
    match (message, by) {
        (Some(message), _) => {
            ClusterEvent::FailoverFailed.notice(format!("Failed to fail over shard {shard} to {member}: {message}"))
        }
        (None, FailoverBy::Takeover) => {
            let message = format!("Shard {shard} was taken over by {member} without a vote");
            ClusterEvent::ReplicasTakenOver.notice(message)
        }
        (None, _) => ClusterEvent::FailoverInitiated.notice(format!("Failing over shard {shard} to {member}")),
    }
}

/// Whether status does not remember a member yet.
fn is_new(input: &ReportInput<'_>, at: MemberRef) -> bool {
    facts(input, at).is_some_and(|facts| !input.memory.knows(facts.id))
}

fn facts<'a>(input: &'a ReportInput<'_>, at: MemberRef) -> Option<&'a Facts> {
    input.observed.members.get(&at).and_then(Member::facts)
}

/// A member's name, with its address if it has one: `member 0-1 (10.0.0.7)`.
fn named(input: &ReportInput<'_>, at: MemberRef) -> String {
    let ip = input.observed.members.get(&at).and_then(Member::ip);
    ip.map_or_else(|| format!("member {at}"), |ip| format!("member {at} ({ip})"))
}

/// A member's address, or its name while it has none.
fn address(input: &ReportInput<'_>, at: MemberRef) -> String {
    let ip = input.observed.members.get(&at).and_then(Member::ip);
    ip.map_or_else(|| at.to_string(), |ip| ip.to_string())
}
