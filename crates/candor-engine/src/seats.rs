//! Which ordinal of a `StatefulSet` belongs to which shard.
//!
//! A `StatefulSet` numbers its pods and always removes the highest number. Failovers move roles between pods. A
//! seating is therefore remembered, and it changes only where the desired topology asks for it:
//!
//! 1. A primary that owns slots keeps its seat as long as its shard is desired.
//! 2. A replica in sync with such a primary keeps its seat.
//! 3. Every other ordinal keeps the seat it is remembered in.
//! 4. Free seats go to the ordinals that are left, to the emptiest shard first.
//!
//! An ordinal that owns slots and has to leave, or to change its shard, is [`draining`](Seating::draining): its slots
//! go first, by a failover within the shard or by a move to another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::ShardIndex;

/// The number of a pod in its `StatefulSet`.
pub type Ordinal = u32;

/// Ordinals with their shards.
pub type Seats = BTreeMap<Ordinal, ShardIndex>;

/// The desired topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many shards.
    pub primaries: u32,
    /// How many replicas each of them has.
    pub replicas: u32,
    /// One more primary without replicas: the extra server of a slow upgrade.
    pub extra: bool,
}

impl Shape {
    /// How many ordinals have a seat.
    pub fn seats(self) -> u32 {
        self.regular()
            .saturating_add(u32::from(self.extra && self.primaries > 0))
    }

    /// The same without the extra server.
    fn regular(self) -> u32 {
        self.primaries.saturating_mul(self.replicas.saturating_add(1))
    }

    /// How many ordinals a shard seats; none when it is not desired.
    fn capacity(self, shard: ShardIndex) -> u32 {
        if shard.0 < self.primaries {
            self.replicas.saturating_add(1)
        } else {
            u32::from(self.extra && self.primaries > 0 && shard.0 == self.primaries)
        }
    }

    fn shards(self) -> impl Iterator<Item = ShardIndex> {
        (0..=self.primaries)
            .map(ShardIndex)
            .filter(move |shard| self.capacity(*shard) > 0)
    }
}

/// The observed role of an ordinal. An ordinal that was not observed has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A primary.
    Primary {
        /// Whether it owns any slots.
        slots: bool,
    },
    /// A replica.
    Replica {
        /// The ordinal it follows.
        of: Ordinal,
        /// Whether it has all of its primary's data.
        in_sync: bool,
    },
}

/// Which ordinal belongs to which shard, and which ones have to give up slots first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seating {
    /// The desired seat of every ordinal that stays.
    pub seats: Seats,
    /// Ordinals that own slots, or may own some because they were not observed, and must lose them before they leave or
    /// take their desired seat: with the shard that they are still in. When that shard is desired its slots stay in it,
    /// with another member; when it is not, they go to other shards.
    pub draining: Seats,
    /// Ordinals that have no seat.
    pub leaving: BTreeSet<Ordinal>,
    /// What is remembered: the seats, with every draining and every leaving ordinal in the shard that it is still in.
    /// An ordinal that leaves is forgotten once it is missing and another member is the primary of its shard.
    pub memory: Seats,
}

/// Assigns every seat. `previous` is the [`memory`](Seating::memory) of the last seating; it is empty for a new cluster
/// and for one that is adopted.
pub fn seat(shape: Shape, previous: &Seats, observed: &BTreeMap<Ordinal, Role>) -> Seating {
    if shape.primaries == 0 {
        let known = previous.keys().chain(observed.keys()).copied();
        return Seating {
            leaving: known.collect(),
            memory: previous.clone(),
            ..Seating::default()
        };
    }
    let current = current(shape, previous, observed);
    let mut table = Table::new(shape);
    let owner = |ordinal: Ordinal| observed.get(&ordinal) == Some(&Role::Primary { slots: true });
    // Only a replica of a slot owner is worth a seat.
    let follows = |ordinal: Ordinal, synced: bool| match observed.get(&ordinal) {
        Some(Role::Replica { of, in_sync }) if !synced || (*in_sync && owner(*of)) => current.get(of).copied(),
        _ => None,
    };
    let remembered = |ordinal: Ordinal| current.get(&ordinal).copied();

    table.claim(|ordinal| remembered(ordinal).filter(|_| owner(ordinal)));
    table.claim(|ordinal| may_own(ordinal, &current, observed));
    table.claim(|ordinal| follows(ordinal, true).filter(|shard| remembered(ordinal) == Some(*shard)));
    table.claim(|ordinal| follows(ordinal, true));
    table.claim(remembered);
    table.claim(|ordinal| follows(ordinal, false));
    // An ordinal without slots can take its new seat at once: it goes first to a shard without members.
    let holds = |ordinal: Ordinal| owner(ordinal) || may_own(ordinal, &current, observed).is_some();
    table.fill(|ordinal| !holds(ordinal));
    table.fill(holds);
    table.finish(previous, observed, &current, holds)
}

/// The shard that each ordinal is in now: as remembered, or as the cluster map has it where nothing is remembered.
fn current(shape: Shape, previous: &Seats, observed: &BTreeMap<Ordinal, Role>) -> Seats {
    let mut current = previous.clone();
    let mut taken: BTreeSet<ShardIndex> = previous.values().copied().collect();
    for (ordinal, role) in observed {
        if *role != (Role::Primary { slots: true }) || current.contains_key(ordinal) {
            continue;
        }
        let own = ShardIndex(*ordinal);
        let most = u32::try_from(taken.len()).unwrap_or(u32::MAX);
        let free = (0..=most).map(ShardIndex).find(|shard| !taken.contains(shard));
        let shard = Some(own).filter(|own| own.0 < shape.primaries && !taken.contains(own));
        if let Some(shard) = shard.or(free) {
            taken.insert(shard);
            current.insert(*ordinal, shard);
        }
    }
    // A replica of a replica needs one more iteration.
    for _ in 0..observed.len() {
        let before = current.len();
        for (ordinal, role) in observed {
            if let Role::Replica { of, .. } = role
                && !current.contains_key(ordinal)
                && let Some(shard) = current.get(of).copied()
            {
                current.insert(*ordinal, shard);
            }
        }
        if current.len() == before {
            break;
        }
    }
    current
}

/// The shard of an ordinal that was not observed, if that shard has no observed primary: the ordinal may be that
/// primary.
fn may_own(ordinal: Ordinal, current: &Seats, observed: &BTreeMap<Ordinal, Role>) -> Option<ShardIndex> {
    let shard = *current.get(&ordinal)?;
    let has_owner = current
        .iter()
        .any(|(other, of)| *of == shard && observed.get(other) == Some(&Role::Primary { slots: true }));
    (!observed.contains_key(&ordinal) && !has_owner).then_some(shard)
}

/// Seats while they are being assigned.
struct Table {
    shape: Shape,
    seats: Seats,
    taken: BTreeMap<ShardIndex, u32>,
}

impl Table {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            seats: Seats::new(),
            taken: BTreeMap::new(),
        }
    }

    /// Seats every ordinal that has no seat yet in the shard that `wish` returns, as far as there is room.
    fn claim(&mut self, wish: impl Fn(Ordinal) -> Option<ShardIndex>) {
        for ordinal in 0..self.shape.seats() {
            if self.seats.contains_key(&ordinal) {
                continue;
            }
            if let Some(shard) = wish(ordinal).filter(|shard| self.open(ordinal, *shard)) {
                self.take(ordinal, shard);
            }
        }
    }

    /// Seats the chosen ordinals that have no seat yet, in the shard with the fewest members.
    fn fill(&mut self, chosen: impl Fn(Ordinal) -> bool) {
        for ordinal in 0..self.shape.seats() {
            if self.seats.contains_key(&ordinal) || !chosen(ordinal) {
                continue;
            }
            let open = self.shape.shards().filter(|shard| self.open(ordinal, *shard));
            let emptiest = open.min_by_key(|shard| (self.taken.get(shard).copied().unwrap_or(0), *shard));
            if let Some(shard) = emptiest {
                self.take(ordinal, shard);
            }
        }
    }

    /// Whether there is room. The extra server is the last ordinal, and its shard is reserved for it.
    fn open(&self, ordinal: Ordinal, shard: ShardIndex) -> bool {
        let fits = (ordinal == self.shape.regular()) == (shard.0 == self.shape.primaries);
        let taken = self.taken.get(&shard).copied().unwrap_or(0);
        fits && taken < self.shape.capacity(shard)
    }

    fn take(&mut self, ordinal: Ordinal, shard: ShardIndex) {
        self.seats.insert(ordinal, shard);
        *self.taken.entry(shard).or_default() += 1;
    }

    fn finish(
        self,
        previous: &Seats,
        observed: &BTreeMap<Ordinal, Role>,
        current: &Seats,
        holds: impl Fn(Ordinal) -> bool,
    ) -> Seating {
        let moves = |ordinal: &Ordinal, shard: &ShardIndex| self.seats.get(ordinal) != Some(shard);
        let draining: Seats = current
            .iter()
            .filter(|(ordinal, shard)| moves(ordinal, shard) && holds(**ordinal))
            .map(|(ordinal, shard)| (*ordinal, *shard))
            .collect();
        let known = previous.keys().chain(observed.keys()).copied();
        let leaving: BTreeSet<Ordinal> = known.filter(|ordinal| !self.seats.contains_key(ordinal)).collect();
        let there = leaving.iter().filter(|ordinal| observed.contains_key(ordinal));
        let there = there.filter_map(|ordinal| Some((*ordinal, *previous.get(ordinal)?)));
        let mut memory = self.seats.clone();
        memory.extend(there);
        memory.extend(draining.iter().map(|(ordinal, shard)| (*ordinal, *shard)));
        Seating {
            seats: self.seats,
            draining,
            leaving,
            memory,
        }
    }
}
