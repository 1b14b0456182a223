//! Nodes: taints from conditions, expired leases, and eviction of pods.

mod eviction;
mod health;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;

pub use eviction::Evictions;

use self::health::LeaseState;
use super::plane::Plane;
use super::pods;
use super::runtime::{Controller, Error, ObjectKey, Queue, Recorder, Writer, now};

/// Where nodes renew their leases.
const LEASES: &str = "kube-node-lease";

/// The controller of nodes.
pub struct Nodes {
    plane: Plane,
}

impl Nodes {
    /// A controller on the plane.
    pub fn new(plane: &Plane) -> Self {
        Self {
            plane: Plane {
                recorder: plane.recorder.named("node-controller"),
                ..plane.clone()
            },
        }
    }

    /// A lease concerns the node of its name.
    pub fn concerned(_: &Plane, lease: &Lease, queue: &Queue<ObjectKey>) {
        if lease.namespace().as_deref() == Some(LEASES) {
            queue.add(ObjectKey::new("", lease.name_any()));
        }
    }

    /// Records an event about a node that is observed for the first time.
    pub fn record_registration(recorder: &Recorder, first: bool, node: Option<&Node>) {
        if let Some(node) = node.filter(|_| first) {
            let name = node.name_any();
            let message = format!("Node {name} event: Registered Node {name} in Controller");
            recorder.normal(node, "RegisteredNode", message);
        }
    }

    fn writer(&self) -> Writer<'_, Node> {
        Writer::new(Api::all(self.plane.client.clone()), &self.plane.caches.nodes)
    }

    /// Pods of a node that is not ready are not ready either, whatever they reported last.
    async fn mark_pods(&self, node: &Node) -> Result<(), Error> {
        let name = node.name_any();
        for pod in self.plane.caches.pods.all() {
            if pods::node_name(&pod) != Some(&name) || !pods::is_ready(&pod) {
                continue;
            }
            let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now()});
            let patch = json!({"status": {"conditions": [condition]}});
            let namespace = pod.namespace().unwrap_or_default();
            let writer: Writer<'_, Pod> = Writer::within(&self.plane.client, &namespace, &self.plane.caches.pods);
            match writer.strategic_status(&pod.name_any(), &patch).await {
                Err(error) if !error.not_found() => return Err(error),
                _ => self.plane.recorder.warning(&*pod, "NodeNotReady", "Node is not ready"),
            }
        }
        Ok(())
    }
}

impl Controller for Nodes {
    const NAME: &'static str = "node";

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(mut node) = self.plane.caches.nodes.get(key) else {
            return Ok(None);
        };
        let now = now();
        let lease = self.plane.caches.leases.find(LEASES, &key.name);
        let mut again = None;
        match health::lease_state(lease.as_deref(), &now) {
            LeaseState::None => {}
            LeaseState::Fresh(left) => again = Some(Duration::from_secs(left.unsigned_abs())),
            LeaseState::Expired => {
                if let Some(conditions) = health::unknown(&node, &now) {
                    let mut updated = (*node).clone();
                    updated.status.get_or_insert_default().conditions = Some(conditions);
                    node = self.writer().replace_status(&updated).await?;
                    self.plane
                        .recorder
                        .normal(&*node, "NodeNotReady", health::not_ready_message(&node));
                }
            }
        }
        if let Some(taints) = health::taints(&node, &now) {
            let patch = json!({"metadata": {"resourceVersion": node.resource_version()},
                "spec": {"taints": if taints.is_empty() { json!(null) } else { json!(taints) }}});
            node = self.writer().merge(&key.name, &patch).await?;
        }
        if health::is_unwell(&node) {
            self.mark_pods(&node).await?;
        }
        Ok(again)
    }
}
