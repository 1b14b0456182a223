//! Slot migration: atomic by the servers, or with the legacy commands in two halves.

use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::slots::SlotMove;
use valkey_admin::SlotSet;

use super::World;

impl World {
    /// Starts or continues a migration. The legacy way takes two reconciles: first marks and keys, then the slots
    /// themselves.
    pub(super) fn begin(&mut self, one: &SlotMove, legacy: bool) {
        let (Some(from), Some(to)) = (self.head_of(one.from), self.head_of(one.to)) else {
            return;
        };
        assert!(from != to, "slots move to where they are");
        let slots = self.processes[&from].slots.intersection(&one.slots);
        if legacy {
            return self.by_hand(from, to, &slots);
        }
        let busy = self.processes[&from]
            .jobs
            .values()
            .fold(SlotSet::new(), |all, job| all.union(job));
        let slots = slots.difference(&busy);
        if !slots.is_empty() {
            let jobs = &mut self.processes.get_mut(&from).unwrap().jobs;
            let job = jobs.entry(to).or_default();
            *job = job.union(&slots);
        }
    }

    fn by_hand(&mut self, from: u8, to: u8, slots: &SlotSet) {
        let marked = self.processes[&from]
            .leaving
            .get(&to)
            .is_some_and(|marked| slots.difference(marked).is_empty());
        if marked {
            self.plan_failover(from, to, slots);
        } else if !slots.is_empty() {
            let source = self.processes.get_mut(&from).unwrap();
            source.leaving.insert(to, slots.clone());
            let destination = self.processes.get_mut(&to).unwrap();
            destination.coming.insert(from, slots.clone());
            self.carry(from, to, slots);
        }
    }

    /// Moves keys, also on the replicas of both sides.
    fn carry(&mut self, from: u8, to: u8, slots: &SlotSet) {
        let keys = self.processes[&from].data.intersection(slots);
        for process in self.processes.values_mut().filter(|process| process.alive) {
            if process.follows == Some(from) && process.copied {
                process.data = process.data.difference(&keys);
            } else if process.follows == Some(to) && process.copied {
                process.data = process.data.union(&keys);
            }
        }
        let source = self.processes.get_mut(&from).unwrap();
        source.data = source.data.difference(&keys);
        let destination = self.processes.get_mut(&to).unwrap();
        destination.data = destination.data.union(&keys);
    }

    /// Changes the owner of the slots.
    fn plan_failover(&mut self, from: u8, to: u8, slots: &SlotSet) {
        self.carry(from, to, slots);
        let newest = self.processes.values().map(|process| process.epoch).max().unwrap_or(0);
        let source = self.processes.get_mut(&from).unwrap();
        source.slots = source.slots.difference(slots);
        source.leaving.clear();
        let destination = self.processes.get_mut(&to).unwrap();
        destination.slots = destination.slots.union(slots);
        destination.epoch = newest + 1;
        destination.coming.clear();
    }

    /// Slots that a user moved with the server commands.
    pub(super) fn give_away(&mut self, from: u32, to: u32, slots: &SlotSet) {
        let head = |shard| self.head_of(ShardIndex(shard)).unwrap();
        let (from, to) = (head(from), head(to));
        self.plan_failover(from, to, slots);
    }

    /// Completes the servers' migrations, if both ends are still primaries.
    pub(super) fn arrive(&mut self) {
        for from in self.processes.keys().copied().collect::<Vec<_>>() {
            if self.processes[&from].frozen {
                continue;
            }
            for (to, slots) in std::mem::take(&mut self.processes.get_mut(&from).unwrap().jobs) {
                let able = self
                    .processes
                    .get(&to)
                    .is_some_and(|process| process.alive && !process.frozen && process.follows.is_none());
                if able && self.processes[&from].alive && self.processes[&from].follows.is_none() {
                    let slots = slots.intersection(&self.processes[&from].slots);
                    self.plan_failover(from, to, &slots);
                }
            }
        }
    }

    /// Every running migration fails, and the failed attempt is counted.
    pub(super) fn fail_moves(&mut self) {
        for process in self.processes.values_mut() {
            process.jobs.clear();
        }
        self.memory.attempts = (self.memory.attempts + 1).min(10);
    }

    pub(super) fn stabilize(&mut self, member: MemberRef, slots: &SlotSet) {
        let Some(number) = self.process_at(member) else { return };
        let owned: SlotSet = self.processes[&number].slots.clone();
        let process = self.processes.get_mut(&number).unwrap();
        for (from, coming) in &process.coming {
            let hidden = coming
                .intersection(slots)
                .intersection(&process.data)
                .difference(&owned);
            assert!(
                hidden.is_empty(),
                "keys of {hidden} that came from {from} are hidden at {member}"
            );
        }
        for marks in [&mut process.leaving, &mut process.coming] {
            for marked in marks.values_mut() {
                *marked = marked.difference(slots);
            }
            marks.retain(|_, marked| !marked.is_empty());
        }
    }

    /// Whether no slot migration involves this process's shard.
    pub(super) fn is_still(&self, number: u8) -> bool {
        let target = self.processes.values().any(|process| {
            process.alive && (process.jobs.contains_key(&number) || process.leaving.contains_key(&number))
        });
        super::checks::is_idle(&self.processes[&number]) && !target
    }

    fn head_of(&self, shard: ShardIndex) -> Option<u8> {
        let observed = self.observe();
        let owner = observed.primary(shard).and_then(|(at, _)| self.process_at(at));
        owner.or_else(|| {
            let primaries = self
                .processes
                .iter()
                .filter(|(_, process)| process.alive && process.at.0 == shard.0 && process.follows.is_none());
            primaries.map(|(number, _)| *number).next()
        })
    }
}
