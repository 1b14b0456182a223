//! The status of a member's `ValkeyNode`: it shows which member out of sixty is unhealthy.

use std::collections::BTreeMap;

use candor_api::ValkeyNodeStatus;
use candor_api::valkey::node_conditions::{NodeCondition, NodeReason};
use candor_api::valkey::status::MemberRole;
use kube_status::{Draft, Order, is_true, set_in};

use super::ReportInput;
use crate::model::MemberRef;
use crate::observation::{Applied, Claim, Facts, Member, Server, Trouble, Workload};

/// Ready first, the rest by name.
const ORDER: Order<'static> = Order::new(&["Ready"], &[]);

/// Every member that is desired or still exists. While nothing is known about pods, every status stays as it was. The
/// same holds while the cluster is being deleted: its `ValkeyNode` objects are deleted with it.
pub(super) fn all(input: &ReportInput<'_>) -> BTreeMap<MemberRef, ValkeyNodeStatus> {
    if input.plan.stage.keeps_members() {
        let stored = input.nodes.iter();
        return stored
            .map(|(at, node)| (*at, node.status.clone().unwrap_or_default()))
            .collect();
    }
    let there = |at: MemberRef, member: &Member| {
        input.desired.includes(at) || member.workload != Workload::Absent || member.pod.is_some()
    };
    let members = input.observed.members.iter().filter(|(at, member)| there(**at, member));
    members.map(|(at, member)| (*at, one(input, *at, member))).collect()
}

fn one(input: &ReportInput<'_>, at: MemberRef, member: &Member) -> ValkeyNodeStatus {
    let stored = input.nodes.get(&at);
    // The spec of a `ValkeyNode` never changes: its generation is 1 from its creation on.
    let generation = stored.and_then(|node| node.metadata.generation).unwrap_or(1);
    let mut conditions = stored
        .and_then(|node| node.status.as_ref())
        .map(|status| status.conditions.clone())
        .unwrap_or_default();
    let mut drafts = vec![
        ready(input, at, member),
        configuration(member),
        applied(NodeCondition::UsersApplied, member, |facts| &facts.users),
    ];
    let full = member.facts().and_then(|facts| facts.disk_failed.as_ref());
    if let Some(message) = full {
        drafts.push(Draft::bad(NodeCondition::StorageReady, NodeReason::VolumeFailed).message(message.clone()));
    } else if input.desired.persistence {
        drafts.push(storage(member));
    }
    conditions.retain(|one| drafts.iter().any(|draft| draft.type_ == one.type_));
    for draft in drafts {
        let _ = set_in(&mut conditions, draft, generation, input.now, &ORDER);
    }
    let facts = member.facts();
    let pod = member.pod.as_ref();
    ValkeyNodeStatus {
        ready: is_true(&conditions, NodeCondition::Ready),
        role: facts.map(role),
        pod_name: pod.map(|pod| pod.name.clone()).unwrap_or_default(),
        pod_ip: member.ip().map(|ip| ip.to_string()).unwrap_or_default(),
        node_id: facts.map(|facts| facts.id.to_string()).unwrap_or_default(),
        observed_generation: Some(generation),
        conditions,
    }
}

fn role(facts: &Facts) -> MemberRole {
    if facts.is_primary() {
        MemberRole::Primary
    } else {
        MemberRole::Replica
    }
}

fn ready(input: &ReportInput<'_>, at: MemberRef, member: &Member) -> Draft<'static> {
    let bad = |reason, message: &str| Draft::bad(NodeCondition::Ready, reason).message(message.to_owned());
    let good = |reason, message: String| Draft::good(NodeCondition::Ready, reason).message(message);
    if !input.desired.includes(at) {
        return bad(NodeReason::Leaving, "No longer wanted");
    }
    let shard = at.shard;
    match &member.server {
        Server::Up(facts) if facts.loading => bad(NodeReason::Loading, "Reads its dataset"),
        Server::Up(facts) if facts.is_primary() && facts.slots().is_empty() => {
            bad(NodeReason::Joining, "Owns no slots and follows nobody yet")
        }
        Server::Up(facts) if facts.is_primary() && !facts.ok => {
            bad(NodeReason::ClusterDown, "Sees slots that nobody serves")
        }
        Server::Up(facts) if facts.is_primary() => good(NodeReason::Serving, format!("Primary of shard {shard}")),
        Server::Up(facts) if facts.in_sync => good(NodeReason::InSync, format!("Replica in shard {shard}, in sync")),
        Server::Up(_) => bad(NodeReason::NotInSync, "Not in sync with its primary"),
        _ => away(input, at, member),
    }
}

/// Ready of a member with a server that did not respond.
fn away(input: &ReportInput<'_>, at: MemberRef, member: &Member) -> Draft<'static> {
    let bad = |reason, message: String| Draft::bad(NodeCondition::Ready, reason).message(message);
    let pod = member.pod.as_ref();
    match pod.and_then(|pod| pod.trouble.as_ref()) {
        Some(Trouble::Unschedulable(message)) => return bad(NodeReason::PodUnschedulable, message.clone()),
        Some(Trouble::NotStarting(message)) => return bad(NodeReason::PodNotStarting, message.clone()),
        None => {}
    }
    let topology = input.memory.topology.get(&at.shard);
    let known = topology.is_some_and(|before| before.members.contains_key(&at.node));
    match &member.server {
        _ if input.memory.rolling == Some(at) => bad(NodeReason::Restarting, "Is being restarted".to_owned()),
        _ if pod.is_none() => bad(NodeReason::PodPending, "Has no pod".to_owned()),
        Server::Nowhere if member.ip().is_some() => {
            bad(NodeReason::Starting, "Does not accept connections yet".to_owned())
        }
        Server::Nowhere | Server::Up(_) => bad(NodeReason::PodPending, "Its pod has no address yet".to_owned()),
        _ if !known => bad(NodeReason::Starting, "Its server has not answered yet".to_owned()),
        Server::Dead { since } => bad(
            NodeReason::Gone,
            format!("Refuses connections since {}", at_second(*since)),
        ),
        Server::Silent { since } => {
            let since = at_second(*since);
            let message = match &member.undecodable {
                Some(message) => format!("What it says since {since} cannot be understood: {message}"),
                None => format!("Does not answer since {since}"),
            };
            bad(NodeReason::Silent, message)
        }
    }
}

fn at_second(time: jiff::Timestamp) -> jiff::Timestamp {
    kube_status::whole_seconds(time)
}

/// Configuration and certificate in one condition.
fn configuration(member: &Member) -> Draft<'static> {
    let certificate = member.facts().is_some_and(|facts| facts.config == Applied::Yes);
    if certificate {
        applied(NodeCondition::ConfigurationApplied, member, |facts| &facts.certificate)
    } else {
        applied(NodeCondition::ConfigurationApplied, member, |facts| &facts.config)
    }
}

fn applied(type_: NodeCondition, member: &Member, part: fn(&Facts) -> &Applied) -> Draft<'static> {
    match member.facts().map(part) {
        None => Draft::unknown(type_, NodeReason::NoAnswer).message("Its server does not answer"),
        Some(Applied::Yes) => Draft::good(type_, NodeReason::Applied).message("As the spec asks"),
        Some(Applied::No) => Draft::bad(type_, NodeReason::Pending).message("Being applied"),
        Some(Applied::Rejected(message)) => Draft::bad(type_, NodeReason::Refused).message(message.clone()),
    }
}

fn storage(member: &Member) -> Draft<'static> {
    let type_ = NodeCondition::StorageReady;
    let bad = |reason, message: &str| Draft::bad(type_, reason).message(message.to_owned());
    match &member.claim {
        Claim::Bound => Draft::good(type_, NodeReason::Bound).message("Its volume is there"),
        Claim::Absent => bad(NodeReason::VolumePending, "It has no volume yet"),
        Claim::Pending(message) => bad(NodeReason::VolumePending, message),
        Claim::TooSmall | Claim::Resizing => bad(NodeReason::VolumeResizing, "Its volume grows"),
        Claim::Failed(message) => bad(NodeReason::VolumeFailed, message),
    }
}
