//! Members are replaced one by one: replicas first, a primary only after a synced replica took over.

use super::{Plan, Stage, View};
use crate::model::MemberRef;
use crate::observation::{Facts, Member, Workload};
use crate::step::Step;

impl View<'_> {
    /// The next member to replace. Heal comes before: while one is away, none other is touched.
    pub(super) fn roll(&self) -> Option<Plan> {
        let stale = |member: &Member| {
            member.workload == Workload::Outdated || member.pod.as_ref().is_some_and(|pod| !pod.current && !pod.leaving)
        };
        let members = || {
            self.wanted
                .members()
                .filter_map(|at| Some((at, self.seen.members.get(&at)?)))
        };
        let outdated: Vec<(MemberRef, &Member)> = members().filter(|(_, member)| stale(member)).collect();
        let is_primary = |member: &Member| member.facts().is_some_and(Facts::is_primary);
        let (next, member) = outdated
            .iter()
            .find(|(_, member)| !is_primary(member))
            .or_else(|| outdated.first())?;
        let step = if is_primary(member) && self.wanted.replicas > 0 {
            // No synced replica, no restart: what only the primary has would be gone.
            self.hand_over(*next)
        } else {
            Some(Step::RollMember(*next))
        };
        let of = members().count();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Some(Plan::new(
            Stage::Rolling {
                done: count(of - outdated.len()),
                of: count(of),
            },
            step.into_iter().collect(),
        ))
    }
}
