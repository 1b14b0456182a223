//! Evicts pods from nodes with `NoExecute` taints, and removes pods of nodes that no longer exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use crate::controllers::plane::Plane;
use crate::controllers::pods;
use crate::controllers::runtime::{Controller, Error, ObjectKey, Queue, Writer, now};
use crate::scheduler::taints::{self, Stay};

/// How long a node may be missing before its pods are removed: it may only be registering again.
const QUARANTINE: Duration = Duration::from_secs(40);

/// The controller of pods that cannot stay.
pub struct Evictions {
    plane: Plane,
    missing: Mutex<HashMap<String, Instant>>,
}

/// When a pod has to leave a node with these taints: seconds from now, 0 for at once, `None` for never.
fn leaves_in(pod: &Pod, taints: &[Taint], now: &Time) -> Option<i64> {
    match taints::may_stay(pod, taints) {
        Stay::Forever => None,
        Stay::Never => Some(0),
        Stay::Seconds(seconds) => {
            let driving = taints.iter().filter(|taint| taint.effect == "NoExecute");
            let since = driving
                .filter_map(|taint| taint.time_added.as_ref())
                .max()
                .unwrap_or(now);
            Some((since.0.as_second() + seconds - now.0.as_second()).max(0))
        }
    }
}

impl Evictions {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("taint-eviction-controller"),
                ..plane.clone()
            },
            missing: Mutex::default(),
        }
    }

    /// A bound pod concerns itself when its node is tainted or missing.
    pub fn concerned(plane: &Plane, pod: &Pod, queue: &Queue<ObjectKey>) {
        let Some(name) = pods::node_name(pod) else {
            return;
        };
        let node = plane.caches.nodes.find("", name);
        let troubled = node.is_none_or(|node| taints::taints(&node).iter().any(|taint| taint.effect == "NoExecute"));
        if troubled {
            queue.add(ObjectKey::of(pod));
        }
    }

    /// A node's taints, or its end, concern its pods.
    pub fn concerned_by_node(plane: &Plane, node: &Node, queue: &Queue<ObjectKey>) {
        let name = node.name_any();
        let known = plane.caches.nodes.find("", &name);
        if known.is_some_and(|node| taints::taints(&node).iter().all(|taint| taint.effect != "NoExecute")) {
            return;
        }
        for pod in plane.caches.pods.all() {
            if pods::node_name(&pod) == Some(&name) {
                queue.add(ObjectKey::of(&*pod));
            }
        }
    }

    fn writer(&self, pod: &Pod) -> Writer<'_, Pod> {
        let namespace = pod.namespace().unwrap_or_default();
        Writer::within(&self.plane.client, &namespace, &self.plane.caches.pods)
    }

    async fn mark(&self, pod: &Pod, reason: &str, message: &str, phase: Option<&str>) -> Result<(), Error> {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": now()});
        let mut status = json!({"conditions": [condition]});
        if let Some(phase) = phase {
            status["phase"] = Value::from(phase);
        }
        self.writer(pod)
            .strategic_status(&pod.name_any(), &json!({"status": status}))
            .await
            .map(drop)
    }

    async fn evict(&self, pod: &Arc<Pod>) -> Result<(), Error> {
        let message = format!("Marking for deletion Pod {}", ObjectKey::of(&**pod));
        self.plane.recorder.normal(&**pod, "TaintManagerEviction", message);
        let why = "Taint manager: deleting due to NoExecute taint";
        self.mark(pod, "DeletionByTaintManager", why, None).await?;
        self.writer(pod).delete(pod).await
    }

    /// Removes a pod without grace when its node is gone for good: no kubelet will end it.
    async fn give_up(&self, pod: &Arc<Pod>, node: &str) -> Result<Option<Duration>, Error> {
        let uid = pod.uid().unwrap_or_default();
        let since = {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            *missing.entry(uid.clone()).or_insert_with(Instant::now)
        };
        let left = QUARANTINE.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Ok(Some(left));
        }
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
        let nodes: Api<Node> = Api::all(self.plane.client.clone());
        if nodes.get_opt(node).await?.is_some() {
            return Ok(None);
        }
        if !pods::is_finished(pod) {
            self.mark(pod, "DeletionByPodGC", "PodGC: node no longer exists", Some("Failed"))
                .await?;
        }
        let at_once = DeleteParams {
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        self.writer(pod).delete_with(pod, at_once).await?;
        Ok(None)
    }
}

impl Controller for Evictions {
    const NAME: &'static str = "taint-eviction";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(pod) = self.plane.caches.pods.get(key) else {
            return Ok(None);
        };
        let Some(name) = pods::node_name(&pod).map(str::to_owned) else {
            return Ok(None);
        };
        let Some(node) = self.plane.caches.nodes.find("", &name) else {
            return self.give_up(&pod, &name).await;
        };
        self.missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&pod.uid().unwrap_or_default());
        if pods::is_terminating(&pod) {
            return Ok(None);
        }
        match leaves_in(&pod, taints::taints(&node), &now()) {
            None => Ok(None),
            Some(0) => self.evict(&pod).await.map(|()| None),
            Some(seconds) => Ok(Some(Duration::from_secs(seconds.unsigned_abs()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_leaves_when_its_toleration_has_run_out_since_the_taint() {
        let now: Time = serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap();
        let taints: Vec<Taint> = serde_json::from_value(json!([
            {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-01-01T00:58:00Z"},
            {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]))
        .unwrap();
        let pod = |seconds: Value| -> Pod {
            serde_json::from_value(json!({"spec": {"containers": [], "tolerations": [
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": seconds}]}}))
            .unwrap()
        };
        assert_eq!(leaves_in(&pod(json!(300)), &taints, &now), Some(180));
        assert_eq!(leaves_in(&pod(json!(60)), &taints, &now), Some(0));
        assert_eq!(leaves_in(&pod(json!(null)), &taints, &now), None);
        assert_eq!(leaves_in(&Pod::default(), &taints, &now), Some(0));
        assert_eq!(leaves_in(&Pod::default(), &taints[1..], &now), None);
    }
}
