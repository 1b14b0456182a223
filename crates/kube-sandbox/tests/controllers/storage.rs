//! Claims and volumes: made for their first consumer, bound, grown, protected, given back.

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{self, World};

async fn node(world: &World, name: &str) {
    world
        .create_cluster::<Node>(json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": "a"}}}))
        .await;
    let status = json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let api: Api<Node> = Api::all(world.client.clone());
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

fn claim(name: &str, class: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}}})
}

fn user(name: &str, claim: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "containers": [{"name": "c", "image": "a"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}})
}

fn phase(claim: &PersistentVolumeClaim) -> &str {
    claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

async fn standard(world: &World) {
    let classes: Api<StorageClass> = Api::all(world.client.clone());
    world
        .eventually("the standard class", async || {
            classes.get_opt("standard").await.unwrap()
        })
        .await;
}

#[tokio::test]
async fn a_claim_waits_for_its_pod_gets_a_folder_grows_and_is_released() {
    let world = World::without_nodes().await;
    node(&world, "n1").await;
    standard(&world).await;
    world
        .create::<PersistentVolumeClaim>(claim("data", &json!("standard")))
        .await;
    world
        .until::<PersistentVolumeClaim>("data", "the finalizer", |claim| {
            claim
                .finalizers()
                .iter()
                .any(|name| name == "kubernetes.io/pvc-protection")
        })
        .await;
    assert_eq!(
        phase(&world.api::<PersistentVolumeClaim>().get("data").await.unwrap()),
        "Pending"
    );

    world.create::<Pod>(user("p", "data")).await;
    world
        .until::<Pod>("p", "the binding", |pod| pod.spec.as_ref().unwrap().node_name.is_some())
        .await;
    let bound = world
        .until::<PersistentVolumeClaim>("data", "a bound claim", |claim| phase(claim) == "Bound")
        .await;
    assert_eq!(bound.annotations()["volume.kubernetes.io/selected-node"], "n1");
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    let name = bound.spec.as_ref().unwrap().volume_name.clone().unwrap();
    let volume = volumes.get(&name).await.unwrap();
    let spec = volume.spec.unwrap();
    let folder = std::path::PathBuf::from(spec.host_path.unwrap().path);
    assert!(folder.is_dir(), "{}", folder.display());
    assert_eq!(spec.persistent_volume_reclaim_policy.as_deref(), Some("Delete"));
    let zone = spec.node_affinity.unwrap().required.unwrap().node_selector_terms[0]
        .match_expressions
        .clone()
        .unwrap();
    assert_eq!(zone[0].values, Some(vec!["a".into()]));

    world::make_ready(&world.api::<Pod>(), "p").await;
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    world
        .api::<PersistentVolumeClaim>()
        .patch("data", &PatchParams::default(), &Patch::Merge(more))
        .await
        .unwrap();
    world
        .until::<PersistentVolumeClaim>("data", "the expansion", |claim| {
            let status = claim.status.clone().unwrap_or_default();
            status
                .capacity
                .unwrap_or_default()
                .get("storage")
                .is_some_and(|size| size.0 == "2Gi")
                && status.conditions.is_none()
        })
        .await;

    world
        .api::<PersistentVolumeClaim>()
        .delete("data", &DeleteParams::default())
        .await
        .unwrap();
    let kept = world.api::<PersistentVolumeClaim>().get("data").await.unwrap();
    assert!(
        kept.metadata.deletion_timestamp.is_some(),
        "a claim in use is protected"
    );
    let now = DeleteParams {
        grace_period_seconds: Some(0),
        ..DeleteParams::default()
    };
    world.api::<Pod>().delete("p", &now).await.unwrap();
    world
        .eventually("claim and volume to go", async || {
            let claim = world.api::<PersistentVolumeClaim>().get_opt("data").await.unwrap();
            let volume = volumes.get_opt(&name).await.unwrap();
            (claim.is_none() && volume.is_none() && !folder.exists()).then_some(())
        })
        .await;
}

#[tokio::test]
async fn an_immediate_class_makes_the_volume_at_once_and_retain_keeps_it() {
    let world = World::without_nodes().await;
    world
        .create_cluster::<StorageClass>(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "now"}, "provisioner": "kube-sandbox/folder", "volumeBindingMode": "Immediate",
        "reclaimPolicy": "Retain"}))
        .await;
    world
        .create::<PersistentVolumeClaim>(claim("data", &json!("now")))
        .await;
    let bound = world
        .until::<PersistentVolumeClaim>("data", "a bound claim", |claim| phase(claim) == "Bound")
        .await;
    world
        .api::<PersistentVolumeClaim>()
        .delete("data", &DeleteParams::default())
        .await
        .unwrap();
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    let name = bound.spec.unwrap().volume_name.unwrap();
    world
        .eventually("a released volume", async || {
            let volume = volumes.get(&name).await.unwrap();
            (volume.status.unwrap_or_default().phase.as_deref() == Some("Released")).then_some(())
        })
        .await;
}

#[tokio::test]
async fn a_static_volume_is_bound_and_a_claim_without_class_gets_the_default() {
    let world = World::without_nodes().await;
    standard(&world).await;
    world
        .create_cluster::<PersistentVolume>(json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "disk"}, "spec": {"capacity": {"storage": "3Gi"}, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/nowhere"}}}))
        .await;
    world.create::<PersistentVolumeClaim>(claim("static", &json!(""))).await;
    let bound = world
        .until::<PersistentVolumeClaim>("static", "a bound claim", |claim| phase(claim) == "Bound")
        .await;
    assert_eq!(bound.spec.unwrap().volume_name.as_deref(), Some("disk"));
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "3Gi");
    world
        .create::<PersistentVolumeClaim>(claim("plain", &json!(null)))
        .await;
    world
        .until::<PersistentVolumeClaim>("plain", "its class", |claim| {
            claim.spec.as_ref().unwrap().storage_class_name.as_deref() == Some("standard")
        })
        .await;
}
