//! A member that comes back empty. Its volume may be a folder of the node that it ran on before: the data is lost only if
//! the volume itself is gone.

use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::{Node as Machine, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use valkey_admin::Slot;

use crate::support::{Operator, Stage, is_ready};
use crate::{events, keys};

const PATIENCE: Duration = Duration::from_secs(30);

fn message(cluster: &ValkeyCluster) -> &str {
    cluster.status.as_ref().map_or("", |status| &status.message)
}

async fn node_of(stage: &Stage, pod: &str) -> String {
    let pods: Api<Pod> = Api::default_namespaced(stage.client());
    let spec = pods.get(pod).await.unwrap().spec.unwrap();
    spec.node_name.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_empty_volume_on_another_node_is_no_data_loss_until_its_claim_is_deleted() {
    let stage = Stage::set().await;
    stage.pods.keep_disks_on_nodes();
    let operator = Operator::start(stage.client());
    let spec = json!({"shards": 2, "replicas": 0, "persistence": {"size": "1Gi"}});
    stage.create("cart", spec).await;
    stage.ready("cart").await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(stage.client());
    let claim = claims.get("valkey-cart-0-0-data").await.unwrap();
    let remembered = stage.primary("cart", 0).await.unwrap();
    assert_eq!(Some(&remembered.claim_uid), claim.metadata.uid.as_ref());
    let slot = Slot::new(7).unwrap();
    let (pod, ip) = ("valkey-cart-0-0-0", |stage: &Stage| {
        stage.pods.address("default", "valkey-cart-0-0-0")
    });
    assert!(stage.world.write(ip(&stage).unwrap(), slot, 10));

    // The sandbox's volumes have the affinity of their zone.
    let volumes: Api<PersistentVolume> = Api::all(stage.client());
    let anywhere = Patch::Merge(json!({"spec": {"nodeAffinity": null}}));
    let volume = claim.spec.as_ref().unwrap().volume_name.clone().unwrap();
    volumes
        .patch(&volume, &PatchParams::default(), &anywhere)
        .await
        .unwrap();

    let nodes: Api<Machine> = Api::all(stage.client());
    let first = node_of(&stage, pod).await;
    let pods: Api<Pod> = Api::default_namespaced(stage.client());
    let move_away = async |from: &str| {
        nodes.cordon(from).await.unwrap();
        pods.delete(pod, &DeleteParams::default()).await.unwrap();
    };
    move_away(&first).await;
    let expected = format!("but its volume may still have its data on node {first}");
    let recorded = |cluster: &ValkeyCluster| message(cluster).contains(&expected);
    stage
        .until("cart", "told where its data may be", PATIENCE, recorded)
        .await;
    let second = node_of(&stage, pod).await;
    assert_ne!(second, first);

    // Back on its node, it has all its keys.
    nodes.uncordon(&first).await.unwrap();
    for name in ["sim-0", "sim-1", "sim-2"].into_iter().filter(|name| *name != first) {
        nodes.cordon(name).await.unwrap();
    }
    pods.delete(pod, &DeleteParams::default()).await.unwrap();
    stage.ready("cart").await;
    assert_eq!(keys(&stage, slot), [10]);
    assert_eq!(events(&stage, "DataLost").await, [] as [String; 0]);

    // The claim is deleted with the pod: another volume.
    claims
        .delete("valkey-cart-0-0-data", &DeleteParams::default())
        .await
        .unwrap();
    pods.delete(pod, &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    let begun = Instant::now();
    while events(&stage, "DataLost").await.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the loss is not reported");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.until("cart", "Ready", PATIENCE, is_ready).await;
    let after = claims.get("valkey-cart-0-0-data").await.unwrap();
    assert_ne!(after.uid(), claim.uid());
    operator.end().await;
}
