//! The stage of a cluster, and the plan for it.

use std::time::Duration;

use crate::memory::Memory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{About, Trouble};
use crate::step::Step;

/// The stage of the cluster; [`Stage::Healthy`] only when nothing is left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Pods could not be listed: nothing is known, nothing is done.
    Blind(String),
    /// The servers reject every login of the operator: nothing is known, and an administrator must act.
    LockedOut(String),
    /// The cluster is being deleted.
    Deleting,
    /// The spec asks for something impossible, or a server rejects it: a user must act. Members are left as they are.
    Rejected {
        /// Why.
        rejection: Rejection,
        /// The message, from the operator or from a server.
        message: String,
    },
    /// Workloads or servers of a new cluster, or of new shards, are missing.
    Creating {
        /// Shards with a responding member.
        shards: u32,
    },
    /// A pod cannot be scheduled, or does not start.
    Stuck {
        /// The member of the pod; none if it is the preflight pod of a rolling update, and every member runs.
        member: Option<MemberRef>,
        /// Why.
        trouble: Trouble,
    },
    /// Members are meeting each other.
    Joining,
    /// Slots are being assigned for the first time.
    Assigning,
    /// Replicas of a new cluster or shard are missing or syncing.
    Replicating {
        /// A shard that waits.
        shard: ShardIndex,
    },
    /// Slots have no owner, or not every member knows the owner yet.
    Uncovered {
        /// How many slots have no owner.
        slots: usize,
    },
    /// Shards have no primary that serves clients.
    PrimaryLost(Vec<Lost>),
    /// Shards lost a replica.
    ReplicaLost(Vec<Lost>),
    /// Most primaries are lost.
    QuorumLost {
        /// How many respond.
        answering: u32,
        /// Of how many.
        of: u32,
    },
    /// All members of these shards came back without their data.
    DataLost(Vec<ShardIndex>),
    /// Slots move.
    Moving {
        /// How many are left.
        left: usize,
        /// Whether shards are being emptied.
        draining: bool,
        /// A shard that has no slots yet.
        empty: Option<ShardIndex>,
    },
    /// Members that are no longer desired leave.
    Removing,
    /// Members are replaced one by one.
    Rolling {
        /// How many are done.
        done: u32,
        /// Of how many.
        of: u32,
        /// The member that is being replaced.
        member: MemberRef,
    },
    /// A planned failover replaces a primary, because a user requested it or because the primary's node is cordoned.
    FailingOver {
        /// The shard.
        shard: ShardIndex,
        /// The replica to promote; none once it is promoted and the old primary still catches up.
        to: Option<MemberRef>,
        /// The reason is a cordoned node.
        drained: bool,
    },
    /// Configuration, users or certificates are being applied to servers, or volumes are being expanded.
    Configuring {
        /// How many members wait.
        left: u32,
    },
    /// Objects of the cluster do not match the desired state.
    Writing,
    /// Nodes that will not return are still in some member's map.
    Forgetting,
    /// An unknown node is in the cluster map, with a message that names it.
    Foreign(String),
    /// The cluster matches the desired state.
    Healthy,
}

impl Stage {
    /// Whether nothing is left to do.
    pub fn is_settled(&self) -> bool {
        *self == Self::Healthy
    }

    /// Whether members were not observed: what was reported about them remains.
    pub fn is_unseen(&self) -> bool {
        matches!(self, Self::Blind(_) | Self::LockedOut(_))
    }

    /// Whether what was reported about members remains: they were not observed, or are deleted with their cluster.
    pub fn keeps_members(&self) -> bool {
        self.is_unseen() || *self == Self::Deleting
    }

    /// Whether a member, its data or the majority of primaries is lost: healing continues, whatever else has failed.
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            Self::PrimaryLost(_) | Self::ReplicaLost(_) | Self::QuorumLost { .. } | Self::DataLost(_)
        )
    }

    /// How many slots are left to move, while slots move.
    pub fn slots_left(&self) -> Option<usize> {
        match self {
            Self::Moving { left, .. } => Some(*left),
            _ => None,
        }
    }

    /// Whether shards are being emptied.
    pub fn is_draining(&self) -> bool {
        matches!(self, Self::Moving { draining: true, .. })
    }

    /// Whether every slot is in its desired shard: a stage that follows slot migrations. A fault does not.
    pub fn follows_migration(&self) -> bool {
        matches!(
            self,
            Self::Removing
                | Self::Rejected { .. }
                | Self::Rolling { .. }
                | Self::FailingOver { .. }
                | Self::Configuring { .. }
                | Self::Foreign(_)
                | Self::Writing
                | Self::Healthy
        )
    }
}

/// Why the operator does not continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// This part of the spec cannot be turned into objects.
    Invalid(About),
    /// Servers reject this part of the spec.
    ByServer(About),
    /// The image is of a lower version than the data.
    Downgrade,
    /// Objects that the spec names could not be read. The error is temporary, or a user must grant the permission.
    Unread,
    /// The servers that stay have too little memory for the keys of those that leave.
    NotEnoughMemory,
}

/// A shard that lost a member, and what was observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which shard.
    pub shard: ShardIndex,
    /// The lost member, as far as it is known.
    pub member: Option<MemberRef>,
    /// What was observed.
    pub observed: String,
}

/// The steps to execute, and when to reconcile again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The stage of the cluster.
    pub stage: Stage,
    /// What to do; steps for different members may run in parallel.
    pub steps: Vec<Step>,
    /// Steps that were sent a moment ago and are not effective yet: not sent again now.
    pub deferred: Vec<Step>,
    /// When to reconcile again, if no event triggers it earlier.
    pub requeue_after: Duration,
}

/// Requeue interval while something is in progress.
pub(super) const SOON: Duration = Duration::from_millis(50);
/// Requeue interval while another component must act first.
pub(super) const LATER: Duration = Duration::from_secs(1);
/// Requeue interval while a user must act.
pub(super) const SELDOM: Duration = Duration::from_secs(30);
/// Requeue interval when all is well; the member monitor reports failures much earlier.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(300);

impl Plan {
    /// Whether the plan restarts the member that is being replaced, or fails over in its shard. From then on the
    /// operator itself causes what that member lacks. A primary that waits for a candidate in sync is left as it is.
    pub(crate) fn turns_to(&self, member: MemberRef) -> bool {
        self.pending().any(|step| match step {
            Step::RollMember(at) => *at == member,
            Step::Failover { to, .. } => to.shard == member.shard,
            _ => false,
        })
    }

    /// Whether status already names the member that is being replaced. Otherwise status is written first. If the
    /// operator crashes right after the restart, the next operator must not mistake its work for a lost member.
    pub fn is_announced(&self, memory: &Memory) -> bool {
        match self.stage {
            Stage::Rolling { member, .. } => memory.rolling == Some(member) || !self.turns_to(member),
            _ => true,
        }
    }

    /// Every step that is still to take effect, sent or not.
    pub fn pending(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(&self.deferred)
    }

    /// Defers the steps that are already in progress.
    pub(super) fn defer(&mut self, is_under_way: impl Fn(&Step) -> bool) {
        let (deferred, steps) = std::mem::take(&mut self.steps).into_iter().partition(is_under_way);
        (self.deferred, self.steps) = (deferred, steps);
    }

    pub(crate) fn new(stage: Stage, steps: Vec<Step>) -> Self {
        let requeue_after = match (&stage, steps.is_empty()) {
            (Stage::Healthy, _) => HEARTBEAT,
            (_, false) => SOON,
            (
                Stage::Rejected {
                    rejection: Rejection::Unread,
                    ..
                },
                true,
            ) => LATER,
            (Stage::Rejected { .. } | Stage::Foreign(_) | Stage::LockedOut(_), true) => SELDOM,
            (_, true) => LATER,
        };
        Self {
            stage,
            steps,
            deferred: Vec::new(),
            requeue_after,
        }
    }
}
