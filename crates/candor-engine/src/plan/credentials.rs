//! Members that reject the operator's user and are proven to be members.

use super::View;
use crate::observation::Login;
use crate::step::Step;

impl View<'_> {
    /// Independent of all other steps: until the operator's user is set again, nothing is known about these members.
    pub(super) fn repair_credentials(&self) -> impl Iterator<Item = Step> {
        let members = self.observed.members.iter();
        let repairable = members.filter(|(_, member)| member.login == Login::Repairable);
        repairable.map(|(at, _)| Step::RepairCredentials(*at))
    }
}
