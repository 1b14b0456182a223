//! More and fewer: slots move, then members leave.

use valkey_admin::NodeId;

use super::{Plan, Stage, View};
use crate::model::MemberRef;
use crate::observation::{Facts, Workload};
use crate::slots::{by_count, rebalance};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    /// Slots go where they shall be; only to primaries whose replicas are in sync (heal has seen to that).
    pub(super) fn scale(&self) -> Option<Plan> {
        let moves = rebalance(&self.seen.owners(), self.wanted.shards, &by_count);
        if moves.is_empty() {
            return None;
        }
        let left = moves.iter().map(|one| one.slots.len()).sum();
        let draining = moves.iter().any(|one| one.from.0 >= self.wanted.shards);
        Some(Plan::new(
            Stage::Moving { left, draining },
            vec![Step::MoveSlots { moves, legacy: false }],
        ))
    }

    /// Members that are no longer wanted. Proof that one owns no slots comes from a majority of primaries.
    pub(super) fn remove(&self) -> Option<Plan> {
        let unwanted = self.seen.members.iter().filter(|(at, member)| {
            !self.wanted.wants(**at) && (member.workload != Workload::Absent || member.pod.is_some())
        });
        let mut steps = Vec::new();
        let mut waiting = false;
        for (at, member) in unwanted {
            waiting = true;
            if member.workload == Workload::Leaving || member.workload == Workload::Absent {
                continue;
            }
            match member.facts() {
                Some(facts) if !facts.slots().is_empty() => steps.extend(self.hand_over(*at)),
                Some(facts) if self.owns_nothing(facts.id) => steps.push(Step::DeleteMember(*at)),
                Some(_) => {}
                // It does not answer. What it was, status remembers: only a majority's word lets it go.
                None => {
                    let id = self
                        .memory
                        .topology
                        .get(&at.shard)
                        .and_then(|before| before.members.get(&at.node));
                    if id.is_none_or(|id| self.owns_nothing(*id)) {
                        steps.push(Step::DeleteMember(*at));
                    }
                }
            }
        }
        waiting.then(|| Plan::new(Stage::Removing, steps))
    }

    /// An unwanted member that is the primary of a wanted shard gives way to one that stays.
    pub(super) fn hand_over(&self, from: MemberRef) -> Option<Step> {
        let stays = |at: &MemberRef| *at != from && self.wanted.wants(*at);
        let heirs = self
            .seen
            .shard(from.shard)
            .filter_map(|(at, member)| Some((at, member.facts()?)));
        let synced = heirs.filter(|(at, facts)| stays(at) && facts.in_sync && !facts.is_primary());
        let best = synced.max_by_key(|(at, facts): &(MemberRef, &Facts)| (facts.offset, std::cmp::Reverse(*at)));
        best.map(|(to, _)| Step::Failover {
            to,
            by: FailoverBy::Agreement,
        })
    }

    /// A majority of the primaries with slots says that a node owns none.
    fn owns_nothing(&self, id: NodeId) -> bool {
        let primaries: Vec<&Facts> = self
            .seen
            .answering()
            .map(|(_, facts)| facts)
            .filter(|facts| facts.is_primary() && !facts.slots().is_empty())
            .collect();
        let of = self
            .memory
            .topology
            .values()
            .filter(|before| !before.slots.is_empty())
            .count()
            .max(primaries.len());
        let saying = primaries
            .iter()
            .filter(|facts| facts.map.get(id).is_none_or(|entry| entry.slots.is_empty()))
            .count();
        saying * 2 > of
    }
}
