//! Primaries on a machine that is being drained.

use super::stage::SOON;
use super::{Plan, Stage, View};
use crate::model::{MemberRef, ShardIndex};
use crate::observation::Member;

impl View<'_> {
    /// A machine takes no new pods: it is being drained, or will be. Its primaries give way before their pods are
    /// evicted, each to a replica elsewhere; where there is none, or a pod is on its way out already, it is left as it is.
    pub(super) fn evacuate(&self) -> Option<Plan> {
        self.evacuees().find_map(|(head, to)| {
            let step = self.hand_over(head)?;
            let stage = Stage::FailingOver {
                shard: head.shard,
                to: Some(to),
                drained: true,
            };
            Some(Plan::new(stage, vec![step]))
        })
    }

    /// Primaries that should give way for their machine's sake, and who would follow them.
    pub(super) fn evacuees(&self) -> impl Iterator<Item = (MemberRef, MemberRef)> {
        let shards = (0..self.wanted.shards).map(ShardIndex).filter(|_| !self.wanted.paused);
        shards.filter_map(|shard| {
            let (head, _) = self.seen.primary(shard)?;
            let pod = self.seen.members.get(&head)?.pod.as_ref()?;
            let to = self.successor(head).filter(|to| self.stays(*to))?;
            let leaves = pod.node_closed && !pod.leaving && !self.attempts.gave_up_evacuating(&pod.name);
            leaves.then_some((head, to))
        })
    }

    pub(super) fn stays(&self, at: MemberRef) -> bool {
        self.seen.members.get(&at).is_some_and(Member::stays)
    }

    /// A spec that is refused keeps nobody from giving way for a machine's sake either.
    pub(super) fn evacuate_beside(&self, plan: &mut Plan) {
        if matches!(plan.stage, Stage::Refused { .. } | Stage::Stuck { member: None, .. })
            && let Some(beside) = self.evacuate()
        {
            plan.steps.extend(beside.steps);
            plan.look_again = SOON;
        }
    }
}
