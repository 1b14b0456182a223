//! The preflight before a rolling update. Workloads terminate the old pod before they create the new one. So a member
//! restarted with an image that does not exist, or with scheduling rules that no node satisfies, stays down. Without a
//! replica and a volume its data is lost too. Therefore a preflight pod is created first and deleted afterwards. It
//! has the same images, image pull settings and scheduling rules.
//!
//! The preflight pod requests only the resources that a member needs beyond its present ones. The full request might
//! not fit beside the running members, although it fits during the rolling update, which frees the member's resources
//! first. If no node has that much left, the rolling update cannot succeed either. The preflight pod mounts no
//! volumes, so it verifies nothing about them.

use super::stage::SOON;
use super::{Plan, Stage, View};
use crate::model::MemberRef;
use crate::observation::Preflight;
use crate::step::Step;

impl View<'_> {
    /// What has to happen before the next member may be rolled: nothing if no preflight is needed, or if it passed.
    pub(super) fn untried(&self, next: MemberRef) -> Option<Plan> {
        match &self.observed.preflight {
            Preflight::Needless | Preflight::Passed => None,
            Preflight::Missing { template } if self.attempts.preflight_was_rejected(template) => None,
            Preflight::Missing { .. } => Some(Plan::new(self.rolling(next), vec![Step::CreatePreflight])),
            Preflight::UnderWay => Some(Plan::new(self.rolling(next), Vec::new())),
            Preflight::Rejected { trouble, stale } => {
                let (member, trouble) = (None, trouble.clone());
                let steps = stale.then_some(Step::EndPreflight).into_iter().collect();
                Some(Plan::new(Stage::Stuck { member, trouble }, steps))
            }
        }
    }

    /// Deletes a preflight pod that is no longer needed, before another of its name is created. No other step waits
    /// for the deletion; it has its own stage only if nothing else is left to do.
    pub(super) fn clear_up(&self, plan: &mut Plan) {
        if !self.observed.old_preflight || matches!(plan.stage, Stage::Deleting | Stage::Blind(_)) {
            return;
        }
        let before = plan.steps.iter().position(|step| *step == Step::CreatePreflight);
        plan.steps
            .insert(before.unwrap_or(plan.steps.len()), Step::EndPreflight);
        plan.requeue_after = SOON;
        if plan.stage.is_settled() {
            plan.stage = Stage::Writing;
        }
    }
}
