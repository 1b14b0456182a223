//! A cluster where everything goes well, in memory: what the planner would do next is done at once, and it is asked
//! again, until it has nothing left to do. The planner is the operator's own.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use candor_engine::memory::Memory;
use candor_engine::model::{MemberRef, ShardIndex, Wanted};
use candor_engine::observation::{Applied, Claim, Facts, Member, Observation, Pod, Problem, Server, Volume, Workload};
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::Step;
use valkey_admin::nodes::{Address, Flags};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, NodeId, SlotSet, Version};

/// More looks than any plan takes: a plan that goes round in circles must not.
const MOST_LOOKS: usize = 5000;

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
        for _ in 0..MOST_LOOKS {
            let seen = self.observe();
            let Plan { stage, steps, .. } = plan(&self.wanted, &seen, &self.memory);
            let done = Plan {
                stage: stage.clone(),
                steps: steps.clone(),
                look_again: std::time::Duration::ZERO,
            };
            let remembered = self.memory.after(&self.wanted, &seen, &done);
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

    fn act(&mut self, step: &Step) {
        match step {
            Step::WriteObjects => self.change.objects = false,
            Step::CreateMember(at) => {
                self.workloads.insert(*at);
                self.start(*at);
            }
            Step::DeleteMember(at) => {
                self.workloads.remove(at);
                self.end(*at);
            }
            Step::RollMember(at) => {
                self.change.outdated.remove(at);
                if self.wanted.persistence {
                    // It comes back as who it was, with its volume.
                    if let Some(process) = self.processes.get_mut(at) {
                        process.version = self.wanted.version;
                        process.told = true;
                    }
                } else {
                    self.end(*at);
                    self.start(*at);
                }
            }
            Step::SetNodeTimeout { member, millis } => self.with(*member, |process| process.timeout = *millis),
            Step::Meet { at, with } => self.meet(*at, *with),
            Step::AddSlots { member, slots } => {
                self.with(*member, |process| process.slots = process.slots.union(slots));
            }
            Step::Replicate { member, primary } => {
                let keys = self
                    .processes
                    .values()
                    .find(|process| process.id == *primary)
                    .map_or(0, |head| head.keys);
                self.with(*member, |process| {
                    process.follows = Some(*primary);
                    process.keys = keys;
                });
            }
            Step::Failover { to, .. } => self.hand_over(*to),
            Step::MoveSlots { moves, .. } => {
                for one in moves {
                    self.give(one.from, one.to, &one.slots);
                }
            }
            Step::Configure(at) | Step::ApplyUsers(at) => self.with(*at, |process| process.told = true),
            Step::ExpandVolume(at) => {
                self.small_volumes.remove(at);
            }
            Step::Forget { at, node } => {
                let who = self.processes.get(at).map(|process| process.id);
                if let (Some(who), Some(knowing)) = (who, self.ghosts.get_mut(node)) {
                    knowing.remove(&who);
                }
            }
            Step::Reset(at) => {
                self.made += 1;
                let group = self.made;
                self.with(*at, |process| {
                    process.follows = None;
                    process.group = group;
                    process.keys = 0;
                });
            }
            Step::ReloadCertificate(_)
            | Step::KeepVolume(_)
            | Step::CancelMoves(_)
            | Step::Stabilize { .. }
            | Step::DeclareLost { .. } => {}
        }
    }

    fn with(&mut self, at: MemberRef, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(&at) {
            change(process);
        }
    }

    fn start(&mut self, at: MemberRef) {
        self.made += 1;
        // An id that no server has: the real one is drawn by the server when it starts.
        let Ok(id) = format!("ffffffff{:032x}", self.made).parse() else {
            return;
        };
        let process = Process {
            id,
            group: self.made,
            follows: None,
            slots: SlotSet::new(),
            keys: 0,
            epoch: 0,
            timeout: self.wanted.node_timeout,
            version: self.wanted.version.or(self.before),
            told: true,
        };
        self.processes.insert(at, process);
    }

    fn end(&mut self, at: MemberRef) {
        if let Some(gone) = self.processes.remove(&at) {
            let knowing = self.processes.values().filter(|process| process.group == gone.group);
            let knowing = knowing.map(|process| process.id).collect();
            self.ghosts.insert(gone.id, knowing);
        }
    }

    fn meet(&mut self, at: MemberRef, with: MemberRef) {
        let group = |at: MemberRef| self.processes.get(&at).map(|process| process.group);
        if let (Some(one), Some(other)) = (group(at), group(with)) {
            for process in self.processes.values_mut().filter(|process| process.group == other) {
                process.group = one;
            }
        }
    }

    fn hand_over(&mut self, to: MemberRef) {
        let Some((heir, Some(old))) = self.processes.get(&to).map(|heir| (heir.id, heir.follows)) else {
            return;
        };
        let newest = self.processes.values().map(|process| process.epoch).max().unwrap_or(0);
        let mut slots = SlotSet::new();
        for process in self.processes.values_mut() {
            if process.id == old {
                slots = std::mem::take(&mut process.slots);
                process.follows = Some(heir);
            } else if process.follows == Some(old) {
                process.follows = Some(heir);
            }
        }
        self.with(to, |process| {
            process.follows = None;
            process.slots = slots;
            process.epoch = newest + 1;
        });
    }

    fn head(&self, shard: ShardIndex) -> Option<MemberRef> {
        let of_shard = self
            .processes
            .iter()
            .filter(|(at, process)| at.shard == shard && process.follows.is_none());
        of_shard
            .max_by_key(|(_, process)| process.slots.len())
            .map(|(at, _)| *at)
    }

    /// Slots go, and a fair part of the keys with them.
    fn give(&mut self, from: ShardIndex, to: ShardIndex, slots: &SlotSet) {
        let (Some(from), Some(to)) = (self.head(from), self.head(to)) else {
            return;
        };
        let mut keys = 0;
        self.with(from, |process| {
            keys = share(process.keys, slots.len(), process.slots.len());
            process.slots = process.slots.difference(slots);
            process.keys -= keys;
        });
        self.with(to, |process| {
            process.slots = process.slots.union(slots);
            process.keys += keys;
        });
    }

    fn map_of(&self, me: &Process) -> ClusterNodes {
        let known = self.processes.iter().filter(|(_, process)| process.group == me.group);
        let entry = |at: MemberRef, process: &Process| NodeEntry {
            id: process.id,
            address: Address {
                host: ip(at).to_string(),
                port: 6379,
                ..Address::default()
            },
            flags: Flags {
                myself: process.id == me.id,
                primary: process.follows.is_none(),
                replica: process.follows.is_some(),
                ..Flags::default()
            },
            primary: process.follows,
            ping_sent: 0,
            pong_received: 0,
            epoch: Epoch(process.epoch),
            linked: true,
            slots: process.slots.clone(),
            marks: Vec::new(),
        };
        let living = known.map(|(at, process)| entry(*at, process));
        let gone = self
            .ghosts
            .iter()
            .filter(|(_, knowing)| knowing.contains(&me.id))
            .map(|(id, _)| NodeEntry {
                id: *id,
                address: Address::default(),
                flags: Flags {
                    primary: true,
                    failed: true,
                    ..Flags::default()
                },
                primary: None,
                ping_sent: 0,
                pong_received: 0,
                epoch: Epoch(0),
                linked: false,
                slots: SlotSet::new(),
                marks: Vec::new(),
            });
        ClusterNodes(living.chain(gone).collect())
    }

    fn observe(&self) -> Observation {
        let everybody: BTreeSet<MemberRef> = self.wanted.members().chain(self.workloads.iter().copied()).collect();
        let covered = |map: &ClusterNodes| map.covered().is_full();
        let member = |at: MemberRef| {
            let workload = match (self.workloads.contains(&at), self.change.outdated.contains(&at)) {
                (false, _) => Workload::Absent,
                (true, true) => Workload::Outdated,
                (true, false) => Workload::Current,
            };
            let Some(process) = self.processes.get(&at) else {
                return Member {
                    workload,
                    ..Member::default()
                };
            };
            let map = self.map_of(process);
            let told = if process.told { Applied::Yes } else { Applied::No };
            let facts = Facts {
                ok: covered(&map),
                in_sync: process.follows.is_some(),
                was_in_sync: process.follows.is_some(),
                keys: process.keys,
                offset: 1,
                node_timeout: process.timeout,
                version: process.version,
                run_id: process.id.to_string(),
                config: told,
                ..Facts::new(process.id, map)
            };
            let (volume, claim) = match (self.wanted.persistence, self.small_volumes.contains(&at)) {
                (false, _) => (Volume::None, Claim::Absent),
                (true, true) => (Volume::Kept, Claim::TooSmall),
                (true, false) => (Volume::Kept, Claim::Bound),
            };
            Member {
                workload,
                pod: Some(Pod {
                    name: at.to_string(),
                    ip: Some(ip(at)),
                    current: workload == Workload::Current,
                    node_believed: true,
                    ..Pod::default()
                }),
                volume,
                claim,
                server: Server::Up(Box::new(facts)),
                ..Member::default()
            }
        };
        Observation {
            members: everybody.into_iter().map(|at| (at, member(at))).collect(),
            objects_ready: !self.change.objects,
            problems: self.change.problems.clone(),
            ..Observation::default()
        }
    }
}

/// So many of `all` as `part` is of `whole`.
pub fn share(all: u64, part: usize, whole: usize) -> u64 {
    let (part, whole) = (part as u128, whole.max(1) as u128);
    u64::try_from(u128::from(all) * part / whole).unwrap_or(all)
}

/// An address of its own for every member.
fn ip(at: MemberRef) -> IpAddr {
    let [_, _, high, low] = at.shard.0.to_be_bytes();
    Ipv4Addr::new(10, high, low, u8::try_from(at.node).unwrap_or(u8::MAX)).into()
}
