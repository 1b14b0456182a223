//! A workload says "1 of 3 available"; its pods say why.

use super::reading::{Health, Reading};

/// At most this many pods are named; the rest is counted.
const NAMED: usize = 3;

/// Adds the pods' cause to a workload's health.
///
/// A workload that is ready, or being deleted, stays as it is: a pod that is late is then no news. Otherwise the
/// worst pods decide: their reason replaces the workload's (`ImagePullBackOff` instead of `WaitingForReplicas`),
/// the health is the worse of the two, and the message names them.
///
/// ```
/// use kube_status::readers::{explain, read_value, Health};
/// use serde_json::json;
///
/// let web = read_value(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
///     "spec": {"replicas": 2}, "status": {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
/// })).unwrap();
/// let pod = read_value(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-b"},
///     "status": {"phase": "Pending", "containerStatuses": [{"name": "app", "image": "shop/web:9", "state": {
///         "waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"shop/web:9\""}}}]},
/// })).unwrap();
///
/// let why = explain(web, &[("web-b", pod)]);
/// assert_eq!((why.health, why.reason.as_str()), (Health::Stuck, "ImagePullBackOff"));
/// assert_eq!(
///     why.message,
///     "1 of 2 replicas available; pod web-b: container app: Back-off pulling image \"shop/web:9\""
/// );
/// ```
pub fn explain<N: AsRef<str>>(workload: Reading, pods: &[(N, Reading)]) -> Reading {
    if matches!(workload.health, Health::Ready | Health::Deleting) {
        return workload;
    }
    // A pod on its way out says nothing about why its successor is late.
    let speaking = || {
        pods.iter()
            .filter(|(_, pod)| !matches!(pod.health, Health::Ready | Health::Deleting))
    };
    let Some(worst) = speaking().map(|(_, pod)| pod.health).max() else {
        return workload;
    };
    let Some((_, cause)) = speaking().find(|(_, pod)| pod.health == worst) else {
        return workload;
    };
    if worst < workload.health {
        return workload;
    }
    let mut names: Vec<&str> = speaking()
        .filter(|(_, pod)| pod.health == cause.health && pod.reason == cause.reason)
        .map(|(name, _)| name.as_ref())
        .collect();
    names.sort_unstable();
    let who = match names.len() {
        1 => format!("pod {}", names[0]),
        count if count <= NAMED => format!("pods {}", names.join(", ")),
        count => format!("pods {}, ... ({} more)", names[..NAMED].join(", "), count - NAMED),
    };
    Reading {
        health: worst,
        reason: cause.reason.clone(),
        message: format!("{}; {who}: {}", workload.message, cause.message),
        since: cause.since.or(workload.since),
        generation: workload.generation,
    }
}
