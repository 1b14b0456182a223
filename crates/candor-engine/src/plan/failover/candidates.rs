//! Which replica may replace a primary: one that is lost, or one that is to be restarted or removed.

use valkey_admin::NodeId;

use super::super::View;
use super::evidence::Evidence;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::Facts;

impl View<'_> {
    /// The best replica of the lost primary: in sync until the link went down, with the highest replication offset.
    /// While a replica still has its link to the primary, there is no evidence that the primary is gone, and it is no
    /// candidate.
    pub(in crate::plan) fn candidate(&self, shard: ShardIndex, primary: NodeId) -> Option<MemberRef> {
        let candidates = self
            .observed
            .shard(shard)
            .filter_map(|(at, member)| Some((at, member.facts()?)));
        let able = candidates.filter(|(_, facts)| {
            let follows = facts
                .me()
                .is_some_and(|me| me.primary == Some(primary) && !me.flags.no_failover);
            follows && facts.was_in_sync && facts.link_down && !facts.loading
        });
        able.max_by_key(|(at, facts)| (facts.offset, std::cmp::Reverse(*at)))
            .map(|(at, _)| at)
    }

    /// If no majority can vote and the primary's data is gone with it, a replica in the middle of a full sync has the
    /// best remaining copy: the servers would elect it. Used only if every other member of the shard is known to have
    /// no data.
    pub(in crate::plan) fn last_resort(
        &self,
        shard: ShardIndex,
        primary: NodeId,
        evidence: Evidence,
    ) -> Option<MemberRef> {
        if evidence != Evidence::Ended || self.can_vote() {
            return None;
        }
        let follows = |facts: &Facts| {
            let me = facts.me();
            me.is_some_and(|me| me.primary == Some(primary) && !me.flags.no_failover)
        };
        let mut copies = Vec::new();
        for (at, member) in self.observed.shard(shard) {
            match member.facts() {
                Some(facts) if facts.keys > 0 && follows(facts) && facts.link_down && !facts.loading => {
                    copies.push((facts.keys, std::cmp::Reverse(at)));
                }
                Some(facts) if facts.keys == 0 && !facts.loading => {}
                None if self.lost_its_memory(at, member) => {}
                _ => return None,
            }
        }
        copies.into_iter().max().map(|(_, std::cmp::Reverse(at))| at)
    }

    /// The failover candidate for this primary: among the desired replicas in sync, the one with the highest offset. A
    /// replica that is not on a cordoned node comes first.
    pub(in crate::plan) fn planned_candidate(&self, from: MemberRef) -> Option<MemberRef> {
        let stays = |at: &MemberRef| *at != from && self.desired.includes(*at);
        let candidates = self
            .observed
            .shard(from.shard)
            .filter_map(|(at, member)| Some((at, member.stays(), member.facts()?)));
        let synced =
            candidates.filter(|(at, _, facts)| stays(at) && facts.in_sync && !facts.is_primary() && !facts.loading);
        let best = synced.max_by_key(|(at, settled, facts)| (*settled, facts.offset, std::cmp::Reverse(*at)));
        best.map(|(at, ..)| at)
    }

    /// Whether a majority of the primaries with slots responds and can vote.
    pub(in crate::plan) fn can_vote(&self) -> bool {
        let of = self.slot_owners();
        let answering = self
            .memory
            .topology
            .keys()
            .filter(|shard| self.observed.primary(**shard).is_some())
            .count();
        answering * 2 > of
    }
}
