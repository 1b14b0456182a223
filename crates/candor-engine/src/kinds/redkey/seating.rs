//! Which server sits in which seat: from the observed roles and the seats that status remembers.

use std::collections::{BTreeMap, BTreeSet};

use valkey_admin::{NodeId, SlotSet};

use super::operation::View;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Observation};
use crate::seats::{Ordinal, Role, Seating, Seats, Shape};

impl View<'_> {
    /// The observed roles. A replica of a server that was not observed is recognised by the node id that status
    /// remembers.
    pub(super) fn roles(&self) -> BTreeMap<Ordinal, Role> {
        let members = || {
            let all = self.input.members.iter();
            all.filter_map(|(ordinal, member)| Some((*ordinal, member.facts()?)))
        };
        let by_id = |id: NodeId| {
            let remembered = || {
                let shards = self.memory.topology.values();
                shards.flat_map(|shard| &shard.members).find(|(_, known)| **known == id)
            };
            let observed = members().find(|(_, facts)| facts.id == id).map(|(ordinal, _)| ordinal);
            observed.or_else(|| remembered().map(|(ordinal, _)| *ordinal))
        };
        let role = |facts: &Facts| {
            let me = facts.me()?;
            Some(match me.primary {
                Some(id) => Role::Replica {
                    of: by_id(id)?,
                    in_sync: facts.in_sync,
                },
                None => Role::Primary {
                    slots: !facts.slots().is_empty(),
                },
            })
        };
        let roles = members().filter_map(|(ordinal, facts)| Some((ordinal, role(facts)?)));
        roles.collect()
    }

    /// The remembered seats, without those of servers that are gone and whose slots other servers own.
    pub(super) fn previous_seats(&self, shape: Shape) -> Seats {
        let members = self.input.members.values().filter_map(Member::facts);
        let owned = members.filter(|facts| facts.is_primary()).map(Facts::slots);
        let held = owned.fold(SlotSet::new(), |all, slots| all.union(&slots));
        let owes_slots = |shard: &ShardIndex| {
            let before = self.memory.topology.get(shard);
            before.is_some_and(|before| !before.slots.difference(&held).is_empty())
        };
        let exists = |ordinal: &Ordinal| self.input.members.get(ordinal).is_some_and(Member::exists);
        let stays =
            |ordinal: &Ordinal, shard: &ShardIndex| *ordinal < shape.seats() || exists(ordinal) || owes_slots(shard);
        let seats = self.seats.iter().filter(|(ordinal, shard)| stays(ordinal, shard));
        seats.map(|(ordinal, shard)| (*ordinal, *shard)).collect()
    }

    /// The seats, with every leaving server in its last seat as long as anything of it exists.
    pub(super) fn seats_to_remember(&self, seating: &Seating) -> Seats {
        let mut seats = seating.memory.clone();
        for (ordinal, shard) in &self.seats {
            if self.input.members.get(ordinal).is_some_and(Member::exists) {
                seats.entry(*ordinal).or_insert(*shard);
            }
        }
        seats
    }

    /// Every server in its seat. A server without a seat is in a shard of its own that is not desired.
    pub(super) fn seated(&self, shape: Shape, seating: &Seating) -> Observation {
        let beyond = |ordinal: Ordinal| ShardIndex(shape.primaries.saturating_add(2).saturating_add(ordinal));
        let place = |ordinal: Ordinal| {
            let seat = seating.memory.get(&ordinal).or_else(|| seating.seats.get(&ordinal));
            // A server that has left is still known in its last seat, so that its node is forgotten.
            let seat = seat.or_else(|| self.seats.get(&ordinal));
            MemberRef {
                shard: seat.copied().unwrap_or_else(|| beyond(ordinal)),
                node: ordinal,
            }
        };
        let ordinals: BTreeSet<Ordinal> = self.input.members.keys().chain(seating.seats.keys()).copied().collect();
        let member = |ordinal: Ordinal| self.input.members.get(&ordinal).cloned().unwrap_or_default();
        let members = ordinals.into_iter().map(|ordinal| (place(ordinal), member(ordinal)));
        Observation {
            members: members.collect(),
            ..self.input.base.clone()
        }
    }
}
