//! A member's pod without its labels. Its workload releases it and creates another pod, while the first one still runs
//! and is still a node of the cluster.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_api::valkey::status::MemberRole;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use valkey_admin::Slot;
use valkey_admin::client::{Deadlines, Endpoint, Node as Client};
use valkey_sim::node::Node;

use crate::events;
use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(30);
const CLUSTER: &str = "valkey.io/cluster";
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SHARD: &str = "valkey.io/shard-index";

/// A ready cluster with ten keys in one slot.
struct Scene {
    stage: Stage,
    operator: Operator,
    slot: Slot,
}

impl Scene {
    async fn with(spec: Value) -> Self {
        let stage = Stage::set().await;
        let operator = Operator::start(stage.client());
        stage.create("cart", spec).await;
        stage.ready("cart").await;
        let slot = Slot::new(7).unwrap();
        let scene = Self { stage, operator, slot };
        let primary = scene.member(MemberRole::Primary).await;
        let owner = scene.stage.pods.address("default", &primary).unwrap();
        assert!(scene.stage.world.write(owner, slot, 10));
        scene
            .until("copied", async |scene| {
                scene.copies() == scene.stage.world.members().len()
            })
            .await;
        scene
    }

    fn api(&self) -> Api<Pod> {
        Api::default_namespaced(self.stage.client())
    }

    /// The pod of the member of shard 0 with this role.
    async fn member(&self, role: MemberRole) -> String {
        let status = self
            .stage
            .clusters("default")
            .get("cart")
            .await
            .unwrap()
            .status
            .unwrap();
        let mut members = status.topology[0].members.iter();
        let node = members.find(|one| one.role == Some(role)).unwrap().node;
        self.stage.pods_of("cart").await[&format!("0-{node}")].clone()
    }

    async fn label(&self, pod: &str, labels: Value) {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.api().patch(pod, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn exists(&self, pod: &Pod) -> bool {
        let now = self.api().get_opt(&pod.name_any()).await.unwrap();
        now.is_some_and(|now| now.uid() == pod.uid())
    }

    fn holds(&self, ip: IpAddr) -> bool {
        let keys = |node: &Node| node.keys.get(&self.slot.get()) == Some(&10);
        self.stage.world.inspect(ip, keys).unwrap_or(false)
    }

    /// How many servers have all keys.
    fn copies(&self) -> usize {
        let members = self.stage.world.members();
        members.into_iter().filter(|ip| self.holds(*ip)).count()
    }

    /// The server that owns the slot and has all keys.
    fn owner(&self) -> Option<IpAddr> {
        let leads = |node: &Node| node.map.primary.is_none() && node.map.slots.contains(self.slot);
        let mut members = self.stage.world.members().into_iter();
        members.find(|ip| self.holds(*ip) && self.stage.world.inspect(*ip, leads).unwrap_or(false))
    }

    async fn until(&self, what: &str, so: impl AsyncFn(&Self) -> bool) {
        let start = Instant::now();
        while !so(self).await {
            let cluster = self.stage.clusters("default").get("cart").await.unwrap();
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(start.elapsed() < PATIENCE, "never {what}: {status}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The pod is gone, another one is in its place, and no node was ever called foreign.
    async fn is_replaced(&self, pod: &Pod) {
        self.until("deleted", async |scene| !scene.exists(pod).await).await;
        self.stage.ready("cart").await;
        self.until("copied", async |scene| scene.copies() == 2).await;
        assert!(self.owner().is_some());
        assert_eq!(events(&self.stage, "ForeignNode").await, [] as [String; 0]);
        assert_eq!(events(&self.stage, "DataLost").await, [] as [String; 0]);
    }
}

fn reports(cluster: &ValkeyCluster, expected: &[&str]) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut messages = conditions.map(|one| &one.message);
    messages.any(|message| expected.iter().all(|one| message.contains(one)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_without_its_label_is_named_deleted_and_replaced() {
    for persistence in [Value::Null, json!({"size": "1Gi"})] {
        let scene = Scene::with(json!({"shards": 1, "replicas": 1, "persistence": persistence})).await;
        let name = scene.member(MemberRole::Replica).await;
        let pod = scene.api().get(&name).await.unwrap();
        scene.label(&name, json!({(CLUSTER): null})).await;
        scene.is_replaced(&pod).await;
        let recorded = events(&scene.stage, "ReplicaLost").await;
        assert!(recorded.iter().any(|message| message.contains(&name)), "{recorded:?}");
        scene.operator.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_whose_label_names_no_shard_is_deleted_and_replaced() {
    let scene = Scene::with(json!({"shards": 1, "replicas": 1})).await;
    let name = scene.member(MemberRole::Replica).await;
    let pod = scene.api().get(&name).await.unwrap();
    scene.label(&name, json!({(SHARD): "12"})).await;
    scene.is_replaced(&pod).await;
    scene.operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_without_its_label_is_deleted_only_after_a_planned_failover() {
    for persistence in [Value::Null, json!({"size": "1Gi"})] {
        let scene = Scene::with(json!({"shards": 1, "replicas": 1, "persistence": persistence})).await;
        let name = scene.member(MemberRole::Primary).await;
        let pod = scene.api().get(&name).await.unwrap();
        scene.label(&name, json!({(CLUSTER): null})).await;
        scene.is_replaced(&pod).await;
        scene.operator.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_copy_is_left_alone_while_its_label_is_missing_and_is_a_member_again_with_it() {
    let scene = Scene::with(json!({"shards": 1, "replicas": 0})).await;
    let name = scene.member(MemberRole::Primary).await;
    let pod = scene.api().get(&name).await.unwrap();
    let owner = scene.owner();
    scene.label(&name, json!({(CLUSTER): null})).await;
    let second = async |scene: &Scene| scene.stage.pods_of("cart").await.len() == 1;
    scene.until("replaced", second).await;
    let named = |cluster: &ValkeyCluster| reports(cluster, &[&name, COST, "kubectl label pod"]);
    scene.stage.until("cart", "named", PATIENCE, named).await;
    // The node renews its Lease every second: what would count as evidence of termination is there by then.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(scene.owner(), owner, "the server with the data owns the slots");
        assert!(scene.exists(&pod).await);
        assert!(!is_ready(&scene.stage.clusters("default").get("cart").await.unwrap()));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let cost = Patch::Merge(json!({"metadata": {"annotations": {(COST): "1000"}}}));
    scene.api().patch(&name, &PatchParams::default(), &cost).await.unwrap();
    scene.label(&name, json!({(CLUSTER): "cart"})).await;
    scene
        .until("the only pod", async |scene| {
            let pods = scene.api().list(&ListParams::default()).await.unwrap();
            pods.iter().map(ResourceExt::uid).eq([pod.uid()])
        })
        .await;
    scene.stage.ready("cart").await;
    assert_eq!(scene.owner(), owner);
    assert_eq!(events(&scene.stage, "DataLost").await, [] as [String; 0]);
    scene.operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_was_never_a_member_is_named_as_a_foreign_node_and_left_alone() {
    let scene = Scene::with(json!({"shards": 1, "replicas": 1})).await;
    let web = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "server", "image": "valkey/valkey:9.1"}]}});
    let web: Pod = serde_json::from_value(web).unwrap();
    let web = scene.api().create(&PostParams::default(), &web).await.unwrap();
    scene
        .until("running", async |scene| {
            scene.stage.pods.address("default", "web").is_some()
        })
        .await;
    let ip = scene.stage.pods.address("default", "web").unwrap();
    let endpoint = Endpoint {
        address: (ip, 6379).into(),
        credentials: None,
        tls: None,
    };
    let client = Client::new(endpoint, Deadlines::default());
    client.meet(scene.owner().unwrap(), 6379).await.unwrap();
    let expected = [&*format!("at {ip}:6379"), "pod web"];
    let named = |cluster: &ValkeyCluster| reports(cluster, &expected);
    scene.stage.until("cart", "named", PATIENCE, named).await;
    assert!(scene.exists(&web).await);
    scene.operator.end().await;
}
