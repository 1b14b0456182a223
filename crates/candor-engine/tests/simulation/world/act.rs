//! What the steps of a plan do to the cluster, and what they must never do.

use candor_engine::model::MemberRef;
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::SlotSet;

use super::{TIMEOUT, World, at, number, place};

impl World {
    pub(super) fn act(&mut self, step: &Step) {
        match step {
            Step::WriteObjects
            | Step::Configure(_)
            | Step::ApplyUsers(_)
            | Step::ReloadCertificate(_)
            | Step::ExpandVolume(_)
            | Step::CancelMoves(_)
            | Step::Stabilize { .. } => {}
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
            Step::MoveSlots { moves, .. } => {
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

    pub(super) fn promote(&mut self, heir: u8, old: u8) {
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
    pub(super) fn end(&mut self, number: u8) {
        let process = self.processes.get_mut(&number).unwrap();
        process.alive = false;
        process.data = SlotSet::new();
    }
}
