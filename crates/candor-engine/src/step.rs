//! The steps that the operator can execute on a cluster. Every step is idempotent: it states the desired result, so
//! repeating it has no further effect.

use valkey_admin::{NodeId, SlotSet};

use crate::model::{MemberRef, ShardIndex};
use crate::slots::SlotMove;

/// How a replica becomes primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverBy {
    /// Planned failover, with the primary's help: no acknowledged write is lost.
    Planned,
    /// Forced failover (`CLUSTER FAILOVER FORCE`): the other primaries vote. Requires evidence that the process is
    /// gone.
    Forced,
    /// Without a vote (`CLUSTER FAILOVER TAKEOVER`): only if the old primary is confirmed terminated and no majority
    /// can vote.
    Takeover,
}

/// One step to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Create the Secret with the operator's own credentials. If servers have others that are lost, set the operator's
    /// user first at those that let the operator in.
    CreateCredentials,
    /// Write the objects of the whole cluster.
    WriteObjects,
    /// Create a member's workload (and its volume).
    CreateMember(MemberRef),
    /// Delete a member's workload. A majority of primaries confirmed that it owns no slots. Its volume, if it has one,
    /// is marked as drained.
    DeleteMember(MemberRef),
    /// Update a member's workload to the desired state: its pod restarts.
    RollMember(MemberRef),
    /// Delete the `StatefulSet` of all members: it is created anew, and its keys are lost by request.
    RecreateSet,
    /// Scale the `StatefulSet` of all members to zero.
    StopServers,
    /// Create the preflight pod, which shows whether pods of the new template can run. It is deleted afterwards.
    CreatePreflight,
    /// Delete a preflight pod.
    EndPreflight,
    /// Delete the pod that a member last ran in and that lost its labels. Its data is not needed any more.
    DeleteOrphanedPod(MemberRef),
    /// Set the operator's user again at a member that rejects it, through its open user `default`.
    RepairCredentials(MemberRef),
    /// Set a member's node timeout.
    SetNodeTimeout {
        /// The member to change.
        member: MemberRef,
        /// Milliseconds.
        millis: u64,
    },
    /// Introduce a blank member, or a known member of this cluster, to the cluster (`CLUSTER MEET`).
    Meet {
        /// The member that receives the command.
        at: MemberRef,
        /// The member that it meets.
        with: MemberRef,
    },
    /// Make a member announce its slots and its primary to another that knows it and has not learned them yet. A
    /// `CLUSTER MEET` to a known node carries them at once; the next ping may take ten seconds (Redis 7.0 and 8.0).
    Announce {
        /// The member that receives the command.
        at: MemberRef,
        /// The member that learns from it.
        to: MemberRef,
    },
    /// Assign slots that have no owner to a primary.
    AddSlots {
        /// The primary that gets them.
        member: MemberRef,
        /// Which slots.
        slots: SlotSet,
    },
    /// Make a member replicate a primary.
    Replicate {
        /// The member that becomes a replica.
        member: MemberRef,
        /// The primary to replicate.
        primary: NodeId,
    },
    /// Make a replica the primary of its shard.
    Failover {
        /// The replica to promote.
        to: MemberRef,
        /// With which kind of failover.
        by: FailoverBy,
    },
    /// Continue to move slots.
    MoveSlots {
        /// Which slots, from which shard to which: as much as one reconcile may start.
        moves: Vec<SlotMove>,
        /// Slot by slot, which every server version supports: atomic slot migration failed too often.
        legacy: bool,
    },
    /// Clear the migration marks of slots that are not being migrated (`SETSLOT STABLE`).
    Stabilize {
        /// The member that has the marks.
        member: MemberRef,
        /// Which slots.
        slots: SlotSet,
    },
    /// Apply the desired configuration to a running server, as far as it can be set at run time.
    Configure(MemberRef),
    /// Apply the desired users to a running server.
    ApplyUsers(MemberRef),
    /// Make a running server reload its certificate.
    ReloadCertificate(MemberRef),
    /// Expand a member's volume to the desired size.
    ExpandVolume(MemberRef),
    /// Remove the drained mark from a member's volume: from now on it may hold data.
    ReuseVolume(MemberRef),
    /// Make a member forget a node that will not return.
    Forget {
        /// The member that forgets.
        at: MemberRef,
        /// The node to forget.
        node: NodeId,
    },
    /// Reset a member to blank: it holds no data that is still needed.
    Reset(MemberRef),
    /// Remove the user's request for a failover: it is done, or it cannot be done.
    ClearFailoverRequest {
        /// Why it cannot be done; none when it is done.
        rejected: Option<String>,
    },
    /// Report that the data of a shard is lost, before its slots are served again.
    DeclareLost {
        /// Which shard.
        shard: ShardIndex,
        /// The slots that it owned.
        slots: SlotSet,
        /// Keys last observed there.
        keys: u64,
    },
}

impl Step {
    /// Whether the step can make a stored `Ready=True` untrue. If so, status must be updated before the step.
    pub fn disturbs(&self) -> bool {
        !matches!(
            self,
            Self::CreateCredentials
                | Self::WriteObjects
                | Self::CreatePreflight
                | Self::EndPreflight
                | Self::RepairCredentials(_)
                | Self::SetNodeTimeout { .. }
                | Self::Announce { .. }
                | Self::Configure(_)
                | Self::ApplyUsers(_)
                | Self::ReloadCertificate(_)
                | Self::ExpandVolume(_)
                | Self::ReuseVolume(_)
                | Self::Stabilize { .. }
                | Self::ClearFailoverRequest { .. }
                | Self::DeclareLost { .. }
        )
    }

    /// Whether the step must not wait for a status write: a forced failover or takeover runs in parallel with it.
    pub fn restores_service(&self) -> bool {
        matches!(
            self,
            Self::Failover {
                by: FailoverBy::Forced | FailoverBy::Takeover,
                ..
            }
        )
    }
}
