//! What can be done to a cluster. Every step is safe to repeat: it states what shall be, and doing it twice is doing
//! it once.

use valkey_admin::{NodeId, SlotSet};

use crate::model::{MemberRef, ShardIndex};
use crate::slots::SlotMove;

/// How a replica becomes primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverBy {
    /// With the primary's help: nothing acknowledged is lost.
    Agreement,
    /// Voted by the other primaries: after proof that the process is gone.
    Vote,
    /// By nobody's leave: only after proof of death and without a majority that could vote.
    Takeover,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the objects of the whole cluster.
    WriteObjects,
    /// Create a member's workload (and its volume).
    CreateMember(MemberRef),
    /// Delete a member's workload. It owns no slots: a majority of primaries said so; its volume, if it has one, is
    /// marked as drained.
    DeleteMember(MemberRef),
    /// Bring a member's workload to what is wanted: its pod restarts.
    RollMember(MemberRef),
    /// Make the pod that shows whether members could run as a roll would make them; it is thrown away afterwards.
    TryPod,
    /// Throw a pod of a trial away.
    EndTrial,
    /// Set the operator's user again at a member that rejects it, through its open user `default`.
    RepairCredentials(MemberRef),
    /// Let a member run with this node timeout.
    SetNodeTimeout {
        /// Who.
        member: MemberRef,
        /// Milliseconds.
        millis: u64,
    },
    /// Introduce a blank member, or one of ours, to the cluster.
    Meet {
        /// Who is told.
        at: MemberRef,
        /// Whom it meets.
        with: MemberRef,
    },
    /// Give a primary slots that nobody owns.
    AddSlots {
        /// Who gets them.
        member: MemberRef,
        /// Which.
        slots: SlotSet,
    },
    /// Let a member follow a primary.
    Replicate {
        /// Who follows.
        member: MemberRef,
        /// Whom.
        primary: NodeId,
    },
    /// Make a replica the primary of its shard.
    Failover {
        /// Who takes over.
        to: MemberRef,
        /// How.
        by: FailoverBy,
    },
    /// Go on moving slots.
    MoveSlots {
        /// Which, from where to where: as much as one turn may begin.
        moves: Vec<SlotMove>,
        /// Slot by slot, as every server can: the better way failed too often.
        legacy: bool,
    },
    /// Take the marks of a move that is not under way from these slots (`SETSLOT STABLE`).
    Stabilize {
        /// At whom.
        member: MemberRef,
        /// Which slots.
        slots: SlotSet,
    },
    /// Bring a running server to the wanted configuration, as far as that can be set while it runs.
    Configure(MemberRef),
    /// Bring a running server's users to what is wanted.
    ApplyUsers(MemberRef),
    /// Let a running server read its certificate again.
    ReloadCertificate(MemberRef),
    /// Let a member's volume grow to the wanted size.
    ExpandVolume(MemberRef),
    /// Take the mark that it was drained from a member's volume: from now on it may hold data.
    KeepVolume(MemberRef),
    /// Let a member forget a node that is gone for good.
    Forget {
        /// Who forgets.
        at: MemberRef,
        /// Whom.
        node: NodeId,
    },
    /// Make a member blank: it holds nothing that anybody needs.
    Reset(MemberRef),
    /// Take the request for a failover away: it is done, or it cannot be.
    AnswerFailover {
        /// Why it cannot be; none when it is done.
        refused: Option<String>,
    },
    /// Say aloud that the data of a shard is gone, before its slots are served again.
    DeclareLost {
        /// Which shard.
        shard: ShardIndex,
        /// What it owned.
        slots: SlotSet,
        /// Keys last seen there.
        keys: u64,
    },
}

impl Step {
    /// Whether it can make a stored `Ready=True` untrue: then status must admit it first.
    pub fn disturbs(&self) -> bool {
        !matches!(
            self,
            Self::WriteObjects
                | Self::TryPod
                | Self::EndTrial
                | Self::RepairCredentials(_)
                | Self::SetNodeTimeout { .. }
                | Self::Configure(_)
                | Self::ApplyUsers(_)
                | Self::ReloadCertificate(_)
                | Self::ExpandVolume(_)
                | Self::KeepVolume(_)
                | Self::Stabilize { .. }
                | Self::AnswerFailover { .. }
                | Self::DeclareLost { .. }
        )
    }

    /// Whether it must not wait for a status write: a rescue runs beside it.
    pub fn is_rescue(&self) -> bool {
        matches!(
            self,
            Self::Failover {
                by: FailoverBy::Vote | FailoverBy::Takeover,
                ..
            }
        )
    }
}
