//! A small cluster in memory: workloads, processes, gossip, elections by vote, and an operator that may be killed
//! between any two steps.

mod act;
mod moving;
mod observed;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeBounds;
use std::sync::LazyLock;

use candor_api::{ValkeyCluster, ValkeyClusterSpec, ValkeyClusterStatus};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::valkey::report::{ReportInput, report};
use candor_engine::memory::Memory;
use candor_engine::model::{Desired, FailoverRequest, MemberRef, Roll, ShardIndex, SlotGoal};
use candor_engine::observation::Observation;
use candor_engine::outcome::Outcome;
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::{FailoverBy, Step};
use jiff::{SignedDuration, Timestamp};
use valkey_admin::{NodeId, SlotSet};

const TIMEOUT: u64 = 5000;

/// A process, or what others remember of a terminated one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::struct_excessive_bools)] // independent facts
struct Process {
    at: (u32, u32),
    alive: bool,
    frozen: bool,
    /// Its node is partitioned and its pod was force-deleted: it keeps running, unknown to the operator's side.
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
    /// Slots that it is migrating to others.
    jobs: BTreeMap<u8, SlotSet>,
    /// Slots of an unfinished legacy migration, marked here on the source.
    leaving: BTreeMap<u8, SlotSet>,
    /// The same, marked on the destination.
    coming: BTreeMap<u8, SlotSet>,
}

/// The complete state of the simulation.
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
    /// How many nodes may still be partitioned.
    cuts: u8,
    specs: Vec<(u32, u32)>,
    changes: u8,
    roll: bool,
    target: bool,
    /// How many slot migrations may still fail.
    failures: u8,
    /// Whether the owner of a slot must have the slot's data.
    filled: bool,
    /// Members have volumes: a restarted process keeps its node id and its data.
    persistent: bool,
    /// Members with a volume left from a scale-in.
    drained: BTreeSet<(u32, u32)>,
    /// What the preflight pod was built from, while it exists.
    preflight: Option<bool>,
    /// Members with a process that restarted without its data and opens no port while another member has a copy.
    held: BTreeSet<(u32, u32)>,
    /// How many failovers a user may still request.
    requests: u8,
    /// The requested failover: the shard and the primary to replace.
    asked: Option<(u32, u8)>,
    /// How often the first of several steps may be lost.
    slips: u8,
    /// How often gossip may be delayed.
    lags: u8,
    /// The member that gossip does not reach, with the last state of the others that it knows.
    late: Option<(u8, BTreeMap<u8, Process>)>,
    /// How often a replica may acknowledge a planned failover and not perform it.
    unperformed: u8,
    /// The recent attempts that the operator's process remembers.
    attempts: Attempts,
    /// The time. It stands still while no recorded attempt depends on it.
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
            self.preflight,
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

/// Every possible node id, in order.
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
    /// A spec without any objects.
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
            preflight: None,
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

    /// A cluster that was created without faults and has data in every slot.
    pub fn formed(shards: u32, replicas: u32) -> Self {
        let mut world = Self::new(shards, replicas);
        for _ in 0..40 {
            world.turn(.., true);
            world.tick();
        }
        assert!(world.is_as_desired(), "{world:#?}");
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

    /// Up to this many slot migrations fail, at any moment.
    pub fn with_failures(mut self, failures: u8) -> Self {
        self.failures = failures;
        self
    }

    /// The first shard lacks some slots, and migrations have failed so often that the operator uses the legacy
    /// commands.
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

    /// Up to this many nodes are partitioned at any moment, and their pods are force-deleted.
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

    /// A user requests up to this many failovers, at any moment.
    pub fn with_requests(mut self, requests: u8) -> Self {
        self.requests = requests;
        self
    }

    /// The first of several steps is lost up to this often, at any moment.
    pub fn with_slips(mut self, slips: u8) -> Self {
        self.slips = slips;
        self
    }

    /// Gossip is delayed up to this often: it stops reaching one member at any moment and resumes at any later one.
    pub fn with_lags(mut self, lags: u8) -> Self {
        self.lags = lags;
        self
    }

    /// A replica acknowledges a planned failover up to this often without performing it, at any moment.
    pub fn with_unperformed_failovers(mut self, times: u8) -> Self {
        self.unperformed = times;
        self
    }

    fn desired(&self) -> Desired {
        Desired {
            shards: self.shards,
            replicas: self.replicas,
            seats: None,
            slots: SlotGoal::Even,
            roll: Roll::All,
            paused: false,
            node_timeout: TIMEOUT,
            persistence: self.persistent,
            version: None,
            downgrade: false,
            downgrade_annotation: "",
            failover: self.asked.map(|(shard, from)| {
                Ok(FailoverRequest {
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
        plan(&self.desired(), observed, &self.memory, &self.attempts, self.now)
    }

    /// One reconcile of the operator: writes status, then performs the steps in `done`. `remember` is false if the
    /// operator crashed before its status was written.
    pub fn turn(&mut self, done: impl RangeBounds<usize>, remember: bool) -> Stage {
        let observed = self.observe();
        let plan = self.plan_from(&observed);
        if remember {
            self.memory = self.memory.after(&self.desired(), &observed, &plan);
            // The status that is written reports the loss.
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
        // A killed process has forgotten its attempts.
        if remember {
            self.attempts.record(&observed, &plan, &mut outcomes, self.now);
        } else {
            self.attempts = Attempts::default();
        }
        if self.attempts == Attempts::default() {
            self.now = Timestamp::UNIX_EPOCH;
        }
        plan.stage
    }

    /// The recorded attempts, as far as they decide what happens next: how many, and how long until the next retry.
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
        let observed = self.observe();
        let plan = self.plan_from(&observed);
        self.memory = self.memory.after(&self.desired(), &observed, &plan);
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
        self.attempts.record(&observed, &plan, &mut outcomes, self.now);
    }

    fn process_at(&self, member: MemberRef) -> Option<u8> {
        let found = self
            .processes
            .iter()
            .find(|(_, process)| process.is_here() && process.at == at(member));
        found.map(|(number, _)| *number)
    }

    /// Checks the invariants of every state.
    pub fn check(&self) {
        let mut owned = SlotSet::new();
        // A partitioned process counts too: writes that it acknowledges must not be lost.
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

    /// Whether the cluster is complete and matches the newest spec.
    pub fn is_as_desired(&self) -> bool {
        let desired: BTreeSet<(u32, u32)> = self.desired().members().map(at).collect();
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
        desired == there
            && idle
            && self.asked.is_none()
            && alive.len() == there.len()
            && owned.is_full()
            && synced
            && current
            && primaries == self.shards as usize
    }

    /// Checks that a converged cluster is idle: after one tick, the plan is empty.
    pub fn check_rest(&self) {
        let mut world = self.clone();
        for _ in 0..3 {
            world.tick();
            world.turn(.., true);
        }
        world.tick();
        assert_eq!(world.plan().steps, [], "as wanted, and still busy: {world:#?}");
    }

    /// Checks that data is lost only if every copy of it is lost, and that the loss was reported.
    pub fn check_data(&self) {
        for process in self.processes.values().filter(|process| process.alive && self.filled) {
            let missing = process.slots.difference(&process.data).difference(&self.lost);
            assert!(
                missing.is_empty() && (self.lost.is_empty() || !self.persistent),
                "the data of {missing} is gone and nobody said so: {self:#?}"
            );
        }
    }

    /// Checks that Ready is reported only if the cluster matches the spec.
    pub fn check_report(&self) {
        let (observed, desired) = (self.observe(), self.desired());
        let plan = self.plan_from(&observed);
        // The property tests of the report cover the other stages: they are never reported as Ready.
        if plan.stage != Stage::Healthy {
            return;
        }
        let mut cluster = ValkeyCluster::new("sim", ValkeyClusterSpec::default());
        cluster.status = Some(ValkeyClusterStatus::default());
        let report = report(&ReportInput {
            cluster: &cluster,
            nodes: &BTreeMap::new(),
            desired: &desired,
            observed: &observed,
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
                    .is_as_desired(),
                "ready, and not as wanted: {self:#?}"
            );
        }
    }

    /// Every possible next state.
    pub fn successors(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut push = |world: Self| next.push(world);
        // An operator that is killed after the first step plans the rest again, so this reaches every prefix of a
        // plan.
        for done in [0, 1, usize::MAX] {
            for remember in [true, false] {
                let mut world = self.clone();
                world.turn(..done, remember);
                push(world);
            }
        }
        // Steps run concurrently: the first may be the one that is lost.
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
                // Another operation resets the failure count.
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
    /// Whether it runs and is not partitioned.
    fn is_here(&self) -> bool {
        self.alive && !self.cut
    }
}

/// Whether no slot migration is in progress.
fn is_idle(process: &Process) -> bool {
    process.jobs.is_empty() && process.leaving.is_empty() && process.coming.is_empty()
}
