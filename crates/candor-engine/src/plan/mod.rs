//! What shall be done now: a pure function of what is wanted, seen and remembered.
//!
//! What comes first: heal, then scale, then roll. A plan holds the steps that can be done at once; the next look
//! plans the next ones from what is then so, and nothing is remembered but what status carries.

mod forget;
mod form;
mod heal;
mod roll;
mod scale;

use std::time::Duration;

use crate::memory::Memory;
use crate::model::{MemberRef, ShardIndex, Wanted};
use crate::observation::{Facts, Observation, Trouble, Workload};
use crate::step::Step;

/// Where the cluster stands; [`Stage::Healthy`] only when nothing is left to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Pods could not be listed: nothing is known, nothing is done.
    Blind(String),
    /// Workloads or servers of a new cluster are missing.
    Creating {
        /// Shards whose first member answers.
        shards: u32,
    },
    /// A pod has nowhere to run, or does not start.
    Stuck {
        /// Whose.
        member: MemberRef,
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
    /// A shard has no primary.
    PrimaryLost {
        /// Which.
        shard: ShardIndex,
        /// What was seen.
        seen: String,
    },
    /// A shard lost a replica.
    ReplicaLost {
        /// Which.
        shard: ShardIndex,
        /// What was seen.
        seen: String,
    },
    /// Most primaries are gone.
    QuorumLost {
        /// How many answer.
        answering: u32,
        /// Of how many.
        of: u32,
    },
    /// All members of a shard came back without its data.
    DataLost {
        /// Which.
        shard: ShardIndex,
    },
    /// Slots move.
    Moving {
        /// How many are left.
        left: usize,
        /// Whether shards are being emptied.
        draining: bool,
    },
    /// Members that are no longer wanted leave.
    Removing,
    /// Members are replaced one by one.
    Rolling {
        /// How many are done.
        done: u32,
        /// Of how many.
        of: u32,
    },
    /// As wanted.
    Healthy,
}

/// What shall be done, and when to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where the cluster stands.
    pub stage: Stage,
    /// What to do; those that touch different members may be done at once.
    pub steps: Vec<Step>,
    /// When to look again, if nothing happens before.
    pub look_again: Duration,
}

/// While something is under way.
const SOON: Duration = Duration::from_millis(50);
/// While somebody else must act first.
const LATER: Duration = Duration::from_secs(1);
/// When all is well; the pulse tells of trouble long before.
const HEARTBEAT: Duration = Duration::from_secs(300);

impl Plan {
    fn new(stage: Stage, steps: Vec<Step>) -> Self {
        let look_again = match (&stage, steps.is_empty()) {
            (Stage::Healthy, _) => HEARTBEAT,
            (_, false) => SOON,
            (_, true) => LATER,
        };
        Self {
            stage,
            steps,
            look_again,
        }
    }
}

/// All that a plan is made from.
struct View<'a> {
    wanted: &'a Wanted,
    seen: &'a Observation,
    memory: &'a Memory,
}

/// What shall be done now.
pub fn plan(wanted: &Wanted, seen: &Observation, memory: &Memory) -> Plan {
    let view = View { wanted, seen, memory };
    let mut plan = view.plan();
    if wanted.paused {
        plan.steps.clear();
        plan.look_again = HEARTBEAT.min(plan.look_again.max(LATER));
    }
    plan
}

impl View<'_> {
    fn plan(&self) -> Plan {
        if let Some(why) = &self.seen.pods_unknown {
            return Plan::new(Stage::Blind(why.clone()), Vec::new());
        }
        let objects = self.objects();
        let mut plan = if self.memory.formed { self.keep() } else { self.form() };
        if !objects.is_empty() {
            plan.steps.splice(0..0, objects);
            plan.look_again = SOON;
            if plan.stage == Stage::Healthy {
                plan.stage = Stage::Creating {
                    shards: self.answering_shards(),
                };
            }
        }
        plan
    }

    /// A cluster that was whole once: heal, then scale, then roll.
    fn keep(&self) -> Plan {
        self.heal()
            .or_else(|| self.stuck())
            .or_else(|| self.scale())
            .or_else(|| self.remove())
            .or_else(|| self.roll())
            .unwrap_or_else(|| Plan::new(Stage::Healthy, self.settle()))
    }

    /// Objects that are missing, for the whole and for each member.
    fn objects(&self) -> Vec<Step> {
        let whole = (!self.seen.objects_ready).then_some(Step::WriteObjects);
        let absent = |at: &MemberRef| {
            self.seen
                .members
                .get(at)
                .is_none_or(|member| member.workload == Workload::Absent)
        };
        whole
            .into_iter()
            .chain(self.wanted.members().filter(absent).map(Step::CreateMember))
            .collect()
    }

    /// The first wanted member whose pod cannot run.
    fn stuck(&self) -> Option<Plan> {
        self.wanted.members().find_map(|at| {
            let member = self.seen.members.get(&at)?;
            if member.facts().is_some() {
                return None;
            }
            let trouble = member.pod.as_ref()?.trouble.clone()?;
            Some(Plan::new(Stage::Stuck { member: at, trouble }, Vec::new()))
        })
    }

    fn answering_shards(&self) -> u32 {
        let answers = |shard: &u32| {
            self.seen
                .shard(ShardIndex(*shard))
                .any(|(_, member)| member.facts().is_some())
        };
        u32::try_from((0..self.wanted.shards).filter(answers).count()).unwrap_or(u32::MAX)
    }

    /// The primary of a shard: the owner of its slots; in a shard that never had any, whom the others follow, else
    /// the first member that may own slots.
    fn head(&self, shard: ShardIndex) -> Option<(MemberRef, &Facts)> {
        self.seen.primary(shard).or_else(|| {
            let owned = self
                .memory
                .topology
                .get(&shard)
                .is_some_and(|before| !before.slots.is_empty());
            let members = || {
                self.seen
                    .shard(shard)
                    .filter_map(|(at, member)| Some((at, member.facts()?)))
            };
            let followed = members().find_map(|(_, facts)| {
                let id = facts.me()?.primary?;
                members().find(|(_, head)| head.id == id && head.is_primary())
            });
            if owned {
                None
            } else {
                followed.or_else(|| members().find(|(_, facts)| facts.is_primary()))
            }
        })
    }

    /// A wanted timeout that something changed, for instance a bootstrap that was cut short.
    fn settle(&self) -> Vec<Step> {
        let off = |facts: &Facts| facts.node_timeout != self.wanted.node_timeout;
        let members = self.seen.answering().filter(|(_, facts)| off(facts));
        members
            .map(|(member, _)| Step::SetNodeTimeout {
                member,
                millis: self.wanted.node_timeout,
            })
            .collect()
    }
}
