//! Specs that the operator rejects.

use valkey_admin::Version;

use super::{Plan, Rejection, Stage, View};
use crate::observation::{About, Applied};
use crate::step::Step;

impl View<'_> {
    /// A spec that cannot be turned into objects, that servers reject, or with too little disk space for the data.
    /// This rule comes before the rolling update: no member is restarted with a spec that cannot work. If a disk is
    /// full, settings are still applied at run time: a larger volume is the remedy.
    pub(super) fn reject_spec(&self) -> Option<Plan> {
        let (rejection, message) = self.invalid().or_else(|| self.rejected_by_servers())?;
        let remedies = match rejection {
            Rejection::ByServer(About::Storage) => self.configuration(),
            Rejection::ByServer(About::Configuration) => self.reloads(),
            _ => Vec::new(),
        };
        Some(Plan::new(Stage::Rejected { rejection, message }, remedies))
    }

    pub(super) fn invalid(&self) -> Option<(Rejection, String)> {
        if let Some(message) = &self.observed.secrets_unread {
            return Some((Rejection::Unread, message.clone()));
        }
        let first = self.observed.problems.first()?;
        let messages: Vec<&str> = self
            .observed
            .problems
            .iter()
            .map(|problem| problem.message.as_str())
            .collect();
        Some((Rejection::Invalid(first.about), messages.join("; ")))
    }

    fn rejected_by_servers(&self) -> Option<(Rejection, String)> {
        let desired = self.observed.answering().filter(|(at, _)| self.desired.includes(*at));
        let mut said: Vec<(About, String)> = Vec::new();
        for (at, facts) in desired {
            let parts = [
                (About::Configuration, &facts.config),
                (About::Configuration, &facts.certificate),
                (About::Users, &facts.users),
            ];
            said.extend(parts.into_iter().filter_map(|(about, applied)| match applied {
                Applied::Rejected(message) => Some((about, format!("member {at}: {message}"))),
                _ => None,
            }));
            let full = facts.disk_failed.as_ref();
            said.extend(full.map(|message| (About::Storage, format!("member {at}: {message}"))));
        }
        let (about, message) = said.into_iter().min_by_key(|(about, _)| *about)?;
        Some((Rejection::ByServer(about), message))
    }

    /// A version that cannot read the present data. This rule comes before scaling: new members would run that version
    /// and get slots.
    pub(super) fn reject_downgrade(&self) -> Option<Plan> {
        let message = self.downgrade()?;
        let rejection = Rejection::Downgrade;
        Some(Plan::new(Stage::Rejected { rejection, message }, Vec::new()))
    }

    /// Reloads a certificate that a server rejected: the files of a corrected Secret arrive in the pod later than the
    /// change of the Secret.
    fn reloads(&self) -> Vec<Step> {
        let desired = self.observed.answering().filter(|(at, _)| self.desired.includes(*at));
        let rejected = desired.filter(|(_, facts)| matches!(facts.certificate, Applied::Rejected(_)));
        rejected.map(|(at, _)| Step::ReloadCertificate(at)).collect()
    }

    /// An older server may be unable to read a file of a newer one, and an older replica may be unable to read what a
    /// newer primary sends.
    pub(super) fn downgrade(&self) -> Option<String> {
        let desired = self.desired.version.filter(|_| !self.desired.downgrade)?;
        let running = self.observed.answering().filter_map(|(_, facts)| facts.version);
        let newest = running.filter(|version| version.family == desired.family).max()?;
        let rank = |version: Version| (version.major, version.minor);
        let lower = rank(desired) < rank(newest) && self.next_to_roll().is_some();
        lower.then(|| {
            format!(
                "the image is {}.{} and the data is of {newest}, which an older server may not read: set a newer image, \
                 or insist with the annotation {}: \"true\"",
                desired.major,
                desired.minor,
                self.desired.downgrade_annotation
            )
        })
    }
}
