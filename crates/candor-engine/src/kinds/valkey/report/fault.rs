//! What failed, and when a user must act.

use candor_api::ValkeyClusterStatus;
use candor_api::valkey::conditions::ClusterReason::{
    self, ConfigMapError, ConfigurationRefused, DeploymentError, FailoverFailed, NodeAddFailed, NodeForgetFailed,
    PersistentVolumeClaimError, PodDisruptionBudgetError, PodListError, RebalanceFailed, SecretError, ServiceError,
    Stalled, UsersRefused, VolumeFailed,
};
use jiff::Timestamp;
use kube_status::whole_seconds;

use super::ReportInput;
use super::condition_set::{ConditionSet, ConditionText, reason_of, text, trouble_text};
use crate::assess::is_overdue;
use crate::observation::Claim;
use crate::outcome::{Failure, ObjectKind, Outcome};
use crate::plan::{Rejection, Stage};
use crate::step::{FailoverBy, Step};

/// An error that is still present.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    text: ConditionText,
    /// The condition it affects beside Ready.
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Ready reports it.
    Ready,
    /// Degraded reports it.
    Degraded,
    /// The stage already reports it.
    Stage,
    /// The operator cannot continue until a user acts.
    User,
}

/// The present error after a reconcile: the error of the stage, else a step that failed in this reconcile, else a step
/// that failed earlier and has not succeeded since.
pub(super) fn of(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Option<Fault> {
    of_stage(input)
        .or_else(|| input.outcomes.iter().find_map(of_outcome))
        .or_else(|| standing(input, before))
}

fn of_stage(input: &ReportInput<'_>) -> Option<Fault> {
    let (text, weight) = match &input.plan.stage {
        Stage::Rejected {
            rejection: Rejection::Unread,
            message,
        } => (text(SecretError, message.clone()), Weight::Ready),
        Stage::Rejected { rejection, message } => (text(reason_of(*rejection), message.clone()), Weight::User),
        Stage::Blind(message) => (text(PodListError, message.clone()), Weight::Stage),
        Stage::LockedOut(message) => (text(SecretError, message.clone()), Weight::User),
        Stage::Stuck { trouble, .. } => (trouble_text(trouble), Weight::Stage),
        Stage::Configuring { .. } => {
            let failed = input
                .observed
                .members
                .iter()
                .find_map(|(at, member)| match &member.claim {
                    Claim::Failed(message) => Some(format!("member {at}: {message}")),
                    _ => None,
                });
            (text(VolumeFailed, failed?), Weight::User)
        }
        _ => return None,
    };
    Some(Fault { text, weight })
}

fn of_outcome(outcome: &Outcome) -> Option<Fault> {
    let failure = outcome.result.as_ref().err()?;
    let reason = class(&outcome.step, failure)?;
    let (message, weight) = match reason {
        NodeAddFailed => (format!("Failed to add node: {}", failure.message), Weight::Degraded),
        RebalanceFailed => (failure.message.clone(), Weight::Degraded),
        _ => (failure.message.clone(), Weight::Ready),
    };
    Some(Fault {
        text: text(reason, message),
        weight,
    })
}

/// The reason for a failed step; none for a failure that only an event reports.
fn class(step: &Step, failure: &Failure) -> Option<ClusterReason> {
    if let Some((kind, _)) = failure.object {
        return Some(match kind {
            ObjectKind::HeadlessService | ObjectKind::ClientService => ServiceError,
            ObjectKind::ConfigMap => ConfigMapError,
            ObjectKind::AclSecret | ObjectKind::SystemSecret => SecretError,
            ObjectKind::PodDisruptionBudget => PodDisruptionBudgetError,
            ObjectKind::Deployment
            | ObjectKind::StatefulSet
            | ObjectKind::ValkeyNode
            | ObjectKind::PreflightPod
            | ObjectKind::ServiceAccount
            | ObjectKind::Role
            | ObjectKind::RoleBinding => DeploymentError,
            ObjectKind::Claim => PersistentVolumeClaimError,
        });
    }
    match step {
        Step::Meet { .. } | Step::AddSlots { .. } | Step::Replicate { .. } | Step::Reset(_) => Some(NodeAddFailed),
        // A timeout is not a rejection: the step is still pending and is retried.
        Step::MoveSlots { .. } | Step::Stabilize { .. } | Step::ReloadCertificate(_) if failure.unanswered => None,
        Step::MoveSlots { .. } | Step::Stabilize { .. } => Some(RebalanceFailed),
        // A forced failover or takeover that fails is reported by the loss that it could not repair.
        Step::Failover {
            by: FailoverBy::Planned,
            ..
        } => Some(FailoverFailed),
        Step::Forget { .. } => Some(NodeForgetFailed),
        Step::CreateMember(_)
        | Step::RollMember(_)
        | Step::DeleteMember(_)
        | Step::DeleteOrphanedPod(_)
        | Step::CreatePreflight => Some(DeploymentError),
        Step::ExpandVolume(_) => Some(PersistentVolumeClaimError),
        Step::ReloadCertificate(_) => Some(ConfigurationRefused),
        // If a server rejects its configuration or users, the next reconcile observes it at that server and reports
        // it.
        _ => None,
    }
}

/// Whether a step could resolve an error.
fn mends(step: &Step, reason: ClusterReason) -> bool {
    match reason {
        SecretError => matches!(step, Step::CreateCredentials | Step::WriteObjects),
        ServiceError | ConfigMapError | PodDisruptionBudgetError => matches!(step, Step::WriteObjects),
        DeploymentError => matches!(
            step,
            Step::CreateMember(_)
                | Step::RollMember(_)
                | Step::DeleteMember(_)
                | Step::DeleteOrphanedPod(_)
                | Step::CreatePreflight
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
                by: FailoverBy::Planned,
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

/// An error that was reported before and is still present: its step is still pending, and has not succeeded since. A
/// failed slot migration stays reported until slots have moved again.
fn standing(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Option<Fault> {
    before.error_since.as_ref()?;
    let reported = |reason: ClusterReason| before.conditions.iter().find(|one| one.reason == reason.as_ref());
    let (reason, weight, message) = LASTING
        .iter()
        .find_map(|(reason, weight)| Some((*reason, *weight, reported(*reason)?.message.clone())))?;
    let stands = if reason == RebalanceFailed {
        is_held_up(input, before)
    } else {
        let to_do = input.plan.pending().any(|step| mends(step, reason));
        let done = input
            .outcomes
            .iter()
            .any(|one| mends(&one.step, reason) && one.result.is_ok());
        to_do && !done
    };
    stands.then(|| Fault {
        text: text(reason, message),
        weight,
    })
}

/// Slots are still to be moved, and none has moved since.
fn is_held_up(input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> bool {
    let running = before.operation.as_ref();
    let was = running.and_then(|running| Some(running.slots_total? - running.slots_moved?));
    let left = input.plan.stage.slots_left();
    was.zip(left).is_some_and(|(was, left)| super::count(left) >= was)
}

impl Fault {
    /// Since when the error is present. Two errors are the same if they have the same reason.
    pub(super) fn since(&self, input: &ReportInput<'_>, before: &ValkeyClusterStatus) -> Timestamp {
        let same = before
            .conditions
            .iter()
            .any(|one| one.reason == self.text.reason.as_ref());
        let since = before.error_since.as_ref().filter(|_| same).map(|time| time.0);
        since.unwrap_or(whole_seconds(input.now))
    }

    /// Applies the error to the condition set. If it has lasted long, or needs a user to act, the cluster is reported as
    /// stalled. That never happens while a shard is lost: the loss is worse, and healing continues.
    pub(super) fn apply_to(&self, set: &mut ConditionSet, input: &ReportInput<'_>, since: Option<Timestamp>) {
        let lost = input.plan.stage.is_loss() || input.plan.stage == Stage::Deleting;
        if (is_overdue(since, input.now) || self.weight == Weight::User) && !lost {
            set.ready = self.text.clone();
            set.progressing = Some((false, text(Stalled, "Waiting for the cause to be removed: see Ready")));
            set.degraded = None;
            return;
        }
        match self.weight {
            Weight::Ready => set.ready = self.text.clone(),
            Weight::Degraded if set.degraded.is_none() => set.degraded = Some(self.text.clone()),
            Weight::Degraded | Weight::Stage | Weight::User => {}
        }
    }
}
