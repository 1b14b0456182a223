//! Every possible next state: the operator, its crashes, faults of servers and networks, requests and spec changes.

use super::World;

impl World {
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
        if self.deletions > 0 && self.secret {
            let mut world = self.clone();
            world.deletions -= 1;
            world.secret = false;
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
