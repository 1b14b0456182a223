//! What can be changed while servers run: configuration, users, certificates, the size of volumes.

use std::collections::BTreeSet;

use super::{Plan, Stage, View};
use crate::model::MemberRef;
use crate::observation::{Applied, Claim, Facts, Volume};
use crate::step::Step;

impl View<'_> {
    /// Every setting that does not match the desired state at some member, when nothing else is left to do.
    pub(super) fn configure(&self) -> Option<Plan> {
        let steps = self.configuration();
        let growing = self.desired.members().filter(|at| {
            let claim = self.observed.members.get(at).map(|member| &member.claim);
            matches!(claim, Some(Claim::Resizing | Claim::Failed(_) | Claim::Pending(_)))
        });
        let waiting: BTreeSet<MemberRef> = growing.chain(steps.iter().filter_map(member_of)).collect();
        let left = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
        (left > 0).then(|| Plan::new(Stage::Configuring { left }, steps))
    }

    /// Which settings to apply at which members. A setting that a server rejected is not retried: only another spec
    /// can help.
    pub(super) fn configuration(&self) -> Vec<Step> {
        let mut steps = self.settle();
        for at in self.desired.members() {
            let Some(member) = self.observed.members.get(&at) else {
                continue;
            };
            if member.claim == Claim::TooSmall {
                steps.push(Step::ExpandVolume(at));
            }
            let Some(facts) = member.facts().filter(|facts| !facts.loading) else {
                continue;
            };
            let pending = [
                (&facts.config, Step::Configure(at)),
                (&facts.users, Step::ApplyUsers(at)),
                (&facts.certificate, Step::ReloadCertificate(at)),
            ];
            let pending = pending.into_iter().filter(|(applied, _)| **applied == Applied::No);
            steps.extend(pending.map(|(_, step)| step));
        }
        steps
    }

    /// Volumes that a scale-in left behind and that are used again. Their member owned no slots when it left, so a
    /// server with old cluster state on such a volume is reset to blank. Once blank, the volume counts as any other
    /// volume. A server that owns slots, or that is remembered, is never reset, even if its volume is marked as
    /// drained.
    pub(super) fn volumes(&self) -> Vec<Step> {
        let drained = self
            .observed
            .members
            .iter()
            .filter(|(_, member)| member.volume == Volume::Drained);
        let known = drained.filter_map(|(at, member)| Some((*at, member.facts()?)));
        known
            .filter_map(|(at, facts)| {
                let elsewhere = self
                    .observed
                    .answering()
                    .filter_map(|(_, other)| other.map.get(facts.id));
                let owns = elsewhere.fold(facts.slots(), |all, entry| all.union(&entry.slots));
                if facts.is_blank() {
                    Some(Step::ReuseVolume(at))
                } else {
                    let stale = owns.is_empty() && !self.memory.knows(facts.id) && !facts.in_sync && !facts.loading;
                    stale.then_some(Step::Reset(at))
                }
            })
            .collect()
    }

    /// Restores the desired node timeout where it was changed, for instance by an interrupted bootstrap.
    pub(super) fn settle(&self) -> Vec<Step> {
        let off = |facts: &Facts| facts.node_timeout != self.desired.node_timeout;
        let members = self.observed.answering().filter(|(_, facts)| off(facts));
        members
            .map(|(member, _)| Step::SetNodeTimeout {
                member,
                millis: self.desired.node_timeout,
            })
            .collect()
    }
}

fn member_of(step: &Step) -> Option<MemberRef> {
    match step {
        Step::SetNodeTimeout { member, .. } => Some(*member),
        Step::Configure(at) | Step::ApplyUsers(at) | Step::ReloadCertificate(at) | Step::ExpandVolume(at) => Some(*at),
        _ => None,
    }
}
