//! Slot migrations in progress, as the servers report them.

use std::collections::BTreeMap;

use valkey_admin::migrations::{Direction, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeId, Slot, SlotRange, SlotSet};

use super::View;
use crate::model::{MemberRef, ShardIndex, SlotGoal};
use crate::observation::Facts;
use crate::slots::{SlotMove, fewest};
use crate::step::Step;

impl View<'_> {
    /// Slot migrations that source servers report as running: the source, and the move. If the target is unknown, the
    /// source's shard is used as destination, so the move never counts as desired.
    pub(super) fn pushed(&self) -> Vec<(MemberRef, SlotMove)> {
        let mut found = Vec::new();
        for (at, facts) in self.observed.answering() {
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

    /// Whether running migrations of some source lead away from the desired state. A migration is desired if, once it
    /// is done, the number of slots left to move is smaller by the number of its slots.
    pub(super) fn is_contrary(&self, pushed: &[(MemberRef, SlotMove)]) -> bool {
        let owners = self.observed.owners();
        if self.desired.slots != SlotGoal::Even {
            let goal = self.goal_moves(&owners);
            let leads = |one: &SlotMove| goal.iter().any(|goal| (goal.from, goal.to) == (one.from, one.to));
            return pushed.iter().any(|(_, one)| !leads(one));
        }
        let before = fewest(&owners, self.desired.shards);
        let contrary = |moves: &mut dyn Iterator<Item = &SlotMove>| {
            let mut after = owners.clone();
            let mut count = 0;
            for one in moves {
                count += one.slots.len();
                give(&mut after, one);
            }
            fewest(&after, self.desired.shards) + count != before
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

    /// Slots that a legacy migration has moved halfway: keys are on both sides, so the migration continues to its
    /// destination, whatever the spec says now. Includes slots that only one side has marked, because the other side
    /// was replaced since.
    pub(super) fn half_moved(&self) -> Vec<SlotMove> {
        let mut moves: BTreeMap<(ShardIndex, ShardIndex), SlotSet> = BTreeMap::new();
        for (at, facts) in self.observed.answering() {
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

    /// Migration marks that are left over, or of migrations that cannot continue: `SETSLOT STABLE`.
    pub(super) fn leftovers(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (member, facts) in self.observed.answering() {
            let over = marks(facts).filter(|mark| self.journey(member, facts, mark).is_none());
            let slots = over.fold(SlotSet::new(), |mut all, mark| {
                all.insert(slot_of(mark));
                all
            });
            // A replica learns marks from its primary. While the primary still has them, they are not left over.
            let primary = facts.me().and_then(|me| me.primary).and_then(|id| self.answer(id));
            let held = primary.map_or_else(SlotSet::new, |owner| {
                marks(owner).map(slot_of).map(SlotRange::from).collect()
            });
            let slots = slots.difference(&held);
            if !slots.is_empty() {
                steps.push(Step::Stabilize { member, slots });
            }
        }
        steps
    }

    /// Slots that a server is importing without knowing their owner. A server ignores what others tell about a slot
    /// that it imports, so it would never learn the owner, and it rejects every key of the slot until then.
    pub(super) fn unbound_imports(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (member, facts) in self.observed.answering() {
            let known = facts.map.covered();
            let imports = marks(facts)
                .filter(|mark| matches!(mark, Mark::Importing { .. }))
                .map(slot_of);
            let slots: SlotSet = imports
                .filter(|slot| !known.contains(*slot))
                .map(SlotRange::from)
                .collect();
            if !slots.is_empty() {
                steps.push(Step::Stabilize { member, slots });
            }
        }
        steps
    }

    /// Whether slots of a shard are being migrated: no failover is planned there meanwhile.
    pub(super) fn is_moving(&self, shard: ShardIndex) -> bool {
        let touches = |one: &SlotMove| one.from == shard || one.to == shard;
        self.pushed().iter().any(|(_, one)| touches(one)) || self.half_moved().iter().any(touches)
    }

    /// Source and destination of a marked slot, if both are responding primaries of this cluster.
    fn journey(&self, at: MemberRef, facts: &Facts, mark: &Mark) -> Option<(ShardIndex, ShardIndex, Slot)> {
        if !facts.is_primary() {
            return None;
        }
        match mark {
            Mark::Migrating { slot, to } => {
                let to = self.place(*to)?;
                let primary = self.observed.members.get(&to)?.facts()?.is_primary();
                (primary && to.shard != at.shard && facts.slots().contains(*slot))
                    .then_some((at.shard, to.shard, *slot))
            }
            Mark::Importing { slot, .. } => {
                let owners = self.observed.owners();
                let (from, _) = owners.iter().find(|(_, slots)| slots.contains(*slot))?;
                (*from != at.shard).then_some((*from, at.shard, *slot))
            }
        }
    }

    fn place(&self, id: NodeId) -> Option<MemberRef> {
        self.observed.with_id(id)
    }

    fn answer(&self, id: NodeId) -> Option<&Facts> {
        self.observed.members.get(&self.place(id)?)?.facts()
    }
}

/// Updates the owners as if a move were done.
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
