//! Objects of other owners with the operator's names or labels: the operator never writes or deletes them, and status
//! and an event name their owner.

use std::time::{Duration, Instant};

use candor_api::{ValkeyCluster, ValkeyNode};
use candor_operator::Settings;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use kube_sandbox::faults::{Fault, Faults, Rule, Verb, WatchFault};
use serde_json::{Value, json};

use crate::published::through;
use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);

fn api<K: Resource<DynamicType = ()>>(stage: &Stage) -> Api<DynamicObject> {
    Api::default_namespaced_with(stage.client(), &ApiResource::erase::<K>(&()))
}

async fn make<K: Resource<DynamicType = ()>>(stage: &Stage, metadata: Value, mut rest: Value) -> DynamicObject {
    let kind = ApiResource::erase::<K>(&());
    rest["apiVersion"] = json!(kind.api_version);
    rest["kind"] = json!(kind.kind);
    rest["metadata"] = metadata;
    let object = serde_json::from_value(rest).unwrap();
    api::<K>(stage).create(&PostParams::default(), &object).await.unwrap()
}

/// An object without the fields that kubelets, controllers and the scheduler write.
fn essence(object: &DynamicObject) -> Value {
    let mut data = object.data.clone();
    data.as_object_mut().map(|data| data.remove("status"));
    let metadata = &object.metadata;
    json!({"uid": metadata.uid, "labels": metadata.labels, "owners": metadata.owner_references, "data": data,
        "leaving": metadata.deletion_timestamp})
}

fn reports(cluster: &ValkeyCluster, expected: &str) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|one| one.type_ == "Ready" && one.status == "False");
    ready.any(|one| one.message.contains(expected))
}

async fn gone(stage: &Stage, name: &str) {
    let clusters = stage.clusters("default");
    clusters.delete(name, &DeleteParams::default()).await.unwrap();
    let begun = Instant::now();
    while clusters.get_opt(name).await.unwrap().is_some() {
        assert!(begun.elapsed() < PATIENCE, "{name} is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Waits for an event about a cluster.
async fn event(stage: &Stage, cluster: &str, expected: &str) {
    let events: Api<Event> = Api::default_namespaced(stage.client());
    let begun = Instant::now();
    loop {
        let all = events.list(&ListParams::default()).await.unwrap();
        let about = all
            .iter()
            .filter(|one| one.involved_object.name.as_deref() == Some(cluster));
        let mut messages = about.filter_map(|one| one.message.as_deref());
        if messages.any(|message| message.contains(expected)) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "no event of {cluster} says {expected:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clusters_that_need_one_service_do_not_take_it_from_each_other() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("x", json!({"shards": 1})).await;
    stage.ready("x").await;
    let services = api::<Service>(&stage);
    let before = services.get("valkey-x-client").await.unwrap();
    stage.create("x-client", json!({"shards": 1})).await;
    let expected = "Service valkey-x-client belongs to ValkeyCluster x and is left as it is";
    let recorded = |cluster: &ValkeyCluster| reports(cluster, expected);
    stage.until("x-client", "told whose it is", PATIENCE, recorded).await;
    event(&stage, "x-client", expected).await;
    assert!(is_ready(&stage.clusters("default").get("x").await.unwrap()));

    gone(&stage, "x-client").await;
    let after = services.get("valkey-x-client").await.unwrap();
    assert_eq!(essence(&after), essence(&before));

    // Status of a later cluster reports the conflict as well. Once the first cluster is deleted, the later one becomes
    // ready.
    stage.create("x-client", json!({"shards": 1})).await;
    stage.until("x-client", "told whose it is", PATIENCE, recorded).await;
    gone(&stage, "x").await;
    stage.until("x-client", "Ready", PATIENCE, is_ready).await;
    operator.end().await;
}

/// An object of another owner with a name that a cluster needs.
struct Taken {
    kind: &'static str,
    name: String,
    object: DynamicObject,
    api: Api<DynamicObject>,
}

async fn take<K: Resource<DynamicType = ()>>(stage: &Stage, name: &str, rest: Value) -> Taken {
    let object = make::<K>(stage, json!({"name": name, "labels": {"team": "blue"}}), rest).await;
    let kind: &'static str = Box::leak(K::kind(&()).into_owned().into_boxed_str());
    Taken {
        kind,
        name: name.to_owned(),
        object,
        api: api::<K>(stage),
    }
}

fn workload(replicas: u32) -> Value {
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "no-such"});
    json!({"spec": {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}})
}

fn volume() -> Value {
    json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_another_that_has_a_name_of_ours_is_named_and_left_alone() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let port = json!({"spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}});
    let budget = json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let mut deployment = workload(0);
    deployment["spec"].as_object_mut().unwrap().remove("serviceName");
    let secret = || json!({"stringData": {"_operator": "theirs"}});
    let taken = [
        ("a", take::<Service>(&stage, "valkey-a", port.clone()).await),
        ("b", take::<Service>(&stage, "valkey-b-client", port).await),
        (
            "c",
            take::<ConfigMap>(&stage, "valkey-c", json!({"data": {"web": "1"}})).await,
        ),
        ("d", take::<Secret>(&stage, "internal-d-acl", secret()).await),
        (
            "e",
            take::<Secret>(&stage, "internal-e-system-passwords", secret()).await,
        ),
        ("f", take::<PodDisruptionBudget>(&stage, "valkey-f", budget).await),
        ("g", take::<Deployment>(&stage, "valkey-g-0-0", deployment).await),
        ("h", take::<StatefulSet>(&stage, "valkey-h-0-0", workload(0)).await),
        (
            "i",
            take::<PersistentVolumeClaim>(&stage, "valkey-i-0-0-data", volume()).await,
        ),
    ];
    for (cluster, _) in &taken {
        let mut spec = json!({"shards": 1});
        if ["h", "i"].contains(cluster) {
            spec["persistence"] = json!({"size": "1Gi", "reclaimPolicy": "Delete"});
        }
        stage.create(cluster, spec).await;
    }
    for (cluster, taken) in &taken {
        let expected = format!(
            "{} {} exists, was not made for this cluster and is left as it is",
            taken.kind, taken.name
        );
        stage
            .until(cluster, "told whose it is", PATIENCE, |cluster| {
                reports(cluster, &expected)
            })
            .await;
        event(&stage, cluster, &expected).await;
    }
    // One name becomes free: its cluster continues without further action.
    let (free, left) = taken.split_first().unwrap();
    free.1.api.delete(&free.1.name, &DeleteParams::default()).await.unwrap();
    stage.until(free.0, "Ready", PATIENCE, is_ready).await;
    for (cluster, taken) in left {
        gone(&stage, cluster).await;
        let after = taken.api.get(&taken.name).await.unwrap();
        assert_eq!(essence(&after), essence(&taken.object), "{} {}", taken.kind, taken.name);
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_of_another_that_carries_our_labels_survives_the_deletion_of_the_cluster() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let labels = json!({"valkey.io/cluster": "cart", "valkey.io/shard-index": "7", "valkey.io/node-index": "0",
        "app.kubernetes.io/managed-by": "candor"});
    let owner = make::<ConfigMap>(&stage, json!({"name": "release"}), json!({})).await;
    let by = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "release", "uid": owner.uid().unwrap(),
        "controller": true}]);
    let mut deployment = workload(0);
    deployment["spec"].as_object_mut().unwrap().remove("serviceName");
    let owned = |name: &str| json!({"name": name, "labels": labels, "ownerReferences": by});
    let copied = |name: &str| json!({"name": name, "labels": labels});
    let preflight =
        json!({"name": "valkey-cart-trial", "labels": {"valkey.io/trial-of": "cart"}, "ownerReferences": by});
    let container = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "web"}]}});
    let spec = json!({"spec": {"cluster": "cart", "shard": 7, "node": 0}});
    let budget = json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let mut others = vec![
        (
            api::<Deployment>(&stage),
            make::<Deployment>(&stage, owned("valkey-cart-7-0"), deployment.clone()).await,
        ),
        (
            api::<Deployment>(&stage),
            make::<Deployment>(&stage, copied("backup"), deployment).await,
        ),
        (
            api::<StatefulSet>(&stage),
            make::<StatefulSet>(&stage, owned("valkey-cart-7-0"), workload(0)).await,
        ),
        (
            api::<PersistentVolumeClaim>(&stage),
            make::<PersistentVolumeClaim>(&stage, owned("valkey-cart-7-0-data"), volume()).await,
        ),
        (
            api::<PersistentVolumeClaim>(&stage),
            make::<PersistentVolumeClaim>(&stage, copied("a-copy-of-the-volume"), volume()).await,
        ),
        (
            api::<ValkeyNode>(&stage),
            make::<ValkeyNode>(&stage, owned("cart-7-0"), spec).await,
        ),
        (api::<Pod>(&stage), make::<Pod>(&stage, preflight, container).await),
    ];
    let mut mine = labels.clone();
    mine.as_object_mut().unwrap().remove("valkey.io/shard-index");
    let metadata = json!({"name": "valkey-cart", "labels": mine, "ownerReferences": by});
    others.push((
        api::<PodDisruptionBudget>(&stage),
        make::<PodDisruptionBudget>(&stage, metadata, budget).await,
    ));
    let kept = json!({"size": "1Gi", "reclaimPolicy": "Delete"});
    stage
        .create(
            "cart",
            json!({"shards": 1, "persistence": kept, "podDisruptionBudget": {"mode": "Disabled"}}),
        )
        .await;
    stage.ready("cart").await;
    gone(&stage, "cart").await;
    for (api, before) in others {
        let after = api.get(&before.name_any()).await.unwrap();
        let (mut after, mut before) = (essence(&after), essence(&before));
        // The scheduler and the volume controller write these fields.
        for one in [&mut after, &mut before] {
            one["data"]["spec"]["nodeName"] = json!(null);
            one["data"]["spec"]["volumeName"] = json!(null);
        }
        assert_eq!(after, before);
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_took_the_place_of_ours_unseen_is_not_written_over() {
    let stage = Stage::set().await;
    // The operator receives no watch events of Services after the first list.
    let deaf = Rule::new("services are lost")
        .verb(Verb::Watch)
        .resource("services")
        .then(Fault::Watch(WatchFault::Lose { from: 1, count: 1_000 }));
    let faults = Faults::seeded(1).with(deaf);
    let operator = Operator::start_with(through(&faults, stage.client()), Settings::default());
    stage.create("cart", json!({"shards": 1})).await;
    stage.ready("cart").await;
    let services = api::<Service>(&stage);
    services
        .delete("valkey-cart-client", &DeleteParams::default())
        .await
        .unwrap();
    let port = json!({"spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}});
    let theirs = make::<Service>(&stage, json!({"name": "valkey-cart-client"}), port).await;
    // The new label makes the operator apply every object. Without an ownership check it would overwrite this Service.
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "blue"}}}));
    let clusters = stage.clusters("default");
    clusters.patch("cart", &PatchParams::default(), &patch).await.unwrap();
    let expected = "Service valkey-cart-client exists, was not made for this cluster and is left as it is";
    stage
        .until("cart", "told whose it is", PATIENCE, |cluster| {
            reports(cluster, expected)
        })
        .await;
    let after = services.get("valkey-cart-client").await.unwrap();
    assert_eq!(essence(&after), essence(&theirs));
    operator.end().await;
}

/// Waits until every claim has owners of these kinds.
async fn owned_by(stage: &Stage, kinds: &[&str]) {
    let claims = api::<PersistentVolumeClaim>(stage);
    let begun = Instant::now();
    loop {
        let all = claims.list(&ListParams::default()).await.unwrap();
        let so = |one: &DynamicObject| one.owner_references().iter().map(|by| &by.kind).eq(kinds);
        if all.iter().all(so) {
            return;
        }
        let owners: Vec<_> = all.iter().map(|one| one.owner_references().to_vec()).collect();
        assert!(begun.elapsed() < PATIENCE, "not owned by {kinds:?}: {owners:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_that_are_to_be_retained_from_now_on_survive_a_foreground_deletion() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let policy = |policy: &str| json!({"persistence": {"size": "1Gi", "reclaimPolicy": policy}});
    let mut spec = policy("Delete");
    (spec["shards"], spec["replicas"]) = (json!(2), json!(1));
    stage.create("cart", spec).await;
    stage.ready("cart").await;
    owned_by(&stage, &["ValkeyCluster"]).await;

    // Objects that have another owner are not changed.
    let backup = make::<ConfigMap>(&stage, json!({"name": "backup"}), json!({})).await;
    let by = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "backup", "uid": backup.uid().unwrap()});
    let claims = api::<PersistentVolumeClaim>(&stage);
    for claim in claims.list(&ListParams::default()).await.unwrap() {
        let operation = json!([{"op": "add", "path": "/metadata/ownerReferences/0", "value": by}]);
        let patch = Patch::Json::<DynamicObject>(serde_json::from_value(operation).unwrap());
        claims
            .patch(&claim.name_any(), &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    owned_by(&stage, &["ConfigMap", "ValkeyCluster"]).await;
    stage.change("cart", policy("Retain")).await;
    owned_by(&stage, &["ConfigMap"]).await;
    stage.change("cart", policy("Delete")).await;
    owned_by(&stage, &["ConfigMap", "ValkeyCluster"]).await;
    stage.change("cart", policy("Retain")).await;
    owned_by(&stage, &["ConfigMap"]).await;
    stage.ready("cart").await;

    let before = claims.list(&ListParams::default()).await.unwrap();
    let clusters = stage.clusters("default");
    clusters.delete("cart", &DeleteParams::foreground()).await.unwrap();
    let begun = Instant::now();
    while clusters.get_opt("cart").await.unwrap().is_some() {
        assert!(begun.elapsed() < PATIENCE, "it is still there");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let after = claims.list(&ListParams::default()).await.unwrap();
    let uids = |all: &kube::core::ObjectList<DynamicObject>| all.iter().map(ResourceExt::uid).collect::<Vec<_>>();
    assert_eq!(uids(&after), uids(&before));
    assert!(after.iter().all(|one| one.metadata.deletion_timestamp.is_none()));
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_retained_or_orphaned_is_adopted_again() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let spec = json!({"shards": 1, "replicas": 1, "persistence": {"size": "1Gi", "reclaimPolicy": "Retain"}});
    stage.create("cart", spec.clone()).await;
    stage.ready("cart").await;
    let claims = api::<PersistentVolumeClaim>(&stage);
    let uids = async || {
        let all = claims.list(&ListParams::default()).await.unwrap();
        all.iter().map(|one| (one.name_any(), one.uid())).collect::<Vec<_>>()
    };
    let before = uids().await;
    assert_eq!(before.len(), 2);
    gone(&stage, "cart").await;
    stage.create("cart", spec).await;
    stage.ready("cart").await;
    assert_eq!(uids().await, before, "the same volumes");

    // A Service without its owner reference, as an orphaning deletion leaves it.
    let services = api::<Service>(&stage);
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    let params = PatchParams::default();
    let orphan = services.patch("valkey-cart-client", &params, &patch).await.unwrap();
    let begun = Instant::now();
    loop {
        let now = services.get("valkey-cart-client").await.unwrap();
        assert_eq!(now.uid(), orphan.uid());
        if now.owner_references().len() == 1 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "not adopted");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_only_carries_our_labels_is_no_member_and_does_not_block_the_deletion() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let labels = json!({"valkey.io/cluster": "cart", "valkey.io/shard-index": "0", "valkey.io/node-index": "0"});
    let container = json!({"spec": {"containers": [{"name": "server", "image": "valkey/valkey:9.1"}]}});
    make::<Pod>(&stage, json!({"name": "web", "labels": labels}), container).await;
    let begun = Instant::now();
    let ip = loop {
        if let Some(ip) = stage.pods.address("default", "web") {
            break ip;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not run");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    // If it counted as a member, it would be the newest pod of 0-0, with an empty server.
    stage.change("cart", json!({"replicas": 2})).await;
    stage.ready("cart").await;
    let met = stage.world.inspect(ip, |node| !node.map.peers.is_empty());
    assert_eq!(met, Some(false));
    gone(&stage, "cart").await;
    assert!(stage.world.inspect(ip, |_| ()).is_some(), "it still runs");
    operator.end().await;
}
