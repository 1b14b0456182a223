//! Specs that the operator rejects.

use valkey_admin::Version;

use super::{Plan, Refusal, Stage, View};
use crate::observation::{About, Applied};
use crate::step::Step;

impl View<'_> {
    /// A spec that cannot be turned into objects, that servers reject, or with too little disk space for the data.
    /// This rule comes before the rolling update: no member is restarted with a spec that cannot work. If a disk is
    /// full, settings are still applied at run time: a larger volume is the remedy.
    pub(super) fn refused(&self) -> Option<Plan> {
        let (refusal, words) = self.invalid().or_else(|| self.rejected())?;
        let remedies = match refusal {
            Refusal::Rejected(About::Storage) => self.configuration(),
            Refusal::Rejected(About::Configuration) => self.reloads(),
            _ => Vec::new(),
        };
        Some(Plan::new(Stage::Refused { refusal, words }, remedies))
    }

    pub(super) fn invalid(&self) -> Option<(Refusal, String)> {
        if let Some(words) = &self.seen.secrets_unread {
            return Some((Refusal::Unread, words.clone()));
        }
        let first = self.seen.problems.first()?;
        let words: Vec<&str> = self
            .seen
            .problems
            .iter()
            .map(|problem| problem.words.as_str())
            .collect();
        Some((Refusal::Invalid(first.about), words.join("; ")))
    }

    fn rejected(&self) -> Option<(Refusal, String)> {
        let wanted = self.seen.answering().filter(|(at, _)| self.wanted.wants(*at));
        let mut said: Vec<(About, String)> = Vec::new();
        for (at, facts) in wanted {
            let parts = [
                (About::Configuration, &facts.config),
                (About::Configuration, &facts.certificate),
                (About::Users, &facts.users),
            ];
            said.extend(parts.into_iter().filter_map(|(about, applied)| match applied {
                Applied::Refused(words) => Some((about, format!("member {at}: {words}"))),
                _ => None,
            }));
            let full = facts.disk_failed.as_ref();
            said.extend(full.map(|words| (About::Storage, format!("member {at}: {words}"))));
        }
        let (about, words) = said.into_iter().min_by_key(|(about, _)| *about)?;
        Some((Refusal::Rejected(about), words))
    }

    /// A version that cannot read the present data. This rule comes before scaling: new members would run that version
    /// and get slots.
    pub(super) fn refused_downgrade(&self) -> Option<Plan> {
        let words = self.downgrade()?;
        let refusal = Refusal::Downgrade;
        Some(Plan::new(Stage::Refused { refusal, words }, Vec::new()))
    }

    /// Reloads a certificate that a server rejected: the files of a corrected Secret arrive in the pod later than the
    /// change of the Secret.
    fn reloads(&self) -> Vec<Step> {
        let wanted = self.seen.answering().filter(|(at, _)| self.wanted.wants(*at));
        let refused = wanted.filter(|(_, facts)| matches!(facts.certificate, Applied::Refused(_)));
        refused.map(|(at, _)| Step::ReloadCertificate(at)).collect()
    }

    /// An older server may be unable to read a file of a newer one, and an older replica may be unable to read what a
    /// newer primary sends.
    pub(super) fn downgrade(&self) -> Option<String> {
        let wanted = self.wanted.version.filter(|_| !self.wanted.downgrade)?;
        let running = self.seen.answering().filter_map(|(_, facts)| facts.version);
        let newest = running.filter(|version| version.family == wanted.family).max()?;
        let rank = |version: Version| (version.major, version.minor);
        let lower = rank(wanted) < rank(newest) && self.next_to_roll().is_some();
        lower.then(|| {
            format!(
                "the image is {}.{} and the data is of {newest}, which an older server may not read: set a newer image, \
                 or insist with the annotation {}: \"true\"",
                wanted.major,
                wanted.minor,
                self.wanted.downgrade_annotation
            )
        })
    }
}
