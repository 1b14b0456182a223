//! Slow upgrade: every server is replaced by one with the new template, and every key is kept.
//!
//! One extra server joins, made from the old template. It is replaced first: that proves the new template before any
//! data depends on it. Then the servers are replaced from the last ordinal to the first. A primary gives up its slots
//! before: to a replica in sync by a planned failover, or to the last replaced server, which owns none. At the end the
//! extra server gives its slots back and leaves.

use std::collections::BTreeSet;

use candor_api::redkey::status::{OperationKind, OperationMode};

use super::operation::{Planned, Running, SetGoal, View};
use super::rows::{Upgrading, Work};
use crate::model::{MemberRef, Roll, ShardIndex, SlotGoal};
use crate::observation::{Member, Observation};
use crate::plan::{Plan, Stage};
use crate::seats::Ordinal;
use crate::step::Step;

impl View<'_> {
    pub(super) fn upgrade(&self) -> Planned {
        let extra = self.nodes();
        let calm = self.planned(self.shape(true), SlotGoal::Keep, Roll::Never, Some(running(extra)));
        let outdated: BTreeSet<Ordinal> = self.outdated().collect();
        let pending = self.input.set.is_some_and(|set| set.revision != self.input.revision);
        // A server that is stopping, missing, joining or out of sync comes first: nothing else is replaced meanwhile.
        let stopping = |member: &Member| member.pod.as_ref().is_some_and(|pod| pod.leaving);
        let mut regular = self.input.members.range(..extra).map(|(_, member)| member);
        if !pending && outdated.is_empty() && !regular.any(stopping) {
            return self.end_upgrade(calm);
        }
        if !calm.plan.stage.is_settled() || self.input.members.values().any(stopping) {
            return self.upgrading(calm, Upgrading::Extra);
        }
        // An upgrade that begins again: the extra server must be replaced once more, and owns slots by now. They leave it
        // before the template is written, because Robin learns of the template only from new pods.
        let owner = |at: &MemberRef| at.node == extra && owns_slots(&calm.observed, *at);
        if outdated.contains(&extra) && calm.observed.members.keys().any(owner) {
            return self.replace(&calm.observed, extra);
        }
        if pending {
            let plan = Plan::new(Stage::Writing, vec![Step::WriteObjects]);
            let set = SetGoal {
                template: true,
                ..calm.set
            };
            return self.upgrading(Planned { plan, set, ..calm }, Upgrading::Rolling(extra));
        }
        match outdated.last() {
            Some(ordinal) => self.replace(&calm.observed, *ordinal),
            None => self.upgrading(calm, Upgrading::Extra),
        }
    }

    /// Empties a server and replaces it.
    fn replace(&self, observed: &Observation, ordinal: Ordinal) -> Planned {
        let extra = self.nodes();
        let found = observed.members.iter().find(|(at, _)| at.node == ordinal);
        let Some((member, facts)) = found.map(|(at, member)| (*at, member.facts())) else {
            let calm = self.planned(self.shape(true), SlotGoal::Keep, Roll::Never, Some(running(extra)));
            return self.upgrading(calm, Upgrading::Extra);
        };
        let (goal, roll, stage) = if facts.is_some_and(|facts| !facts.slots().is_empty()) {
            let to = shard_of(observed, ordinal + 1).or_else(|| smallest(observed, member.shard));
            (
                SlotGoal::Vacate { member, to },
                Roll::Never,
                Upgrading::Emptying(ordinal),
            )
        } else {
            (SlotGoal::Keep, Roll::Only(member), Upgrading::Rolling(ordinal))
        };
        let planned = self.planned(self.shape(true), goal, roll, Some(running(extra)));
        self.upgrading(planned, stage)
    }

    /// Every server has the new template: the extra server gives its slots back and leaves.
    fn end_upgrade(&self, calm: Planned) -> Planned {
        let extra = self.nodes();
        let found = calm.observed.members.iter().find(|(at, _)| at.node == extra);
        let owner = found.filter(|(_, member)| member.facts().is_some_and(|facts| !facts.slots().is_empty()));
        if let Some((member, _)) = owner {
            let member = *member;
            if !calm.plan.stage.is_settled() {
                return self.upgrading(calm, Upgrading::Extra);
            }
            let to = shard_of(&calm.observed, 0);
            let goal = SlotGoal::Vacate { member, to };
            let planned = self.planned(self.shape(true), goal, Roll::Never, Some(running(extra)));
            return self.upgrading(planned, Upgrading::EmptyingExtra);
        }
        let planned = self.planned(self.shape(false), SlotGoal::Even, Roll::Never, Some(running(extra)));
        let settled = self.input.set.is_some_and(|set| set.replicas == extra);
        let stage = match planned.plan.stage {
            Stage::Healthy if settled => Upgrading::Done,
            Stage::Removing => Upgrading::RemovingExtra,
            // Some other server is missing, or joining: the row stays.
            _ => Upgrading::Extra,
        };
        self.upgrading(planned, stage)
    }

    fn upgrading(&self, planned: Planned, stage: Upgrading) -> Planned {
        let nodes = self.nodes();
        self.running_at(planned, Work::SlowUpgrade { nodes, stage })
    }
}

fn running(extra: Ordinal) -> Running {
    Running {
        kind: OperationKind::Upgrade,
        mode: OperationMode::Slow,
        extra: Some(extra),
    }
}

fn owns_slots(observed: &Observation, at: MemberRef) -> bool {
    let facts = observed.members.get(&at).and_then(Member::facts);
    facts.is_some_and(|facts| !facts.slots().is_empty())
}

/// The shard with the fewest slots, other than this one. An upgrade that begins again finds slots on the extra server:
/// they go back to the server that was being emptied.
fn smallest(observed: &Observation, but: ShardIndex) -> Option<ShardIndex> {
    let owners = observed.owners().into_iter().filter(|(shard, _)| *shard != but);
    let smallest = owners.min_by_key(|(shard, slots)| (slots.len(), *shard));
    smallest.map(|(shard, _)| shard)
}

/// The shard of a server. Without replicas, the server after the one that is emptied was replaced last and owns no
/// slots, and at the end the first one does not.
fn shard_of(observed: &Observation, ordinal: Ordinal) -> Option<ShardIndex> {
    observed.members.keys().find(|at| at.node == ordinal).map(|at| at.shard)
}
