//! A cluster without faults, in memory: every step that the planner returns is performed at once, and the planner runs
//! again until it has nothing left to do. The planner is the operator's own.

mod act;
mod observe;

use std::collections::{BTreeMap, BTreeSet};

use candor_engine::attempts::Attempts;
use candor_engine::memory::Memory;
use candor_engine::model::{Desired, MemberRef, ShardIndex};
use candor_engine::observation::Problem;
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::Step;
use jiff::Timestamp;
use valkey_admin::{NodeId, SlotSet, Version};

pub use act::share;

/// More reconciles than any plan takes: it stops a plan that never converges.
const RECONCILE_LIMIT: usize = 5000;

/// Limit of the entries in cluster maps that are built: a few seconds of work.
const WORK_LIMIT: usize = 8_000_000;

/// What a change consists of, besides shards and replicas.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // changes that are independent of each other
pub struct Change {
    /// The Secret with the operator's passwords is missing.
    pub credentials: bool,
    /// Cluster-wide objects are rewritten.
    pub objects: bool,
    /// Members with pods that must be replaced.
    pub outdated: BTreeSet<MemberRef>,
    /// Running servers get new configuration or users.
    pub settings: bool,
    /// Volumes grow.
    pub volumes: bool,
    /// The problems of the new spec.
    pub problems: Vec<Problem>,
}

/// A running server.
#[derive(Clone, Debug)]
struct Process {
    id: NodeId,
    /// Servers that know each other are in one group.
    group: u32,
    follows: Option<NodeId>,
    slots: SlotSet,
    keys: u64,
    epoch: u64,
    timeout: u64,
    version: Option<Version>,
    applied: bool,
}

/// The complete state.
pub struct World {
    desired: Desired,
    memory: Memory,
    change: Change,
    before: Option<Version>,
    processes: BTreeMap<MemberRef, Process>,
    workloads: BTreeSet<MemberRef>,
    small_volumes: BTreeSet<MemberRef>,
    /// Nodes that are gone, each with the nodes that still remember it.
    ghosts: BTreeMap<NodeId, BTreeSet<NodeId>>,
    made: u32,
}

/// One reconcile: its steps, and what the shards held before.
pub struct Reconcile {
    /// The steps that are performed.
    pub steps: Vec<Step>,
    /// Slots and keys of each shard before the steps.
    pub held: BTreeMap<ShardIndex, (usize, u64)>,
}

/// How a plan ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The desired state is reached.
    Done,
    /// The operator would not continue.
    Stands(Box<Stage>),
    /// The cluster has too many members to plan in reasonable time.
    TooLarge(usize),
}

impl World {
    /// A cluster as status remembers it, complete, with a new desired state.
    pub fn new(before: &Desired, desired: Desired, memory: Memory, change: Change) -> Self {
        let mut world = Self {
            before: before.version,
            change,
            processes: BTreeMap::new(),
            workloads: BTreeSet::new(),
            small_volumes: BTreeSet::new(),
            ghosts: BTreeMap::new(),
            made: 0,
            desired,
            memory,
        };
        world.begin(before);
        world
    }

    fn begin(&mut self, before: &Desired) {
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
                    applied: !self.change.settings,
                };
                self.processes.insert(at, process);
                self.workloads.insert(at);
                if self.change.volumes {
                    self.small_volumes.insert(at);
                }
            }
        }
    }

    /// Takes the primaries from status.
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

    /// Every reconcile until the end, in order.
    pub fn run(&mut self) -> (Vec<Reconcile>, End) {
        let mut reconciles = Vec::new();
        let mut work = 0;
        for _ in 0..RECONCILE_LIMIT {
            // Every member has a map of all members.
            let members = self.desired.members().count().max(self.processes.len());
            work += members * members;
            if work > WORK_LIMIT {
                return (reconciles, End::TooLarge(members));
            }
            let observed = self.observe();
            // Every step takes effect at once here, so earlier attempts do not matter.
            let planned = plan(
                &self.desired,
                &observed,
                &self.memory,
                &Attempts::default(),
                Timestamp::UNIX_EPOCH,
            );
            let remembered = self.memory.after(&self.desired, &observed, &planned);
            let Plan { stage, steps, .. } = planned;
            let learned = remembered != self.memory;
            self.memory = remembered;
            let healthy = stage.is_settled();
            if healthy || (steps.is_empty() && !learned) {
                let end = if healthy {
                    End::Done
                } else {
                    End::Stands(Box::new(stage))
                };
                return (reconciles, end);
            }
            if steps.is_empty() {
                continue;
            }
            let held = self.held();
            for step in &steps {
                self.act(step);
            }
            reconciles.push(Reconcile { steps, held });
        }
        (reconciles, End::Stands(Box::new(Stage::Writing)))
    }

    fn held(&self) -> BTreeMap<ShardIndex, (usize, u64)> {
        let owners = self.processes.iter().filter(|(_, process)| process.follows.is_none());
        owners
            .map(|(at, process)| (at.shard, (process.slots.len(), process.keys)))
            .collect()
    }
}
