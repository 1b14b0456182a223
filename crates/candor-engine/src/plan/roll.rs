//! Rolling update: members are replaced one by one, replicas first, a primary only after a failover to a replica in
//! sync.

use super::{Lost, Plan, Stage, View};
use crate::model::{MemberRef, Roll};
use crate::observation::{Facts, Member, Workload};
use crate::step::Step;

impl View<'_> {
    /// The next member to replace. Healing comes first: while a member is missing, no other member is restarted.
    pub(super) fn roll(&self) -> Option<Plan> {
        if let Some(going) = self.going() {
            // Its server still responds and is about to stop: only one member at a time.
            return Some(Plan::new(self.rolling(going), Vec::new()));
        }
        let (next, member) = self.next_to_roll()?;
        if let Some(plan) = self.untried(next) {
            return Some(plan);
        }
        let owns_slots = member.facts().is_some_and(|facts| !facts.slots().is_empty());
        let steps = if let Roll::Only(_) = self.desired.roll {
            // Its slots leave first: that is the goal of the slots.
            (!owns_slots).then_some(Step::RollMember(next)).into_iter().collect()
        } else if is_primary(member) && self.desired.replicas > 0 {
            // Without a replica in sync, no restart: data that only the primary has would be lost.
            self.advance_failover(next)
        } else {
            vec![Step::RollMember(next)]
        };
        Some(Plan::new(self.rolling(next), steps))
    }

    /// The progress of a rolling update while this member is being replaced.
    pub(super) fn rolling(&self, member: MemberRef) -> Stage {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let outdated = self.outdated().count() + usize::from(!self.outdated().any(|(at, _)| at == member));
        let of = self.desired.members().count();
        Stage::Rolling {
            done: count(of.saturating_sub(outdated)),
            of: count(of),
            member,
        }
    }

    /// What to report about a member while the operator itself restarts it: its server is stopping or starting, and
    /// nothing keeps its pod from running.
    pub(super) fn restarting(&self, at: MemberRef) -> Option<String> {
        let member = self
            .observed
            .members
            .get(&at)
            .filter(|_| self.memory.rolling == Some(at))?;
        let expected = member.facts().is_none_or(|facts| facts.loading)
            && member.pod.as_ref().is_none_or(|pod| pod.trouble.is_none());
        expected.then(|| format!("member {at} is restarting (planned)"))
    }

    /// The stage of shards without a primary. If the only one is the primary that the operator restarts, no primary is
    /// lost.
    pub(super) fn without_primaries(&self, losses: Vec<Lost>) -> Stage {
        let turn = self.memory.rolling.filter(|turn| self.restarting(*turn).is_some());
        let planned = turn.filter(|turn| losses.iter().all(|lost| lost.member == Some(*turn)));
        planned.map_or(Stage::PrimaryLost(losses), |turn| self.rolling(turn))
    }

    /// The stage while members meet. A member that the operator has restarted may have another address.
    pub(super) fn joining(&self) -> Stage {
        let turn = self.memory.rolling;
        turn.map_or(Stage::Joining, |turn| self.rolling(turn))
    }

    /// A member with an old pod that is terminating because its workload has been updated to the desired state.
    fn going(&self) -> Option<MemberRef> {
        let leaves = |member: &Member| {
            let old = member.pod.as_ref().is_some_and(|pod| pod.leaving && !pod.current);
            member.workload == Workload::Current && old
        };
        self.desired
            .members()
            .find(|at| self.observed.members.get(at).is_some_and(leaves))
    }

    /// Replicas first, unless the desired state names one member.
    pub(super) fn next_to_roll(&self) -> Option<(MemberRef, &Member)> {
        match self.desired.roll {
            Roll::All => {}
            Roll::Only(only) => return self.outdated().find(|(at, _)| *at == only),
            Roll::Never => return None,
        }
        self.outdated()
            .find(|(_, member)| !is_primary(member))
            .or_else(|| self.outdated().next())
    }

    fn outdated(&self) -> impl Iterator<Item = (MemberRef, &Member)> {
        let stale = |member: &Member| {
            member.workload == Workload::Outdated || member.pod.as_ref().is_some_and(|pod| !pod.current && !pod.leaving)
        };
        self.desired
            .members()
            .filter_map(|at| Some((at, self.observed.members.get(&at)?)))
            .filter(move |(_, member)| stale(member))
    }
}

fn is_primary(member: &Member) -> bool {
    member.facts().is_some_and(Facts::is_primary)
}
