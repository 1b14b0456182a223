//! Planned failovers: with the primary's help, no acknowledged write is lost.

use super::super::View;
use crate::model::MemberRef;
use crate::observation::{Facts, Member};
use crate::step::{FailoverBy, Step};

impl View<'_> {
    /// The planned failover from this primary to its candidate. None while slots of the shard are being migrated, and
    /// none before every member knows that the two belong to one shard.
    pub(in crate::plan) fn plan_failover(&self, from: MemberRef) -> Option<Step> {
        let failover = |step: &Step| matches!(step, Step::Failover { .. });
        self.advance_failover(from).into_iter().find(failover)
    }

    /// The planned failover, or the announcements that it waits for.
    pub(in crate::plan) fn advance_failover(&self, from: MemberRef) -> Vec<Step> {
        let candidate = self.planned_candidate(from).filter(|_| !self.is_moving(from.shard));
        let Some(to) = candidate else {
            return Vec::new();
        };
        if self.are_known_as_one(from, to) {
            let by = FailoverBy::Planned;
            return vec![Step::Failover { to, by }];
        }
        self.announce_shard(from, to)
    }

    /// Whether no member assigns the two to different shards. A server that has just joined does so until it has heard
    /// from both. If it learns meanwhile that the two have swapped roles, it believes that each replicates the other.
    /// It then follows that cycle endlessly and never responds again (Valkey 9.1.2).
    pub(in crate::plan) fn are_known_as_one(&self, one: MemberRef, other: MemberRef) -> bool {
        self.observed
            .answering()
            .all(|(_, facts)| self.takes_as_one(facts, one, other))
    }

    /// Whether a member does not assign the two to different shards.
    pub(in crate::plan) fn takes_as_one(&self, facts: &Facts, one: MemberRef, other: MemberRef) -> bool {
        let shard = |at: MemberRef| {
            let id = self.observed.members.get(&at)?.facts()?.id;
            facts.map.get(id).map(|entry| entry.shard())
        };
        shard(one).zip(shard(other)).is_none_or(|(one, other)| one == other)
    }

    /// A member that responds and is not in sync in a shard that other members leave: the operator has failed over a
    /// leaving primary, so this is the operator's own doing.
    pub(in crate::plan) fn follows_promoted_replica(&self, at: MemberRef, member: &Member) -> bool {
        let leaves = |(other, left): (MemberRef, &Member)| !self.desired.includes(other) && left.exists();
        self.observed.shard(at.shard).any(leaves) && member.facts().is_some_and(|facts| !facts.loading)
    }
}
