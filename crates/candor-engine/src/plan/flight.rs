//! Moves of slots that are under way, by the servers' own word.

use std::collections::BTreeMap;

use valkey_admin::migrations::{Direction, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeId, Slot, SlotRange, SlotSet};

use super::View;
use crate::model::{MemberRef, ShardIndex};
use crate::observation::Facts;
use crate::slots::{SlotMove, fewest};
use crate::step::Step;

impl View<'_> {
    /// What pushing servers have under way: who runs it, and what it is. One whose other end is not known stands with
    /// its source as destination, and so is never wanted.
    pub(super) fn pushed(&self) -> Vec<(MemberRef, SlotMove)> {
        let mut found = Vec::new();
        for (at, facts) in self.seen.answering() {
            let jobs = facts.migrations.iter();
            let running = jobs.filter(|job| job.direction == Direction::Export && job.progress == Progress::Running);
            for job in running {
                let to = job.target.and_then(|id| self.place(id)).map_or(at.shard, |to| to.shard);
                let slots = job.slots.intersection(&facts.slots());
                let (from, to) = (at.shard, to);
                found.push((at, SlotMove { from, to, slots }));
            }
        }
        found
    }

    /// Whether running moves of some source lead away from what is wanted: a move is wanted when, once it is done, so
    /// many slots fewer are left to move.
    pub(super) fn is_contrary(&self, pushed: &[(MemberRef, SlotMove)]) -> bool {
        let owners = self.seen.owners();
        let before = fewest(&owners, self.wanted.shards);
        let contrary = |moves: &mut dyn Iterator<Item = &SlotMove>| {
            let mut after = owners.clone();
            let mut count = 0;
            for one in moves {
                count += one.slots.len();
                give(&mut after, one);
            }
            fewest(&after, self.wanted.shards) + count != before
        };
        let mut sources: Vec<MemberRef> = pushed.iter().map(|(at, _)| *at).collect();
        sources.dedup();
        let of = |at: MemberRef| {
            pushed
                .iter()
                .filter(move |(source, _)| *source == at)
                .map(|(_, one)| one)
        };
        sources.into_iter().any(|at| contrary(&mut of(at)))
    }

    /// Slots that the legacy way has half moved: keys are on both sides, so they go on to where they were going,
    /// whatever the spec says now. Also those that one side alone remembers, because the other was replaced since.
    pub(super) fn half_moved(&self) -> Vec<SlotMove> {
        let mut moves: BTreeMap<(ShardIndex, ShardIndex), SlotSet> = BTreeMap::new();
        for (at, facts) in self.seen.answering() {
            for mark in marks(facts) {
                if let Some((from, to, slot)) = self.journey(at, facts, mark) {
                    moves.entry((from, to)).or_default().insert(slot);
                }
            }
        }
        moves
            .into_iter()
            .map(|((from, to), slots)| SlotMove { from, to, slots })
            .collect()
    }

    /// Marks of moves that are over, or that cannot go on: `SETSLOT STABLE`.
    pub(super) fn leftovers(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (member, facts) in self.seen.answering() {
            let over = marks(facts).filter(|mark| self.journey(member, facts, mark).is_none());
            let slots = over.fold(SlotSet::new(), |mut all, mark| {
                all.insert(slot_of(mark));
                all
            });
            // A replica learns marks from its primary; while that one still has them they are no leftover.
            let primary = facts.me().and_then(|me| me.primary).and_then(|id| self.answer(id));
            let held = primary.map_or_else(SlotSet::new, |head| {
                marks(head).map(slot_of).map(SlotRange::from).collect()
            });
            let slots = slots.difference(&held);
            if !slots.is_empty() {
                steps.push(Step::Stabilize { member, slots });
            }
        }
        steps
    }

    /// Whether slots of a shard are under way: then no failover is planned there.
    pub(super) fn is_moving(&self, shard: ShardIndex) -> bool {
        let touches = |one: &SlotMove| one.from == shard || one.to == shard;
        self.pushed().iter().any(|(_, one)| touches(one)) || self.half_moved().iter().any(touches)
    }

    /// Where a marked slot comes from and goes to, when both are primaries of ours that answer.
    fn journey(&self, at: MemberRef, facts: &Facts, mark: &Mark) -> Option<(ShardIndex, ShardIndex, Slot)> {
        if !facts.is_primary() {
            return None;
        }
        match mark {
            Mark::Migrating { slot, to } => {
                let to = self.place(*to)?;
                let primary = self.seen.members.get(&to)?.facts()?.is_primary();
                (primary && to.shard != at.shard && facts.slots().contains(*slot))
                    .then_some((at.shard, to.shard, *slot))
            }
            Mark::Importing { slot, .. } => {
                let owners = self.seen.owners();
                let (from, _) = owners.iter().find(|(_, slots)| slots.contains(*slot))?;
                (*from != at.shard).then_some((*from, at.shard, *slot))
            }
        }
    }

    fn place(&self, id: NodeId) -> Option<MemberRef> {
        self.seen.with_id(id)
    }

    fn answer(&self, id: NodeId) -> Option<&Facts> {
        self.seen.members.get(&self.place(id)?)?.facts()
    }
}

/// Who owns what once a move is done.
pub(super) fn give(owners: &mut BTreeMap<ShardIndex, SlotSet>, one: &SlotMove) {
    let from = owners.entry(one.from).or_default();
    *from = from.difference(&one.slots);
    let to = owners.entry(one.to).or_default();
    *to = to.union(&one.slots);
}

fn marks(facts: &Facts) -> impl Iterator<Item = &Mark> {
    facts.me().into_iter().flat_map(|me| &me.marks)
}

fn slot_of(mark: &Mark) -> Slot {
    match mark {
        Mark::Migrating { slot, .. } | Mark::Importing { slot, .. } => *slot,
    }
}
