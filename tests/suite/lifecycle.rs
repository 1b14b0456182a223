//! Pausing, deleting, and operators that start and stop.

use std::time::Duration;

use candor_tests::{Cluster, World, contract, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use kube::api::{Api, ListParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_cluster_is_observed_and_left_alone() {
    let world = World::start("pause").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 0})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.change(json!({"paused": true})).await;
    let paused = |object: &serde_json::Value| {
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions
            .iter()
            .any(|one| one["type"] == "Paused" && one["status"] == "True")
    };
    cluster.until("Paused", paused).await;
    cluster.change(json!({"shards": 4})).await;
    cluster
        .until("not Ready for what is asked and not done", |object| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && object["status"]["state"] != "Ready"
        })
        .await;
    assert_eq!(cluster.pods().await.len(), 3, "nothing was made");
    cluster.change(json!({"paused": false})).await;
    cluster.ready().await;
    cluster.whole(&auditor).await;
    assert_eq!(cluster.pods().await.len(), 4);
    assert!(cluster.condition("Paused").await.is_none());
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_leaves_nothing_behind() {
    let world = World::start("delete").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 0})).await;
    cluster.ready().await;
    cluster.delete().await;
    let of_it = ListParams::default().labels("valkey.io/cluster=c");
    macro_rules! gone {
        ($($kind:ty),*) => {$(
            let objects: Api<$kind> = Api::namespaced(world.client(), world.namespace());
            until(concat!("no ", stringify!($kind), " is left"), async || {
                objects.list(&of_it).await.ok()?.items.is_empty().then_some(())
            })
            .await;
        )*};
    }
    gone!(Deployment, Service, ConfigMap, Secret);
    until("no pod is left", async || cluster.pods().await.is_empty().then_some(())).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_killed_in_the_middle_of_a_scale_out_is_followed_by_one_that_ends_it() {
    let world = World::start("restart").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 0})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.change(json!({"shards": 5})).await;
    for pods in [4, 5] {
        until(&format!("{pods} pods"), async || {
            (cluster.pods().await.len() >= pods).then_some(())
        })
        .await;
        world.kill_operator();
        world.start_operator();
    }
    // The slot migration takes less than a second: missing it is not an error.
    let moving = |object: &serde_json::Value| {
        let status = &object["status"];
        status["reason"] == "RebalancingSlots" || (status["state"] == "Ready" && status["shards"] == 5)
    };
    cluster.until("moving slots", moving).await;
    world.kill_operator();
    world.start_operator();
    cluster.ready().await;
    cluster.whole(&auditor).await;
    assert_eq!(cluster.pods().await.len(), 5);
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_starts_again_changes_nothing() {
    let world = World::start("again").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 0})).await;
    cluster.ready().await;
    cluster.event("ClusterReady").await;
    let (object, events) = (cluster.object().await, cluster.events().await);
    world.stop_operator().await;
    world.start_operator();
    // A change that the new operator reconciles proves that it has reconciled everything once.
    let other = Cluster::new(&world, "other");
    other.create(json!({"shards": 1, "replicas": 0})).await;
    other.ready().await;
    let version = |object: &serde_json::Value| object["metadata"]["resourceVersion"].clone();
    assert_eq!(
        version(&cluster.object().await),
        version(&object),
        "the object was not written"
    );
    assert_eq!(cluster.events().await, events, "no event was written");
    world.end().await;
}
