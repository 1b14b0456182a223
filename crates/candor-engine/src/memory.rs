//! What status carries from one look to the next. What must survive a crash is here or in the cluster itself.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotSet};

use crate::model::{ShardIndex, Wanted};
use crate::observation::{Member, Observation};
use crate::plan::Stage;

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The cluster was whole once.
    pub formed: bool,
    /// Shards as last seen whole.
    pub topology: BTreeMap<ShardIndex, ShardMemory>,
    /// How often the running move of slots has failed so far.
    pub attempts: u32,
}

/// A shard as last seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardMemory {
    /// What it owned.
    pub slots: SlotSet,
    /// Ids by place.
    pub members: BTreeMap<u32, NodeId>,
    /// Keys as of the last transition.
    pub keys: u64,
    /// Its data is gone, and that was said aloud.
    pub lost: bool,
}

impl Memory {
    /// Whether an id is one of ours.
    pub fn knows(&self, id: NodeId) -> bool {
        self.topology
            .values()
            .any(|shard| shard.members.values().any(|known| *known == id))
    }
}

impl Memory {
    /// What is remembered after this look. A shard without an answering primary keeps what is known of it; a member
    /// is entered under its id once it knows its primary; a shard that is neither wanted nor there is dropped.
    #[must_use]
    pub fn after(&self, wanted: &Wanted, seen: &Observation, stage: &Stage) -> Self {
        let mut next = self.clone();
        next.formed |= *stage == Stage::Healthy;
        for shard in seen
            .members
            .keys()
            .map(|at| at.shard)
            .collect::<std::collections::BTreeSet<_>>()
        {
            let Some((head, primary)) = seen.primary(shard) else {
                continue;
            };
            let entry = next.topology.entry(shard).or_default();
            entry.slots = primary.slots();
            entry.keys = primary.keys;
            let joined = |member: &Member| {
                member
                    .facts()
                    .filter(|facts| facts.knows(primary.id))
                    .map(|facts| facts.id)
            };
            let ids = seen
                .shard(shard)
                .filter_map(|(at, member)| Some((at.node, joined(member)?)));
            entry.members.extend(ids.chain([(head.node, primary.id)]));
            entry
                .members
                .retain(|node, _| seen.shard(shard).any(|(at, _)| at.node == *node));
        }
        next.topology.retain(|shard, before| {
            let there = seen.shard(*shard).next().is_some();
            // An emptied shard is remembered until it is gone, without the slots it gave away.
            if there && seen.shard(*shard).all(|(_, member)| member.facts().is_some()) && seen.primary(*shard).is_none()
            {
                let elsewhere = seen.owners().into_iter().filter(|(other, _)| other != shard);
                before.slots = elsewhere.fold(before.slots.clone(), |left, (_, slots)| left.difference(&slots));
            }
            there || wanted.shards > shard.0
        });
        next
    }
}
