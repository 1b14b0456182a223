//! What the operator observes of the world.

use candor_engine::observation::{Credentials, Facts, Member, Observation, Pod, Preflight, Server, Volume, Workload};
use jiff::Timestamp;
use valkey_admin::migrations::{Direction, Migration, Progress};
use valkey_admin::nodes::{Address, Flags, Mark};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, SlotSet};

use super::{Process, World, id, ip, place};

impl World {
    pub(super) fn map_of(&self, me: u8) -> ClusterNodes {
        let process = &self.processes[&me];
        let heard = self
            .late
            .as_ref()
            .filter(|(late, _)| *late == me)
            .map(|(_, heard)| heard);
        let entry = |other: u8| {
            let now = &self.processes[&other];
            let one = heard
                .and_then(|heard| heard.get(&other))
                .filter(|_| other != me)
                .unwrap_or(now);
            let flags = Flags {
                myself: other == me,
                primary: one.follows.is_none(),
                replica: one.follows.is_some(),
                failed: !one.is_here(),
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
                linked: now.is_here(),
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

    pub(super) fn in_sync(&self, process: &Process) -> bool {
        process.copied
            && process
                .follows
                .is_some_and(|head| self.processes.get(&head).is_some_and(Process::is_here))
    }

    fn covered(&self, by: u8) -> SlotSet {
        self.map_of(by)
            .0
            .iter()
            .filter(|entry| entry.linked)
            .fold(SlotSet::new(), |all, entry| all.union(&entry.slots))
    }

    pub(super) fn observe(&self) -> Observation {
        let mut observed = Observation {
            objects_ready: true,
            ..Observation::default()
        };
        if !self.secret && !self.known && !self.processes.is_empty() {
            // Nothing is asked without credentials. The user default of every server lets the operator in.
            observed.credentials = Credentials::Lost {
                message: "the Secret is gone".to_owned(),
                recoverable: true,
            };
            return observed;
        }
        if !self.secret {
            observed.credentials = Credentials::Missing;
        }
        for (at, current) in &self.workloads {
            let workload = if *current == self.target {
                Workload::Current
            } else {
                Workload::Outdated
            };
            observed.members.insert(
                place(*at),
                Member {
                    workload,
                    ..Member::default()
                },
            );
        }
        for member in self.desired().members() {
            observed.members.entry(member).or_default();
        }
        let needed = observed
            .members
            .values()
            .any(|member| member.workload == Workload::Outdated);
        observed.preflight = match self.preflight {
            _ if !needed => Preflight::Needless,
            Some(tried) if tried == self.target => Preflight::Passed,
            _ => Preflight::Missing {
                template: self.target.to_string(),
            },
        };
        observed.old_preflight = self.preflight.is_some() && observed.preflight != Preflight::Passed;
        for process in self.processes.values().filter(|_| self.persistent) {
            let member = observed.members.entry(place(process.at)).or_default();
            member.volume = if self.drained.contains(&process.at) {
                Volume::Drained
            } else {
                Volume::Kept
            };
        }
        for at in self.held.iter().filter(|at| self.workloads.contains_key(at)) {
            // A restarted process has the address of its pod.
            let owned = |process: &&Process| process.at == *at && !process.slots.is_empty();
            let before = self.processes.iter().find(|(_, process)| owned(process));
            let member = observed.members.entry(place(*at)).or_default();
            member.pod = Some(Pod {
                uid: before.map(|(number, _)| number.to_string()).unwrap_or_default(),
                node: before.map(|(number, _)| number.to_string()),
                ip: before.map(|(number, _)| ip(*number)),
                current: self.workloads[at] == self.target,
                restarted: true,
                ..Pod::default()
            });
            member.server = Server::Dead {
                since: Timestamp::UNIX_EPOCH,
            };
        }
        for (number, process) in self.processes.iter().filter(|(_, process)| process.is_here()) {
            let member = observed.members.entry(place(process.at)).or_default();
            // Every process has its own pod and its own node.
            member.pod = Some(Pod {
                uid: number.to_string(),
                node: Some(number.to_string()),
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
        for (at, member) in &mut observed.members {
            let before = self.memory.topology.get(&at.shard);
            let last = before.and_then(|before| before.pods.get(&at.node));
            let cut = |uid: &str| {
                let process = uid.parse().ok().and_then(|number: u8| self.processes.get(&number));
                process.is_some_and(|process| process.cut)
            };
            member.last_node_believed = last.is_some_and(|last| !cut(&last.uid));
        }
        observed
    }
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
