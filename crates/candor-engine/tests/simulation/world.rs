//! A small cluster in memory: workloads, processes, gossip, elections by vote, and an operator that may be killed
//! between any two steps.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use candor_engine::memory::Memory;
use candor_engine::model::{MemberRef, ShardIndex, Wanted};
use candor_engine::observation::{Facts, Member, Observation, Pod, Server, Volume, Workload};
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::{FailoverBy, Step};
use jiff::Timestamp;
use valkey_admin::nodes::{Address, Flags};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, NodeId, SlotSet};

const TIMEOUT: u64 = 5000;

/// A process, or what others remember of one that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
}

impl std::hash::Hash for World {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.memory.formed.hash(state);
        for (shard, before) in &self.memory.topology {
            (shard, &before.slots, &before.members, before.keys).hash(state);
        }
        (self.shards, self.replicas, &self.workloads, &self.processes).hash(state);
        (&self.lost, self.deaths, self.changes, self.roll, self.target).hash(state);
    }
}

fn id(number: u8) -> NodeId {
    format!("{number:040x}").parse().unwrap()
}

fn number(id: NodeId) -> u8 {
    u8::from_str_radix(&id.to_string()[38..], 16).unwrap()
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
        world.tick();
        world
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
            persistent: false,
            paused: false,
            generation: 1,
            node_timeout: TIMEOUT,
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
                marks: Vec::new(),
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
        for (number, process) in self.processes.iter().filter(|(_, process)| process.alive) {
            let member = seen.members.entry(place(process.at)).or_default();
            member.volume = Volume::None;
            member.pod = Some(Pod {
                ip: Some(ip(*number)),
                current: process.current == self.target,
                node_believed: true,
                ..Pod::default()
            });
            let facts = Facts {
                id: id(*number),
                version: None,
                map: self.map_of(*number),
                ok: self.covered(*number).is_full(),
                loading: false,
                in_sync: self.in_sync(process),
                was_in_sync: process.copied,
                keys: process.data.len() as u64,
                offset: 1,
                node_timeout: process.timeout,
                exporting: SlotSet::new(),
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
            self.memory = self.memory.after(&self.wanted(), &seen, &plan.stage);
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

    fn act(&mut self, step: &Step) {
        match step {
            Step::WriteObjects => {}
            Step::CreateMember(member) => {
                self.workloads.insert(at(*member), self.target);
            }
            Step::DeleteMember(member) => {
                if let Some(number) = self.process_at(*member) {
                    let process = &self.processes[&number];
                    assert!(
                        process.slots.is_empty(),
                        "{member} is deleted and owns {}",
                        process.slots
                    );
                    self.end(number);
                }
                self.workloads.remove(&at(*member));
            }
            Step::RollMember(member) => {
                self.workloads.insert(at(*member), self.target);
                if let Some(number) = self.process_at(*member) {
                    let process = self.processes[&number].clone();
                    assert!(
                        process.follows.is_some() || self.replicas == 0,
                        "{member} is restarted as a primary"
                    );
                    let peers = self
                        .processes
                        .values()
                        .filter(|other| other.at.0 == process.at.0 && other.at != process.at);
                    assert!(
                        peers
                            .clone()
                            .all(|peer| peer.alive || self.workloads.contains_key(&peer.at)),
                        "two at once"
                    );
                    self.end(number);
                }
            }
            Step::SetNodeTimeout { member, millis } => {
                if let Some(number) = self.process_at(*member) {
                    let owned = self
                        .processes
                        .values()
                        .any(|process| process.alive && !process.slots.is_empty());
                    assert!(*millis == TIMEOUT || !owned, "a short timeout while slots are owned");
                    self.processes.get_mut(&number).unwrap().timeout = *millis;
                }
            }
            Step::Meet { at, with } => {
                let (Some(one), Some(other)) = (self.process_at(*at), self.process_at(*with)) else {
                    return;
                };
                self.processes.get_mut(&one).unwrap().meeting.insert(other);
            }
            Step::AddSlots { member, slots } => {
                let Some(number) = self.process_at(*member) else { return };
                let taken = self.map_of(number).covered();
                if slots.intersection(&taken).is_empty() {
                    let fresh = slots.difference(&self.lost);
                    let data = self
                        .processes
                        .values()
                        .fold(SlotSet::new(), |all, process| all.union(&process.data));
                    assert!(
                        fresh.intersection(&data).is_empty(),
                        "slots with data are handed out as new: {fresh}"
                    );
                    let process = self.processes.get_mut(&number).unwrap();
                    process.slots = process.slots.union(slots);
                }
            }
            Step::Replicate { member, primary } => {
                let Some(one) = self.process_at(*member) else { return };
                let head = number(*primary);
                assert!(self.processes[&one].slots.is_empty(), "{member} follows and owns slots");
                if self.processes[&one].knows.contains(&head) {
                    let process = self.processes.get_mut(&one).unwrap();
                    process.follows = Some(head);
                    process.copied = false;
                    process.data = SlotSet::new();
                }
            }
            Step::Failover { to, by } => self.fail_over(*to, *by),
            Step::MoveSlots(moves) => {
                // One turn moves a part, as a real one may.
                let Some(first) = moves.first() else { return };
                let from = self.observe().primary(first.from).map(|(member, _)| member);
                let to = self
                    .process_at(place((first.to.0, 0)))
                    .filter(|n| self.processes[n].follows.is_none());
                let to = self
                    .observe()
                    .primary(first.to)
                    .and_then(|(member, _)| self.process_at(member))
                    .or(to);
                let to = to.or_else(|| self.head_of(first.to.0));
                let (Some(from), Some(to)) = (from.and_then(|member| self.process_at(member)), to) else {
                    return;
                };
                let moved = self.processes[&from].slots.intersection(&first.slots);
                let data = self.processes[&from].data.intersection(&moved);
                let source = self.processes.get_mut(&from).unwrap();
                source.slots = source.slots.difference(&moved);
                source.data = source.data.difference(&moved);
                let target = self.processes.get_mut(&to).unwrap();
                target.slots = target.slots.union(&moved);
                target.data = target.data.union(&data);
            }
            Step::Forget { at, node } => {
                let gone = number(*node);
                let Some(number) = self.process_at(*at) else { return };
                assert!(!self.processes[&gone].alive, "a living node is forgotten");
                assert_ne!(
                    self.processes[&number].follows,
                    Some(gone),
                    "a followed node is forgotten"
                );
                self.processes.get_mut(&number).unwrap().knows.remove(&gone);
            }
            Step::Reset(member) => {
                let Some(number) = self.process_at(*member) else { return };
                let process = self.processes.get_mut(&number).unwrap();
                assert!(
                    process.slots.is_empty() && process.data.is_empty(),
                    "{member} is reset and holds something"
                );
                process.follows = None;
                process.copied = false;
                process.knows.clear();
            }
            Step::DeclareLost { slots, .. } => {
                let data = self.processes.values().filter(|process| process.alive);
                let data = data.fold(SlotSet::new(), |all, process| all.union(&process.data));
                assert!(
                    slots.intersection(&data).is_empty(),
                    "declared lost while a copy lives: {slots}"
                );
                self.lost = self.lost.union(slots);
            }
        }
    }

    fn head_of(&self, shard: u32) -> Option<u8> {
        let primaries = self
            .processes
            .iter()
            .filter(|(_, process)| process.alive && process.at.0 == shard && process.follows.is_none());
        primaries.map(|(number, _)| *number).next()
    }

    fn fail_over(&mut self, to: MemberRef, by: FailoverBy) {
        let Some(heir) = self.process_at(to) else { return };
        let Some(old) = self.processes[&heir].follows else {
            return;
        };
        let owners = self.processes.values().filter(|process| !process.slots.is_empty());
        let voters = owners
            .clone()
            .filter(|process| process.alive && !process.frozen)
            .count();
        let alive = self.processes[&old].alive;
        match by {
            FailoverBy::Agreement if !alive || !self.in_sync(&self.processes[&heir]) => return,
            FailoverBy::Vote if voters * 2 <= owners.count() => return,
            FailoverBy::Vote | FailoverBy::Takeover => assert!(!alive, "a living primary is overthrown"),
            FailoverBy::Agreement => {}
        }
        self.promote(heir, old);
    }

    fn promote(&mut self, heir: u8, old: u8) {
        let newest = self.processes.values().map(|process| process.epoch).max().unwrap_or(0);
        let slots = std::mem::take(&mut self.processes.get_mut(&old).unwrap().slots);
        let alive = self.processes[&old].alive;
        for process in self
            .processes
            .values_mut()
            .filter(|process| process.follows == Some(old))
        {
            process.follows = Some(heir);
        }
        let process = self.processes.get_mut(&heir).unwrap();
        process.follows = None;
        process.slots = slots;
        process.epoch = newest + 1;
        if alive {
            // It handed over at the same offset: it has all that its successor has.
            let old = self.processes.get_mut(&old).unwrap();
            old.follows = Some(heir);
            old.copied = true;
        }
    }

    /// A process ends; others remember it, with its slots, until they are told otherwise.
    fn end(&mut self, number: u8) {
        let process = self.processes.get_mut(&number).unwrap();
        process.alive = false;
        process.data = SlotSet::new();
    }

    /// Time passes: pods start, handshakes end, gossip spreads, replicas copy, servers elect by themselves.
    pub fn tick(&mut self) {
        for at in self.workloads.keys().copied().collect::<Vec<_>>() {
            if self.process_at(place(at)).is_none() {
                self.start(at);
            }
        }
        let numbers: Vec<u8> = self.processes.keys().copied().collect();
        for one in &numbers {
            if !self.processes[one].alive || self.processes[one].frozen {
                continue;
            }
            for other in std::mem::take(&mut self.processes.get_mut(one).unwrap().meeting) {
                if self.processes[&other].alive && !self.processes[&other].frozen {
                    self.processes.get_mut(one).unwrap().knows.insert(other);
                    self.processes.get_mut(&other).unwrap().knows.insert(*one);
                }
            }
        }
        for one in &numbers {
            let process = &self.processes[one];
            if !process.alive || process.frozen {
                continue;
            }
            if let Some(head) = process.follows {
                if self.processes[&head].alive && !self.processes[&head].frozen {
                    let data = self.processes[&head].data.clone();
                    let process = self.processes.get_mut(one).unwrap();
                    process.copied = true;
                    process.data = data;
                } else if !self.processes[&head].alive && process.copied && !self.processes[&head].slots.is_empty() {
                    let owners = self.processes.values().filter(|process| !process.slots.is_empty());
                    let voters = owners
                        .clone()
                        .filter(|process| process.alive && !process.frozen)
                        .count();
                    if voters * 2 > owners.count() {
                        self.promote(*one, head);
                    }
                }
            }
        }
        // What nobody alive knows any more is not part of the world.
        let needed: BTreeSet<u8> = self
            .processes
            .values()
            .filter(|process| process.alive)
            .flat_map(|process| process.knows.clone())
            .collect();
        self.processes
            .retain(|number, process| process.alive || needed.contains(number));
    }

    fn start(&mut self, at: (u32, u32)) {
        let number = (1..).find(|number| !self.processes.contains_key(number)).unwrap();
        let process = Process {
            at,
            alive: true,
            frozen: false,
            knows: BTreeSet::new(),
            meeting: BTreeSet::new(),
            follows: None,
            copied: false,
            slots: SlotSet::new(),
            data: SlotSet::new(),
            epoch: 0,
            timeout: TIMEOUT,
            current: self.workloads[&at],
        };
        self.processes.insert(number, process);
    }

    pub fn thaw(&mut self) {
        for process in self.processes.values_mut() {
            process.frozen = false;
        }
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
        wanted == there
            && alive.len() == there.len()
            && owned.is_full()
            && synced
            && current
            && primaries == self.shards as usize
    }

    /// Everything that may happen next.
    pub fn successors(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut push = |world: Self| next.push(world);
        let steps = self.plan().steps.len();
        for done in 0..=steps.min(3) {
            for remember in [true, false] {
                let mut world = self.clone();
                world.turn(if done == 3 { usize::MAX } else { done }, remember);
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
                push(changed);
            }
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
