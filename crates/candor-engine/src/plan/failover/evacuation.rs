//! Primaries on a cordoned node.

use super::super::stage::SOON;
use super::super::{Plan, Stage, View};
use crate::model::{MemberRef, ShardIndex};
use crate::observation::Member;

impl View<'_> {
    /// Plans a failover for a primary on a cordoned node: the node is being drained, or will be. The failover promotes
    /// a replica on another node before the primary's pod is evicted. If there is no such replica, or the pod is
    /// already terminating, the primary is left as it is.
    pub(in crate::plan) fn evacuate(&self) -> Option<Plan> {
        self.evacuations().find_map(|(primary_at, to)| {
            let step = self.plan_failover(primary_at)?;
            let stage = Stage::FailingOver {
                shard: primary_at.shard,
                to: Some(to),
                drained: true,
            };
            Some(Plan::new(stage, vec![step]))
        })
    }

    /// Primaries that should leave a cordoned node, each with its failover candidate.
    pub(in crate::plan) fn evacuations(&self) -> impl Iterator<Item = (MemberRef, MemberRef)> {
        let shards = (0..self.desired.shards)
            .map(ShardIndex)
            .filter(|_| !self.desired.paused);
        shards.filter_map(|shard| {
            let (primary_at, _) = self.observed.primary(shard)?;
            let pod = self.observed.members.get(&primary_at)?.pod.as_ref()?;
            let to = self.planned_candidate(primary_at).filter(|to| self.stays(*to))?;
            let leaves = pod.cordoned && !pod.leaving && !self.attempts.gave_up_evacuating(&pod.name);
            leaves.then_some((primary_at, to))
        })
    }

    pub(in crate::plan) fn stays(&self, at: MemberRef) -> bool {
        self.observed.members.get(&at).is_some_and(Member::stays)
    }

    /// A rejected spec does not block evacuating a cordoned node.
    pub(in crate::plan) fn evacuate_beside(&self, plan: &mut Plan) {
        if matches!(plan.stage, Stage::Rejected { .. } | Stage::Stuck { member: None, .. })
            && let Some(beside) = self.evacuate()
        {
            plan.steps.extend(beside.steps);
            plan.requeue_after = SOON;
        }
    }
}
