//! What is wrong, and since when. A fault that lasts for a minute is an error.

use candor_api::RedkeyClusterStatus;
use candor_api::redkey::conditions::RedkeyReason;
use jiff::Timestamp;
use kube_status::whole_seconds;

use super::ReportInput;
use crate::observation::{About, Trouble};
use crate::outcome::Outcome;
use crate::plan::{Rejection, Stage};
use crate::step::Step;

/// A reason and its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) reason: RedkeyReason,
    pub(super) message: String,
}

/// The fault of this reconcile.
pub(super) fn of(input: &ReportInput<'_>) -> Option<Fault> {
    let stage = &input.planned.plan.stage;
    let fault = |reason, message: &str| {
        let message = message.to_owned();
        Some(Fault { reason, message })
    };
    match stage {
        Stage::Rejected { rejection, message } => fault(rejected(*rejection), message),
        Stage::LockedOut(message) => fault(RedkeyReason::SecretInvalid, message),
        Stage::Stuck { member: None, trouble } => fault(RedkeyReason::PreflightFailed, trouble.message()),
        Stage::Stuck { trouble, .. } => fault(reason_of(trouble), trouble.message()),
        _ => input.outcomes.iter().find_map(failed),
    }
}

/// Why a pod cannot run.
pub(super) fn reason_of(trouble: &Trouble) -> RedkeyReason {
    match trouble {
        Trouble::Unschedulable(_) => RedkeyReason::PodUnschedulable,
        Trouble::NotStarting(_) => RedkeyReason::PodNotStarting,
    }
}

fn rejected(rejection: Rejection) -> RedkeyReason {
    match rejection {
        Rejection::Invalid(About::Configuration) | Rejection::Downgrade => RedkeyReason::SpecInvalid,
        Rejection::Invalid(About::Users) | Rejection::ByServer(About::Users) | Rejection::Unread => {
            RedkeyReason::SecretInvalid
        }
        Rejection::Invalid(About::Storage) | Rejection::ByServer(About::Storage) => RedkeyReason::StorageMismatch,
        Rejection::ByServer(About::Configuration) => RedkeyReason::ConfigRejected,
        Rejection::NotEnoughMemory => RedkeyReason::NotEnoughMemory,
    }
}

/// A step that a server or the API server rejected. A timeout is no rejection.
fn failed(outcome: &Outcome) -> Option<Fault> {
    let failure = outcome.result.as_ref().err().filter(|failure| !failure.unanswered)?;
    let reason = match &outcome.step {
        _ if failure.object.is_some() => RedkeyReason::WriteFailed,
        Step::MoveSlots { .. } => RedkeyReason::RebalanceFailed,
        Step::Failover { .. } => RedkeyReason::FailoverFailed,
        Step::Forget { .. } => RedkeyReason::NodeForgetFailed,
        Step::Meet { .. } | Step::AnnounceSlots { .. } | Step::AddSlots { .. } | Step::Replicate { .. } => {
            RedkeyReason::NodeAddFailed
        }
        _ => RedkeyReason::OperationFailed,
    };
    let message = failure.message.clone();
    Some(Fault { reason, message })
}

/// Since when the cluster has a fault without interruption. A reconcile that executed nothing proves nothing.
pub(super) fn since(input: &ReportInput<'_>, before: &RedkeyClusterStatus, fault: Option<&Fault>) -> Option<Timestamp> {
    let earlier = before.error_since.as_ref().map(|time| time.0);
    match fault {
        Some(_) => earlier.or(Some(whole_seconds(input.now))),
        None if input.planned.plan.stage.is_settled() || input.outcomes.iter().any(|one| one.result.is_ok()) => None,
        None => earlier,
    }
}
