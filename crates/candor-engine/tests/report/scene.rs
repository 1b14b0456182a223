//! A cluster in memory: desired state, observed state and published status, reconciled step by step.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use candor_api::{Condition, ValkeyCluster, ValkeyClusterSpec, ValkeyClusterStatus, ValkeyNode, ValkeyNodeSpec};
use candor_engine::attempts::Attempts;
use candor_engine::kinds::valkey;
use candor_engine::kinds::valkey::report::{Report, ReportInput, report};
use candor_engine::memory::Memory;
use candor_engine::model::{Desired, MemberRef, ShardIndex};
use candor_engine::observation::{Claim, Facts, Member, Observation, Pod, Server, Trouble, Workload};
use candor_engine::outcome::{Change, Did, Failure, ObjectKind, Outcome};
use candor_engine::plan::{Plan, plan};
use candor_engine::step::Step;
use jiff::{SignedDuration, Timestamp};
use valkey_admin::nodes::{Address, Flags};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, NodeId, SlotRange, SlotSet};

#[derive(Clone)]
pub struct Scene {
    pub cluster: ValkeyCluster,
    pub observed: Observation,
    pub nodes: BTreeMap<MemberRef, ValkeyNode>,
    pub attempts: Attempts,
    pub now: Timestamp,
}

pub fn at(shard: u32, node: u32) -> MemberRef {
    MemberRef {
        shard: ShardIndex(shard),
        node,
    }
}

pub fn id(of: MemberRef) -> NodeId {
    format!("{:040x}", 256 + of.shard.0 * 16 + of.node).parse().unwrap()
}

pub fn ip(of: MemberRef) -> IpAddr {
    let last = 10 + of.shard.0 * 4 + of.node;
    Ipv4Addr::new(10, 244, 0, u8::try_from(last).unwrap()).into()
}

impl Scene {
    /// A spec without any objects.
    pub fn new(shards: i32, replicas: i32) -> Self {
        let spec = ValkeyClusterSpec {
            shards,
            replicas: Some(replicas),
            ..ValkeyClusterSpec::default()
        };
        let mut cluster = ValkeyCluster::new("sample", spec);
        cluster.metadata.generation = Some(1);
        Self {
            cluster,
            observed: Observation::default(),
            nodes: BTreeMap::new(),
            attempts: Attempts::default(),
            now: "2025-12-19T10:00:00Z".parse().unwrap(),
        }
    }

    /// A cluster that is complete and was reported Ready.
    pub fn healthy(shards: i32, replicas: i32) -> Self {
        let mut scene = Self::new(shards, replicas);
        scene.create();
        scene.start();
        scene.join();
        let report = scene.reconcile(&[]);
        assert_eq!(report.status.reason, "ClusterHealthy", "{:#?}", report.status);
        scene
    }

    pub fn desired(&self) -> Desired {
        valkey::desired(&self.cluster)
    }

    pub fn member(&mut self, of: MemberRef) -> &mut Member {
        self.observed.members.entry(of).or_default()
    }

    /// Creates every object.
    pub fn create(&mut self) {
        self.observed.objects_ready = true;
        for of in self.desired().members().collect::<Vec<_>>() {
            let member = self.member(of);
            if member.workload == Workload::Absent {
                member.workload = Workload::Current;
                member.claim = Claim::Bound;
                member.pod = Some(Pod {
                    name: format!("valkey-sample-{of}-pod"),
                    uid: format!("uid-{of}"),
                    node: Some(format!("node-{of}")),
                    current: true,
                    node_believed: true,
                    ..Pod::default()
                });
            }
        }
    }

    /// Every server responds and knows only itself.
    pub fn start(&mut self) {
        for of in self.desired().members().collect::<Vec<_>>() {
            let fresh = self.member(of).facts().is_none();
            if fresh {
                let map = ClusterNodes(vec![entry(of, of, None, SlotSet::new())]);
                self.answer(of, Facts::new(id(of), map));
            }
        }
    }

    fn answer(&mut self, of: MemberRef, facts: Facts) {
        let member = self.member(of);
        member.pod.as_mut().unwrap().ip = Some(ip(of));
        let facts = Facts {
            node_timeout: 5000,
            ..facts
        };
        member.server = Server::Up(Box::new(facts));
    }

    /// All members know each other, the first member of each shard owns the slots, and the others are replicas in
    /// sync.
    pub fn join(&mut self) {
        let shards = self.desired().shards;
        let owned = |shard: u32| {
            SlotRange::of_shard(shard, shards)
                .map(SlotSet::from)
                .unwrap_or_default()
        };
        self.join_with(&owned);
    }

    /// The same with the given slots.
    pub fn join_with(&mut self, owned: &dyn Fn(u32) -> SlotSet) {
        let members: Vec<MemberRef> = self.observed.members.keys().copied().collect();
        for of in members.clone() {
            let map = members.iter().map(|other| {
                let head = (other.node > 0).then(|| at(other.shard.0, 0));
                let slots = if other.node == 0 {
                    owned(other.shard.0)
                } else {
                    SlotSet::new()
                };
                entry(*other, of, head, slots)
            });
            let facts = Facts {
                ok: true,
                in_sync: of.node > 0,
                was_in_sync: of.node > 0,
                keys: 100,
                ..Facts::new(id(of), ClusterNodes(map.collect()))
            };
            self.answer(of, facts);
        }
    }

    pub fn facts(&mut self, of: MemberRef) -> &mut Facts {
        match &mut self.member(of).server {
            Server::Up(facts) => facts,
            other => panic!("{of} does not answer: {other:?}"),
        }
    }

    pub fn stop_responding(&mut self, of: MemberRef) {
        let since = self.now;
        self.member(of).server = Server::Silent { since };
    }

    pub fn kill(&mut self, of: MemberRef) {
        let since = self.now;
        self.member(of).server = Server::Dead { since };
        for (other, member) in &mut self.observed.members {
            if let Server::Up(facts) = &mut member.server
                && other.shard == of.shard
            {
                facts.in_sync = false;
                facts.link_down = true;
            }
        }
    }

    /// A replica becomes the primary of its shard, as all members see it. The previous primary follows it and is not
    /// in sync yet.
    pub fn promote(&mut self, to: MemberRef) {
        for (other, member) in &mut self.observed.members {
            let Server::Up(facts) = &mut member.server else {
                continue;
            };
            let map = &mut facts.map.0;
            let owner = map.iter().position(|entry| {
                let shard = (0..16).any(|node| entry.id == id(at(to.shard.0, node)));
                shard && !entry.slots.is_empty()
            });
            let slots = owner
                .map(|owner| std::mem::take(&mut map[owner].slots))
                .unwrap_or_default();
            for entry in map
                .iter_mut()
                .filter(|entry| (0..16).any(|node| entry.id == id(at(to.shard.0, node))))
            {
                let head = entry.id == id(to);
                (entry.flags.primary, entry.flags.replica) = (head, !head);
                entry.primary = (!head).then(|| id(to));
                if head {
                    entry.slots = slots.clone();
                }
            }
            if other.shard == to.shard {
                facts.in_sync = false;
            }
        }
    }

    pub fn trouble(&mut self, of: MemberRef, trouble: Trouble) {
        self.member(of).server = Server::Nowhere;
        self.member(of).pod.as_mut().unwrap().trouble = Some(trouble);
    }

    pub fn later(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// What status remembers.
    pub fn memory(&self) -> Memory {
        valkey::memory(&self.cluster.status.clone().unwrap_or_default())
    }

    pub fn plan(&self) -> Plan {
        plan(
            &self.desired(),
            &self.observed,
            &self.memory(),
            &self.attempts,
            self.now,
        )
    }

    /// Reconciles: observes, plans, uses these outcomes, reports, and stores the report.
    pub fn reconcile(&mut self, outcomes: &[Outcome]) -> Report {
        for of in self.desired().members().collect::<Vec<_>>() {
            self.observed.members.entry(of).or_default();
        }
        let status = self.cluster.status.clone().unwrap_or_default();
        let (desired, memory) = (self.desired(), valkey::memory(&status));
        let report = report(&ReportInput {
            cluster: &self.cluster,
            nodes: &self.nodes,
            desired: &desired,
            observed: &self.observed,
            memory: &memory,
            plan: &plan(&desired, &self.observed, &memory, &self.attempts, self.now),
            outcomes,
            now: self.now,
        });
        self.cluster.status = Some(report.status.clone());
        self.nodes.retain(|of, _| report.nodes.contains_key(of));
        for (of, status) in &report.nodes {
            let spec = ValkeyNodeSpec {
                cluster: "sample".to_owned(),
                shard: i32::try_from(of.shard.0).unwrap(),
                node: i32::try_from(of.node).unwrap(),
            };
            let node = self.nodes.entry(*of).or_insert_with(|| {
                let mut node = ValkeyNode::new(&format!("sample-{of}"), spec);
                node.metadata.generation = Some(1);
                node
            });
            node.status = Some(status.clone());
        }
        report
    }

    /// Reconciles, and every planned step succeeds.
    pub fn act(&mut self) -> Report {
        let steps = self.plan().steps;
        let outcomes: Vec<Outcome> = steps.into_iter().map(|step| done(step, Vec::new())).collect();
        self.reconcile(&outcomes)
    }
}

fn entry(of: MemberRef, by: MemberRef, head: Option<MemberRef>, slots: SlotSet) -> NodeEntry {
    NodeEntry {
        id: id(of),
        address: Address {
            host: ip(of).to_string(),
            port: 6379,
            ..Address::default()
        },
        flags: Flags {
            myself: of == by,
            primary: head.is_none(),
            replica: head.is_some(),
            ..Flags::default()
        },
        primary: head.map(id),
        ping_sent: 0,
        pong_received: 0,
        epoch: Epoch(u64::from(of.shard.0)),
        linked: true,
        slots,
        marks: Vec::new(),
    }
}

pub fn done(step: Step, changes: Vec<Change>) -> Outcome {
    Outcome {
        step,
        result: Ok(changes),
    }
}

pub fn failed(step: Step, message: &str) -> Outcome {
    let result = Err(Failure::rejected(message));
    Outcome { step, result }
}

pub fn unwritten(step: Step, kind: ObjectKind, existed: bool, message: &str) -> Outcome {
    let result = Err(Failure::of_object(kind, existed, message));
    Outcome { step, result }
}

pub fn unanswered(step: Step, message: &str) -> Outcome {
    let result = Err(Failure::unanswered(message));
    Outcome { step, result }
}

pub fn change(kind: ObjectKind, name: &str, did: Did) -> Change {
    let name = name.to_owned();
    Change { kind, name, did }
}

/// One condition on one line: `Ready=False MissingShards (Info): Waiting for all shards to be created`.
pub fn line(condition: &Condition) -> String {
    let severity = condition
        .severity()
        .map(|severity| format!(" ({severity})"))
        .unwrap_or_default();
    let (type_, status) = (&condition.type_, &condition.status);
    format!("{type_}={status} {}{severity}: {}", condition.reason, condition.message)
}

pub fn lines(status: &ValkeyClusterStatus) -> Vec<String> {
    status.conditions.iter().map(line).collect()
}

/// The events of a report, one line each: `Warning PrimaryLost: Primary lost in shard 1: …`.
pub fn event_lines(report: &Report) -> Vec<String> {
    let events = report.events.iter();
    events
        .map(|event| format!("{} {}: {}", event.kind.as_str(), event.reason, event.note))
        .collect()
}
