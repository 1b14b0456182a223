//! The nodes that pods are scheduled to, and their leases.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node as KubeNode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::sleep;

use super::{Shared, now};

/// How often the lease of a node is renewed.
const RENEW: Duration = Duration::from_secs(1);

/// Renews the leases of the nodes, more often than a kubelet does: life is faster here.
pub(super) async fn renew_leases(client: Client, shared: Arc<Mutex<Shared>>, nodes: usize) {
    let api: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    loop {
        let cut = shared
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .cut
            .borrow()
            .clone();
        for name in (0..nodes).map(node).filter(|name| !cut.contains(name)) {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": MicroTime(Timestamp::now())}});
            // What fails is done by the next renewal.
            let _ = api
                .patch(&name, &PatchParams::apply("kubelet").force(), &Patch::Apply(lease))
                .await;
        }
        sleep(RENEW).await;
    }
}

/// The name of a node.
fn node(index: usize) -> String {
    format!("sim-{index}")
}

pub(super) async fn register(client: &Client, index: usize) -> Result<(), kube::Error> {
    let api: Api<KubeNode> = Api::all(client.clone());
    let name = node(index);
    let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": format!("zone-{}", index % 3),
    }}});
    let object: KubeNode = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => {}
        other => drop(other?),
    }
    let room = json!({"cpu": "1000", "memory": "1000Gi", "pods": "100000", "ephemeral-storage": "1000Gi"});
    let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated",
        "lastHeartbeatTime": now(), "lastTransitionTime": now()}]);
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": ready}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await?;
    Ok(())
}
