//! What every kind reports, each with its messages: losses, errors that last too long, progress, transitions.
//!
//! The kinds translate; what is lost, what is new and how far an operation is does not depend on the kind.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::GradedCondition as Condition;
use valkey_admin::SlotSet;

use crate::model::ShardIndex;
use crate::observation::Observation;
use crate::outcome::Outcome;
use crate::placement::Placement;
use crate::plan::{Lost, Plan, Stage};
use crate::step::Step;

/// An error that lasts for this long needs a user to act.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// Failures are counted only up to this number. More failures do not change the operator's reaction, and status must
/// not be written only for the count.
pub(crate) const COUNTED: i32 = 10;

/// Whether an error has lasted too long.
pub fn is_overdue(since: Option<Timestamp>, now: Timestamp) -> bool {
    since.is_some_and(|since| now.duration_since(since) >= PATIENCE)
}

/// The beginning of a loss message, which stays the same while the observed details change.
pub fn lost_in(role: &str, lost: &Lost) -> String {
    format!("{role} lost in shard {}:", lost.shard)
}

/// `Primary lost in shard 1: member 1-0 does not respond`, for every loss.
pub fn losses(role: &str, lost: &[Lost]) -> String {
    let line = |one: &Lost| format!("{} {}", lost_in(role, one), one.observed);
    lost.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// The loss of a shard's data, as last observed.
pub fn came_back_empty(shard: ShardIndex, slots: &SlotSet, keys: u64) -> String {
    format!("Shard {shard} came back empty: slots {slots}, {keys} keys last seen")
}

/// Shards with lost data: reported from the reconcile that declares the loss until a user acknowledges the time of its
/// condition.
pub fn data_lost(reported: Option<&Condition>, acknowledged: Option<&String>, plan: &Plan) -> Option<String> {
    let standing = reported.filter(|one| {
        let since = one.last_transition_time.0.to_string();
        one.status == "True" && acknowledged != Some(&since)
    });
    let declared = plan.steps.iter().filter_map(|step| match step {
        Step::DeclareLost { shard, slots, keys } => Some(came_back_empty(*shard, slots, *keys)),
        _ => None,
    });
    let standing = standing.map(|one| one.message.clone());
    let messages: Vec<String> = standing.into_iter().chain(declared).collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// Primaries that are piled up in a zone, of a cluster with nothing else to report. What was reported stays while zones
/// are unknown.
pub fn piled_up(
    reported: Option<&Condition>,
    stage: &Stage,
    observed: &Observation,
    cluster: &ObjectMeta,
) -> Option<String> {
    if !stage.is_settled() {
        return None;
    }
    let namespace = cluster.namespace.as_deref().unwrap_or("default");
    match Placement::of(observed, namespace, cluster.name.as_deref().unwrap_or_default()) {
        Placement::Spread => None,
        Placement::PiledUp(message) => Some(message),
        Placement::Unknown => reported.map(|one| one.message.clone()),
    }
}

/// How far an operation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How often its slot migration, or another step of it, has failed.
    pub attempts: i32,
    /// Slots moved, and slots to move in total.
    pub slots: Option<(i32, i32)>,
}

impl Progress {
    /// The progress after a reconcile; `self` is the progress of the same operation before. The total restarts when more
    /// slots are left to move. A slot migration that times out has not failed yet.
    #[must_use]
    pub fn after<'a>(self, stage: &Stage, outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let slots = stage.slots_left().map(|left| {
            let left = i32::try_from(left).unwrap_or(i32::MAX);
            let total = self.slots.map(|(_, total)| total).filter(|total| *total >= left);
            let total = total.unwrap_or(left);
            (total - left, total)
        });
        let moving = slots.is_some();
        let begins = moving && self.slots.is_none();
        let earlier = if begins { 0 } else { self.attempts };
        let failed = outcomes.into_iter().any(|one| {
            let same = matches!(one.step, Step::MoveSlots { .. }) == moving;
            same && one.result.as_ref().is_err_and(|failure| !failure.unanswered || !moving)
        });
        Self {
            attempts: (earlier + i32::from(failed)).min(COUNTED),
            slots,
        }
    }
}

/// Reasons that appear for the first time, or with another message: what each stands for, and the message.
pub fn new_reasons<R: AsRef<str>, E: Copy>(
    table: &[(R, E)],
    before: &[Condition],
    after: &[Condition],
) -> Vec<(E, String)> {
    fn message<'a>(conditions: &'a [Condition], reason: &str) -> Option<&'a String> {
        conditions
            .iter()
            .find(|one| one.reason == reason)
            .map(|one| &one.message)
    }
    let new = table.iter().filter_map(|(reason, event)| {
        let now = message(after, reason.as_ref())?;
        (message(before, reason.as_ref()) != Some(now)).then(|| (*event, now.clone()))
    });
    new.collect()
}

/// Keeps the stored key counts unless something else changed: key counts change all the time and are never a reason to
/// write status.
pub fn retain_keys<S: Clone + PartialEq>(status: &mut S, before: &S, keys: impl Fn(&mut S) -> Vec<&mut i64>) {
    let (mut retained, mut before_keys) = (status.clone(), before.clone());
    let (new, old) = (keys(&mut retained), keys(&mut before_keys));
    if new.len() == old.len() {
        new.into_iter().zip(old).for_each(|(new, old)| *new = *old);
        if retained == *before {
            *status = retained;
        }
    }
}
