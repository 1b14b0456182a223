//! Scaling out and in: slots move, then members leave.

use std::collections::BTreeMap;

use valkey_admin::{NodeId, SlotRange, SlotSet};

use super::flight::give;
use super::stage::{SELDOM, SOON};
use super::{Plan, Stage, View};
use crate::model::{MemberRef, ShardIndex, SlotGoal};
use crate::observation::{Facts, Member, Workload};
use crate::slots::{SlotMove, by_count, rebalance};
use crate::step::{FailoverBy, Step};

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
        let owners = self.seen.owners();
        let none = |shard: &ShardIndex| owners.get(shard).is_none_or(SlotSet::is_empty);
        let moving = |moves: &[SlotMove]| Stage::Moving {
            left: moves.iter().map(|one| one.slots.len()).sum(),
            draining: moves.iter().any(|one| one.from.0 >= self.wanted.shards),
            empty: (0..self.wanted.shards).map(ShardIndex).find(none),
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
            plan.look_again = SOON;
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
            plan.look_again = SELDOM;
        }
        Some(plan)
    }

    /// The moves that lead from these owners to the goal of the slots.
    pub(super) fn goal_moves(&self, owners: &BTreeMap<ShardIndex, SlotSet>) -> Vec<SlotMove> {
        match self.wanted.slots {
            SlotGoal::Even => rebalance(owners, self.wanted.shards, &by_count),
            SlotGoal::Keep => Vec::new(),
            SlotGoal::Vacate { member, to } => {
                let from = member.shard;
                let slots = owners.get(&from).filter(|slots| !slots.is_empty()).cloned();
                let alone = self.wanted.members().filter(|at| at.shard == from).count() < 2;
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
        let SlotGoal::Vacate { member, .. } = self.wanted.slots else {
            return None;
        };
        let (head, _) = self.seen.primary(member.shard).filter(|(head, _)| *head == member)?;
        let step = self.hand_over(head);
        Some(Plan::new(self.rolling(member), step.into_iter().collect()))
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

    /// The planned failover from this primary to its candidate. None while slots of the shard are being migrated, and
    /// none before every member knows that the two belong to one shard.
    pub(super) fn hand_over(&self, from: MemberRef) -> Option<Step> {
        let to = self.successor(from).filter(|_| !self.is_moving(from.shard))?;
        self.are_known_as_one(from, to).then_some(Step::Failover {
            to,
            by: FailoverBy::Agreement,
        })
    }

    /// The failover candidate for this primary: among the desired replicas in sync, the one with the highest offset. A
    /// replica that is not on a cordoned node comes first.
    pub(super) fn successor(&self, from: MemberRef) -> Option<MemberRef> {
        let stays = |at: &MemberRef| *at != from && self.wanted.wants(*at);
        let heirs = self
            .seen
            .shard(from.shard)
            .filter_map(|(at, member)| Some((at, member.stays(), member.facts()?)));
        let synced = heirs.filter(|(at, _, facts)| stays(at) && facts.in_sync && !facts.is_primary() && !facts.loading);
        let best = synced.max_by_key(|(at, settled, facts)| (*settled, facts.offset, std::cmp::Reverse(*at)));
        best.map(|(at, ..)| at)
    }

    /// Whether no member assigns the two to different shards. A server that has just joined does so until it has heard
    /// from both. If it learns meanwhile that the two have swapped roles, it believes that each replicates the other.
    /// It then follows that cycle endlessly and never responds again (Valkey 9.1.2).
    pub(super) fn are_known_as_one(&self, one: MemberRef, other: MemberRef) -> bool {
        let id = |at: MemberRef| Some(self.seen.members.get(&at)?.facts()?.id);
        let (Some(one), Some(other)) = (id(one), id(other)) else {
            return true;
        };
        self.seen.answering().all(|(_, facts)| {
            let shard = |id| facts.map.get(id).map(|entry| entry.aux("shard-id"));
            shard(one).zip(shard(other)).is_none_or(|(one, other)| one == other)
        })
    }

    /// A member that responds and is not in sync in a shard that other members leave: the operator has failed over a
    /// leaving primary, so this is the operator's own doing.
    pub(super) fn follows_an_heir(&self, at: MemberRef, member: &Member) -> bool {
        let leaves = |(other, left): (MemberRef, &Member)| !self.wanted.wants(other) && left.exists();
        self.seen.shard(at.shard).any(leaves) && member.facts().is_some_and(|facts| !facts.loading)
    }

    /// Whether a majority of the primaries with slots reports that a node owns none.
    fn owns_nothing(&self, id: NodeId) -> bool {
        let primaries: Vec<&Facts> = self
            .seen
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
