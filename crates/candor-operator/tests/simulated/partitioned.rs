//! A primary on a partitioned node, and an operator that starts later. A reply from another server at its address is
//! no evidence that the primary has terminated. A report from its node is.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::{Node as Machine, Pod};
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;
use valkey_admin::Slot;
use valkey_sim::node::Node;

use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(20);

/// One shard with a replica that has every key, after its operator has stopped.
struct Scene {
    stage: Stage,
    /// The primary's pod, its address and its node.
    pod: String,
    ip: IpAddr,
    node: String,
    replica: IpAddr,
    slot: Slot,
}

impl Scene {
    async fn set() -> Self {
        let stage = Stage::set().await;
        let operator = Operator::start(stage.client());
        stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
        stage.ready("cart").await;
        let pods = stage.pods_of("cart").await;
        let primary = stage.primary("cart", 0).await.unwrap();
        let pod = pods[&format!("0-{}", primary.node)].clone();
        let ip = stage.pods.address("default", &pod).unwrap();
        let other = &pods[&format!("0-{}", 1 - primary.node)];
        let replica = stage.pods.address("default", other).unwrap();
        let slot = Slot::new(7).unwrap();
        assert!(stage.world.write(ip, slot, 10));
        let scene = Self {
            node: primary.node_name,
            stage,
            pod,
            ip,
            replica,
            slot,
        };
        scene
            .until("copied", |scene| scene.keys(scene.replica) == Some(10))
            .await;
        operator.end().await;
        scene
    }

    fn keys(&self, ip: IpAddr) -> Option<u64> {
        let keys = |node: &Node| node.keys.get(&self.slot.get()).copied().unwrap_or(0);
        self.stage.world.inspect(ip, keys)
    }

    fn leads(&self, ip: IpAddr) -> bool {
        let leads = |node: &Node| node.map.primary.is_none() && node.map.slots.contains(self.slot);
        self.stage.world.inspect(ip, leads).unwrap_or(false)
    }

    async fn until(&self, what: &str, so: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !so(self) {
            assert!(start.elapsed() < PATIENCE, "never {what}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn cordon(&self, node: &str) {
        let nodes: Api<Machine> = Api::all(self.stage.client());
        nodes.cordon(node).await.unwrap();
    }

    /// Force-deletes the primary's pod, as users do with pods that hang.
    async fn delete_by_force(&self) {
        let pods: Api<Pod> = Api::default_namespaced(self.stage.client());
        let params = DeleteParams::default().grace_period(0);
        pods.delete(&self.pod, &params).await.unwrap();
    }
}

fn message(cluster: &ValkeyCluster) -> &str {
    cluster.status.as_ref().map_or("", |status| &status.message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blank_pod_in_place_of_a_partitioned_primary_is_no_evidence_until_the_node_is_ready_again() {
    let scene = Scene::set().await;
    scene.stage.pods.cut_off(&scene.node);
    scene.stage.world.freeze(scene.ip);
    scene.cordon(&scene.node).await;
    scene.delete_by_force().await;
    let others = |scene: &Scene| {
        let mut all = scene.stage.world.members();
        all.retain(|ip| ![scene.ip, scene.replica].contains(ip));
        all
    };
    scene.until("replaced", |scene| !others(scene).is_empty()).await;
    let operator = Operator::start(scene.stage.client());
    let expected = format!("may still be running on node {}", scene.node);
    let condition = |cluster: &ValkeyCluster| message(cluster).contains(&expected);
    scene.stage.until("cart", "in doubt", PATIENCE, condition).await;
    assert!(
        !scene.leads(scene.replica),
        "the old primary may still acknowledge writes"
    );
    scene.stage.world.thaw(scene.ip);
    scene.stage.pods.reconnect(&scene.node);
    scene.until("promoted", |scene| scene.leads(scene.replica)).await;
    scene.stage.ready("cart").await;
    assert_eq!(scene.keys(scene.replica), Some(10));
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_replica_of_a_primary_that_vanished_unseen_is_promoted_when_its_node_confirms() {
    let scene = Scene::set().await;
    // No pod can replace the primary, and no operator is running when it terminates.
    for node in ["sim-0", "sim-1", "sim-2"] {
        scene.cordon(node).await;
    }
    scene.delete_by_force().await;
    scene
        .until("ended", |scene| !scene.stage.world.members().contains(&scene.ip))
        .await;
    let operator = Operator::start(scene.stage.client());
    scene.until("promoted", |scene| scene.leads(scene.replica)).await;
    assert_eq!(scene.keys(scene.replica), Some(10));
    operator.end().await;
}
