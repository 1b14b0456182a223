//! Nodes that fall ill, are cordoned and heal, and what it does to their pods.

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{self, World};

async fn set_ready_condition(world: &World, ready: &str) {
    let status = json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": ready}]}});
    let api: Api<Node> = Api::all(world.client.clone());
    api.patch_status("n1", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

async fn taints(world: &World, what: &str, expected: &[&str]) {
    let api: Api<Node> = Api::all(world.client.clone());
    world
        .eventually(what, async || {
            let taints = api
                .get("n1")
                .await
                .unwrap()
                .spec
                .unwrap_or_default()
                .taints
                .unwrap_or_default();
            let mut found: Vec<String> = taints
                .iter()
                .map(|taint| {
                    format!(
                        "{}:{}",
                        taint.key.trim_start_matches("node.kubernetes.io/"),
                        taint.effect
                    )
                })
                .collect();
            found.sort();
            (found == expected).then_some(())
        })
        .await;
}

fn pod(name: &str, seconds: i64) -> Value {
    let bears = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": seconds})
    };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "tolerations": [bears("not-ready"), bears("unreachable")], "containers": [{"name": "c", "image": "a"}]}})
}

#[tokio::test]
async fn an_unhealthy_node_is_tainted_evicts_intolerant_pods_and_recovers() {
    let world = World::without_nodes().await;
    world
        .create_cluster::<Node>(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))
        .await;
    set_ready_condition(&world, "True").await;
    taints(&world, "a healthy node", &[]).await;
    for (name, seconds) in [("patient", 3600), ("impatient", 0)] {
        world.create::<Pod>(pod(name, seconds)).await;
        world
            .until::<Pod>(name, "its node", |pod| pod.spec.as_ref().unwrap().node_name.is_some())
            .await;
        world::make_ready(&world.api::<Pod>(), name).await;
    }
    set_ready_condition(&world, "False").await;
    taints(&world, "the taints", &["not-ready:NoExecute", "not-ready:NoSchedule"]).await;
    let leaving = world
        .until::<Pod>("impatient", "the eviction", |pod| {
            pod.metadata.deletion_timestamp.is_some()
        })
        .await;
    let conditions = leaving.status.unwrap().conditions.unwrap();
    let target = conditions.iter().find(|c| c.type_ == "DisruptionTarget").unwrap();
    assert_eq!(target.reason.as_deref(), Some("DeletionByTaintManager"));
    let patient = world.until::<Pod>("patient", "its readiness to go", |pod| {
        let conditions = pod.status.as_ref().unwrap().conditions.as_ref().unwrap();
        conditions.iter().any(|c| c.type_ == "Ready" && c.status == "False")
    });
    assert!(patient.await.metadata.deletion_timestamp.is_none());
    world
        .eventually("the words", async || {
            let events = world.list::<Event>("involvedObject.name=impatient").await;
            let marked = |event: &Event| event.message.as_deref() == Some("Marking for deletion Pod default/impatient");
            events.iter().any(marked).then_some(())
        })
        .await;
    set_ready_condition(&world, "True").await;
    taints(&world, "the healed node", &[]).await;
    let api: Api<Node> = Api::all(world.client.clone());
    api.cordon("n1").await.unwrap();
    taints(&world, "the cordon", &["unschedulable:NoSchedule"]).await;
    api.uncordon("n1").await.unwrap();
    taints(&world, "the end of the cordon", &[]).await;
    assert_eq!(api.get("n1").await.unwrap().name_any(), "n1");
}
