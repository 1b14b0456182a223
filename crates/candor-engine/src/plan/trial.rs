//! A trial before a roll. Workloads replace their pod by ending it first, so a member that is restarted into an image that
//! does not exist, or onto machines that nobody has, is gone for it: without a replica and a volume its data too. So a pod
//! of the same images, pulled by the same means and sent to the same machines, is made first and thrown away.
//!
//! It asks for the room that a member wants beyond what it has: for all of it there may be none beside the members, where
//! the roll, which frees a member's place first, has enough. What has no machine with that much to spare cannot be rolled
//! either. It mounts no volumes: of those it shows nothing.

use super::stage::SOON;
use super::{Plan, Stage, View};
use crate::model::MemberRef;
use crate::observation::Trial;
use crate::step::Step;

impl View<'_> {
    /// What stands before the next member may be rolled: nothing where nothing is to be tried, or it went well.
    pub(super) fn untried(&self, next: MemberRef) -> Option<Plan> {
        match &self.seen.trial {
            Trial::Needless | Trial::Passed => None,
            Trial::Missing { template } if self.attempts.preflight_was_rejected(template) => None,
            Trial::Missing { .. } => Some(Plan::new(self.rolling(next), vec![Step::TryPod])),
            Trial::UnderWay => Some(Plan::new(self.rolling(next), Vec::new())),
            Trial::Refused { trouble, stale } => {
                let (member, trouble) = (None, trouble.clone());
                let steps = stale.then_some(Step::EndTrial).into_iter().collect();
                Some(Plan::new(Stage::Stuck { member, trouble }, steps))
            }
        }
    }

    /// A pod of a trial that nobody needs any more goes, before one of its name is made. That is never waited for, but
    /// where nothing else is left to do.
    pub(super) fn clear_up(&self, plan: &mut Plan) {
        if !self.seen.old_trial || matches!(plan.stage, Stage::Deleting | Stage::Blind(_)) {
            return;
        }
        let before = plan.steps.iter().position(|step| *step == Step::TryPod);
        plan.steps.insert(before.unwrap_or(plan.steps.len()), Step::EndTrial);
        plan.look_again = SOON;
        if plan.stage == Stage::Healthy {
            plan.stage = Stage::Writing;
        }
    }
}
