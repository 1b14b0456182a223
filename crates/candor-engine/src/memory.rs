//! What status carries from one reconcile to the next. Everything that must survive a crash is here or in the cluster
//! itself.

mod last_pod;
mod recall;

pub use last_pod::{Fate, LastPod};

use std::collections::{BTreeMap, BTreeSet};

use valkey_admin::{NodeId, SlotSet};

use crate::model::{Desired, MemberRef, ShardIndex};
use crate::observation::{Facts, Member, Observation};
use crate::plan::{Plan, Stage};
use crate::step::Step;

/// What status remembers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// The cluster was complete once.
    pub formed: bool,
    /// Shards as last observed with a primary.
    pub topology: BTreeMap<ShardIndex, ShardMemory>,
    /// How often the current slot migration has failed so far.
    pub attempts: u32,
    /// The candidate of a planned failover outside of a rolling update. The other members of its shard are out of sync
    /// then because of the operator's own failover.
    pub candidate: Option<MemberRef>,
    /// How often a server rejected that failover.
    pub failovers_rejected: u32,
    /// The member that is being replaced. It is missing, or out of sync after its planned failover, because of the
    /// operator's own work.
    pub rolling: Option<MemberRef>,
    /// Shards or replicas are being added: a member that responds and has not copied all data yet is new, not lost.
    pub growing: bool,
    /// Members are leaving. If the primary is one of them, a planned failover replaced it, and the other members of
    /// its shard replicate the new primary.
    pub shrinking: bool,
}

/// A shard as last observed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShardMemory {
    /// The slots that it owned.
    pub slots: SlotSet,
    /// Node ids by place.
    pub members: BTreeMap<u32, NodeId>,
    /// The pods that its members last ran in, by place.
    pub pods: BTreeMap<u32, LastPod>,
    /// Keys at the last transition.
    pub keys: u64,
    /// Its data is lost, and the loss was reported.
    pub lost: bool,
}

impl Memory {
    /// Whether a node id is a remembered member.
    pub fn knows(&self, id: NodeId) -> bool {
        self.topology
            .values()
            .any(|shard| shard.members.values().any(|known| *known == id))
    }
}

impl Memory {
    /// What is remembered after this reconcile. A shard without a responding primary keeps what is known about it. A
    /// member is entered under its id once it knows its primary. A shard that is neither desired nor present is
    /// dropped.
    #[must_use]
    pub fn after(&self, desired: &Desired, observed: &Observation, plan: &Plan) -> Self {
        let mut next = self.recall(desired, observed);
        next.formed |= plan.stage.is_settled();
        next.rolling = match plan.stage {
            Stage::Rolling { member, .. } => {
                Some(member).filter(|_| plan.turns_to(member) || self.rolling == Some(member))
            }
            _ => None,
        };
        next.growing = match plan.stage {
            Stage::Creating { .. } | Stage::Replicating { .. } => self.formed,
            Stage::Joining | Stage::Moving { .. } => self.growing,
            _ => false,
        };
        next.shrinking = plan.stage == Stage::Removing || plan.stage.is_draining();
        if plan.stage.keeps_members() {
            return next;
        }
        let shards: BTreeSet<ShardIndex> = observed.members.keys().map(|at| at.shard).collect();
        for shard in shards {
            if let Some((primary_at, primary)) = observed.primary(shard) {
                next.enter(shard, observed, primary_at, primary);
            }
        }
        next.enter_undesired(desired, observed);
        next.attribute(observed);
        for step in &plan.steps {
            if let Step::DeclareLost { shard, .. } = step {
                next.topology.entry(*shard).or_default().lost = true;
            }
        }
        next.topology
            .retain(|shard, _| observed.shard(*shard).any(|(_, member)| member.exists()) || desired.shards > shard.0);
        next
    }

    /// Remembers a member that is no longer desired, although its shard owns no slots: it joined, or it was met and
    /// joins while it is removed. Once the member is gone, its node must be recognised as a former member, so that it is
    /// forgotten and not reported as unknown.
    fn enter_undesired(&mut self, desired: &Desired, observed: &Observation) {
        let leaving = observed
            .answering()
            .filter(|(at, _)| !desired.includes(*at) && !self.formed);
        let ids: Vec<_> = leaving.map(|(at, facts)| (at, facts.id)).collect();
        for (at, id) in ids {
            let entry = self.topology.entry(at.shard).or_default();
            entry.members.entry(at.node).or_insert(id);
        }
    }

    /// Enters a shard that has a responding primary.
    fn enter(&mut self, shard: ShardIndex, observed: &Observation, primary_at: MemberRef, primary: &Facts) {
        let entry = self.topology.entry(shard).or_default();
        // Slots that no map attributes to another shard were removed manually (`CLUSTER DELSLOTS`). The shard that had
        // them still has their keys. Maps that still attribute them to this shard are only older.
        let own = |id: &NodeId| {
            let mut members = observed.shard(shard).filter_map(|(_, member)| member.facts());
            entry.members.values().any(|known| known == id) || members.any(|facts| facts.id == *id)
        };
        let entries = observed.answering().flat_map(|(_, facts)| facts.map.0.iter());
        let elsewhere = entries
            .filter(|node| !own(&node.id))
            .fold(SlotSet::new(), |all, node| all.union(&node.slots));
        let dropped = entry.slots.difference(&elsewhere);
        entry.slots = primary.slots().union(&dropped);
        entry.keys = primary.keys;
        entry.lost = false;
        let joined = |member: &Member| {
            member
                .facts()
                .filter(|facts| facts.knows(primary.id))
                .map(|facts| facts.id)
        };
        let ids = observed
            .shard(shard)
            .filter_map(|(at, member)| Some((at.node, joined(member)?)));
        entry.members.extend(ids.chain([(primary_at.node, primary.id)]));
        let here = observed.shard(shard).filter(|(_, member)| joined(member).is_some());
        let pods = here.filter_map(|(at, member)| Some((at.node, LastPod::of(member)?)));
        entry.pods.extend(pods);
        let there = |node: &u32| observed.shard(shard).any(|(at, _)| at.node == *node);
        entry.members.retain(|node, _| there(node));
        entry.pods.retain(|node, _| there(node));
    }

    /// Attributes slots to shards without a responding primary. Slots that other members attribute to its members
    /// belong to it; slots that another primary reports as its own do not. So a slot migration is remembered correctly
    /// even if only one side completed it. A drained shard is remembered until it is gone, without the slots it gave
    /// away.
    fn attribute(&mut self, observed: &Observation) {
        let owners = observed.owners();
        for (shard, before) in &mut self.topology {
            if observed.primary(*shard).is_some() {
                continue;
            }
            // The evidence must outlive both this operator and the pod that gave it.
            for (at, member) in observed.shard(*shard) {
                if let Some(last) = before.pods.get_mut(&at.node) {
                    last.terminated = last.fate(member) == Fate::Terminated;
                    // A status of an older version has no claims.
                    if last.claim.is_empty() {
                        last.claim.clone_from(&member.claim_uid);
                    }
                }
            }
            let ids: Vec<NodeId> = before.members.values().copied().collect();
            let reported = observed
                .answering()
                .flat_map(|(_, facts)| facts.map.0.iter())
                .filter(|entry| ids.contains(&entry.id))
                .fold(before.slots.clone(), |all, entry| all.union(&entry.slots));
            let elsewhere = owners.iter().filter(|(other, _)| *other != shard);
            before.slots = elsewhere.fold(reported, |left, (_, slots)| left.difference(slots));
        }
    }
}
