//! A small cluster in memory: workloads, processes, gossip, elections by vote, and an operator that may be killed
//! between any two steps.

mod act;
mod moving;
mod seen;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeBounds;
use std::sync::LazyLock;

use candor_api::{ValkeyCluster, ValkeyClusterSpec, ValkeyClusterStatus};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::valkey::report::{Looked, report};
use candor_engine::memory::Memory;
use candor_engine::model::{Handover, MemberRef, ShardIndex, Wanted};
use candor_engine::observation::Observation;
use candor_engine::outcome::Outcome;
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::{FailoverBy, Step};
use jiff::{SignedDuration, Timestamp};
use valkey_admin::{NodeId, SlotSet};

const TIMEOUT: u64 = 5000;

/// A process, or what others remember of one that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // independent facts
struct Process {
    at: (u32, u32),
    alive: bool,
    frozen: bool,
    /// Its node is cut off and its pod was deleted by force: it goes on, and nobody on this side knows of it.
    cut: bool,
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
#[allow(clippy::struct_excessive_bools)] // independent facts
pub struct World {
    shards: u32,
    replicas: u32,
    memory: Memory,
    workloads: BTreeMap<(u32, u32), bool>,
    processes: BTreeMap<u8, Process>,
    lost: SlotSet,
    deaths: u8,
    /// Nodes that may still be cut off.
    cuts: u8,
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
    /// What the pod of a trial was made of, while it is there.
    trial: Option<bool>,
    /// Places where a process was started again without the data it had, and opens no port while somebody has its copy.
    held: BTreeSet<(u32, u32)>,
    /// Failovers that a person may still ask for.
    requests: u8,
    /// The one that is asked for: the shard and who shall give way.
    asked: Option<(u32, u8)>,
    /// How often the first of several steps may be lost.
    slips: u8,
    /// How often gossip may be late.
    lags: u8,
    /// The one that gossip does not reach, with the others as it last heard of them.
    late: Option<(u8, BTreeMap<u8, Process>)>,
    /// How often a replica may acknowledge a planned failover and not perform it.
    unperformed: u8,
    /// What the operator's process has tried lately.
    attempts: Attempts,
    /// The time, which stands still while nothing that was tried depends on it.
    now: Timestamp,
}

impl std::hash::Hash for World {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (
            self.memory.formed,
            self.memory.attempts,
            self.memory.rolling,
            self.memory.growing,
            self.failures,
        )
            .hash(state);
        for (shard, before) in &self.memory.topology {
            (shard, &before.slots, &before.members, before.keys, before.lost).hash(state);
            before.pods.hash(state);
        }
        (self.shards, self.replicas, &self.workloads, &self.processes).hash(state);
        (
            &self.lost,
            (self.deaths, self.cuts),
            self.changes,
            self.roll,
            self.target,
            self.trial,
            (&self.drained, &self.held),
            self.requests,
            self.asked,
            (self.slips, self.lags),
            &self.late,
            (self.unperformed, self.waits()),
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
            cuts: 0,
            specs: Vec::new(),
            changes: 0,
            roll: false,
            target: false,
            failures: 0,
            filled: false,
            persistent: false,
            drained: BTreeSet::new(),
            trial: None,
            held: BTreeSet::new(),
            requests: 0,
            asked: None,
            slips: 0,
            lags: 0,
            late: None,
            unperformed: 0,
            attempts: Attempts::default(),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// A cluster that was created undisturbed and has data in every slot.
    pub fn formed(shards: u32, replicas: u32) -> Self {
        let mut world = Self::new(shards, replicas);
        for _ in 0..40 {
            world.turn(.., true);
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

    /// So many nodes are cut off at any moment, and their pods deleted by force.
    pub fn with_cuts(mut self, cuts: u8) -> Self {
        self.cuts = cuts;
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

    /// A person asks for so many failovers, at any moment.
    pub fn with_requests(mut self, requests: u8) -> Self {
        self.requests = requests;
        self
    }

    /// The first of several steps is lost so often, at any moment.
    pub fn with_slips(mut self, slips: u8) -> Self {
        self.slips = slips;
        self
    }

    /// Gossip is late so often: it stops to reach one member at any moment, and does again at any later one.
    pub fn with_lags(mut self, lags: u8) -> Self {
        self.lags = lags;
        self
    }

    /// A replica acknowledges a planned failover so often without performing it, at any moment.
    pub fn with_unperformed_failovers(mut self, times: u8) -> Self {
        self.unperformed = times;
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
            downgrade_annotation: "",
            failover: self.asked.map(|(shard, from)| {
                Ok(Handover {
                    shard: ShardIndex(shard),
                    from: id(from),
                    to: None,
                })
            }),
        }
    }

    pub fn plan(&self) -> Plan {
        self.plan_from(&self.observe())
    }

    fn plan_from(&self, observed: &Observation) -> Plan {
        plan(&self.wanted(), observed, &self.memory, &self.attempts, self.now)
    }

    /// One look of the operator: status first, then those steps that are done; `remember` is false when it died before
    /// its status was written.
    pub fn turn(&mut self, done: impl RangeBounds<usize>, remember: bool) -> Stage {
        let seen = self.observe();
        let plan = self.plan_from(&seen);
        if remember {
            self.memory = self.memory.after(&self.wanted(), &seen, &plan);
            // A loss is said by the status that is written.
            for before in self.memory.topology.values().filter(|before| before.lost) {
                self.lost = self.lost.union(&before.slots);
            }
        }
        let mut outcomes = Vec::new();
        for (index, step) in plan.steps.iter().enumerate() {
            if done.contains(&index) {
                self.act(step);
                let (step, result) = (step.clone(), Ok(Vec::new()));
                outcomes.push(Outcome { step, result });
            }
        }
        // A process that was killed has forgotten what it tried.
        if remember {
            self.attempts.record(&seen, &plan, &mut outcomes, self.now);
        } else {
            self.attempts = Attempts::default();
        }
        if self.attempts == Attempts::default() {
            self.now = Timestamp::UNIX_EPOCH;
        }
        plan.stage
    }

    /// What was tried, as far as it decides what comes next: how often, and how long until it is tried again.
    fn waits(&self) -> Vec<(MemberRef, u32, i64)> {
        if self.attempts == Attempts::default() {
            return Vec::new();
        }
        let places = self.processes.values().map(|process| place(process.at));
        let places: BTreeSet<MemberRef> = places.filter(|at| self.attempts.acknowledged(*at) > 0).collect();
        let wait = |to: MemberRef| {
            let by = FailoverBy::Agreement;
            let step = Step::Failover { to, by };
            let due = |wait: &i64| {
                let then = self.now + SignedDuration::from_secs(*wait);
                !self.attempts.is_under_way(&step, then)
            };
            (
                to,
                self.attempts.acknowledged(to).min(4),
                (0..60).find(due).unwrap_or(60),
            )
        };
        places.into_iter().map(wait).collect()
    }

    fn plans_a_failover(&self) -> bool {
        let planned = |step: &Step| {
            matches!(
                step,
                Step::Failover {
                    by: FailoverBy::Agreement,
                    ..
                }
            )
        };
        self.plan().steps.iter().any(planned)
    }

    /// A reconcile in which every planned failover is acknowledged, and none is performed.
    fn acknowledge_only(&mut self) {
        let seen = self.observe();
        let plan = self.plan_from(&seen);
        self.memory = self.memory.after(&self.wanted(), &seen, &plan);
        let planned = |step: &&Step| {
            matches!(
                step,
                Step::Failover {
                    by: FailoverBy::Agreement,
                    ..
                }
            )
        };
        let acknowledged = plan.steps.iter().filter(planned).cloned();
        let mut outcomes: Vec<Outcome> = acknowledged
            .map(|step| Outcome {
                step,
                result: Ok(Vec::new()),
            })
            .collect();
        self.attempts.record(&seen, &plan, &mut outcomes, self.now);
    }

    fn process_at(&self, member: MemberRef) -> Option<u8> {
        let found = self
            .processes
            .iter()
            .find(|(_, process)| process.is_here() && process.at == at(member));
        found.map(|(number, _)| *number)
    }

    /// What must hold at every moment.
    pub fn check(&self) {
        let mut owned = SlotSet::new();
        // One that is cut off counts too: what it acknowledges there must not be lost.
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
        let alive: Vec<&Process> = self.processes.values().filter(|process| process.is_here()).collect();
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
            && self.asked.is_none()
            && alive.len() == there.len()
            && owned.is_full()
            && synced
            && current
            && primaries == self.shards as usize
    }

    /// At rest nothing is done: whatever is left is over after a tick, and then there is nothing.
    pub fn check_rest(&self) {
        let mut world = self.clone();
        for _ in 0..3 {
            world.tick();
            world.turn(.., true);
        }
        world.tick();
        assert_eq!(world.plan().steps, [], "as wanted, and still busy: {world:#?}");
    }

    /// Nothing is gone but what died with every copy, and that was said.
    pub fn check_data(&self) {
        for process in self.processes.values().filter(|process| process.alive && self.filled) {
            let missing = process.slots.difference(&process.data).difference(&self.lost);
            assert!(
                missing.is_empty() && (self.lost.is_empty() || !self.persistent),
                "the data of {missing} is gone and nobody said so: {self:#?}"
            );
        }
    }

    /// Ready is told of nothing that is not as wanted.
    pub fn check_report(&self) {
        let (seen, wanted) = (self.observe(), self.wanted());
        let plan = self.plan_from(&seen);
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
                !plan.steps.iter().any(Step::disturbs)
                    && Self {
                        asked: None,
                        ..self.clone()
                    }
                    .is_as_wanted(),
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
                world.turn(..done, remember);
                push(world);
            }
        }
        // Steps are done side by side: the first may be the one that is lost.
        if self.slips > 0 {
            let mut world = self.clone();
            world.slips -= 1;
            world.turn(1.., true);
            push(world);
        }
        if self.unperformed > 0 && self.plans_a_failover() {
            let mut world = self.clone();
            world.unperformed -= 1;
            world.acknowledge_only();
            push(world);
        }
        if self.late.is_some() {
            push(Self {
                late: None,
                ..self.clone()
            });
        } else if self.lags > 0 {
            for (number, _) in self.processes.iter().filter(|(_, process)| process.alive) {
                push(Self {
                    lags: self.lags - 1,
                    late: Some((*number, self.processes.clone())),
                    ..self.clone()
                });
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
        let cut = self.processes.values().any(|process| process.cut);
        if cut {
            let mut mended = self.clone();
            mended.mend();
            push(mended);
        }
        if self.cuts > 0 {
            for (number, _) in self.processes.iter().filter(|(_, process)| process.is_here()) {
                let mut world = self.clone();
                world.cuts -= 1;
                world.processes.get_mut(number).unwrap().cut = true;
                push(world);
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
        if self.requests > 0 && self.asked.is_none() {
            let primaries = self.processes.iter().filter(|(_, process)| !process.slots.is_empty());
            for (number, process) in primaries {
                let mut asked = self.clone();
                asked.requests -= 1;
                asked.asked = Some((process.at.0, *number));
                push(asked);
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

impl Process {
    /// It runs, and not behind a partition.
    fn is_here(&self) -> bool {
        self.alive && !self.cut
    }
}

/// Nothing is on its way.
fn is_idle(process: &Process) -> bool {
    process.jobs.is_empty() && process.leaving.is_empty() && process.coming.is_empty()
}
