//! What memory lacks and the servers know: an owner of slots that died before any look saw it own them.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotSet};

use super::Memory;
use crate::model::{ShardIndex, Wanted};
use crate::observation::Observation;

impl Memory {
    /// Memory with what the maps of those who answer add to it: slots of owners that do not answer and are not
    /// remembered. They belong to the shard of whoever follows the owner; where nobody does, to a shard that has no
    /// slots otherwise, and first to one with a member that does not answer, because that may be the owner itself.
    pub(crate) fn recall(&self, wanted: &Wanted, seen: &Observation) -> Self {
        let strangers = self.unknown_owners(seen);
        let mut whole = self.clone();
        for (id, slots) in strangers {
            let followers = seen.answering().filter(|(_, facts)| {
                let me = facts.me();
                me.is_some_and(|me| me.primary == Some(id))
            });
            let shard = followers.map(|(at, _)| at.shard).next();
            if let Some(shard) = shard.or_else(|| whole.vacant(wanted, seen)) {
                let entry = whole.topology.entry(shard).or_default();
                entry.slots = entry.slots.union(&slots);
            }
        }
        whole
    }

    /// Owners in somebody's map that neither answer nor are remembered, with the slots that nobody who answers has.
    fn unknown_owners(&self, seen: &Observation) -> BTreeMap<NodeId, SlotSet> {
        // A shard whose primary answers is what that one says; memory may be older than the last move.
        let silent = self
            .topology
            .iter()
            .filter(|(shard, _)| seen.primary(**shard).is_none())
            .map(|(_, before)| before.slots.clone());
        let held = seen
            .owners()
            .into_values()
            .chain(silent)
            .fold(SlotSet::new(), |all, slots| all.union(&slots));
        let mut owners: BTreeMap<NodeId, SlotSet> = BTreeMap::new();
        for entry in seen.answering().flat_map(|(_, facts)| facts.map.0.iter()) {
            let slots = entry.slots.difference(&held);
            if !slots.is_empty() && seen.with_id(entry.id).is_none() && !self.knows(entry.id) {
                let all = owners.entry(entry.id).or_default();
                *all = all.union(&slots);
            }
        }
        owners
    }

    /// A shard that owns nothing, neither by memory nor by the word of a member.
    fn vacant(&self, wanted: &Wanted, seen: &Observation) -> Option<ShardIndex> {
        let owning = |shard: &ShardIndex| {
            let remembered = self.topology.get(shard).is_some_and(|before| !before.slots.is_empty());
            remembered || seen.primary(*shard).is_some()
        };
        let there = seen.members.keys().map(|at| at.shard);
        let shards = (0..wanted.shards).map(ShardIndex).chain(there);
        let unheard = |shard: &ShardIndex| seen.shard(*shard).any(|(_, member)| member.facts().is_none());
        shards
            .filter(|shard| !owning(shard))
            .max_by_key(|shard| (unheard(shard), std::cmp::Reverse(*shard)))
    }
}
