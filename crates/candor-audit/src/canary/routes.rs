//! The known owner of each slot.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::facts::Facts;
use crate::slots::SLOTS;

/// The owners of the slots, learned from the servers' claims and from redirections.
#[derive(Debug)]
pub(crate) struct Routes {
    known: Mutex<Known>,
    /// Number of writes that wait for an owner.
    waiting: AtomicUsize,
    /// Notified when an owner changes or a member stops responding.
    changed: Notify,
}

#[derive(Debug)]
struct Known {
    owners: Vec<Option<(SocketAddr, u64)>>,
    /// Members that responded to the last query.
    answering: BTreeSet<SocketAddr>,
    /// Those of them that reported `cluster_state:ok`.
    serving: BTreeSet<SocketAddr>,
}

impl Default for Routes {
    fn default() -> Self {
        Self {
            known: Mutex::new(Known {
                owners: vec![None; usize::from(SLOTS)],
                answering: BTreeSet::new(),
                serving: BTreeSet::new(),
            }),
            waiting: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member replied. For each slot the claim with the higher epoch wins, as it does among the servers.
    pub fn claim(&self, address: SocketAddr, facts: &Facts) {
        let mut known = self.lock();
        known.answering.insert(address);
        if facts.ok {
            known.serving.insert(address);
        } else {
            known.serving.remove(&address);
        }
        if !facts.owns() {
            return;
        }
        let mut changed = false;
        for slot in facts.slots.iter().cloned().flatten() {
            let owner = &mut known.owners[usize::from(slot)];
            if owner.is_none_or(|(_, epoch)| epoch <= facts.epoch) {
                changed |= owner.is_none_or(|(before, _)| before != address);
                *owner = Some((address, facts.epoch));
            }
        }
        drop(known);
        if changed {
            self.changed.notify_waiters();
        }
    }

    /// A member does not respond.
    pub fn not_responding(&self, address: SocketAddr) {
        let mut known = self.lock();
        known.serving.remove(&address);
        let changed = known.answering.remove(&address);
        drop(known);
        if changed {
            self.changed.notify_waiters();
        }
    }

    /// A server redirected this slot to another owner.
    pub fn moved(&self, slot: u16, to: SocketAddr) {
        let owner = &mut self.lock().owners[usize::from(slot)];
        let epoch = owner.map_or(0, |(_, epoch)| epoch);
        *owner = Some((to, epoch));
    }

    /// The member to send a write of this slot to: its owner, or any member that can redirect to the owner. An owner
    /// that does not respond stays the owner until another member reports a new one, so `any_member` occasionally selects
    /// another member.
    pub fn of(&self, slot: u16, any_member: bool) -> Option<SocketAddr> {
        let known = self.lock();
        let owner = known.owners[usize::from(slot)].map(|(address, _)| address);
        let other = known.answering.iter().find(|address| Some(**address) != owner).copied();
        if any_member { other.or(owner) } else { owner.or(other) }
    }

    /// Returns when the slot has another owner. If the member was only a guess (`guessed`), also returns when the
    /// member stops responding.
    pub async fn left(&self, slot: u16, from: SocketAddr, guessed: bool) {
        loop {
            let changed = self.changed.notified();
            let stays = if guessed {
                self.lock().answering.contains(&from)
            } else {
                self.of(slot, false) == Some(from)
            };
            if !stays {
                return;
            }
            changed.await;
        }
    }

    /// Whether every slot has an owner that serves.
    pub fn complete(&self) -> bool {
        let known = self.lock();
        known
            .owners
            .iter()
            .all(|owner| owner.is_some_and(|(address, _)| known.serving.contains(&address)))
    }

    /// A write starts to wait for an owner.
    pub fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// A write no longer waits.
    pub fn served(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many writes wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the owners should be polled sooner than usual.
    pub fn desired(&self) -> bool {
        self.waiting() > 0
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::facts::Role;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 1, 0, last], 6379))
    }

    fn owner(epoch: u64) -> Facts {
        Facts {
            id: String::new(),
            ok: true,
            role: Role::Primary,
            slots: vec![0..=16383],
            epoch,
            moving: false,
        }
    }

    #[test]
    fn the_newer_claim_wins_and_an_older_one_does_not_come_back() {
        let routes = Routes::default();
        assert_eq!(routes.of(7, false), None);
        routes.claim(address(1), &owner(1));
        assert!(routes.complete());
        routes.claim(address(2), &owner(2));
        routes.claim(address(1), &owner(1));
        assert_eq!(routes.of(7, false), Some(address(2)));
    }

    #[test]
    fn a_redirection_is_followed_and_another_member_can_be_queried() {
        let routes = Routes::default();
        routes.claim(address(1), &owner(1));
        routes.moved(7, address(3));
        assert_eq!(
            (routes.of(7, false), routes.of(8, false)),
            (Some(address(3)), Some(address(1)))
        );
        assert_eq!(routes.of(7, true), Some(address(1)));
        routes.not_responding(address(1));
        assert_eq!(routes.of(8, false), Some(address(1)), "the owner stays the owner");
        assert!(!routes.complete());
    }

    #[tokio::test]
    async fn a_write_waits_for_a_member_that_does_not_respond_only_if_it_owns_the_slot() {
        let routes = Routes::default();
        routes.claim(address(1), &owner(1));
        let left = |guessed| routes.left(7, address(1), guessed).now_or_never();
        assert_eq!((left(false), left(true)), (None, None));
        routes.not_responding(address(1));
        assert_eq!((left(false), left(true)), (None, Some(())));
        routes.claim(address(2), &owner(2));
        assert_eq!(left(false), Some(()));
    }
}
