//! The conditions of a `RedkeyCluster`.

use candor_api::redkey::DATA_LOSS_ACKNOWLEDGED;
use candor_api::redkey::conditions::{RedkeyCondition as C, RedkeyReason as R};
use candor_api::redkey::status::{ClusterStatus, OperationKind};
use candor_api::{Condition, RedkeyClusterStatus};
use kube_status::{ConditionType, Draft, Order, find, set_in};

use super::fault::Fault;
use super::{ReportInput, Robin};
use crate::assess::{self, losses};
use crate::plan::Stage;

/// The display order.
const ORDER: Order<'static> = Order::new(
    &[
        "Ready",
        "ScalingUp",
        "ScalingDown",
        "Upgrading",
        "Degraded",
        "RobinReady",
    ],
    &[],
);

/// Every condition after this reconcile; `status` has the row and the operation that are about to be written.
pub(super) fn all(
    input: &ReportInput<'_>,
    before: &RedkeyClusterStatus,
    status: &RedkeyClusterStatus,
    fault: Option<&Fault>,
) -> Vec<Condition> {
    let mut drafts = vec![ready(input, status, fault)];
    if !input.planned.plan.stage.is_unseen() {
        drafts.extend(operations(input, status));
        drafts.push(degraded(input));
    }
    drafts.push(robin(input));
    drafts.extend(configuration(input, fault));
    drafts.extend(paused(input));
    drafts.extend(primaries_spread(input, before));
    drafts.push(data_lost(input, before));
    let generation = input.cluster.metadata.generation.unwrap_or(0);
    let mut list = before.conditions.clone();
    let optional = [C::ConfigurationApplied, C::Paused, C::PrimariesSpread];
    list.retain(|one| {
        let named = |type_: &C| type_.name() == one.type_;
        !optional.iter().any(named) || drafts.iter().any(|draft| draft.type_ == one.type_)
    });
    for draft in drafts {
        let _ = set_in(&mut list, draft, generation, input.now, &ORDER);
    }
    list
}

fn ready(input: &ReportInput<'_>, status: &RedkeyClusterStatus, fault: Option<&Fault>) -> Draft<'static> {
    let bad = |reason: R, message: String| Draft::bad(C::Ready, reason).message(message);
    let stage = &input.planned.plan.stage;
    let word = ClusterStatus::parse(&status.status);
    match stage {
        Stage::Blind(message) => return Draft::unknown(C::Ready, R::PodListError).message(message.clone()),
        Stage::Deleting => return bad(R::Deleting, "The cluster is being deleted".to_owned()),
        _ => {}
    }
    if input.cluster.spec.primaries == 0 && word == Some(ClusterStatus::Ready) {
        return Draft::good(C::Ready, R::Hibernating).message("primaries is 0: no server runs");
    }
    let settled = matches!(word, Some(ClusterStatus::Ready | ClusterStatus::Maintenance));
    if stage.is_settled() && settled {
        let (primaries, replicas) = (input.cluster.spec.primaries, input.cluster.spec.replicas_per_primary);
        let message = format!("{primaries} primaries with {replicas} replicas each serve all slots");
        return Draft::good(C::Ready, R::RedkeyClusterReady).message(message);
    }
    if let Some(fault) = fault {
        return bad(fault.reason, fault.message.clone());
    }
    if let Some((reason, message)) = loss(stage) {
        return bad(reason, message);
    }
    let running = status.operation.as_ref().map(|one| one.kind);
    let (reason, message) = match (running, word) {
        (Some(OperationKind::ScaleUp), _) => (R::RedkeyClusterScalingUp, scaling(input, status, "up")),
        (Some(OperationKind::ScaleDown), _) => (R::RedkeyClusterScalingDown, scaling(input, status, "down")),
        (Some(OperationKind::Upgrade), _) => (R::RedkeyClusterUpgrading, upgrading(input)),
        (_, Some(ClusterStatus::Initializing)) => (R::Initializing, "Waiting for servers to start".to_owned()),
        _ => (R::Configuring, doing(stage)),
    };
    bad(reason, message)
}

/// What happens in a stage that no operation asked for.
fn doing(stage: &Stage) -> String {
    match stage {
        Stage::Joining => "Servers are joining the cluster".to_owned(),
        Stage::Assigning => "Slots are being assigned".to_owned(),
        Stage::Uncovered { .. } => "Servers are learning the owners of all slots".to_owned(),
        Stage::Replicating { shard } => format!("Replicas of shard {shard} are copying its keys"),
        Stage::Moving { left, .. } => format!("{left} slots are being moved"),
        Stage::Forgetting => "Nodes that are gone are being forgotten".to_owned(),
        Stage::Configuring { left } => format!("Settings are being applied to {left} servers"),
        Stage::Writing => "Objects are being written".to_owned(),
        Stage::FailingOver { shard, .. } => format!("Shard {shard} is failing over"),
        Stage::Healthy => "Waiting for Robin to confirm".to_owned(),
        _ => "The cluster is being configured".to_owned(),
    }
}

/// `Scaling up from 3 to 5 primaries`. The number of servers decides the direction; where the number of primaries goes
/// the other way, or stays, the message says the new topology instead.
fn scaling(input: &ReportInput<'_>, status: &RedkeyClusterStatus, direction: &str) -> String {
    let from = status.operation.as_ref().map_or(0, |one| one.from_primaries);
    let (to, replicas) = (input.cluster.spec.primaries, input.cluster.spec.replicas_per_primary);
    let same_way = if direction == "up" { to > from } else { to < from };
    if same_way {
        return format!("Scaling {direction} from {from} to {to} primaries");
    }
    let each = if replicas == 1 { "replica" } else { "replicas" };
    format!("Scaling {direction} to {to} primaries with {replicas} {each} each")
}

fn upgrading(input: &ReportInput<'_>) -> String {
    format!("Upgrading the servers to image {}", input.cluster.spec.server_image())
}

fn operations(input: &ReportInput<'_>, status: &RedkeyClusterStatus) -> Vec<Draft<'static>> {
    let running = status.operation.as_ref().map(|one| one.kind);
    let asleep = running == Some(OperationKind::Hibernate) && input.cluster.spec.primaries == 0;
    let table = [
        (
            C::ScalingUp,
            R::RedkeyClusterScalingUp,
            running == Some(OperationKind::ScaleUp),
        ),
        (
            C::ScalingDown,
            R::RedkeyClusterScalingDown,
            running == Some(OperationKind::ScaleDown) || asleep,
        ),
        (
            C::Upgrading,
            R::RedkeyClusterUpgrading,
            running == Some(OperationKind::Upgrade),
        ),
    ];
    let draft = |(type_, reason, on): (C, R, bool)| {
        if !on {
            return Draft::good(type_, R::NotInProgress).message("No such operation is running");
        }
        let message = match type_ {
            C::ScalingUp => scaling(input, status, "up"),
            C::ScalingDown => scaling(input, status, "down"),
            _ => upgrading(input),
        };
        Draft::bad(type_, reason).message(message)
    };
    table.into_iter().map(draft).collect()
}

/// Losses that no operation caused.
pub(super) fn loss(stage: &Stage) -> Option<(R, String)> {
    Some(match stage {
        Stage::PrimaryLost(lost) => (R::PrimaryLost, losses("Primary", lost)),
        Stage::ReplicaLost(lost) => (R::ReplicaLost, losses("Replica", lost)),
        Stage::QuorumLost { answering, of } => (
            R::QuorumLost,
            format!("{answering} of {of} primaries respond: without a majority the servers cannot elect"),
        ),
        Stage::Uncovered { slots } if *slots > 0 => (R::SlotsUncovered, format!("{slots} slots have no owner")),
        Stage::DataLost(shards) => {
            let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
            (R::DataLost, format!("Shard {} came back empty", shards.join(", ")))
        }
        Stage::Foreign(message) => (R::ForeignNode, message.clone()),
        _ => return None,
    })
}

fn degraded(input: &ReportInput<'_>) -> Draft<'static> {
    let stage = &input.planned.plan.stage;
    let stuck = match stage {
        Stage::Stuck {
            member: Some(_),
            trouble,
        } => Some((super::fault::reason_of(trouble), trouble.message().to_owned())),
        _ => None,
    };
    match loss(stage).or(stuck.filter(|_| input.planned.memory.formed)) {
        Some((reason, message)) => Draft::bad(C::Degraded, reason).message(message),
        None => Draft::good(C::Degraded, R::NotDegraded).message("No server and no slot is missing"),
    }
}

fn robin(input: &ReportInput<'_>) -> Draft<'static> {
    let bad = |reason: R, message: &str| Draft::bad(C::RobinReady, reason).message(message.to_owned());
    match input.robin {
        Robin::Ready | Robin::Working => Draft::good(C::RobinReady, R::RobinReady).message("Robin responds"),
        Robin::Hibernating => Draft::good(C::RobinReady, R::Hibernating).message("primaries is 0: Robin does not run"),
        Robin::Starting => bad(R::RobinStarting, "Robin does not respond yet"),
        Robin::Terminated(message) => bad(R::RobinTerminated, message),
        Robin::Unresponsive(message) => bad(R::RobinUnresponsive, message),
        Robin::Outdated(message) => bad(R::RobinOutdated, message),
    }
}

fn configuration(input: &ReportInput<'_>, fault: Option<&Fault>) -> Option<Draft<'static>> {
    let about = [R::ConfigInvalid, R::ConfigRejected, R::SecretInvalid];
    if let Some(fault) = fault.filter(|fault| about.contains(&fault.reason)) {
        return Some(Draft::bad(C::ConfigurationApplied, fault.reason).message(fault.message.clone()));
    }
    let ignored = !input.ignored.is_empty();
    ignored.then(|| {
        let messages: Vec<&str> = input.ignored.iter().map(super::Ignored::message).collect();
        Draft::bad(C::ConfigurationApplied, R::ConfigIgnored).message(messages.join("; "))
    })
}

fn paused(input: &ReportInput<'_>) -> Option<Draft<'static>> {
    let message = "spec.paused or the annotation redkey.inditex.dev/maintenance is set: nothing is changed";
    let draft = Draft::bad(C::Paused, R::Maintenance).message(message);
    input.planned.desired.paused.then_some(draft)
}

/// Primaries that are piled up in a zone, while nothing else is wrong.
fn primaries_spread(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Option<Draft<'static>> {
    let reported = find(&before.conditions, C::PrimariesSpread);
    let planned = input.planned;
    let message = assess::piled_up(
        reported,
        &planned.plan.stage,
        &planned.observed,
        &input.cluster.metadata,
    )?;
    Some(Draft::bad(C::PrimariesSpread, R::PrimariesPiledUp).message(message))
}

/// The conditions of a cluster that the existing operator manages: its own, and one that says so.
pub(super) fn other_operator(input: &ReportInput<'_>, before: &RedkeyClusterStatus, message: &str) -> Vec<Condition> {
    let generation = input.cluster.metadata.generation.unwrap_or(0);
    let mut list = before.conditions.clone();
    let draft = Draft::bad(C::Paused, R::OtherOperatorActive).message(message.to_owned());
    let _ = set_in(&mut list, draft, generation, input.now, &ORDER);
    list
}

/// Shards with lost data: reported from the reconcile that declares the loss until a user acknowledges it.
fn data_lost(input: &ReportInput<'_>, before: &RedkeyClusterStatus) -> Draft<'static> {
    let reported = find(&before.conditions, C::DataLost);
    let annotations = input.cluster.metadata.annotations.as_ref();
    let acknowledged = annotations.and_then(|all| all.get(DATA_LOSS_ACKNOWLEDGED));
    match assess::data_lost(reported, acknowledged, &input.planned.plan) {
        Some(message) => Draft::bad(C::DataLost, R::DataLost).message(message),
        None => Draft::good(C::DataLost, R::NoDataLost).message("No data is known to be lost"),
    }
}
