//! The conditions of each stage: the table of the API contract, row by row.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::ClusterReason::{
    self, AddingNodes, ConfigurationRefused, DataLost, Deleting, DowngradeRefused, ForeignNode, Initializing,
    MissingReplicas, MissingShards, NoSlotsAvailable, PodListError, PodNotStarting, PodUnschedulable, PrimaryLost,
    QuorumLost, RebalancingSlots, ReconcileComplete, Reconciling, ReplicaLost, SecretError, SlotsUnassigned,
    SpecInvalid, UpdatingNodes, UsersInvalid, UsersRefused, VolumeFailed,
};
use candor_api::valkey::status::Operation;

use super::Looked;
use crate::model::MemberRef;
use crate::observation::{About, Trouble};
use crate::plan::{Lost, Refusal, Stage};

/// A reason and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) reason: ClusterReason,
    pub(super) message: String,
}

pub(super) fn said(reason: ClusterReason, message: impl Into<String>) -> Said {
    let message = message.into();
    Said { reason, message }
}

/// What the conditions report about a cluster in a stage.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// Why it is not ready, if it is not.
    pub(super) ready: Said,
    /// It is unknown whether the cluster is ready.
    pub(super) unknown: bool,
    /// What is in progress; none if nothing is known: then the condition stays as it was.
    pub(super) progressing: Option<(bool, Said)>,
    /// What is impaired.
    pub(super) degraded: Option<Said>,
    /// Whether all members have joined, until the cluster was complete once; none: not reported.
    pub(super) formed: Option<Said>,
    /// Whether slots are assigned, until the cluster was complete once; none: not reported.
    pub(super) slots: Option<Said>,
}

impl Verdict {
    fn new(ready: Said, progressing: Said) -> Self {
        Self {
            ready,
            unknown: false,
            progressing: Some((true, progressing)),
            degraded: None,
            formed: None,
            slots: None,
        }
    }

    fn degraded(mut self, by: Said) -> Self {
        self.degraded = Some(by);
        self
    }
}

/// The row of the table for a stage.
pub(super) fn of(looked: &Looked<'_>, before: &ValkeyClusterStatus, operation: Option<&Operation>) -> Verdict {
    let reconciling = || said(Reconciling, "Cluster is Reconciling");
    let replicas = || said(MissingReplicas, "Waiting for all replicas to be created");
    let shards_exist = |shards: u32| shards >= looked.wanted.shards;
    match &looked.plan.stage {
        Stage::Blind(words) => Verdict {
            unknown: true,
            progressing: None,
            degraded: None,
            ..Verdict::new(said(PodListError, words.clone()), reconciling())
        },
        Stage::LockedOut(words) => Verdict::new(said(SecretError, words.clone()), reconciling()),
        Stage::Deleting => Verdict::new(
            said(Deleting, "Cluster is being deleted"),
            said(Deleting, "Deleting the cluster"),
        ),
        Stage::Refused { refusal, words } => Verdict {
            formed: Some(said(MissingShards, "Waiting for shards")),
            ..Verdict::new(
                said(reason_of(*refusal), words.clone()),
                said(Reconciling, "Reconciling"),
            )
        },
        Stage::Creating { shards } if shards_exist(*shards) => creating_replicas(replicas()),
        Stage::Creating { .. } => creating_shards(looked),
        Stage::Stuck { member, trouble } => {
            let why = match trouble {
                Trouble::Unschedulable(words) => said(PodUnschedulable, words.clone()),
                Trouble::NotStarting(words) => said(PodNotStarting, words.clone()),
            };
            let whose = member.map_or_else(
                || "Waiting for the trial pod: members are left as they are".to_owned(),
                |member| format!("Waiting for the pod of member {member}"),
            );
            let waiting = said(Reconciling, whose);
            let formed = Some(said(MissingShards, "Waiting for shards"));
            let verdict = Verdict::new(why.clone(), waiting).degraded(why);
            Verdict { formed, ..verdict }
        }
        Stage::Joining | Stage::Assigning => Verdict {
            slots: Some(said(SlotsUnassigned, "Assigning slots to nodes")),
            ..Verdict::new(reconciling(), said(AddingNodes, "Adding nodes to cluster"))
        },
        // Replicas of a new cluster that exist and are syncing are still being added.
        Stage::Replicating { .. } if !looked.memory.formed => Verdict {
            formed: Some(said(MissingReplicas, "Waiting for replicas")),
            ..Verdict::new(reconciling(), said(AddingNodes, "Adding nodes to cluster"))
        },
        Stage::Replicating { .. } => creating_replicas(replicas()),
        Stage::Uncovered { slots } => {
            // Every slot has an owner, but not every member has learned it, or it has just returned.
            let words = if *slots == 0 {
                "Waiting for all nodes to report cluster_state:ok"
            } else {
                "Waiting for all slots to be assigned"
            };
            Verdict::new(said(Reconciling, words), said(Reconciling, words))
        }
        Stage::PrimaryLost(lost) => Verdict::new(reconciling(), said(Reconciling, waiting_for_failover(looked, lost)))
            .degraded(said(PrimaryLost, told("Primary", lost))),
        Stage::ReplicaLost(lost) => Verdict::new(replicas(), said(Reconciling, waiting_for_replicas(lost)))
            .degraded(said(ReplicaLost, told("Replica", lost))),
        Stage::QuorumLost { answering, of } => {
            let words =
                format!("{answering} of {of} primaries answer: without a majority servers cannot elect a primary");
            Verdict::new(reconciling(), said(Reconciling, "Waiting for a majority of primaries"))
                .degraded(said(QuorumLost, words))
        }
        Stage::DataLost(shards) => {
            let words: Vec<String> = shards.iter().filter_map(|shard| loss(looked, *shard)).collect();
            let again = said(Reconciling, "Serving the slots of lost shards again");
            Verdict::new(reconciling(), again).degraded(said(DataLost, words.join("; ")))
        }
        Stage::Moving { draining, empty, .. } => {
            let words = if *draining {
                "Rebalancing slots for scale-in"
            } else {
                "Rebalancing slots across primaries"
            };
            let moved = operation.and_then(|running| Some((running.slots_moved?, running.slots_total?)));
            let moved = moved.map(|(moved, total)| format!("{words} ({moved}/{total} moved)"));
            let verdict = Verdict::new(reconciling(), said(RebalancingSlots, moved.unwrap_or(words.to_owned())));
            match empty.filter(|_| looked.wanted.paused) {
                Some(shard) => verdict.degraded(said(
                    NoSlotsAvailable,
                    format!("No slots available for shard {shard}: the cluster is paused"),
                )),
                None => verdict,
            }
        }
        Stage::Removing => Verdict::new(
            reconciling(),
            said(Reconciling, "Removing nodes that are no longer wanted"),
        ),
        Stage::Rolling { done, of, member } => {
            let down = unserved(looked, *member).unwrap_or_default();
            Verdict::new(
                said(UpdatingNodes, "Updating ValkeyNodes"),
                said(
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
            let words = to.map_or_else(
                || format!("Waiting for the old primary of shard {shard} to follow"),
                |to| format!("Failing over shard {shard} to member {to}{why}"),
            );
            Verdict::new(reconciling(), said(Reconciling, words))
        }
        Stage::Configuring { left } => {
            let noun = if *left == 1 { "node" } else { "nodes" };
            Verdict::new(
                reconciling(),
                said(Reconciling, format!("Applying changes to {left} running {noun}")),
            )
        }
        Stage::Writing => Verdict::new(reconciling(), said(Reconciling, "Writing the objects of the cluster")),
        Stage::Forgetting => Verdict::new(reconciling(), said(Reconciling, "Forgetting stale nodes")),
        Stage::Foreign(words) => Verdict::new(
            reconciling(),
            said(Reconciling, "Waiting for a foreign node to leave the cluster map"),
        )
        .degraded(said(ForeignNode, words.clone())),
        Stage::Healthy => Verdict {
            progressing: Some((false, said(ReconcileComplete, "No changes needed"))),
            ..Verdict::new(reconciling(), reconciling())
        },
    }
    .initializing(looked, before)
}

/// What a rolling update says about a shard that is not served while its only member restarts.
fn unserved(looked: &Looked<'_>, member: MemberRef) -> Option<String> {
    let MemberRef { shard, .. } = member;
    let served = looked.seen.primary(shard).is_some_and(|(_, facts)| !facts.loading);
    (!served).then(|| {
        format!(": member {member} is restarting (planned), and shard {shard} has no replica to serve meanwhile")
    })
}

fn creating_shards(looked: &Looked<'_>) -> Verdict {
    let progress = if looked.memory.formed || looked.seen.missing.is_empty() {
        said(Reconciling, "Creating shards")
    } else {
        said(Initializing, looked.seen.missing.join("; "))
    };
    let formed = Some(said(MissingShards, "Waiting for shards"));
    let ready = said(MissingShards, "Waiting for all shards to be created");
    Verdict {
        formed,
        ..Verdict::new(ready, progress)
    }
}

fn creating_replicas(ready: Said) -> Verdict {
    Verdict {
        formed: Some(said(MissingReplicas, "Waiting for replicas")),
        ..Verdict::new(ready, said(Reconciling, "Creating replicas"))
    }
}

impl Verdict {
    /// What prevents creating the first object is always reported, whatever else there is to report.
    fn initializing(self, looked: &Looked<'_>, before: &ValkeyClusterStatus) -> Self {
        let first = !looked.memory.formed && before.topology.is_empty() && !looked.seen.missing.is_empty();
        if first && matches!(looked.plan.stage, Stage::Creating { .. }) {
            creating_shards(looked)
        } else {
            self
        }
    }
}

/// The reason for a rejected spec.
pub(super) fn reason_of(refusal: Refusal) -> ClusterReason {
    match refusal {
        // A ValkeyCluster is scaled in without this check.
        Refusal::Invalid(About::Configuration) | Refusal::NotEnoughMemory => SpecInvalid,
        Refusal::Invalid(About::Users) => UsersInvalid,
        Refusal::Rejected(About::Configuration) => ConfigurationRefused,
        Refusal::Rejected(About::Users) => UsersRefused,
        Refusal::Invalid(About::Storage) | Refusal::Rejected(About::Storage) => VolumeFailed,
        Refusal::Downgrade => DowngradeRefused,
        Refusal::Unread => SecretError,
    }
}

/// `Primary lost in shard 1: member 1-0 does not answer`.
pub(super) fn told(who: &str, lost: &[Lost]) -> String {
    let lines: Vec<String> = lost
        .iter()
        .map(|one| format!("{} {}", lost_in(who, one), one.seen))
        .collect();
    lines.join("; ")
}

/// The prefix of the message that stays the same while the observed details change.
pub(super) fn lost_in(who: &str, one: &Lost) -> String {
    format!("{who} lost in shard {}:", one.shard)
}

fn waiting_for_failover(looked: &Looked<'_>, lost: &[Lost]) -> String {
    let whom = if looked.wanted.replicas > 0 {
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
pub(super) fn loss(looked: &Looked<'_>, shard: crate::model::ShardIndex) -> Option<String> {
    let before = looked.memory.topology.get(&shard)?;
    let (slots, keys) = (&before.slots, before.keys);
    Some(format!(
        "Shard {shard} came back empty: slots {slots}, {keys} keys last seen"
    ))
}
