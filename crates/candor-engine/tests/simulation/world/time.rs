//! What happens without the operator: processes start, gossip spreads, replicas synchronize, servers elect primaries.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use valkey_admin::SlotSet;

use super::{Process, TIMEOUT, World, place};

impl World {
    /// Time passes: pods start, handshakes end, gossip spreads, replicas synchronize, servers elect primaries.
    pub fn tick(&mut self) {
        if !self.waits().is_empty() {
            self.now += SignedDuration::from_secs(1);
        }
        for at in self.workloads.keys().copied().collect::<Vec<_>>() {
            self.held.remove(&at);
            if self.process_at(place(at)).is_some() {
                continue;
            }
            if self.is_followed(at) {
                self.held.insert(at);
            } else {
                self.start(at);
            }
        }
        self.arrive();
        let numbers: Vec<u8> = self.processes.keys().copied().collect();
        for one in &numbers {
            if !self.processes[one].is_here() || self.processes[one].frozen {
                continue;
            }
            for other in std::mem::take(&mut self.processes.get_mut(one).unwrap().meeting) {
                if self.processes[&other].is_here() && !self.processes[&other].frozen {
                    self.processes.get_mut(one).unwrap().knows.insert(other);
                    self.processes.get_mut(&other).unwrap().knows.insert(*one);
                }
            }
        }
        for one in &numbers {
            let process = &self.processes[one];
            if !process.is_here() || process.frozen {
                continue;
            }
            if let Some(head) = process.follows {
                if self.processes[&head].is_here() && !self.processes[&head].frozen {
                    let data = self.processes[&head].data.clone();
                    let process = self.processes.get_mut(one).unwrap();
                    process.copied = true;
                    process.data = data;
                } else if !self.processes[&head].is_here() && process.copied && !self.processes[&head].slots.is_empty()
                {
                    let owners = self.processes.values().filter(|process| !process.slots.is_empty());
                    let voters = owners
                        .clone()
                        .filter(|process| process.is_here() && !process.frozen)
                        .count();
                    if voters * 2 > owners.count() {
                        self.promote(*one, head);
                    }
                }
            }
        }
        // A node id that no running process knows is dropped from the world.
        let needed: BTreeSet<u8> = self
            .processes
            .values()
            .filter(|process| process.alive)
            .flat_map(|process| process.knows.clone())
            .collect();
        let volumes = self.persistent;
        self.processes
            .retain(|number, process| process.alive || volumes || needed.contains(number));
    }

    /// Whether a process without a volume owned slots here and a responding replica still follows it. If so, the
    /// process that replaces it opens no port.
    fn is_followed(&self, at: (u32, u32)) -> bool {
        let owners = self
            .processes
            .iter()
            .filter(|(_, process)| process.at == at && !process.alive && !process.slots.is_empty() && !self.persistent);
        let mut owners = owners.map(|(number, _)| *number);
        owners.any(|owner| {
            let mut others = self.processes.values();
            others.any(|process| process.alive && !process.frozen && process.follows == Some(owner))
        })
    }

    fn start(&mut self, at: (u32, u32)) {
        let current = self.workloads[&at];
        let mut before = self.processes.values_mut().filter(|process| process.at == at);
        if let Some(process) = before.next().filter(|_| self.persistent) {
            (process.alive, process.frozen, process.copied) = (true, false, false);
            (process.timeout, process.current) = (TIMEOUT, current);
            process.meeting.clear();
            return;
        }
        // Real node ids are never reused. To keep the world small, this reuses numbers that no process remembers.
        let number = (1..u8::MAX)
            .find(|number| {
                let asked = self.asked.is_some_and(|(_, from)| from == *number);
                !asked && !self.processes.contains_key(number) && !self.memory.knows(super::id(*number))
            })
            .unwrap();
        let process = Process {
            at,
            alive: true,
            frozen: false,
            cut: false,
            knows: BTreeSet::new(),
            meeting: BTreeSet::new(),
            follows: None,
            copied: false,
            slots: SlotSet::new(),
            data: SlotSet::new(),
            epoch: 0,
            timeout: TIMEOUT,
            current,
            jobs: BTreeMap::new(),
            leaving: BTreeMap::new(),
            coming: BTreeMap::new(),
        };
        self.processes.insert(number, process);
    }

    /// Ends the partitions: the kubelets terminate the processes of deleted pods.
    pub fn mend(&mut self) {
        let cut = self.processes.iter().filter(|(_, process)| process.cut);
        for number in cut.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.processes.get_mut(&number).unwrap().cut = false;
            self.end(number);
        }
    }

    /// Removes everything that blocks the passage of time.
    pub fn thaw(&mut self) {
        self.late = None;
        self.mend();
        for process in self.processes.values_mut() {
            process.frozen = false;
        }
    }
}
