//! What memory lacks and the servers know: a slot owner that died before a reconcile observed it as the owner.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotSet};

use super::Memory;
use crate::model::{ShardIndex, Wanted};
use crate::observation::Observation;

impl Memory {
    /// Completes memory from the maps of the responding members: slots of owners that neither respond nor are
    /// remembered. The slots belong to the shard of a replica of that owner. If the owner has no replica, they belong
    /// to a shard without slots. A shard with a member that does not respond comes first, because that member may be
    /// the owner.
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

    /// Owners in a responding member's map that neither respond nor are remembered, with the slots that no responding
    /// primary owns.
    fn unknown_owners(&self, seen: &Observation) -> BTreeMap<NodeId, SlotSet> {
        // A responding primary is authoritative for its shard; memory may be older than the last slot migration.
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

    /// A shard that owns no slots, neither in memory nor as reported by a member.
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
