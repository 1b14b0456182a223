//! The effects of a plan's steps on the cluster, and what the steps must never do.

use candor_engine::model::MemberRef;
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::SlotSet;

use super::{TIMEOUT, World, at, number, place};

impl World {
    pub(super) fn act(&mut self, step: &Step) {
        match step {
            Step::CreatePreflight => {
                assert_eq!(self.preflight, None, "two pods of one name");
                self.preflight = Some(self.target);
            }
            Step::EndPreflight => self.preflight = None,
            Step::CreateCredentials => {
                assert!(!self.secret, "two Secrets of one name");
                self.secret = true;
            }
            // Maps are exchanged at once here.
            Step::Announce { .. }
            | Step::WriteObjects
            | Step::DeleteOrphanedPod(_)
            | Step::RepairCredentials(_)
            | Step::Configure(_)
            | Step::ApplyUsers(_)
            | Step::ReloadCertificate(_)
            | Step::RecreateSet
            | Step::StopServers
            | Step::ExpandVolume(_) => {}
            Step::ClearFailoverRequest { .. } => {
                let (shard, from) = self.asked.expect("somebody asked");
                let head = self
                    .processes
                    .get(&from)
                    .filter(|process| process.is_here() && !process.frozen);
                assert!(
                    head.is_none_or(|head| head.slots.is_empty()) || self.replicas == 0 || shard >= self.shards,
                    "the request for shard {shard} is taken away and its primary did not give way: {self:#?}"
                );
                self.asked = None;
            }
            Step::ReuseVolume(member) => {
                self.drained.remove(&at(*member));
            }
            Step::Stabilize { member, slots } => self.stabilize(*member, slots),
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
                self.drained.insert(at(*member));
                self.held.remove(&at(*member));
                self.workloads.remove(&at(*member));
            }
            Step::RollMember(member) => {
                assert_eq!(
                    self.preflight,
                    Some(self.target),
                    "{member} is rolled into what was not tried"
                );
                self.workloads.insert(at(*member), self.target);
                if let Some(number) = self.process_at(*member) {
                    let process = self.processes[&number].clone();
                    assert!(
                        process.follows.is_some() || self.replicas == 0,
                        "{member} is restarted as a primary"
                    );
                    for peer in 0..=self.replicas {
                        let peer = (process.at.0, peer);
                        let there = self.process_at(place(peer)).map(|number| &self.processes[&number]);
                        let well = there.is_some_and(|one| !one.frozen && (one.follows.is_none() || self.in_sync(one)));
                        assert!(
                            well || peer == process.at || self.replicas == 0,
                            "{member} is restarted while {peer:?} is away: {self:#?}"
                        );
                    }
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
                    let data = self.copies();
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
            Step::MoveSlots { moves, legacy } => {
                for one in moves {
                    self.begin(one, *legacy);
                }
            }
            Step::Forget { at, node } => {
                let gone = number(*node);
                let Some(number) = self.process_at(*at) else { return };
                let old = &self.processes[&gone];
                let cut_off = old.cut && old.slots.is_empty();
                assert!(!old.alive || cut_off, "a living node is forgotten");
                assert!(
                    !self.processes[&number].meeting.contains(&gone),
                    "a node is forgotten inside its handshake"
                );
                assert_ne!(
                    self.processes[&number].follows,
                    Some(gone),
                    "a followed node is forgotten"
                );
                self.processes.get_mut(&number).unwrap().knows.remove(&gone);
            }
            Step::Reset(member) => {
                let Some(number) = self.process_at(*member) else { return };
                let drained = self.drained.contains(&at(*member));
                let process = self.processes.get_mut(&number).unwrap();
                assert!(
                    process.slots.is_empty() && (process.data.is_empty() || drained),
                    "{member} is reset and holds something"
                );
                process.data = SlotSet::new();
                process.follows = None;
                process.copied = false;
                process.knows.clear();
            }
            Step::DeclareLost { slots, .. } => {
                assert!(
                    slots.intersection(&self.copies()).is_empty(),
                    "declared lost while a copy lives: {slots}"
                );
            }
        }
    }

    /// The slots of which a usable copy exists. A partitioned replica with a deleted pod is terminated as soon as the
    /// partition ends, so its copy can never be used.
    fn copies(&self) -> SlotSet {
        let holders = self.processes.values();
        let holders = holders.filter(|process| !process.cut || !process.slots.is_empty());
        holders.fold(SlotSet::new(), |all, process| all.union(&process.data))
    }

    fn fail_over(&mut self, to: MemberRef, by: FailoverBy) {
        let Some(candidate) = self.process_at(to) else { return };
        let Some(old) = self.processes[&candidate].follows else {
            return;
        };
        let owners = self.processes.values().filter(|process| !process.slots.is_empty());
        let voters = owners
            .clone()
            .filter(|process| process.is_here() && !process.frozen)
            .count();
        let alive = self.processes[&old].alive;
        if by == FailoverBy::Planned {
            assert!(
                self.is_still(old),
                "a failover is planned while slots of the shard move"
            );
        }
        match by {
            FailoverBy::Planned if !alive || !self.in_sync(&self.processes[&candidate]) => return,
            FailoverBy::Forced if voters * 2 <= owners.count() => return,
            FailoverBy::Forced | FailoverBy::Takeover => assert!(!alive, "a living primary is overthrown"),
            FailoverBy::Planned => {}
        }
        self.promote(candidate, old);
    }

    pub(super) fn promote(&mut self, candidate: u8, old: u8) {
        let newest = self.processes.values().map(|process| process.epoch).max().unwrap_or(0);
        let slots = std::mem::take(&mut self.processes.get_mut(&old).unwrap().slots);
        let alive = self.processes[&old].alive;
        for process in self
            .processes
            .values_mut()
            .filter(|process| process.follows == Some(old))
        {
            process.follows = Some(candidate);
        }
        let demoted = self.processes.get_mut(&old).unwrap();
        demoted.jobs.clear();
        demoted.leaving.clear();
        demoted.coming.clear();
        let process = self.processes.get_mut(&candidate).unwrap();
        process.follows = None;
        process.slots = slots;
        process.epoch = newest + 1;
        if alive {
            // It handed over at the same offset: it has the same data as the new primary.
            let old = self.processes.get_mut(&old).unwrap();
            old.follows = Some(candidate);
            old.copied = true;
        } else if self.persistent {
            // It is back with its volume, learns that its slots have another owner, and follows that owner.
            let old = self.processes.get_mut(&old).unwrap();
            old.follows = Some(candidate);
            old.copied = false;
        }
    }

    /// Terminates a process. Other members remember it, with its slots, until the operator makes them forget it.
    pub(super) fn end(&mut self, number: u8) {
        let process = self.processes.get_mut(&number).unwrap();
        process.alive = false;
        if !self.persistent {
            process.data = SlotSet::new();
        }
        process.jobs.clear();
        process.leaving.clear();
        process.coming.clear();
    }
}
