//! What memory lacks and the servers know: a slot owner that died before a reconcile observed it as the owner.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotSet};

use super::Memory;
use crate::model::{Desired, ShardIndex};
use crate::observation::Observation;

impl Memory {
    /// Completes memory from the maps of the responding members: slots of owners that neither respond nor are
    /// remembered. The slots belong to the shard of a replica of that owner. If the owner has no replica, they belong
    /// to a shard without slots. A shard with a member that does not respond comes first, because that member may be
    /// the owner.
    pub(crate) fn recall(&self, desired: &Desired, observed: &Observation) -> Self {
        let unknown = self.unknown_owners(observed);
        let mut whole = self.clone();
        for (id, slots) in unknown {
            let followers = observed.answering().filter(|(_, facts)| {
                let me = facts.me();
                me.is_some_and(|me| me.primary == Some(id))
            });
            let shard = followers.map(|(at, _)| at.shard).next();
            if let Some(shard) = shard.or_else(|| whole.vacant(desired, observed)) {
                let entry = whole.topology.entry(shard).or_default();
                entry.slots = entry.slots.union(&slots);
            }
        }
        whole
    }

    /// Owners in a responding member's map that neither respond nor are remembered, with the slots that no responding
    /// primary owns.
    fn unknown_owners(&self, observed: &Observation) -> BTreeMap<NodeId, SlotSet> {
        // A responding primary is authoritative for its shard; memory may be older than the last slot migration.
        let silent = self
            .topology
            .iter()
            .filter(|(shard, _)| observed.primary(**shard).is_none())
            .map(|(_, before)| before.slots.clone());
        let held = observed
            .owners()
            .into_values()
            .chain(silent)
            .fold(SlotSet::new(), |all, slots| all.union(&slots));
        let mut owners: BTreeMap<NodeId, SlotSet> = BTreeMap::new();
        for entry in observed.answering().flat_map(|(_, facts)| facts.map.0.iter()) {
            let slots = entry.slots.difference(&held);
            if !slots.is_empty() && observed.with_id(entry.id).is_none() && !self.knows(entry.id) {
                let all = owners.entry(entry.id).or_default();
                *all = all.union(&slots);
            }
        }
        owners
    }

    /// A shard that owns no slots, neither in memory nor as reported by a member.
    fn vacant(&self, desired: &Desired, observed: &Observation) -> Option<ShardIndex> {
        let owning = |shard: &ShardIndex| {
            let remembered = self.topology.get(shard).is_some_and(|before| !before.slots.is_empty());
            remembered || observed.primary(*shard).is_some()
        };
        let there = observed.members.keys().map(|at| at.shard);
        let shards = (0..desired.shards).map(ShardIndex).chain(there);
        let unanswered = |shard: &ShardIndex| observed.shard(*shard).any(|(_, member)| member.facts().is_none());
        shards
            .filter(|shard| !owning(shard))
            .max_by_key(|shard| (unanswered(shard), std::cmp::Reverse(*shard)))
    }
}
