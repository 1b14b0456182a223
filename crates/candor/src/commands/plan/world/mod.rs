//! A cluster where everything goes well, in memory: what the planner would do next is done at once, and it is asked
//! again, until it has nothing left to do. The planner is the operator's own.

mod act;
mod seen;

use std::collections::{BTreeMap, BTreeSet};

use candor_engine::attempts::Attempts;
use candor_engine::memory::Memory;
use candor_engine::model::{MemberRef, ShardIndex, Wanted};
use candor_engine::observation::Problem;
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::Step;
use jiff::Timestamp;
use valkey_admin::{NodeId, SlotSet, Version};

pub use act::share;

/// More looks than any plan takes: a plan that goes round in circles must not.
const MOST_LOOKS: usize = 5000;

/// Entries of cluster maps that are made at most: a few seconds.
const MOST_WORK: usize = 8_000_000;

/// What a change is made of, besides shards and replicas.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// Objects of the whole cluster are written anew.
    pub objects: bool,
    /// Members whose pods must be replaced.
    pub outdated: BTreeSet<MemberRef>,
    /// Running servers are told of new configuration or users.
    pub settings: bool,
    /// Volumes grow.
    pub volumes: bool,
    /// What is wrong with the new spec.
    pub problems: Vec<Problem>,
}

/// A running server.
#[derive(Clone, Debug)]
struct Process {
    id: NodeId,
    /// Those who have met are in one group.
    group: u32,
    follows: Option<NodeId>,
    slots: SlotSet,
    keys: u64,
    epoch: u64,
    timeout: u64,
    version: Option<Version>,
    told: bool,
}

/// Everything.
pub struct World {
    wanted: Wanted,
    memory: Memory,
    change: Change,
    before: Option<Version>,
    processes: BTreeMap<MemberRef, Process>,
    workloads: BTreeSet<MemberRef>,
    small_volumes: BTreeSet<MemberRef>,
    /// Nodes that are gone, with whoever still remembers them.
    ghosts: BTreeMap<NodeId, BTreeSet<NodeId>>,
    made: u32,
}

/// One look: what is done, and what the shards held before.
pub struct Look {
    /// What is done.
    pub steps: Vec<Step>,
    /// Slots and keys of each shard before that.
    pub held: BTreeMap<ShardIndex, (usize, u64)>,
}

/// How it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As wanted.
    Done,
    /// The operator would not go on.
    Stands(Box<Stage>),
    /// So many members that going on would take too long.
    TooLarge(usize),
}

impl World {
    /// A cluster as status remembers it, whole, of which something new is wanted.
    pub fn new(before: &Wanted, wanted: Wanted, memory: Memory, change: Change) -> Self {
        let mut world = Self {
            before: before.version,
            change,
            processes: BTreeMap::new(),
            workloads: BTreeSet::new(),
            small_volumes: BTreeSet::new(),
            ghosts: BTreeMap::new(),
            made: 0,
            wanted,
            memory,
        };
        world.begin(before);
        world
    }

    fn begin(&mut self, before: &Wanted) {
        for (shard, remembered) in self.memory.topology.clone() {
            let head = remembered.members.values().next().copied();
            for (node, id) in &remembered.members {
                let at = MemberRef { shard, node: *node };
                let is_head = Some(*id) == head;
                let process = Process {
                    id: *id,
                    group: 0,
                    follows: head.filter(|_| !is_head),
                    slots: if is_head {
                        remembered.slots.clone()
                    } else {
                        SlotSet::new()
                    },
                    keys: remembered.keys,
                    epoch: u64::from(shard.0) + 1,
                    timeout: before.node_timeout,
                    version: before.version,
                    told: !self.change.settings,
                };
                self.processes.insert(at, process);
                self.workloads.insert(at);
                if self.change.volumes {
                    self.small_volumes.insert(at);
                }
            }
        }
    }

    /// Lets the status's word count for who is primary.
    pub fn promote(&mut self, primaries: &BTreeMap<ShardIndex, NodeId>) {
        for (shard, id) in primaries {
            let place = self
                .processes
                .iter()
                .find(|(_, process)| process.id == *id)
                .map(|(at, _)| *at);
            if let Some(at) = place.filter(|at| at.shard == *shard) {
                self.hand_over(at);
            }
        }
    }

    /// Everything that would be done, in order.
    pub fn run(&mut self) -> (Vec<Look>, End) {
        let mut looks = Vec::new();
        let mut work = 0;
        for _ in 0..MOST_LOOKS {
            // Every member has a map of all.
            let members = self.wanted.members().count().max(self.processes.len());
            work += members * members;
            if work > MOST_WORK {
                return (looks, End::TooLarge(members));
            }
            let seen = self.observe();
            // Every step takes effect at once here, so nothing that was tried before matters.
            let planned = plan(
                &self.wanted,
                &seen,
                &self.memory,
                &Attempts::default(),
                Timestamp::UNIX_EPOCH,
            );
            let remembered = self.memory.after(&self.wanted, &seen, &planned);
            let Plan { stage, steps, .. } = planned;
            let learned = remembered != self.memory;
            self.memory = remembered;
            let healthy = stage == Stage::Healthy;
            if healthy || (steps.is_empty() && !learned) {
                let end = if healthy {
                    End::Done
                } else {
                    End::Stands(Box::new(stage))
                };
                return (looks, end);
            }
            if steps.is_empty() {
                continue;
            }
            let held = self.held();
            for step in &steps {
                self.act(step);
            }
            looks.push(Look { steps, held });
        }
        (looks, End::Stands(Box::new(Stage::Writing)))
    }

    fn held(&self) -> BTreeMap<ShardIndex, (usize, u64)> {
        let owners = self.processes.iter().filter(|(_, process)| process.follows.is_none());
        owners
            .map(|(at, process)| (at.shard, (process.slots.len(), process.keys)))
            .collect()
    }
}
