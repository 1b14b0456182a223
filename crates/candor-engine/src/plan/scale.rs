//! Scaling out and in: slots move, then members leave.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotRange, SlotSet};

use super::migrations::give;
use super::stage::{SELDOM, SOON};
use super::{Plan, Stage, View};
use crate::model::{ShardIndex, SlotGoal};
use crate::observation::{Facts, Workload};
use crate::slots::{SlotMove, by_count, rebalance};
use crate::step::Step;

/// From this many failures on, a slot migration is cut into small pieces.
const SMALL_FROM: u32 = 3;
/// From this many failures on, it uses the legacy way, slot by slot.
const LEGACY_FROM: u32 = 6;
/// From this many failures on, it is retried only occasionally: the user has been notified by then.
const SELDOM_FROM: u32 = 9;
/// Slots in a small piece.
const PIECE: usize = 64;

impl View<'_> {
    /// Moves slots to match the desired topology, only to primaries with all replicas in sync (healing comes first).
    /// The operator waits for a running migration that is no longer desired. A half-moved slot is moved to its
    /// destination first.
    pub(super) fn scale(&self) -> Option<Plan> {
        let owners = self.observed.owners();
        let none = |shard: &ShardIndex| owners.get(shard).is_none_or(SlotSet::is_empty);
        let moving = |moves: &[SlotMove]| Stage::Moving {
            left: moves.iter().map(|one| one.slots.len()).sum(),
            draining: moves.iter().any(|one| one.from.0 >= self.desired.shards),
            empty: (0..self.desired.shards).map(ShardIndex).find(none),
        };
        let left_after = |moves: &[SlotMove]| {
            let mut then = owners.clone();
            for one in moves {
                give(&mut then, one);
            }
            self.goal_moves(&then)
        };
        let halves = self.half_moved();
        if !halves.is_empty() {
            // These are not all moves that are left: the rest comes after them.
            let all = [halves.clone(), left_after(&halves)].concat();
            let stage = moving(&all);
            let (moves, legacy) = (halves, true);
            return Some(Plan::new(stage, vec![Step::MoveSlots { moves, legacy }]));
        }
        let pushed = self.pushed();
        if self.is_contrary(&pushed) {
            // The operator waits for them and never cancels them. A source that is cancelled in the middle of the slot
            // handoff continues to acknowledge writes to slots that the target already owns (6 of 5,096 on a real
            // cluster).
            let mut plan = Plan::new(moving(&left_after(&[])), Vec::new());
            plan.requeue_after = SOON;
            return Some(plan);
        }
        let running: Vec<SlotMove> = pushed.into_iter().map(|(_, one)| one).collect();
        let rest = left_after(&running);
        let all = [running.clone(), rest.clone()].concat();
        if all.is_empty() {
            return self.tidy_marks().or_else(|| self.vacate());
        }
        let stage = moving(&all);
        let step = self.next_moves(running, rest);
        let mut plan = Plan::new(stage, vec![step]);
        if self.memory.attempts >= SELDOM_FROM {
            plan.requeue_after = SELDOM;
        }
        Some(plan)
    }

    /// The moves that lead from these owners to the goal of the slots.
    pub(super) fn goal_moves(&self, owners: &BTreeMap<ShardIndex, SlotSet>) -> Vec<SlotMove> {
        match self.desired.slots {
            SlotGoal::Even => rebalance(owners, self.desired.shards, &by_count),
            SlotGoal::Keep => Vec::new(),
            SlotGoal::Vacate { member, to } => {
                let from = member.shard;
                let slots = owners.get(&from).filter(|slots| !slots.is_empty()).cloned();
                let alone = self.desired.members().filter(|at| at.shard == from).count() < 2;
                let moved = slots.zip(to).filter(|(_, to)| alone && *to != from);
                moved
                    .map(|(slots, to)| SlotMove { from, to, slots })
                    .into_iter()
                    .collect()
            }
        }
    }

    /// A planned failover from the member that must give up its slots to a replica of its shard.
    fn vacate(&self) -> Option<Plan> {
        let SlotGoal::Vacate { member, .. } = self.desired.slots else {
            return None;
        };
        let (primary_at, _) = self
            .observed
            .primary(member.shard)
            .filter(|(primary_at, _)| *primary_at == member)?;
        Some(Plan::new(self.rolling(member), self.advance_failover(primary_at)))
    }

    /// The next moves. A migration may fail repeatedly while its slots take many writes. After some failures the
    /// pieces get smaller, then they use the legacy way, and then they are retried rarely.
    fn next_moves(&self, running: Vec<SlotMove>, rest: Vec<SlotMove>) -> Step {
        let legacy = self.memory.attempts >= LEGACY_FROM;
        let moves: Vec<SlotMove> = if self.memory.attempts < SMALL_FROM {
            running.into_iter().chain(rest).collect()
        } else if running.is_empty() {
            rest.first().map(piece).into_iter().collect()
        } else {
            running
        };
        Step::MoveSlots { moves, legacy }
    }

    /// Clears the marks of migrations that are over.
    fn tidy_marks(&self) -> Option<Plan> {
        let steps = self.leftovers();
        let stage = Stage::Moving {
            left: 0,
            draining: false,
            empty: None,
        };
        (!steps.is_empty()).then(|| Plan::new(stage, steps))
    }

    /// Members that are no longer desired. A majority of primaries must confirm that such a member owns no slots.
    pub(super) fn remove(&self) -> Option<Plan> {
        let unwanted = self.observed.members.iter().filter(|(at, member)| {
            !self.desired.includes(**at) && (member.workload != Workload::Absent || member.pod.is_some())
        });
        let mut steps = Vec::new();
        let mut waiting = false;
        for (at, member) in unwanted {
            waiting = true;
            if member.workload == Workload::Leaving || member.workload == Workload::Absent {
                continue;
            }
            match member.facts() {
                Some(facts) if !facts.slots().is_empty() => steps.extend(self.advance_failover(*at)),
                Some(facts) if self.owns_nothing(facts.id) => steps.push(Step::DeleteMember(*at)),
                Some(_) => {}
                // It does not respond. Status remembers its node id: it is deleted only if a majority confirms that
                // this id owns no slots.
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

    /// Whether a majority of the primaries with slots reports that a node owns none.
    fn owns_nothing(&self, id: NodeId) -> bool {
        let primaries: Vec<&Facts> = self
            .observed
            .answering()
            .map(|(_, facts)| facts)
            .filter(|facts| facts.is_primary() && !facts.slots().is_empty())
            .collect();
        let of = self.slot_owners().max(primaries.len());
        let saying = primaries
            .iter()
            .filter(|facts| facts.map.get(id).is_none_or(|entry| entry.slots.is_empty()))
            .count();
        saying * 2 > of
    }
}

/// The first slots of a move.
fn piece(one: &SlotMove) -> SlotMove {
    SlotMove {
        slots: one.slots.iter().take(PIECE).map(SlotRange::from).collect(),
        ..*one
    }
}
