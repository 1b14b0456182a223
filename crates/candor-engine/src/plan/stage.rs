//! Where a cluster stands, and what is to be done about it.

use std::time::Duration;

use crate::memory::Memory;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{About, Trouble};
use crate::step::Step;

/// Where the cluster stands; [`Stage::Healthy`] only when nothing is left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Pods could not be listed: nothing is known, nothing is done.
    Blind(String),
    /// The servers let nobody in who could ask them anything: nothing is known, and a person must act.
    LockedOut(String),
    /// The cluster goes away.
    Deleting,
    /// The spec asks for what cannot be, or a server will not have it: a person must act. Members are left alone.
    Refused {
        /// Why.
        refusal: Refusal,
        /// In whose words ever.
        words: String,
    },
    /// Workloads or servers of a new cluster, or of new shards, are missing.
    Creating {
        /// Shards whose first member answers.
        shards: u32,
    },
    /// A pod has nowhere to run, or does not start.
    Stuck {
        /// Whose; none where it is the one that is tried before a roll, and every member runs.
        member: Option<MemberRef>,
        /// Why.
        trouble: Trouble,
    },
    /// Members are getting to know each other.
    Joining,
    /// Slots are being given out for the first time.
    Assigning,
    /// Replicas of a new cluster or shard are missing or copying.
    Replicating {
        /// A shard that waits.
        shard: ShardIndex,
    },
    /// Slots have no owner, or not everybody knows of it yet.
    Uncovered {
        /// How many have none.
        slots: usize,
    },
    /// Shards have no primary that serves.
    PrimaryLost(Vec<Lost>),
    /// Shards lost a replica.
    ReplicaLost(Vec<Lost>),
    /// Most primaries are gone.
    QuorumLost {
        /// How many answer.
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
        /// A shard that has none yet.
        empty: Option<ShardIndex>,
    },
    /// Members that are no longer wanted leave.
    Removing,
    /// Members are replaced one by one.
    Rolling {
        /// How many are done.
        done: u32,
        /// Of how many.
        of: u32,
        /// Whose turn it is.
        member: MemberRef,
    },
    /// A primary gives way because a person asked for it, or because its machine is being drained.
    FailingOver {
        /// Of which shard.
        shard: ShardIndex,
        /// Who takes over; none once it did and the old primary still catches up.
        to: Option<MemberRef>,
        /// It is for the machine's sake.
        drained: bool,
    },
    /// Servers are being given configuration, users or certificates, or volumes grow.
    Configuring {
        /// How many members wait.
        left: u32,
    },
    /// Objects of the cluster are not as wanted.
    Writing,
    /// Nodes that are gone for good are still in somebody's map.
    Forgetting,
    /// A node is in the map that is none of ours, in words.
    Foreign(String),
    /// As wanted.
    Healthy,
}

impl Stage {
    /// Whether nobody looked at members: what was said of them stands.
    pub fn is_unseen(&self) -> bool {
        matches!(self, Self::Blind(_) | Self::LockedOut(_))
    }
}

/// Why the operator does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This part of the spec cannot be made into objects.
    Invalid(About),
    /// Servers will not have this part of it.
    Rejected(About),
    /// The image is of a lower version than the data.
    Downgrade,
    /// What the spec names could not be read. That passes, or a person must give the right to.
    Unread,
}

/// A shard that lost a member, and what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which shard.
    pub shard: ShardIndex,
    /// Who, as far as that is known.
    pub member: Option<MemberRef>,
    /// What was seen.
    pub seen: String,
}

/// What shall be done, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the cluster stands.
    pub stage: Stage,
    /// What to do; those that touch different members may be done at once.
    pub steps: Vec<Step>,
    /// Steps that were sent a moment ago and are not effective yet: not sent again now.
    pub deferred: Vec<Step>,
    /// When to look again, if nothing happens before.
    pub look_again: Duration,
}

/// While something is under way.
pub(super) const SOON: Duration = Duration::from_millis(50);
/// While somebody else must act first.
pub(super) const LATER: Duration = Duration::from_secs(1);
/// While a person must.
pub(super) const SELDOM: Duration = Duration::from_secs(30);
/// When all is well; the pulse tells of trouble long before.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(300);

impl Plan {
    /// Whether it does something to the member whose turn a roll is: from then on what that one lacks is by our hand.
    /// A primary that waits for a successor in sync is left alone.
    pub(crate) fn turns_to(&self, member: MemberRef) -> bool {
        self.pending().any(|step| match step {
            Step::RollMember(at) => *at == member,
            Step::Failover { to, .. } => to.shard == member.shard,
            _ => false,
        })
    }

    /// Whether what status remembers says already whose turn it is. Else it is said first: an operator that dies right
    /// after the restart must not leave its successor to take its own work for a loss.
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

    /// Holds back the steps that are under way.
    pub(super) fn defer(&mut self, is_under_way: impl Fn(&Step) -> bool) {
        let (deferred, steps) = std::mem::take(&mut self.steps).into_iter().partition(is_under_way);
        (self.deferred, self.steps) = (deferred, steps);
    }

    pub(crate) fn new(stage: Stage, steps: Vec<Step>) -> Self {
        let look_again = match (&stage, steps.is_empty()) {
            (Stage::Healthy, _) => HEARTBEAT,
            (_, false) => SOON,
            (
                Stage::Refused {
                    refusal: Refusal::Unread,
                    ..
                },
                true,
            ) => LATER,
            (Stage::Refused { .. } | Stage::Foreign(_) | Stage::LockedOut(_), true) => SELDOM,
            (_, true) => LATER,
        };
        Self {
            stage,
            steps,
            deferred: Vec::new(),
            look_again,
        }
    }
}
