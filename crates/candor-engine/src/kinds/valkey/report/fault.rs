//! What failed, and when it is for a person to mend.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::ClusterReason::{
    self, ConfigMapError, ConfigurationRefused, DeploymentError, FailoverFailed, NodeAddFailed, NodeForgetFailed,
    PersistentVolumeClaimError, PodDisruptionBudgetError, PodListError, PodNotStarting, PodUnschedulable,
    RebalanceFailed, SecretError, ServiceError, Stalled, UsersRefused, VolumeFailed,
};
use jiff::{SignedDuration, Timestamp};
use kube_status::whole_seconds;

use super::Looked;
use super::verdict::{Said, Verdict, reason_of, said};
use crate::observation::{Claim, Trouble};
use crate::outcome::{Failure, ObjectKind, Outcome};
use crate::plan::{Refusal, Stage};
use crate::step::{FailoverBy, Step};

/// After so long the same error is for a person to mend.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// An error that stands.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    said: Said,
    /// What it weighs on beside Ready.
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Ready says it.
    Ready,
    /// Degraded says it.
    Degraded,
    /// The stage says it already.
    Stage,
    /// Nothing goes on without a person.
    Person,
}

/// The error that stands after a look: what failed in it, else what failed before and was not tried again, else what
/// the stage itself is.
pub(super) fn of(looked: &Looked<'_>, before: &ValkeyClusterStatus) -> Option<Fault> {
    of_stage(looked)
        .or_else(|| looked.outcomes.iter().find_map(of_outcome))
        .or_else(|| standing(looked, before))
}

fn of_stage(looked: &Looked<'_>) -> Option<Fault> {
    let (said, weight) = match &looked.plan.stage {
        Stage::Refused {
            refusal: Refusal::Unread,
            words,
        } => (said(SecretError, words.clone()), Weight::Ready),
        Stage::Refused { refusal, words } => (said(reason_of(*refusal), words.clone()), Weight::Person),
        Stage::Blind(words) => (said(PodListError, words.clone()), Weight::Stage),
        Stage::LockedOut(words) => (said(SecretError, words.clone()), Weight::Person),
        Stage::Stuck { trouble, .. } => {
            let said = match trouble {
                Trouble::Unschedulable(words) => said(PodUnschedulable, words.clone()),
                Trouble::NotStarting(words) => said(PodNotStarting, words.clone()),
            };
            (said, Weight::Stage)
        }
        Stage::Configuring { .. } => {
            let failed = looked.seen.members.iter().find_map(|(at, member)| match &member.claim {
                Claim::Failed(words) => Some(format!("member {at}: {words}")),
                _ => None,
            });
            (said(VolumeFailed, failed?), Weight::Person)
        }
        _ => return None,
    };
    Some(Fault { said, weight })
}

fn of_outcome(outcome: &Outcome) -> Option<Fault> {
    let failure = outcome.result.as_ref().err()?;
    let reason = class(&outcome.step, failure)?;
    let (message, weight) = match reason {
        NodeAddFailed => (format!("Failed to add node: {}", failure.words), Weight::Degraded),
        RebalanceFailed => (failure.words.clone(), Weight::Degraded),
        _ => (failure.words.clone(), Weight::Ready),
    };
    Some(Fault {
        said: said(reason, message),
        weight,
    })
}

/// Which error a failed step is; none for those that only an event tells of.
fn class(step: &Step, failure: &Failure) -> Option<ClusterReason> {
    if let Some((kind, _)) = failure.object {
        return Some(match kind {
            ObjectKind::HeadlessService | ObjectKind::ClientService => ServiceError,
            ObjectKind::ConfigMap => ConfigMapError,
            ObjectKind::AclSecret | ObjectKind::SystemSecret => SecretError,
            ObjectKind::PodDisruptionBudget => PodDisruptionBudgetError,
            ObjectKind::Deployment | ObjectKind::StatefulSet | ObjectKind::ValkeyNode | ObjectKind::TrialPod => {
                DeploymentError
            }
            ObjectKind::Claim => PersistentVolumeClaimError,
        });
    }
    match step {
        Step::Meet { .. } | Step::AddSlots { .. } | Step::Replicate { .. } | Step::Reset(_) => Some(NodeAddFailed),
        // What nobody answered was not refused: it is still to be done, and asked again.
        Step::MoveSlots { .. } | Step::Stabilize { .. } | Step::ReloadCertificate(_) if failure.unheard => None,
        Step::MoveSlots { .. } | Step::Stabilize { .. } => Some(RebalanceFailed),
        // A rescue that fails is told by the loss that it could not mend.
        Step::Failover {
            by: FailoverBy::Agreement,
            ..
        } => Some(FailoverFailed),
        Step::Forget { .. } => Some(NodeForgetFailed),
        Step::CreateMember(_) | Step::RollMember(_) | Step::DeleteMember(_) | Step::TryPod => Some(DeploymentError),
        Step::ExpandVolume(_) => Some(PersistentVolumeClaimError),
        Step::ReloadCertificate(_) => Some(ConfigurationRefused),
        // What a server refuses of its configuration and users is seen at that server by the next look, and told then.
        _ => None,
    }
}

/// Whether a step could have mended an error.
fn mends(step: &Step, reason: ClusterReason) -> bool {
    match reason {
        ServiceError | ConfigMapError | SecretError | PodDisruptionBudgetError => matches!(step, Step::WriteObjects),
        DeploymentError => matches!(
            step,
            Step::CreateMember(_) | Step::RollMember(_) | Step::DeleteMember(_) | Step::TryPod
        ),
        PersistentVolumeClaimError => matches!(step, Step::CreateMember(_) | Step::ExpandVolume(_)),
        NodeAddFailed => matches!(
            step,
            Step::Meet { .. } | Step::AddSlots { .. } | Step::Replicate { .. } | Step::Reset(_)
        ),
        ConfigurationRefused => matches!(step, Step::Configure(_) | Step::ReloadCertificate(_)),
        FailoverFailed => matches!(
            step,
            Step::Failover {
                by: FailoverBy::Agreement,
                ..
            }
        ),
        NodeForgetFailed => matches!(step, Step::Forget { .. }),
        UsersRefused => matches!(step, Step::ApplyUsers(_)),
        _ => false,
    }
}

const LASTING: [(ClusterReason, Weight); 12] = [
    (ServiceError, Weight::Ready),
    (ConfigMapError, Weight::Ready),
    (SecretError, Weight::Ready),
    (PodDisruptionBudgetError, Weight::Ready),
    (DeploymentError, Weight::Ready),
    (PersistentVolumeClaimError, Weight::Ready),
    (ConfigurationRefused, Weight::Ready),
    (UsersRefused, Weight::Ready),
    (FailoverFailed, Weight::Ready),
    (NodeForgetFailed, Weight::Ready),
    (NodeAddFailed, Weight::Degraded),
    (RebalanceFailed, Weight::Degraded),
];

/// An error that was told before and still stands: what failed is still to be done, and was not done since. A move
/// that failed stands until slots have moved again.
fn standing(looked: &Looked<'_>, before: &ValkeyClusterStatus) -> Option<Fault> {
    before.error_since.as_ref()?;
    let told = |reason: ClusterReason| before.conditions.iter().find(|one| one.reason == reason.as_ref());
    let (reason, weight, message) = LASTING
        .iter()
        .find_map(|(reason, weight)| Some((*reason, *weight, told(*reason)?.message.clone())))?;
    let stands = if reason == RebalanceFailed {
        is_held_up(looked, before)
    } else {
        let to_do = looked.plan.pending().any(|step| mends(step, reason));
        let done = looked
            .outcomes
            .iter()
            .any(|one| mends(&one.step, reason) && one.result.is_ok());
        to_do && !done
    };
    stands.then(|| Fault {
        said: said(reason, message),
        weight,
    })
}

/// Slots are still to be moved, and not one has moved since.
fn is_held_up(looked: &Looked<'_>, before: &ValkeyClusterStatus) -> bool {
    let Stage::Moving { left, .. } = looked.plan.stage else {
        return false;
    };
    let running = before.operation.as_ref();
    let was = running.and_then(|running| Some(running.slots_total? - running.slots_moved?));
    was.is_some_and(|was| super::count(left) >= was)
}

impl Fault {
    /// Since when it stands: the same error is one with the same reason.
    pub(super) fn since(&self, looked: &Looked<'_>, before: &ValkeyClusterStatus) -> Timestamp {
        let same = before
            .conditions
            .iter()
            .any(|one| one.reason == self.said.reason.as_ref());
        let since = before.error_since.as_ref().filter(|_| same).map(|time| time.0);
        since.unwrap_or(whole_seconds(looked.now))
    }

    /// What the error makes of a verdict. One that has lasted, or that needs a person, is where the operator stops;
    /// but never while a shard is lost: that is worse, and healing goes on.
    pub(super) fn weigh_on(&self, verdict: &mut Verdict, looked: &Looked<'_>, since: Option<Timestamp>) {
        let lost = matches!(
            looked.plan.stage,
            Stage::PrimaryLost(_)
                | Stage::ReplicaLost(_)
                | Stage::QuorumLost { .. }
                | Stage::DataLost(_)
                | Stage::Deleting
        );
        let lasted = since.is_some_and(|since| looked.now.duration_since(since) >= PATIENCE);
        if (lasted || self.weight == Weight::Person) && !lost {
            verdict.ready = self.said.clone();
            verdict.progressing = Some((false, said(Stalled, "Waiting for the cause to be removed: see Ready")));
            verdict.degraded = None;
            return;
        }
        match self.weight {
            Weight::Ready => verdict.ready = self.said.clone(),
            Weight::Degraded if verdict.degraded.is_none() => verdict.degraded = Some(self.said.clone()),
            Weight::Degraded | Weight::Stage | Weight::Person => {}
        }
    }
}
