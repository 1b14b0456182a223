//! The list of conditions, and Ready as the library's summary of the others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::{Condition, ValkeyClusterStatus, ValkeyNodeStatus};
use jiff::SignedDuration;
use kube_status::merge::{Input, MergeError, Merged, Operation, Priority, Strategy};
use kube_status::severity::Severity;
use kube_status::{Cause, ConditionType, Draft, Order, Polarity, Reason, Status, Summary, find, set_in};
use valkey_admin::SlotSet;

use super::condition_set::{ConditionSet, ConditionText, text};
use super::{ReportInput, optional_conditions};
use crate::memory::Memory;
use crate::model::MemberRef;
use crate::plan::Stage;

/// The display order: the five main conditions, then the rest by name.
const ORDER: Order<'static> = Order::new(
    &["Ready", "Progressing", "Degraded", "ClusterFormed", "SlotsAssigned"],
    &[],
);

/// The conditions that Ready summarizes. Paused, `DataLost` and `PrimariesSpread` are not among them.
const PARTS: [ClusterCondition; 8] = [
    ClusterCondition::Progressing,
    ClusterCondition::Degraded,
    ClusterCondition::ClusterFormed,
    ClusterCondition::SlotsAssigned,
    ClusterCondition::ConfigurationApplied,
    ClusterCondition::NodesReady,
    ClusterCondition::StorageReady,
    ClusterCondition::UsersApplied,
];

/// Every condition of the cluster after a reconcile. A condition that is no longer reported is removed. A condition
/// that is still reported keeps its transition time while its status is unchanged.
pub(super) fn all(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    after: &Memory,
    set: &ConditionSet,
    nodes: &BTreeMap<MemberRef, ValkeyNodeStatus>,
) -> Vec<Condition> {
    let generation = input.cluster.metadata.generation.unwrap_or(0);
    let mut list = before.conditions.clone();
    if input.plan.stage.is_unseen() {
        // Nothing is known: the conditions stay as they were, except that a stalled cluster is reported as such.
        if let Some((false, stalled)) = &set.progressing {
            let draft = Draft::good(ClusterCondition::Progressing, stalled.reason).message(stalled.message.clone());
            let _ = set_in(&mut list, draft, generation, input.now, &ORDER);
            list.retain(|one| one.type_ != ClusterCondition::Degraded.name());
        }
    } else {
        let mut drafts = main(input, after, set);
        drafts.extend(optional_conditions::all(input, before, nodes));
        list.retain(|one| one.type_ == "Ready" || drafts.iter().any(|draft| draft.type_ == one.type_));
        for draft in drafts {
            let _ = set_in(&mut list, draft, generation, input.now, &ORDER);
        }
    }
    let ready = ready(input, before, set, &list);
    let _ = set_in(&mut list, ready, generation, input.now, &ORDER);
    list
}

fn main(input: &ReportInput<'_>, after: &Memory, set: &ConditionSet) -> Vec<Draft<'static>> {
    let creating = !input.memory.formed;
    let grade = |text: &ConditionText| Why {
        reason: text.reason,
        creating,
    };
    let bad = |type_, text: &ConditionText| Draft::bad(type_, grade(text)).message(text.message.clone());
    let good = |type_, text: &ConditionText| Draft::good(type_, text.reason).message(text.message.clone());
    let progressing = set.progressing.as_ref().map(|(under_way, text)| {
        if *under_way {
            bad(ClusterCondition::Progressing, text)
        } else {
            good(ClusterCondition::Progressing, text)
        }
    });
    let degraded = set.degraded.as_ref().map(|text| bad(ClusterCondition::Degraded, text));
    let formed = match formed(input, after, set) {
        Truth::Unreported => None,
        Truth::Yes => {
            let message = text(ClusterReason::TopologyComplete, "All nodes joined cluster");
            Some(good(ClusterCondition::ClusterFormed, &message))
        }
        Truth::No(text) => Some(bad(ClusterCondition::ClusterFormed, &text)),
    };
    let slots = match slots(input, set) {
        Truth::Unreported => None,
        Truth::Yes => {
            let message = text(ClusterReason::AllSlotsAssigned, "All slots assigned");
            Some(good(ClusterCondition::SlotsAssigned, &message))
        }
        Truth::No(text) => Some(bad(ClusterCondition::SlotsAssigned, &text)),
    };
    [progressing, degraded, formed, slots].into_iter().flatten().collect()
}

/// A reason, and whether the cluster is being created. During creation, work in progress is information, and becomes a
/// warning only if it takes too long.
struct Why {
    reason: ClusterReason,
    creating: bool,
}

/// How long a creation may take before it is a warning.
const CREATION: SignedDuration = SignedDuration::from_secs(60);

impl Why {
    fn is_creation(&self) -> bool {
        use ClusterReason::{AddingNodes, RebalancingSlots, Reconciling, SlotsUnassigned};
        let progress = matches!(
            self.reason,
            Reconciling | AddingNodes | SlotsUnassigned | RebalancingSlots
        );
        self.creating && progress
    }
}

impl<'a> Cause<'a> for Why {
    fn into_parts(self) -> (Cow<'a, str>, Option<Severity>, Option<SignedDuration>) {
        let name = Cow::Borrowed(self.reason.name());
        if self.is_creation() {
            (name, Some(Severity::Info), Some(CREATION))
        } else {
            (name, self.reason.severity(), self.reason.expected())
        }
    }
}

/// The value of one condition.
enum Truth {
    Unreported,
    Yes,
    No(ConditionText),
}

/// Whether every shard and replica is present and joined. Until the cluster was complete once, the stage decides what
/// is reported.
fn formed(input: &ReportInput<'_>, after: &Memory, set: &ConditionSet) -> Truth {
    if input.plan.stage.is_settled() {
        return Truth::Yes;
    }
    let observed = matches!(
        input.plan.stage,
        Stage::Configuring { .. } | Stage::Uncovered { .. } | Stage::Rejected { .. }
    );
    if !after.formed && !observed {
        return set.formed.clone().map_or(Truth::Unreported, Truth::No);
    }
    let without_primary = (0..input.desired.shards).any(|shard| {
        let primary = input.observed.primary(crate::model::ShardIndex(shard));
        primary.is_none_or(|(_, facts)| facts.loading)
    });
    let follows = |at: MemberRef| {
        let Some((primary_at, primary)) = input.observed.primary(at.shard) else {
            return false;
        };
        let facts = input.observed.members.get(&at).and_then(|member| member.facts());
        at == primary_at || facts.is_some_and(|facts| facts.me().is_some_and(|me| me.primary == Some(primary.id)))
    };
    if without_primary {
        Truth::No(text(ClusterReason::MissingShards, "Waiting for shards"))
    } else if input.desired.members().all(follows) {
        Truth::Yes
    } else {
        Truth::No(text(ClusterReason::MissingReplicas, "Waiting for replicas"))
    }
}

/// Whether every slot has an owner in the map of a responding member.
fn slots(input: &ReportInput<'_>, set: &ConditionSet) -> Truth {
    let owned = input
        .observed
        .answering()
        .fold(SlotSet::new(), |all, (_, facts)| all.union(&facts.map.covered()));
    if owned.is_full() {
        return Truth::Yes;
    }
    match (&set.slots, input.memory.formed) {
        (Some(text), _) => Truth::No(text.clone()),
        (None, true) => Truth::No(text(
            ClusterReason::SlotsUnassigned,
            "Waiting for all slots to be assigned",
        )),
        (None, false) if owned.is_empty() => Truth::Unreported,
        (None, false) => Truth::No(text(ClusterReason::SlotsUnassigned, "Assigning slots to nodes")),
    }
}

/// Ready: the summary of the other conditions, with the message of the stage.
fn ready(
    input: &ReportInput<'_>,
    before: &ValkeyClusterStatus,
    set: &ConditionSet,
    list: &[Condition],
) -> Draft<'static> {
    let since = find(&before.conditions, ClusterCondition::Ready)
        .filter(|ready| ready.status == Status::False.as_str())
        .map(|ready| ready.last_transition_time.0);
    let strategy = ReadyStrategy {
        set,
        creating: !input.memory.formed,
        lasted: since.map(|since| input.now.duration_since(since)),
        well: input.plan.stage.is_settled(),
    };
    let mut object = input.cluster.clone();
    object.status = Some(ValkeyClusterStatus {
        conditions: list.to_vec(),
        ..ValkeyClusterStatus::default()
    });
    let optional = PARTS.iter().filter(|part| **part != ClusterCondition::Progressing);
    let summary = Summary::new(ClusterCondition::Ready.name())
        .declared(PARTS)
        .ignore_if_missing(optional.map(|part| part.name()))
        .strategy(&strategy);
    // A summary fails only if it has no conditions to summarize; here it always has Progressing.
    summary.of(&object).unwrap_or_else(|error| {
        Draft::unknown(ClusterCondition::Ready, ClusterReason::Reconciling).message(error.to_string())
    })
}

/// How the conditions are merged into Ready: not ready while one of them is not good, with the reason of the stage.
struct ReadyStrategy<'a> {
    set: &'a ConditionSet,
    creating: bool,
    lasted: Option<SignedDuration>,
    well: bool,
}

impl Strategy for ReadyStrategy<'_> {
    fn merge(&self, _: Operation, inputs: Vec<Input<'_>>, _: &[&str]) -> Result<Merged, MergeError> {
        let ConditionText { reason, message } = &self.set.ready;
        if self.set.unknown {
            return Ok(Merged::new(Status::Unknown, reason.name(), message.as_str()));
        }
        let bad = |input: &&Input<'_>| {
            let part = PARTS.iter().find(|part| part.name() == input.type_);
            let polarity = part.map_or(Polarity::Positive, |part| part.polarity());
            Priority::of(input.status, polarity) != Priority::Info
        };
        let worst = inputs.iter().filter(bad).filter_map(|input| input.severity).min();
        if self.well && !inputs.iter().any(|input| bad(&input)) {
            let reason = ClusterReason::ClusterHealthy;
            return Ok(Merged::new(Status::True, reason.name(), "Cluster is healthy"));
        }
        let own = self.severity(*reason);
        let severity = worst.map_or(own, |worst| worst.min(own));
        Ok(Merged::bad(
            Polarity::Positive,
            severity,
            reason.name(),
            message.as_str(),
        ))
    }
}

impl ReadyStrategy<'_> {
    /// The present severity of a reason.
    fn severity(&self, reason: ClusterReason) -> Severity {
        let creating = self.creating;
        let (_, severity, expected) = Why { reason, creating }.into_parts();
        let late = expected
            .zip(self.lasted)
            .is_some_and(|(expected, lasted)| lasted > expected);
        match severity {
            Some(Severity::Info) if late => Severity::Warning,
            Some(severity) => severity,
            None => Severity::Error,
        }
    }
}
