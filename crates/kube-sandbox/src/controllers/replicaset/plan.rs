//! How many pods to create or delete, and the status. Pure.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::controllers::pods;

/// The most pods made or deleted in one go.
const BURST: usize = 500;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// How many pods are missing.
    pub create: usize,
    /// Which pods are too many.
    pub delete: Vec<Arc<Pod>>,
}

/// Why pods could not be made or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The API server's message.
    pub message: String,
}

/// The desired number of pods.
pub fn desired(set: &ReplicaSet) -> usize {
    let replicas = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    usize::try_from(replicas).unwrap_or_default()
}

/// Compares the observed pods with the desired number.
pub fn plan(set: &ReplicaSet, active: &[Arc<Pod>], related: &[Arc<Pod>], now: &Time) -> Plan {
    if set.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let desired = desired(set);
    if active.len() <= desired {
        return Plan {
            create: (desired - active.len()).min(BURST),
            delete: Vec::new(),
        };
    }
    let surplus = (active.len() - desired).min(BURST);
    let mut delete = active.to_vec();
    if surplus < active.len() {
        pods::rank_for_deletion(&mut delete, related, now);
    }
    delete.truncate(surplus);
    Plan { create: 0, delete }
}

/// The status that follows from the pods.
pub fn status(set: &ReplicaSet, active: &[Arc<Pod>], failure: Option<&Failure>, now: &Time) -> ReplicaSetStatus {
    let spec = set.spec.clone().unwrap_or_default();
    let template = spec.template.and_then(|template| template.metadata).unwrap_or_default();
    let labels = template.labels.unwrap_or_default();
    let min_ready = spec.min_ready_seconds.unwrap_or_default();
    let count = |test: &dyn Fn(&Pod) -> bool| {
        let number = active.iter().filter(|pod| test(pod)).count();
        // Zero is absent, as in a real status.
        i32::try_from(number).ok().filter(|number| *number != 0)
    };
    let old = set.status.clone().unwrap_or_default();
    ReplicaSetStatus {
        replicas: i32::try_from(active.len()).unwrap_or(i32::MAX),
        fully_labeled_replicas: count(&|pod| labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value))),
        ready_replicas: count(&pods::is_ready),
        available_replicas: count(&|pod| pods::is_available(pod, min_ready, now)),
        observed_generation: set.metadata.generation,
        conditions: conditions(set, active.len(), failure, now),
        ..old
    }
}

fn conditions(
    set: &ReplicaSet,
    active: usize,
    failure: Option<&Failure>,
    now: &Time,
) -> Option<Vec<ReplicaSetCondition>> {
    let mut conditions = set.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    let known = conditions.iter().any(|condition| condition.type_ == "ReplicaFailure");
    match failure {
        Some(failure) if !known => conditions.push(ReplicaSetCondition {
            type_: "ReplicaFailure".into(),
            status: "True".into(),
            reason: Some(
                if active < desired(set) {
                    "FailedCreate"
                } else {
                    "FailedDelete"
                }
                .into(),
            ),
            message: Some(failure.message.clone()),
            last_transition_time: Some(now.clone()),
        }),
        Some(_) => {}
        None => conditions.retain(|condition| condition.type_ != "ReplicaFailure"),
    }
    (!conditions.is_empty()).then_some(conditions)
}

/// Whether two statuses are equal, with absent counts as zero.
pub fn is_same_status(one: &ReplicaSetStatus, other: &ReplicaSetStatus) -> bool {
    let zero = |count: Option<i32>| count.unwrap_or_default();
    one.replicas == other.replicas
        && zero(one.fully_labeled_replicas) == zero(other.fully_labeled_replicas)
        && zero(one.ready_replicas) == zero(other.ready_replicas)
        && zero(one.available_replicas) == zero(other.available_replicas)
        && one.observed_generation.unwrap_or_default() == other.observed_generation.unwrap_or_default()
        && one.conditions.clone().unwrap_or_default() == other.conditions.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap()
    }

    fn set(replicas: i32) -> ReplicaSet {
        serde_json::from_value(json!({"metadata": {"name": "s", "generation": 4}, "spec": {
            "replicas": replicas, "minReadySeconds": 10, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b", "c": "d"}}}}}))
        .unwrap()
    }

    fn pod(name: &str, ready: Option<&str>, labels: &serde_json::Value) -> Arc<Pod> {
        let conditions = ready.map(|since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
        Arc::new(
            serde_json::from_value(json!({"metadata": {"name": name, "labels": labels},
                "spec": {"containers": []}, "status": {"phase": "Running", "conditions": conditions}}))
            .unwrap(),
        )
    }

    #[test]
    fn missing_pods_are_made_and_surplus_ones_deleted_least_missed_first() {
        let ready = pod("ready", Some("2026-01-01T00:00:00Z"), &json!({}));
        let unready = pod("unready", None, &json!({}));
        let both = [ready, unready.clone()];
        assert_eq!(plan(&set(5), &both, &both, &now()).create, 3);
        assert_eq!(plan(&set(2), &both, &both, &now()), Plan::default());
        assert_eq!(plan(&set(1), &both, &both, &now()).delete, [unready]);
        assert_eq!(plan(&set(0), &both, &both, &now()).delete.len(), 2);
    }

    #[test]
    fn a_set_that_is_being_deleted_touches_no_pod() {
        let mut leaving = set(5);
        leaving.metadata.deletion_timestamp = Some(now());
        assert_eq!(plan(&leaving, &[], &[], &now()), Plan::default());
    }

    #[test]
    fn status_counts_labels_readiness_and_availability_apart() {
        let full = json!({"a": "b", "c": "d", "e": "f"});
        let pods = [
            pod("old", Some("2026-01-01T00:00:00Z"), &full),
            pod("fresh", Some("2026-01-01T00:59:55Z"), &full),
            pod("unready", None, &json!({"a": "b"})),
        ];
        let status = status(&set(3), &pods, None, &now());
        assert_eq!(status.replicas, 3);
        assert_eq!(status.fully_labeled_replicas, Some(2));
        assert_eq!(status.ready_replicas, Some(2));
        assert_eq!(status.available_replicas, Some(1));
        assert_eq!(status.observed_generation, Some(4));
    }

    #[test]
    fn a_failure_is_a_condition_until_it_passes() {
        let mut set = set(3);
        let failure = Failure {
            message: "pods \"x\" is forbidden".into(),
        };
        let failed = status(&set, &[], Some(&failure), &now());
        let condition = &failed.conditions.as_ref().unwrap()[0];
        assert_eq!(condition.type_, "ReplicaFailure");
        assert_eq!(condition.reason.as_deref(), Some("FailedCreate"));
        assert_eq!(condition.message.as_deref(), Some("pods \"x\" is forbidden"));
        set.status = Some(failed);
        assert_eq!(status(&set, &[], None, &now()).conditions, None);
    }
}
