//! A small cluster in memory: workloads, processes, gossip, elections by vote, and an operator that may be killed
//! between any two steps.

mod act;
mod moving;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use candor_api::{ValkeyCluster, ValkeyClusterSpec, ValkeyClusterStatus};
use candor_engine::memory::Memory;
use candor_engine::model::{MemberRef, ShardIndex, Wanted};
use candor_engine::observation::{Facts, Member, Observation, Pod, Server, Volume, Workload};
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::report::{Looked, report};
use jiff::Timestamp;
use valkey_admin::migrations::{Direction, Migration, Progress};
use valkey_admin::nodes::{Address, Flags, Mark};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, NodeId, SlotSet};

const TIMEOUT: u64 = 5000;

/// A process, or what others remember of one that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // independent facts
struct Process {
    at: (u32, u32),
    alive: bool,
    frozen: bool,
    knows: BTreeSet<u8>,
    meeting: BTreeSet<u8>,
    follows: Option<u8>,
    copied: bool,
    slots: SlotSet,
    data: SlotSet,
    epoch: u64,
    timeout: u64,
    current: bool,
    /// Slots it pushes to others.
    jobs: BTreeMap<u8, SlotSet>,
    /// Slots that are half moved the legacy way, marked here as the source.
    leaving: BTreeMap<u8, SlotSet>,
    /// The same, marked as the destination.
    coming: BTreeMap<u8, SlotSet>,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct World {
    shards: u32,
    replicas: u32,
    memory: Memory,
    workloads: BTreeMap<(u32, u32), bool>,
    processes: BTreeMap<u8, Process>,
    lost: SlotSet,
    deaths: u8,
    specs: Vec<(u32, u32)>,
    changes: u8,
    roll: bool,
    target: bool,
    /// Moves that may fail.
    failures: u8,
    /// Whether data must be where its slots are.
    filled: bool,
    /// Members have volumes: a process comes back as who it was, with what it had.
    persistent: bool,
    /// Places whose volume was left by a scale-in.
    drained: BTreeSet<(u32, u32)>,
}

impl std::hash::Hash for World {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (
            self.memory.formed,
            self.memory.attempts,
            self.memory.rolling,
            self.failures,
        )
            .hash(state);
        for (shard, before) in &self.memory.topology {
            (shard, &before.slots, &before.members, before.keys, before.lost).hash(state);
        }
        (self.shards, self.replicas, &self.workloads, &self.processes).hash(state);
        (
            &self.lost,
            self.deaths,
            self.changes,
            self.roll,
            self.target,
            &self.drained,
        )
            .hash(state);
    }
}

/// Every id there can be, in order.
static IDS: LazyLock<Vec<NodeId>> = LazyLock::new(|| {
    let ids = (0..=u8::MAX).map(|number| format!("{number:040x}").parse());
    ids.collect::<Result<_, _>>().unwrap()
});

fn id(number: u8) -> NodeId {
    IDS[usize::from(number)]
}

fn number(id: NodeId) -> u8 {
    u8::try_from(IDS.binary_search(&id).unwrap()).unwrap()
}

fn place(at: (u32, u32)) -> MemberRef {
    MemberRef {
        shard: ShardIndex(at.0),
        node: at.1,
    }
}

fn at(member: MemberRef) -> (u32, u32) {
    (member.shard.0, member.node)
}

fn ip(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, number).into()
}

impl World {
    /// A spec and nothing else.
    pub fn new(shards: u32, replicas: u32) -> Self {
        Self {
            shards,
            replicas,
            memory: Memory::default(),
            workloads: BTreeMap::new(),
            processes: BTreeMap::new(),
            lost: SlotSet::new(),
            deaths: 0,
            specs: Vec::new(),
            changes: 0,
            roll: false,
            target: false,
            failures: 0,
            filled: false,
            persistent: false,
            drained: BTreeSet::new(),
        }
    }

    /// A cluster that was created undisturbed and has data in every slot.
    pub fn formed(shards: u32, replicas: u32) -> Self {
        let mut world = Self::new(shards, replicas);
        for _ in 0..40 {
            world.turn(usize::MAX, true);
            world.tick();
        }
        assert!(world.is_as_wanted(), "{world:#?}");
        for process in world.processes.values_mut().filter(|process| process.follows.is_none()) {
            process.data = process.slots.clone();
        }
        world.filled = true;
        world.tick();
        world
    }

    /// Every member has a volume.
    pub fn with_volumes(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// Moves fail so often, at any moment.
    pub fn with_failures(mut self, failures: u8) -> Self {
        self.failures = failures;
        self
    }

    /// The first shard has some slots too few, and moves have failed so often that they go the legacy way.
    pub fn with_legacy_moves(mut self) -> Self {
        let slots: SlotSet = "8100-8131".parse().unwrap();
        self.give_away(0, 1, &slots);
        self.tick();
        self.memory.attempts = 6;
        self
    }

    pub fn with_deaths(mut self, deaths: u8) -> Self {
        self.deaths = deaths;
        self
    }

    pub fn with_specs(mut self, specs: &[(u32, u32)], changes: u8) -> Self {
        self.specs = specs.to_vec();
        self.changes = changes;
        self
    }

    pub fn with_roll(mut self) -> Self {
        self.roll = true;
        self
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            shards: self.shards,
            replicas: self.replicas,
            paused: false,
            node_timeout: TIMEOUT,
            persistence: self.persistent,
            version: None,
            downgrade: false,
        }
    }

    fn map_of(&self, me: u8) -> ClusterNodes {
        let process = &self.processes[&me];
        let entry = |other: u8| {
            let one = &self.processes[&other];
            let flags = Flags {
                myself: other == me,
                primary: one.follows.is_none(),
                replica: one.follows.is_some(),
                failed: !one.alive,
                handshake: !process.knows.contains(&other) && other != me,
                ..Flags::default()
            };
            NodeEntry {
                id: id(other),
                address: Address {
                    host: ip(other).to_string(),
                    port: 6379,
                    ..Address::default()
                },
                flags,
                primary: one.follows.map(id),
                ping_sent: 0,
                pong_received: 0,
                epoch: Epoch(one.epoch),
                linked: one.alive,
                slots: one.slots.clone(),
                marks: if other == me { marks(one) } else { Vec::new() },
            }
        };
        let others = process.knows.iter().chain(&process.meeting).copied();
        ClusterNodes(
            std::iter::once(me)
                .chain(others.filter(|other| *other != me))
                .map(entry)
                .collect(),
        )
    }

    fn migrations_of(&self, me: u8) -> Vec<Migration> {
        let job = |(to, slots): (&u8, &SlotSet)| Migration {
            name: format!("{me}-{to}"),
            direction: Direction::Export,
            slots: slots.clone(),
            source: Some(id(me)),
            target: Some(id(*to)),
            created: 0,
            updated: 0,
            progress: Progress::Running,
            message: String::new(),
        };
        self.processes[&me].jobs.iter().map(job).collect()
    }

    fn in_sync(&self, process: &Process) -> bool {
        process.copied
            && process
                .follows
                .is_some_and(|head| self.processes.get(&head).is_some_and(|head| head.alive))
    }

    fn covered(&self, by: u8) -> SlotSet {
        self.map_of(by)
            .0
            .iter()
            .filter(|entry| entry.linked)
            .fold(SlotSet::new(), |all, entry| all.union(&entry.slots))
    }

    fn observe(&self) -> Observation {
        let mut seen = Observation {
            objects_ready: true,
            ..Observation::default()
        };
        for (at, current) in &self.workloads {
            let workload = if *current == self.target {
                Workload::Current
            } else {
                Workload::Outdated
            };
            seen.members.insert(
                place(*at),
                Member {
                    workload,
                    ..Member::default()
                },
            );
        }
        for member in self.wanted().members() {
            seen.members.entry(member).or_default();
        }
        for process in self.processes.values().filter(|_| self.persistent) {
            let member = seen.members.entry(place(process.at)).or_default();
            member.volume = if self.drained.contains(&process.at) {
                Volume::Drained
            } else {
                Volume::Kept
            };
        }
        for (number, process) in self.processes.iter().filter(|(_, process)| process.alive) {
            let member = seen.members.entry(place(process.at)).or_default();
            member.pod = Some(Pod {
                ip: Some(ip(*number)),
                current: process.current == self.target,
                node_believed: true,
                ..Pod::default()
            });
            let facts = Facts {
                ok: self.covered(*number).is_full(),
                in_sync: self.in_sync(process),
                was_in_sync: process.copied,
                link_down: process.follows.is_some() && !self.in_sync(process),
                keys: process.data.len() as u64,
                offset: 1,
                node_timeout: process.timeout,
                migrations: self.migrations_of(*number),
                ..Facts::new(id(*number), self.map_of(*number))
            };
            member.server = if process.frozen {
                Server::Silent {
                    since: Timestamp::UNIX_EPOCH,
                }
            } else {
                Server::Up(Box::new(facts))
            };
        }
        seen
    }

    pub fn plan(&self) -> Plan {
        plan(&self.wanted(), &self.observe(), &self.memory)
    }

    /// One look of the operator: status first, then the first `steps` steps; `remember` is false when it died before
    /// its status was written.
    pub fn turn(&mut self, steps: usize, remember: bool) -> Stage {
        let seen = self.observe();
        let plan = plan(&self.wanted(), &seen, &self.memory);
        if remember {
            self.memory = self.memory.after(&self.wanted(), &seen, &plan);
            // A loss is said by the status that is written.
            for before in self.memory.topology.values().filter(|before| before.lost) {
                self.lost = self.lost.union(&before.slots);
            }
        }
        for step in plan.steps.iter().take(steps) {
            self.act(step);
        }
        plan.stage
    }

    fn process_at(&self, member: MemberRef) -> Option<u8> {
        let found = self
            .processes
            .iter()
            .find(|(_, process)| process.alive && process.at == at(member));
        found.map(|(number, _)| *number)
    }

    /// What must hold at every moment.
    pub fn check(&self) {
        let mut owned = SlotSet::new();
        for process in self.processes.values().filter(|process| process.alive) {
            assert!(
                owned.intersection(&process.slots).is_empty(),
                "two own the same slots: {self:#?}"
            );
            owned = owned.union(&process.slots);
            assert!(
                process.follows.is_none() || process.slots.is_empty(),
                "a replica owns slots: {self:#?}"
            );
        }
    }

    /// The newest spec, whole.
    pub fn is_as_wanted(&self) -> bool {
        let wanted: BTreeSet<(u32, u32)> = self.wanted().members().map(at).collect();
        let alive: Vec<&Process> = self.processes.values().filter(|process| process.alive).collect();
        let there: BTreeSet<(u32, u32)> = alive.iter().map(|process| process.at).collect();
        let owned = alive
            .iter()
            .fold(SlotSet::new(), |all, process| all.union(&process.slots));
        let synced = alive
            .iter()
            .all(|process| process.follows.is_none() || self.in_sync(process));
        let current = alive.iter().all(|process| process.current == self.target);
        let primaries = alive.iter().filter(|process| !process.slots.is_empty()).count();
        let idle = alive.iter().all(|process| is_idle(process));
        wanted == there
            && idle
            && alive.len() == there.len()
            && owned.is_full()
            && synced
            && current
            && primaries == self.shards as usize
    }

    /// Nothing is gone but what died with every copy, and that was said.
    pub fn check_data(&self) {
        for process in self.processes.values().filter(|process| process.alive && self.filled) {
            let missing = process.slots.difference(&process.data).difference(&self.lost);
            assert!(
                missing.is_empty() && !(self.persistent && self.lost.len() > 0),
                "the data of {missing} is gone and nobody said so: {self:#?}"
            );
        }
    }

    /// Ready is told of nothing that is not as wanted.
    pub fn check_report(&self) {
        let (seen, wanted) = (self.observe(), self.wanted());
        let plan = plan(&wanted, &seen, &self.memory);
        // That nothing else is told as ready is a law of the report.
        if plan.stage != Stage::Healthy {
            return;
        }
        let mut cluster = ValkeyCluster::new("sim", ValkeyClusterSpec::default());
        cluster.status = Some(ValkeyClusterStatus::default());
        let report = report(&Looked {
            cluster: &cluster,
            nodes: &BTreeMap::new(),
            wanted: &wanted,
            seen: &seen,
            memory: &self.memory,
            plan: &plan,
            outcomes: &[],
            now: Timestamp::UNIX_EPOCH,
        });
        if kube_status::is_true(&report.status.conditions, "Ready") {
            assert!(
                plan.steps.is_empty() && self.is_as_wanted(),
                "ready, and not as wanted: {self:#?}"
            );
        }
    }

    /// Everything that may happen next.
    pub fn successors(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut push = |world: Self| next.push(world);
        // Killed after the first step, it plans the rest again: so every beginning of a plan is reached.
        for done in [0, 1, usize::MAX] {
            for remember in [true, false] {
                let mut world = self.clone();
                world.turn(done, remember);
                push(world);
            }
        }
        let mut later = self.clone();
        later.tick();
        push(later);
        if self.deaths > 0 {
            for (number, _) in self.processes.iter().filter(|(_, process)| process.alive) {
                let mut dead = self.clone();
                dead.deaths -= 1;
                dead.end(*number);
                push(dead);
                let mut frozen = self.clone();
                frozen.deaths -= 1;
                frozen.processes.get_mut(number).unwrap().frozen = true;
                push(frozen);
            }
        }
        if self.changes > 0 {
            for (shards, replicas) in &self.specs {
                let mut changed = self.clone();
                changed.changes -= 1;
                (changed.shards, changed.replicas) = (*shards, *replicas);
                // Another operation counts its failures anew.
                changed.memory.attempts = 0;
                push(changed);
            }
        }
        if self.failures > 0 && self.processes.values().any(|process| !process.jobs.is_empty()) {
            let mut failed = self.clone();
            failed.failures -= 1;
            failed.fail_moves();
            push(failed);
        }
        if self.roll {
            let mut rolled = self.clone();
            rolled.roll = false;
            rolled.target = true;
            push(rolled);
        }
        next
    }
}

/// Nothing is on its way.
fn is_idle(process: &Process) -> bool {
    process.jobs.is_empty() && process.leaving.is_empty() && process.coming.is_empty()
}

fn marks(process: &Process) -> Vec<Mark> {
    let leaving = process
        .leaving
        .iter()
        .flat_map(|(to, slots)| slots.iter().map(|slot| Mark::Migrating { slot, to: id(*to) }));
    let coming = process
        .coming
        .iter()
        .flat_map(|(from, slots)| slots.iter().map(|slot| Mark::Importing { slot, from: id(*from) }));
    leaving.chain(coming).collect()
}
