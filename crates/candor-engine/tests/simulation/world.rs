//! A small cluster in memory: workloads, processes, gossip, elections by vote, and an operator that may be killed
//! between any two steps.

mod act;
mod checks;
mod moving;
mod observed;
mod setup;
mod successors;
mod time;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeBounds;
use std::sync::LazyLock;

use candor_engine::attempts::Attempts;
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
    /// Whether the Secret with the operator's credentials exists.
    secret: bool,
    /// Whether the operator's process knows the content of that Secret.
    known: bool,
    /// How often the Secret may still be deleted.
    deletions: u8,
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
        // What a process knows makes no difference while the Secret is there to stay.
        let known = self.known || (self.secret && self.deletions == 0);
        (self.secret, known, self.deletions).hash(state);
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
        // Only a process that goes on knows the credentials that it has read or created.
        self.known = remember && (self.secret || self.known);
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
            let by = FailoverBy::Planned;
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
                    by: FailoverBy::Planned,
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
                    by: FailoverBy::Planned,
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
}

impl Process {
    /// Whether it runs and is not partitioned.
    fn is_here(&self) -> bool {
        self.alive && !self.cut
    }
}
