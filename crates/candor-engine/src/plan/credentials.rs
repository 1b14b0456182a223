//! The operator's own credentials: lost ones, and members that reject them and are proven to be members.

use super::{Plan, Stage, View};
use crate::observation::{Credentials, Login};
use crate::step::Step;

impl View<'_> {
    /// Servers have credentials that are lost. New ones are created only if a proven member lets the operator set them:
    /// otherwise a user may still restore the old ones from a backup.
    pub(super) fn recover_credentials(&self) -> Option<Plan> {
        let Credentials::Lost { message, recoverable } = &self.observed.credentials else {
            return None;
        };
        let steps = recoverable.then_some(Step::CreateCredentials).into_iter().collect();
        Some(Plan::new(Stage::LockedOut(message.clone()), steps))
    }

    /// Independent of all other steps: until the operator's user is set again, nothing is known about these members.
    pub(super) fn repair_credentials(&self) -> impl Iterator<Item = Step> {
        let members = self.observed.members.iter();
        let repairable = members.filter(|(_, member)| member.login == Login::Repairable);
        repairable.map(|(at, _)| Step::RepairCredentials(*at))
    }
}
