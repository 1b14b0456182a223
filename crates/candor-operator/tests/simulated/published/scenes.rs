//! Scenarios that produce every event and condition.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use candor_api::ValkeyCluster;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node as KubernetesNode, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kube_sandbox::faults::{Fault, Rule, Verb, WatchFault};
use serde_json::json;
use valkey_admin::Slot;
use valkey_admin::client::{Deadlines, Endpoint, Node};
use valkey_sim::{Start, World};

use super::collector::Collector;
use super::scene::{Scene, rejection};

/// A cluster that waits for a Secret, is created, scales out and in, rolls and is deleted, with servers that
/// occasionally reject commands.
pub async fn life(collected: Collector) {
    let scene = Scene::set().await;
    let app = json!({"name": "app", "commands": {"allow": ["@read"]}});
    scene.create(json!({"shards": 2, "replicas": 1, "users": [app]})).await;
    scene.condition("Progressing=True Initializing").await;
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "cart-users"}, "stringData": {"app": "one"}})).unwrap();
    let secrets: Api<Secret> = Api::default_namespaced(scene.stage.client());
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    scene.ready().await;

    scene.reject("CLUSTER MIGRATESLOTS");
    scene.reject("CLUSTER SETSLOT");
    scene.change(json!({"shards": 3})).await;
    scene.recorded("Warning SlotRebalanceFailed").await;
    scene.change(json!({"paused": true})).await;
    scene.condition("Degraded=True NoSlotsAvailable").await;
    scene.change(json!({"paused": null})).await;
    scene.condition_after("Ready=False RebalanceFailed", scene.age()).await;
    scene.stage.world.clear_injected();
    scene.ready().await;
    scene.recorded("Normal SlotsRebalanced").await;

    scene.reject("CLUSTER MIGRATESLOTS");
    scene.change(json!({"shards": 2})).await;
    scene.recorded("Warning DrainFailed").await;
    scene.stage.world.clear_injected();
    scene.reject("CLUSTER FORGET");
    scene.condition("Ready=False NodeForgetFailed").await;
    scene.stage.world.clear_injected();
    scene.recorded("Normal StaleNodeForgotten").await;
    scene.ready().await;

    scene.change(json!({"replicas": 2})).await;
    scene.recorded("Normal WaitingForReplicas").await;
    scene.ready().await;
    scene.reject("CLUSTER FAILOVER");
    scene
        .change(json!({"resources": {"limits": {"memory": "256Mi"}}}))
        .await;
    scene.condition("Ready=False FailoverFailed").await;
    scene.stage.world.clear_injected();
    scene.ready().await;
    let api = scene.stage.clusters("default");
    api.delete("cart", &DeleteParams::default()).await.unwrap();
    scene.condition("Progressing=True Deleting").await;
    scene.recorded("Normal Deleting").await;
    scene.end(&collected).await;
}

/// Members that freeze, terminate and return without data.
pub async fn losses(collected: Collector) {
    let scene = Scene::with(json!({"shards": 3, "replicas": 1})).await;
    let world = &scene.stage.world;
    let address = async |shard, role| scene.address(&scene.member(shard, role).await).await;
    let (first, second) = (address(0, "primary").await, address(1, "primary").await);
    let replica = address(2, "replica").await;
    // A replica is compared by its replication offset, and without a write it has none.
    let third = address(2, "primary").await;
    for (owner, slot) in [(first, 7), (second, 6000), (third, 16000)] {
        assert!(world.write(owner, Slot::new(slot).unwrap(), 7));
    }
    world.freeze(replica);
    scene.recorded("Warning ReplicaLost").await;
    world.thaw(replica);
    scene.ready().await;
    world.freeze(first);
    scene.recorded("Warning PrimaryLost").await;
    world.freeze(second);
    scene.recorded("Warning QuorumLost").await;
    world.thaw(first);
    world.thaw(second);
    scene.ready().await;
    scene
        .kill(&scene.member(2, "primary").await, Duration::from_secs(2))
        .await;
    scene.recorded("Normal FailoverCompleted").await;
    scene.ready().await;
    for member in ["1-0", "1-1"] {
        scene.kill(member, Duration::from_secs(2)).await;
    }
    scene.recorded("Warning DataLost").await;
    scene.ready().await;

    let unknown_server = World::address();
    world.start(unknown_server, &Start::default()).await.unwrap();
    let endpoint = Endpoint {
        address: (unknown_server, 6379).into(),
        credentials: None,
        tls: None,
    };
    Node::new(endpoint, Deadlines::default())
        .meet(first, 6379)
        .await
        .unwrap();
    scene.recorded("Warning ForeignNode").await;
    foreign(&scene, unknown_server).await;
    scene.end(&collected).await;

    let alone = Scene::with(json!({"shards": 1, "replicas": 1})).await;
    let primary = alone.member(0, "primary").await;
    let owner = alone.address(&primary).await;
    assert!(alone.stage.world.write(owner, Slot::new(7).unwrap(), 7));
    alone.kill(&primary, Duration::from_secs(2)).await;
    alone.recorded("Warning ReplicasTakenOver").await;
    alone.ready().await;
    alone.end(&collected).await;
}

/// While an unknown node is in the cluster map, the operator changes no members. When the node is gone, the cluster
/// becomes ready again.
async fn foreign(scene: &Scene, unknown_server: IpAddr) {
    let spoken = |cluster: &ValkeyCluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let expected = format!("at {unknown_server}:6379");
        let mut degraded = conditions.clone().filter(|one| one.type_ == "Degraded");
        let mut ready = conditions.filter(|one| one.type_ == "Ready");
        degraded.any(|one| one.reason == "ForeignNode" && one.message.contains(&expected))
            && ready.any(|one| one.status == "False")
    };
    let patience = Duration::from_secs(60);
    scene
        .stage
        .until("cart", "not ready for a stranger", patience, spoken)
        .await;
    let before = scene.stage.pods_of("cart").await;
    scene.stage.world.kill(unknown_server);
    scene.ready().await;
    assert_eq!(scene.stage.pods_of("cart").await, before, "members were touched");
}

/// Invalid input that only a server, the scheduler or the operator can detect.
pub async fn bad_input(collected: Collector) {
    let scene = Scene::with(json!({"shards": 1, "replicas": 1, "image": "valkey/valkey:9.1"})).await;
    scene.change(json!({"config": {"maxmemmory": "1gb"}})).await;
    scene.recorded("Warning ConfigurationRefused").await;
    scene.condition("ConfigurationApplied=False ConfigurationRefused").await;
    scene.condition("Ready=False ConfigurationRefused").await;
    scene
        .change(json!({"config": {"maxmemmory": null, "maxmemory-policy": "allkeys-lru"}}))
        .await;
    scene.ready().await;
    scene
        .change(json!({"config": {"maxmemory-policy": "volatile-lru"}}))
        .await;
    scene.ready().await;
    let app = |permissions: &str| json!({"users": [{"name": "app", "nopass": true, "permissions": permissions}]});
    scene.change(app("~* +@read")).await;
    scene.ready().await;
    scene.change(app("~* +nosuchcommand")).await;
    scene.recorded("Warning UsersRefused").await;
    scene.condition("UsersApplied=False UsersRefused").await;
    scene.condition("Ready=False UsersRefused").await;
    scene.change(json!({"users": [{"name": "app"}]})).await;
    scene.condition("UsersApplied=False UsersInvalid").await;
    scene.change(json!({"users": []})).await;
    scene.ready().await;
    scene
        .change(json!({"containers": [{"name": "server", "env": "none"}]}))
        .await;
    scene.condition("ConfigurationApplied=False SpecInvalid").await;
    scene
        .change(json!({"containers": [], "image": "valkey/valkey:8.0"}))
        .await;
    scene.recorded("Warning DowngradeRefused").await;
    let before = scene.stage.pods_of("cart").await;
    scene.change(json!({"image": "example.com/no-such:9.1"})).await;
    scene.recorded("Warning PodNotStarting").await;
    scene.change(json!({"image": "valkey/valkey:9.1"})).await;
    scene.ready().await;
    scene
        .change(json!({"scheduling": {"nodeSelector": {"disk": "none"}}}))
        .await;
    scene.recorded("Warning PodUnschedulable").await;
    assert_eq!(
        scene.stage.pods_of("cart").await,
        before,
        "nobody was restarted to learn it"
    );
    scene.change(json!({"replicas": 2})).await;
    scene
        .condition("Progressing=True Reconciling: Waiting for the pod of member")
        .await;
    scene.change(json!({"scheduling": null})).await;
    scene.ready().await;
    let pods: Api<Pod> = Api::default_namespaced(scene.stage.client());
    assert_eq!(pods.get_opt("valkey-cart-trial").await.unwrap(), None, "thrown away");
    scene.end(&collected).await;
}

/// An API server that rejects one kind after the other, first its creation, then its update.
pub async fn rejected_writes(collected: Collector) {
    let scene = Scene::set().await;
    scene.reject_writes("secrets");
    scene.create(json!({"shards": 1})).await;
    for (event, next) in [
        ("InternalSecretsCreationFailed", "configmaps"),
        ("ConfigMapCreationFailed", "services"),
        ("ServiceCreationFailed", "poddisruptionbudgets"),
        ("PodDisruptionBudgetCreationFailed", "deployments"),
        ("DeploymentCreationFailed", "none"),
    ] {
        scene.recorded(&format!("Warning {event}")).await;
        scene.reject_writes(next);
    }
    scene.ready().await;
    let label = json!({"metadata": {"labels": {"app.kubernetes.io/name": "another"}}});
    scene.reject_writes("secrets");
    scene.edit::<Secret>("internal-cart-acl", label.clone()).await;
    scene.recorded("Warning InternalSecretsUpdateFailed").await;
    scene.reject_writes("configmaps");
    scene.edit::<ConfigMap>("valkey-cart", label.clone()).await;
    scene.recorded("Warning ConfigMapUpdateFailed").await;
    scene.reject_writes("services");
    scene.edit::<Service>("valkey-cart", label.clone()).await;
    scene.recorded("Warning ServiceUpdateFailed").await;
    scene.reject_writes("poddisruptionbudgets");
    scene
        .edit::<PodDisruptionBudget>("valkey-cart", json!({"spec": {"maxUnavailable": 2}}))
        .await;
    scene.recorded("Warning PodDisruptionBudgetUpdateFailed").await;
    scene.reject_writes("deployments");
    scene.recorded("Normal PodDisruptionBudgetUpdated").await;
    scene.edit::<Deployment>("valkey-cart-0-0", label.clone()).await;
    scene.recorded("Warning DeploymentUpdateFailed").await;
    scene.faults.calm();
    scene.ready().await;
    scene.change(json!({"podDisruptionBudget": {"mode": "Disabled"}})).await;
    scene.recorded("Normal PodDisruptionBudgetDeleted").await;
    scene.end(&collected).await;
}

/// Members with volumes.
pub async fn volumes(collected: Collector) {
    let scene = Scene::set().await;
    scene.reject_writes("persistentvolumeclaims");
    let spec = |size: &str| json!({"persistence": {"size": size}});
    scene.create(json!({"shards": 1, "persistence": {"size": "1Gi"}})).await;
    scene.recorded("Warning PersistentVolumeClaimCreationFailed").await;
    scene.reject_writes("statefulsets");
    scene.recorded("Warning StatefulSetCreationFailed").await;
    scene.faults.calm();
    scene.ready().await;
    scene.reject_writes("persistentvolumeclaims");
    scene.change(spec("2Gi")).await;
    scene.recorded("Warning PersistentVolumeClaimUpdateFailed").await;
    scene.reject_writes("statefulsets");
    let label = json!({"metadata": {"labels": {"app.kubernetes.io/name": "another"}}});
    scene.edit::<StatefulSet>("valkey-cart-0-0", label).await;
    scene.recorded("Warning StatefulSetUpdateFailed").await;
    scene.faults.calm();
    scene.ready().await;
    scene.stage.world.fill_disks(true);
    scene.recorded("Warning VolumeFailed").await;
    scene.condition("StorageReady=False VolumeFailed").await;
    scene.stage.world.fill_disks(false);
    scene.ready().await;
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(scene.stage.client());
    for (phase, reason) in [
        ("Pending", "VolumePending"),
        ("Lost", "VolumeFailed: member 0-0: volume claim"),
    ] {
        let patch = json!({"status": {"phase": phase}});
        let turn = Scene::patch_status(claims.clone(), "valkey-cart-0-0-data", patch);
        scene
            .condition_after(&format!("StorageReady=False {reason}"), turn)
            .await;
    }
    scene.end(&collected).await;
}

/// Servers that reject joining the cluster.
pub async fn refusing_servers(collected: Collector) {
    let scene = Scene::set().await;
    for command in ["MEET", "ADDSLOTSRANGE", "REPLICATE"] {
        scene.reject(&format!("CLUSTER {command}"));
    }
    scene.create(json!({"shards": 2, "replicas": 1})).await;
    scene.recorded("Warning ClusterMeetFailed").await;
    scene.condition_after("Ready=False NodeAddFailed", scene.age()).await;
    scene.stage.world.clear_injected();
    scene.reject("CLUSTER ADDSLOTSRANGE");
    scene.recorded("Warning SlotAssignmentFailed").await;
    scene.stage.world.clear_injected();
    scene.reject("CLUSTER REPLICATE");
    scene.recorded("Warning ReplicaCreationFailed").await;
    scene.stage.world.clear_injected();
    scene.ready().await;
    scene.end(&collected).await;
}

/// An API server that no longer lists pods.
pub async fn blind(collected: Collector) {
    let watch = Rule::new("pods expire")
        .verb(Verb::Watch)
        .resource("pods")
        .then(Fault::Watch(WatchFault::Expire { after: 2 }));
    let list = rejection("pods").verb(Verb::List).range(3, 1_000);
    let scene = Scene::set_with(&[watch, list]).await;
    scene.create(json!({"shards": 1})).await;
    scene.condition("Ready=Unknown PodListError").await;
    scene.faults.calm();
    scene.ready().await;
    scene.end(&collected).await;
}

/// Primaries in one zone, and replicas in another: said as long as it is so, and Ready stays as it is.
pub async fn zones(collected: Collector) {
    let scene = Scene::with(json!({"shards": 2, "replicas": 2})).await;
    let api: Api<KubernetesNode> = Api::all(scene.stage.client());
    let nodes = api.list(&ListParams::default()).await.unwrap();
    let all: BTreeSet<String> = nodes.iter().map(ResourceExt::name_any).collect();
    let place = async |east: &BTreeSet<String>| {
        for node in &all {
            let zone = if east.contains(node) { "east" } else { "west" };
            let label = json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
            let (how, patch) = (PatchParams::default(), Patch::Merge(label));
            api.patch(node, &how, &patch).await.unwrap();
        }
    };
    let mut primaries = BTreeSet::new();
    for shard in 0..2 {
        primaries.extend(scene.stage.primary("cart", shard).await.map(|one| one.node_name));
    }
    place(&primaries).await;
    scene
        .condition("PrimariesSpread=False PrimariesPiledUp: Primaries are piled up: 2 in east")
        .await;
    scene.ready().await;
    place(&all).await;
    let is_gone = |cluster: &ValkeyCluster| {
        let mut conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        !conditions.any(|one| one.type_ == "PrimariesSpread")
    };
    scene
        .stage
        .until("cart", "spread", Duration::from_secs(60), is_gone)
        .await;
    scene.ready().await;
    scene.end(&collected).await;
}
