//! What several controllers need to know of a pod: is it ready, available, active; and which pods are deleted first.

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::ResourceExt;

use super::runtime::seconds_between;

/// The pod's phase, `Pending` when none is set.
pub fn phase(pod: &Pod) -> &str {
    let status = pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// One condition of a pod.
pub fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether the Ready condition is true.
pub fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").is_some_and(|ready| ready.status == "True")
}

/// Since when the pod is ready.
pub fn ready_since(pod: &Pod) -> Option<&Time> {
    condition(pod, "Ready")
        .filter(|ready| ready.status == "True")
        .and_then(|ready| ready.last_transition_time.as_ref())
}

/// Ready for at least so many seconds.
pub fn is_available(pod: &Pod, min_ready_seconds: i32, now: &Time) -> bool {
    is_ready(pod)
        && (min_ready_seconds == 0
            || ready_since(pod).is_some_and(|since| seconds_between(since, now) >= i64::from(min_ready_seconds)))
}

/// Seconds until a ready pod becomes available; `None` when it is already, or not ready.
pub fn available_in(pod: &Pod, min_ready_seconds: i32, now: &Time) -> Option<i64> {
    let since = ready_since(pod)?;
    let left = i64::from(min_ready_seconds) - seconds_between(since, now);
    (left > 0).then_some(left)
}

/// Being deleted.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Succeeded or failed.
pub fn is_finished(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Counts as a replica: neither ended nor being deleted.
pub fn is_active(pod: &Pod) -> bool {
    !is_finished(pod) && !is_terminating(pod)
}

/// The node it is bound to.
pub fn node_name(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    spec.node_name.as_deref().filter(|name| !name.is_empty())
}

/// A pod made from a template for its controller.
pub fn from_template(template: &PodTemplateSpec, owner: OwnerReference, namespace: &str) -> Pod {
    let given = template.metadata.clone().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            namespace: Some(namespace.to_owned()),
            labels: given.labels,
            annotations: given.annotations,
            finalizers: given.finalizers,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}

/// Sorts pods so that those to be deleted first come first: unscheduled before scheduled, pending before running,
/// not ready before ready, low deletion cost before high, nodes with more of these pods before nodes with fewer, young
/// before old.
///
/// `related` are the pods that count for how full a node is: those of all sets with the same owner.
pub fn rank_for_deletion(pods: &mut [Arc<Pod>], related: &[Arc<Pod>], now: &Time) {
    let mut crowd: HashMap<&str, usize> = HashMap::new();
    for pod in related.iter().filter(|pod| is_ready(pod)) {
        *crowd.entry(node_name(pod).unwrap_or_default()).or_default() += 1;
    }
    pods.sort_by(|a, b| compare(a, b, &crowd, now));
}

fn compare(a: &Pod, b: &Pod, crowd: &HashMap<&str, usize>, now: &Time) -> Ordering {
    let phase_order = |pod: &Pod| match phase(pod) {
        "Pending" => 0,
        "Unknown" => 1,
        _ => 2,
    };
    let crowding = |pod: &Pod| {
        Reverse(
            crowd
                .get(node_name(pod).unwrap_or_default())
                .copied()
                .unwrap_or_default(),
        )
    };
    let restarts = |pod: &Pod| {
        let statuses = pod
            .status
            .as_ref()
            .and_then(|status| status.container_statuses.as_ref());
        Reverse(statuses.into_iter().flatten().map(|status| status.restart_count).max())
    };
    node_name(a)
        .is_some()
        .cmp(&node_name(b).is_some())
        .then_with(|| phase_order(a).cmp(&phase_order(b)))
        .then_with(|| is_ready(a).cmp(&is_ready(b)))
        .then_with(|| deletion_cost(a).cmp(&deletion_cost(b)))
        .then_with(|| crowding(a).cmp(&crowding(b)))
        .then_with(|| magnitude(ready_since(a), now).cmp(&magnitude(ready_since(b), now)))
        .then_with(|| restarts(a).cmp(&restarts(b)))
        .then_with(|| {
            let age = |pod: &Pod| magnitude(pod.metadata.creation_timestamp.as_ref(), now);
            age(a).cmp(&age(b))
        })
        .then_with(|| a.uid().cmp(&b.uid()))
}

/// The annotation with the pod's deletion cost.
fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.annotations().get("controller.kubernetes.io/pod-deletion-cost");
    cost.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// Ages are compared by their order of magnitude, so that scaling down does not always hit the newest.
fn magnitude(since: Option<&Time>, now: &Time) -> u32 {
    let age = since.map_or(0, |since| seconds_between(since, now).max(0));
    u64::try_from(age)
        .unwrap_or_default()
        .checked_ilog2()
        .map_or(0, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap()
    }

    fn pod(name: &str, node: &str, phase: &str, ready: &str, more: &Value) -> Arc<Pod> {
        let mut value = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {}},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:10:00Z"}]}});
        json_patch::merge(&mut value, more);
        Arc::new(serde_json::from_value(value).unwrap())
    }

    #[test]
    fn the_least_useful_pod_is_deleted_first() {
        let none = json!({});
        let cost = json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}});
        let restarted = json!({"status": {"containerStatuses": [
            {"name": "a", "image": "", "imageID": "", "ready": true, "restartCount": 3}]}});
        let young = json!({"metadata": {"creationTimestamp": "2026-01-01T00:59:50Z"}});
        let mut pods = vec![
            pod("old", "n3", "Running", "True", &none),
            pod("young", "n3", "Running", "True", &young),
            pod("restarted", "n3", "Running", "True", &restarted),
            pod("crowded", "n1", "Running", "True", &none),
            pod("cheap", "n3", "Running", "True", &cost),
            pod("unready", "n3", "Running", "False", &none),
            pod("pending", "n3", "Pending", "False", &none),
            pod("unscheduled", "", "Pending", "False", &none),
        ];
        let crowd: Vec<_> = (0..9)
            .map(|n| pod(&format!("c{n}"), "n1", "Running", "True", &none))
            .collect();
        rank_for_deletion(&mut pods, &crowd, &now());
        let names: Vec<_> = pods.iter().map(|pod| pod.name_any()).collect();
        let expected = [
            "unscheduled",
            "pending",
            "unready",
            "cheap",
            "crowded",
            "restarted",
            "young",
            "old",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn available_means_ready_for_long_enough() {
        let pod = pod("a", "n", "Running", "True", &json!({}));
        assert!(is_available(&pod, 0, &now()));
        assert!(is_available(&pod, 3000, &now()));
        assert!(!is_available(&pod, 3001, &now()));
        assert_eq!(available_in(&pod, 3010, &now()), Some(10));
        assert_eq!(available_in(&pod, 3000, &now()), None);
    }
}
