//! The status of a Deployment: counts, Available, Progressing, `ReplicaFailure`. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::rollout::{available, desired_replicas, max_unavailable, size};
use crate::controllers::runtime::{after_seconds, seconds_between};

/// Why a Deployment progresses, or does not. The condition's reasons, one word each.
pub mod reason {
    /// The new set was made.
    pub const CREATED: &str = "NewReplicaSetCreated";
    /// The new set was there already.
    pub const FOUND: &str = "FoundNewReplicaSet";
    /// The rollout progresses.
    pub const UPDATED: &str = "ReplicaSetUpdated";
    /// The rollout is complete.
    pub const AVAILABLE: &str = "NewReplicaSetAvailable";
    /// Nothing moved within the deadline.
    pub const TIMED_OUT: &str = "ProgressDeadlineExceeded";
    /// The set could not be made.
    pub const CREATE_ERROR: &str = "ReplicaSetCreateError";
    /// `spec.paused`.
    pub const PAUSED: &str = "DeploymentPaused";
    /// No longer paused.
    pub const RESUMED: &str = "DeploymentResumed";
}

/// A fresh condition.
pub fn condition(kind: &str, status: &str, reason: &str, message: String, now: &Time) -> DeploymentCondition {
    DeploymentCondition {
        type_: kind.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    }
}

/// The condition of a type.
pub fn find<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status
        .conditions
        .as_ref()?
        .iter()
        .find(|condition| condition.type_ == kind)
}

/// Sets a condition. The same status and reason change nothing; the same status keeps its time of transition.
pub fn set(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(old) = find(status, &condition.type_) {
        if old.status == condition.status && old.reason == condition.reason {
            return;
        }
        if old.status == condition.status {
            condition.last_transition_time.clone_from(&old.last_transition_time);
        }
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

/// Removes a condition.
pub fn remove(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
        if conditions.is_empty() {
            status.conditions = None;
        }
    }
}

/// The deadline for progress, if there is one.
pub fn deadline(deployment: &Deployment) -> Option<i32> {
    let seconds = deployment.spec.as_ref()?.progress_deadline_seconds?;
    (seconds != i32::MAX).then_some(seconds)
}

/// Counts and availability, with the other conditions as they were.
pub fn counted(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    new: Option<&ReplicaSet>,
    now: &Time,
) -> DeploymentStatus {
    let old = deployment.status.clone().unwrap_or_default();
    let sum = |of: &dyn Fn(&ReplicaSet) -> i32| sets.iter().map(|set| of(set)).sum::<i32>();
    let actual = |set: &ReplicaSet| set.status.as_ref().map_or(0, |status| status.replicas);
    let ready = |set: &ReplicaSet| {
        set.status
            .as_ref()
            .and_then(|status| status.ready_replicas)
            .unwrap_or_default()
    };
    let available = sum(&available);
    let nonzero = |count: i32| (count != 0).then_some(count);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: nonzero(sum(&actual)),
        updated_replicas: nonzero(new.map_or(0, actual)),
        ready_replicas: nonzero(sum(&ready)),
        available_replicas: nonzero(available),
        unavailable_replicas: nonzero((sum(&size) - available).max(0)),
        ..old
    };
    let (word, reason, message) = if available >= desired_replicas(deployment) - max_unavailable(deployment) {
        (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )
    };
    set(&mut status, condition("Available", word, reason, message.into(), now));
    status
}

/// Whether every desired pod is of the new template and available, and no other is left.
pub fn complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let desired = desired_replicas(deployment);
    status.updated_replicas.unwrap_or_default() == desired
        && status.replicas.unwrap_or_default() == desired
        && status.available_replicas.unwrap_or_default() == desired
        && status.observed_generation >= deployment.metadata.generation
}

/// Sets the condition Progressing: complete, progressing, or without progress for longer than the deadline.
pub fn judge_progress(
    deployment: &Deployment,
    status: &mut DeploymentStatus,
    sets: &[Arc<ReplicaSet>],
    new: Option<&ReplicaSet>,
    now: &Time,
) {
    let Some(deadline) = deadline(deployment) else {
        remove(status, "Progressing");
        failures(status, sets, new);
        return;
    };
    let before = deployment.status.clone().unwrap_or_default();
    let known = find(status, "Progressing").cloned();
    let was_complete = status.replicas == status.updated_replicas
        && known.as_ref().and_then(|known| known.reason.as_deref()) == Some(reason::AVAILABLE);
    let subject = match new {
        Some(set) => format!("ReplicaSet \"{}\"", set.name_any()),
        None => format!("Deployment \"{}\"", deployment.name_any()),
    };
    if !was_complete {
        if complete(deployment, status) {
            let message = format!("{subject} has successfully progressed.");
            set(
                status,
                condition("Progressing", "True", reason::AVAILABLE, message, now),
            );
        } else if moved(&before, status) {
            let message = format!("{subject} is progressing.");
            let mut fresh = condition("Progressing", "True", reason::UPDATED, message, now);
            if let Some(known) = known.filter(|known| known.status == "True") {
                fresh.last_transition_time = known.last_transition_time;
            }
            // Progress renews the time of update even where reason and status stay: the deadline counts from it.
            remove(status, "Progressing");
            set(status, fresh);
        } else if timed_out(known.as_ref(), deadline, now) {
            let message = format!("{subject} has timed out progressing.");
            set(
                status,
                condition("Progressing", "False", reason::TIMED_OUT, message, now),
            );
        }
    }
    failures(status, sets, new);
}

fn moved(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let count = |count: Option<i32>| count.unwrap_or_default();
    let stale = |status: &DeploymentStatus| count(status.replicas) - count(status.updated_replicas);
    count(after.updated_replicas) > count(before.updated_replicas)
        || stale(after) < stale(before)
        || count(after.ready_replicas) > count(before.ready_replicas)
        || count(after.available_replicas) > count(before.available_replicas)
}

fn timed_out(known: Option<&DeploymentCondition>, deadline: i32, now: &Time) -> bool {
    let Some(known) = known else {
        return false;
    };
    match known.reason.as_deref() {
        Some(reason::AVAILABLE) => false,
        Some(reason::TIMED_OUT) => true,
        _ => known
            .last_update_time
            .as_ref()
            .is_some_and(|since| after_seconds(since, i64::from(deadline)) < *now),
    }
}

/// Seconds until the deadline could pass, while a rollout is under way.
pub fn seconds_to_deadline(deployment: &Deployment, status: &DeploymentStatus, now: &Time) -> Option<i64> {
    let deadline = deadline(deployment)?;
    let known = find(status, "Progressing")?;
    if complete(deployment, status) || known.reason.as_deref() == Some(reason::TIMED_OUT) {
        return None;
    }
    let since = known.last_update_time.as_ref()?;
    Some((i64::from(deadline) - seconds_between(since, now)).max(0) + 1)
}

/// Copies the failure of a set to the deployment; that of the new set has precedence.
fn failures(status: &mut DeploymentStatus, sets: &[Arc<ReplicaSet>], new: Option<&ReplicaSet>) {
    let failure = new.into_iter().chain(sets.iter().map(|set| &**set)).find_map(|set| {
        let conditions = set.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == "ReplicaFailure")
    });
    match failure {
        Some(failure) => set(
            status,
            DeploymentCondition {
                type_: failure.type_.clone(),
                status: failure.status.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                last_update_time: failure.last_transition_time.clone(),
                last_transition_time: failure.last_transition_time.clone(),
            },
        ),
        None => remove(status, "ReplicaFailure"),
    }
}

/// Marks the pause and its end, so that the time in between does not count against the deadline.
pub fn mark_pause(deployment: &Deployment, status: &mut DeploymentStatus, now: &Time) {
    if deadline(deployment).is_none() {
        return;
    }
    let known = find(status, "Progressing").and_then(|known| known.reason.clone());
    if known.as_deref() == Some(reason::TIMED_OUT) {
        return;
    }
    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
    let marked = known.as_deref() == Some(reason::PAUSED);
    let (reason, message) = match (paused, marked) {
        (true, false) => (reason::PAUSED, "Deployment is paused"),
        (false, true) => (reason::RESUMED, "Deployment is resumed"),
        _ => return,
    };
    set(status, condition("Progressing", "Unknown", reason, message.into(), now));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn time(text: &str) -> Time {
        serde_json::from_value(json!(text)).unwrap()
    }

    fn deployment(status: &Value) -> Deployment {
        serde_json::from_value(json!({"metadata": {"name": "d", "generation": 2}, "spec": {
            "replicas": 2, "progressDeadlineSeconds": 60, "selector": {}, "template": {}}, "status": status}))
        .unwrap()
    }

    fn set(ready: i32) -> Arc<ReplicaSet> {
        Arc::new(
            serde_json::from_value(
                json!({"metadata": {"name": "d-1"}, "spec": {"replicas": 2, "selector": {}},
            "status": {"replicas": 2, "readyReplicas": ready, "availableReplicas": ready}}),
            )
            .unwrap(),
        )
    }

    fn judged(deployment: &Deployment, ready: i32, now: &str) -> DeploymentStatus {
        let sets = [set(ready)];
        let mut status = counted(deployment, &sets, Some(&sets[0]), &time(now));
        judge_progress(deployment, &mut status, &sets, Some(&sets[0]), &time(now));
        status
    }

    fn progressing(status: &DeploymentStatus) -> (String, String, String) {
        let condition = find(status, "Progressing").unwrap().clone();
        (condition.status, condition.reason.unwrap(), condition.message.unwrap())
    }

    #[test]
    fn a_rollout_moves_completes_and_then_stays_complete() {
        let mut d = deployment(&json!({}));
        let moving = judged(&d, 1, "2026-01-01T00:00:10Z");
        let expected = (
            "True".into(),
            "ReplicaSetUpdated".into(),
            "ReplicaSet \"d-1\" is progressing.".into(),
        );
        assert_eq!(progressing(&moving), expected);
        assert_eq!(find(&moving, "Available").unwrap().status, "False");
        assert_eq!(moving.unavailable_replicas, Some(1));

        d.status = Some(moving);
        let done = judged(&d, 2, "2026-01-01T00:00:20Z");
        let expected = (
            "True".into(),
            "NewReplicaSetAvailable".into(),
            "ReplicaSet \"d-1\" has successfully progressed.".into(),
        );
        assert_eq!(progressing(&done), expected);
        let condition = find(&done, "Progressing").unwrap();
        assert_eq!(condition.last_transition_time, Some(time("2026-01-01T00:00:10Z")));
        assert_eq!(condition.last_update_time, Some(time("2026-01-01T00:00:20Z")));

        d.status = Some(done);
        let degraded = judged(&d, 1, "2026-01-01T01:00:00Z");
        assert_eq!(
            progressing(&degraded).1,
            "NewReplicaSetAvailable",
            "a lost pod is no stuck rollout"
        );
        assert_eq!(
            find(&degraded, "Available").unwrap().reason.as_deref(),
            Some("MinimumReplicasUnavailable")
        );
    }

    #[test]
    fn a_rollout_without_progress_times_out_after_the_deadline() {
        let mut d = deployment(&json!({}));
        d.status = Some(judged(&d, 1, "2026-01-01T00:00:00Z"));
        let status = d.status.clone().unwrap();
        assert_eq!(
            seconds_to_deadline(&d, &status, &time("2026-01-01T00:00:20Z")),
            Some(41)
        );
        assert_eq!(
            progressing(&judged(&d, 1, "2026-01-01T00:01:00Z")).1,
            "ReplicaSetUpdated"
        );
        let late = judged(&d, 1, "2026-01-01T00:01:01Z");
        let expected = (
            "False".into(),
            "ProgressDeadlineExceeded".into(),
            "ReplicaSet \"d-1\" has timed out progressing.".into(),
        );
        assert_eq!(progressing(&late), expected);
        assert_eq!(seconds_to_deadline(&d, &late, &time("2026-01-01T00:02:00Z")), None);
    }

    #[test]
    fn a_pause_is_marked_and_its_end_too() {
        let mut d = deployment(&json!({}));
        d.spec.as_mut().unwrap().paused = Some(true);
        let mut status = DeploymentStatus::default();
        mark_pause(&d, &mut status, &time("2026-01-01T00:00:00Z"));
        assert_eq!(progressing(&status).1, "DeploymentPaused");
        d.spec.as_mut().unwrap().paused = Some(false);
        mark_pause(&d, &mut status, &time("2026-01-01T00:00:01Z"));
        let expected = (
            "Unknown".into(),
            "DeploymentResumed".into(),
            "Deployment is resumed".into(),
        );
        assert_eq!(progressing(&status), expected);
    }

    #[test]
    fn a_failure_of_a_set_shows_on_the_deployment() {
        let d = deployment(&json!({}));
        let mut broken = (*set(0)).clone();
        broken.status.as_mut().unwrap().conditions = serde_json::from_value(json!([
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}]))
        .unwrap();
        let sets = [Arc::new(broken)];
        let now = time("2026-01-01T00:00:00Z");
        let mut status = counted(&d, &sets, Some(&sets[0]), &now);
        judge_progress(&d, &mut status, &sets, Some(&sets[0]), &now);
        assert_eq!(
            find(&status, "ReplicaFailure").unwrap().reason.as_deref(),
            Some("FailedCreate")
        );
    }
}
