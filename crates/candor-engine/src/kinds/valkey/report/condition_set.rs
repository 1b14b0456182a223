//! The conditions of each stage: the table of the API contract, row by row.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::ClusterReason::{
    self, AddingNodes, ConfigurationRefused, DataLost, Deleting, DowngradeRefused, ForeignNode, Initializing,
    MissingReplicas, MissingShards, NoSlotsAvailable, PodListError, PodNotStarting, PodUnschedulable, PrimaryLost,
    QuorumLost, RebalancingSlots, ReconcileComplete, Reconciling, ReplicaLost, SecretError, SlotsUnassigned,
    SpecInvalid, UpdatingNodes, UsersInvalid, UsersRefused, VolumeFailed,
};
use candor_api::valkey::status::Operation;

use super::ReportInput;
use crate::assess::{came_back_empty, losses};
use crate::model::MemberRef;
use crate::observation::{About, Trouble};
use crate::plan::{Lost, Rejection, Stage};

/// A reason and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConditionText {
    pub(super) reason: ClusterReason,
    pub(super) message: String,
}

pub(super) fn text(reason: ClusterReason, message: impl Into<String>) -> ConditionText {
    let message = message.into();
    ConditionText { reason, message }
}

/// What the conditions report about a cluster in a stage.
#[derive(Clone, Debug)]
pub(super) struct ConditionSet {
    /// Why it is not ready, if it is not.
    pub(super) ready: ConditionText,
    /// It is unknown whether the cluster is ready.
    pub(super) unknown: bool,
    /// What is in progress; none if nothing is known: then the condition stays as it was.
    pub(super) progressing: Option<(bool, ConditionText)>,
    /// What is impaired.
    pub(super) degraded: Option<ConditionText>,
    /// Whether all members have joined, until the cluster was complete once; none: not reported.
    pub(super) formed: Option<ConditionText>,
    /// Whether slots are assigned, until the cluster was complete once; none: not reported.
    pub(super) slots: Option<ConditionText>,
}

impl ConditionSet {
    fn new(ready: ConditionText, progressing: ConditionText) -> Self {
        Self {
            ready,
            unknown: false,
            progressing: Some((true, progressing)),
            degraded: None,
            formed: None,
            slots: None,
        }
    }

    fn degraded(mut self, by: ConditionText) -> Self {
        self.degraded = Some(by);
        self
    }
}

/// The row of the table for a stage.
pub(super) fn of(input: &ReportInput<'_>, before: &ValkeyClusterStatus, operation: Option<&Operation>) -> ConditionSet {
    let reconciling = || text(Reconciling, "Cluster is Reconciling");
    let replicas = || text(MissingReplicas, "Waiting for all replicas to be created");
    let shards_exist = |shards: u32| shards >= input.desired.shards;
    match &input.plan.stage {
        Stage::Blind(message) => ConditionSet {
            unknown: true,
            progressing: None,
            degraded: None,
            ..ConditionSet::new(text(PodListError, message.clone()), reconciling())
        },
        Stage::LockedOut(message) => ConditionSet::new(text(SecretError, message.clone()), reconciling()),
        Stage::Deleting => ConditionSet::new(
            text(Deleting, "Cluster is being deleted"),
            text(Deleting, "Deleting the cluster"),
        ),
        Stage::Rejected { rejection, message } => ConditionSet {
            formed: Some(text(MissingShards, "Waiting for shards")),
            ..ConditionSet::new(
                text(reason_of(*rejection), message.clone()),
                text(Reconciling, "Reconciling"),
            )
        },
        Stage::Creating { shards } if shards_exist(*shards) => creating_replicas(replicas()),
        Stage::Creating { .. } => creating_shards(input),
        Stage::Stuck { member, trouble } => {
            let why = trouble_text(trouble);
            let whose = member.map_or_else(
                || "Waiting for the trial pod: members are left as they are".to_owned(),
                |member| format!("Waiting for the pod of member {member}"),
            );
            let waiting = text(Reconciling, whose);
            let formed = Some(text(MissingShards, "Waiting for shards"));
            let set = ConditionSet::new(why.clone(), waiting).degraded(why);
            ConditionSet { formed, ..set }
        }
        Stage::Joining | Stage::Assigning => ConditionSet {
            slots: Some(text(SlotsUnassigned, "Assigning slots to nodes")),
            ..ConditionSet::new(reconciling(), text(AddingNodes, "Adding nodes to cluster"))
        },
        // Replicas of a new cluster that exist and are syncing are still being added.
        Stage::Replicating { .. } if !input.memory.formed => ConditionSet {
            formed: Some(text(MissingReplicas, "Waiting for replicas")),
            ..ConditionSet::new(reconciling(), text(AddingNodes, "Adding nodes to cluster"))
        },
        Stage::Replicating { .. } => creating_replicas(replicas()),
        Stage::Uncovered { slots } => {
            // Every slot has an owner, but not every member has learned it, or it has just returned.
            let message = if *slots == 0 {
                "Waiting for all nodes to report cluster_state:ok"
            } else {
                "Waiting for all slots to be assigned"
            };
            ConditionSet::new(text(Reconciling, message), text(Reconciling, message))
        }
        Stage::PrimaryLost(lost) => {
            ConditionSet::new(reconciling(), text(Reconciling, waiting_for_failover(input, lost)))
                .degraded(text(PrimaryLost, losses("Primary", lost)))
        }
        Stage::ReplicaLost(lost) => ConditionSet::new(replicas(), text(Reconciling, waiting_for_replicas(lost)))
            .degraded(text(ReplicaLost, losses("Replica", lost))),
        Stage::QuorumLost { answering, of } => {
            let message =
                format!("{answering} of {of} primaries answer: without a majority servers cannot elect a primary");
            ConditionSet::new(reconciling(), text(Reconciling, "Waiting for a majority of primaries"))
                .degraded(text(QuorumLost, message))
        }
        Stage::DataLost(shards) => {
            let messages: Vec<String> = shards.iter().filter_map(|shard| loss(input, *shard)).collect();
            let again = text(Reconciling, "Serving the slots of lost shards again");
            ConditionSet::new(reconciling(), again).degraded(text(DataLost, messages.join("; ")))
        }
        Stage::Moving { draining, empty, .. } => {
            let message = if *draining {
                "Rebalancing slots for scale-in"
            } else {
                "Rebalancing slots across primaries"
            };
            let moved = operation.and_then(|running| Some((running.slots_moved?, running.slots_total?)));
            let moved = moved.map(|(moved, total)| format!("{message} ({moved}/{total} moved)"));
            let set = ConditionSet::new(
                reconciling(),
                text(RebalancingSlots, moved.unwrap_or(message.to_owned())),
            );
            match empty.filter(|_| input.desired.paused) {
                Some(shard) => set.degraded(text(
                    NoSlotsAvailable,
                    format!("No slots available for shard {shard}: the cluster is paused"),
                )),
                None => set,
            }
        }
        Stage::Removing => ConditionSet::new(
            reconciling(),
            text(Reconciling, "Removing nodes that are no longer wanted"),
        ),
        Stage::Rolling { done, of, member } => {
            let down = unserved(input, *member).unwrap_or_default();
            ConditionSet::new(
                text(UpdatingNodes, "Updating ValkeyNodes"),
                text(
                    UpdatingNodes,
                    format!("Updating ValkeyNodes ({done} of {of} done){down}"),
                ),
            )
        }
        Stage::FailingOver { shard, to, drained } => {
            let why = if *drained {
                ": the node of its primary takes no new pods"
            } else {
                ""
            };
            let message = to.map_or_else(
                || format!("Waiting for the old primary of shard {shard} to follow"),
                |to| format!("Failing over shard {shard} to member {to}{why}"),
            );
            ConditionSet::new(reconciling(), text(Reconciling, message))
        }
        Stage::Configuring { left } => {
            let noun = if *left == 1 { "node" } else { "nodes" };
            ConditionSet::new(
                reconciling(),
                text(Reconciling, format!("Applying changes to {left} running {noun}")),
            )
        }
        Stage::Writing => ConditionSet::new(reconciling(), text(Reconciling, "Writing the objects of the cluster")),
        Stage::Forgetting => ConditionSet::new(reconciling(), text(Reconciling, "Forgetting stale nodes")),
        Stage::Foreign(message) => ConditionSet::new(
            reconciling(),
            text(Reconciling, "Waiting for a foreign node to leave the cluster map"),
        )
        .degraded(text(ForeignNode, message.clone())),
        Stage::Healthy => ConditionSet {
            progressing: Some((false, text(ReconcileComplete, "No changes needed"))),
            ..ConditionSet::new(reconciling(), reconciling())
        },
    }
    .initializing(input, before)
}

/// What a rolling update says about a shard that is not served while its only member restarts.
fn unserved(input: &ReportInput<'_>, member: MemberRef) -> Option<String> {
    let MemberRef { shard, .. } = member;
    let served = input.observed.primary(shard).is_some_and(|(_, facts)| !facts.loading);
    (!served).then(|| {
        format!(": member {member} is restarting (planned), and shard {shard} has no replica to serve meanwhile")
    })
}

fn creating_shards(input: &ReportInput<'_>) -> ConditionSet {
    let progress = if input.memory.formed || input.observed.missing.is_empty() {
        text(Reconciling, "Creating shards")
    } else {
        text(Initializing, input.observed.missing.join("; "))
    };
    let formed = Some(text(MissingShards, "Waiting for shards"));
    let ready = text(MissingShards, "Waiting for all shards to be created");
    ConditionSet {
        formed,
        ..ConditionSet::new(ready, progress)
    }
}

fn creating_replicas(ready: ConditionText) -> ConditionSet {
    ConditionSet {
        formed: Some(text(MissingReplicas, "Waiting for replicas")),
        ..ConditionSet::new(ready, text(Reconciling, "Creating replicas"))
    }
}

impl ConditionSet {
    /// What prevents creating the first object is always reported, whatever else there is to report.
    fn initializing(self, input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Self {
        let first = !input.memory.formed && before.topology.is_empty() && !input.observed.missing.is_empty();
        if first && matches!(input.plan.stage, Stage::Creating { .. }) {
            creating_shards(input)
        } else {
            self
        }
    }
}

/// Why a pod cannot run.
pub(super) fn trouble_text(trouble: &Trouble) -> ConditionText {
    match trouble {
        Trouble::Unschedulable(message) => text(PodUnschedulable, message.clone()),
        Trouble::NotStarting(message) => text(PodNotStarting, message.clone()),
    }
}

/// The reason for a rejected spec.
pub(super) fn reason_of(rejection: Rejection) -> ClusterReason {
    match rejection {
        // A ValkeyCluster is scaled in without this check.
        Rejection::Invalid(About::Configuration) | Rejection::NotEnoughMemory => SpecInvalid,
        Rejection::Invalid(About::Users) => UsersInvalid,
        Rejection::ByServer(About::Configuration) => ConfigurationRefused,
        Rejection::ByServer(About::Users) => UsersRefused,
        Rejection::Invalid(About::Storage) | Rejection::ByServer(About::Storage) => VolumeFailed,
        Rejection::Downgrade => DowngradeRefused,
        Rejection::Unread => SecretError,
    }
}

fn waiting_for_failover(input: &ReportInput<'_>, lost: &[Lost]) -> String {
    let whom = if input.desired.replicas > 0 {
        "failover in"
    } else {
        "the primary of"
    };
    format!("Waiting for {whom} {}", shards(lost))
}

fn waiting_for_replicas(lost: &[Lost]) -> String {
    format!("Waiting for replicas in {}", shards(lost))
}

/// `shard 1` or `shards 1, 2`.
fn shards(lost: &[Lost]) -> String {
    let mut numbers: Vec<String> = lost.iter().map(|one| one.shard.to_string()).collect();
    numbers.dedup();
    let noun = if numbers.len() == 1 { "shard" } else { "shards" };
    format!("{noun} {}", numbers.join(", "))
}

/// What was lost with a shard, as last observed.
pub(super) fn loss(input: &ReportInput<'_>, shard: crate::model::ShardIndex) -> Option<String> {
    let before = input.memory.topology.get(&shard)?;
    Some(came_back_empty(shard, &before.slots, before.keys))
}
