//! The effects of a plan's steps on a cluster without faults.

use candor_engine::model::{MemberRef, ShardIndex};
use candor_engine::step::Step;
use valkey_admin::SlotSet;

use super::{Process, World};

impl World {
    pub(super) fn act(&mut self, step: &Step) {
        match step {
            Step::CreateCredentials => self.change.credentials = false,
            Step::WriteObjects => self.change.objects = false,
            Step::CreateMember(at) => {
                self.workloads.insert(*at);
                self.start(*at);
            }
            Step::DeleteMember(at) => {
                self.workloads.remove(at);
                self.end(*at);
            }
            Step::RollMember(at) => {
                self.change.outdated.remove(at);
                if self.desired.persistence {
                    // It restarts with its node id and its volume.
                    if let Some(process) = self.processes.get_mut(at) {
                        process.version = self.desired.version;
                        process.applied = true;
                    }
                } else {
                    self.end(*at);
                    self.start(*at);
                }
            }
            Step::SetNodeTimeout { member, millis } => self.with(*member, |process| process.timeout = *millis),
            Step::Meet { at, with } => self.meet(*at, *with),
            Step::AddSlots { member, slots } => {
                self.with(*member, |process| process.slots = process.slots.union(slots));
            }
            Step::Replicate { member, primary } => {
                let keys = self
                    .processes
                    .values()
                    .find(|process| process.id == *primary)
                    .map_or(0, |head| head.keys);
                self.with(*member, |process| {
                    process.follows = Some(*primary);
                    process.keys = keys;
                });
            }
            Step::Failover { to, .. } => self.hand_over(*to),
            Step::MoveSlots { moves, .. } => {
                for one in moves {
                    self.give(one.from, one.to, &one.slots);
                }
            }
            Step::Configure(at) | Step::ApplyUsers(at) => self.with(*at, |process| process.applied = true),
            Step::ExpandVolume(at) => {
                self.small_volumes.remove(at);
            }
            Step::Forget { at, node } => {
                let who = self.processes.get(at).map(|process| process.id);
                if let (Some(who), Some(knowing)) = (who, self.ghosts.get_mut(node)) {
                    knowing.remove(&who);
                }
            }
            Step::Reset(at) => {
                self.made += 1;
                let group = self.made;
                self.with(*at, |process| {
                    process.follows = None;
                    process.group = group;
                    process.keys = 0;
                });
            }
            Step::ClearFailoverRequest { .. } => self.desired.failover = None,
            Step::ReloadCertificate(_)
            | Step::Announce { .. }
            | Step::RecreateSet
            | Step::StopServers
            | Step::CreatePreflight
            | Step::EndPreflight
            | Step::DeleteOrphanedPod(_)
            | Step::RepairCredentials(_)
            | Step::ReuseVolume(_)
            | Step::Stabilize { .. }
            | Step::DeclareLost { .. } => {}
        }
    }

    fn with(&mut self, at: MemberRef, change: impl FnOnce(&mut Process)) {
        if let Some(process) = self.processes.get_mut(&at) {
            change(process);
        }
    }

    fn start(&mut self, at: MemberRef) {
        self.made += 1;
        // An id that no server has: the server chooses the real one when it starts.
        let Ok(id) = format!("ffffffff{:032x}", self.made).parse() else {
            return;
        };
        let process = Process {
            id,
            group: self.made,
            follows: None,
            slots: SlotSet::new(),
            keys: 0,
            epoch: 0,
            timeout: self.desired.node_timeout,
            version: self.desired.version.or(self.before),
            applied: true,
        };
        self.processes.insert(at, process);
    }

    fn end(&mut self, at: MemberRef) {
        if let Some(gone) = self.processes.remove(&at) {
            let knowing = self.processes.values().filter(|process| process.group == gone.group);
            let knowing = knowing.map(|process| process.id).collect();
            self.ghosts.insert(gone.id, knowing);
        }
    }

    fn meet(&mut self, at: MemberRef, with: MemberRef) {
        let group = |at: MemberRef| self.processes.get(&at).map(|process| process.group);
        if let (Some(one), Some(other)) = (group(at), group(with)) {
            for process in self.processes.values_mut().filter(|process| process.group == other) {
                process.group = one;
            }
        }
    }

    pub(super) fn hand_over(&mut self, to: MemberRef) {
        let Some((candidate, Some(old))) = self
            .processes
            .get(&to)
            .map(|candidate| (candidate.id, candidate.follows))
        else {
            return;
        };
        let newest = self.processes.values().map(|process| process.epoch).max().unwrap_or(0);
        let mut slots = SlotSet::new();
        for process in self.processes.values_mut() {
            if process.id == old {
                slots = std::mem::take(&mut process.slots);
                process.follows = Some(candidate);
            } else if process.follows == Some(old) {
                process.follows = Some(candidate);
            }
        }
        self.with(to, |process| {
            process.follows = None;
            process.slots = slots;
            process.epoch = newest + 1;
        });
    }

    fn head(&self, shard: ShardIndex) -> Option<MemberRef> {
        let of_shard = self
            .processes
            .iter()
            .filter(|(at, process)| at.shard == shard && process.follows.is_none());
        of_shard
            .max_by_key(|(_, process)| process.slots.len())
            .map(|(at, _)| *at)
    }

    /// Moves slots, and a proportional share of the keys with them.
    fn give(&mut self, from: ShardIndex, to: ShardIndex, slots: &SlotSet) {
        let (Some(from), Some(to)) = (self.head(from), self.head(to)) else {
            return;
        };
        let mut keys = 0;
        self.with(from, |process| {
            keys = share(process.keys, slots.len(), process.slots.len());
            process.slots = process.slots.difference(slots);
            process.keys -= keys;
        });
        self.with(to, |process| {
            process.slots = process.slots.union(slots);
            process.keys += keys;
        });
    }
}

/// The share of `all` that `part` is of `whole`.
pub fn share(all: u64, part: usize, whole: usize) -> u64 {
    let (part, whole) = (part as u128, whole.max(1) as u128);
    u64::try_from(u128::from(all) * part / whole).unwrap_or(all)
}
