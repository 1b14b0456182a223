//! Changes of running members: versions, resources, configuration, users.

use std::time::Duration;

use candor_audit::Auditor;
use candor_tests::{Cluster, World, contract};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

async fn started(world: &World, spec: Value) -> (Cluster<'_>, Auditor) {
    let cluster = Cluster::new(world, "c");
    cluster.create(spec).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    (cluster, auditor)
}

/// The names of its pods: replaced pods have new names.
async fn pods(cluster: &Cluster<'_>) -> Vec<String> {
    let mut names: Vec<String> = cluster
        .pods()
        .await
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .collect();
    names.sort();
    names
}

/// Waits until none of the previous pods is left.
async fn rolled(cluster: &Cluster<'_>, before: &[String]) {
    let after = pods(cluster).await;
    assert!(
        before.iter().all(|pod| !after.contains(pod)),
        "every pod is new: {after:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_rolled_from_8_0_to_9_1_under_writes_and_loses_nothing() {
    let world = World::start("upgrade").await;
    let spec = json!({"shards": 3, "replicas": 1, "image": "valkey/valkey:8.0"});
    let (cluster, auditor) = started(&world, spec).await;
    let versions = async || -> Vec<String> {
        let servers = cluster.servers().await;
        servers
            .into_values()
            .map(|server| server.version[..3].to_owned())
            .collect()
    };
    assert_eq!(versions().await, ["8.0"; 6]);
    cluster.change(json!({"image": "valkey/valkey:9.1"})).await;
    cluster
        .until("UpdatingNodes", |object| object["status"]["reason"] == "UpdatingNodes")
        .await;
    cluster.ready().await;
    cluster.whole(&auditor).await;
    assert_eq!(versions().await, ["9.1"; 6]);
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_resources_roll_every_member_and_the_memory_limit_reaches_the_server() {
    let world = World::start("resources").await;
    let (cluster, auditor) = started(&world, json!({"shards": 3, "replicas": 1})).await;
    let before = pods(&cluster).await;
    cluster
        .change(json!({"resources": {"limits": {"memory": "256Mi"}}}))
        .await;
    cluster.ready().await;
    cluster.whole(&auditor).await;
    rolled(&cluster, &before).await;
    for server in cluster.servers().await.into_values() {
        assert_eq!(
            server.setting("maxmemory").await.as_deref(),
            Some("201326592"),
            "75 % of 256 MiB"
        );
    }
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn configuration_goes_live_where_the_server_allows_it_and_rolls_where_not() {
    let world = World::start("config").await;
    let (cluster, auditor) = started(&world, json!({"shards": 3, "replicas": 0})).await;
    let settings = async |name: &str| -> Vec<String> {
        let mut values = Vec::new();
        for server in cluster.servers().await.into_values() {
            values.extend(server.setting(name).await);
        }
        values
    };
    let before = pods(&cluster).await;
    cluster
        .change(json!({"config": {"maxmemory-policy": "allkeys-lru"}}))
        .await;
    cluster.ready().await;
    assert_eq!(settings("maxmemory-policy").await, ["allkeys-lru"; 3]);
    assert_eq!(pods(&cluster).await, before, "nothing was restarted");

    cluster.change(json!({"config": {"maxmemory-policy": null}})).await;
    cluster.ready().await;
    assert_eq!(
        settings("maxmemory-policy").await,
        ["noeviction"; 3],
        "a removed key goes back to its default"
    );
    assert_eq!(pods(&cluster).await, before, "nothing was restarted");
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(1)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_counts_only_at_the_start_rolls_the_cluster() {
    let world = World::start("config-start").await;
    let (cluster, auditor) = started(&world, json!({"shards": 3, "replicas": 1})).await;
    let before = pods(&cluster).await;
    cluster.change(json!({"config": {"databases": "4"}})).await;
    cluster.ready().await;
    cluster.whole(&auditor).await;
    rolled(&cluster, &before).await;
    for server in cluster.servers().await.into_values() {
        assert_eq!(server.setting("databases").await.as_deref(), Some("4"));
    }
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_go_live_without_a_restart_and_their_passwords_rotate() {
    let world = World::start("users").await;
    let secrets: Api<Secret> = Api::namespaced(world.client(), world.namespace());
    let secret = json!({"metadata": {"name": "c-users"}, "stringData": {"app": "first", "next": "second"}});
    let secret = serde_json::from_value(secret).expect("a Secret");
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .expect("it is new");
    let (cluster, auditor) = started(&world, json!({"shards": 3, "replicas": 0})).await;
    let before = pods(&cluster).await;
    let let_in = async |password: &str| -> bool {
        let mut all = true;
        for server in cluster.servers().await.into_values() {
            all &= server.ask::<String>(&["AUTH", "app", password]).await.is_some();
        }
        all
    };
    assert!(!let_in("first").await);
    let user = |keys: Value| {
        json!({"users": [{"name": "app", "passwordSecret": {"keys": keys},
        "commands": {"allow": ["@read"]}, "keys": {"readOnly": ["*"]}}]})
    };
    cluster.change(user(json!(["app"]))).await;
    cluster.ready().await;
    assert!(let_in("first").await && !let_in("second").await);
    cluster.change(user(json!(["app", "next"]))).await;
    cluster.ready().await;
    assert!(
        let_in("first").await && let_in("second").await,
        "both are valid while clients change over"
    );
    cluster.change(user(json!(["next"]))).await;
    cluster.ready().await;
    assert!(!let_in("first").await && let_in("second").await);
    cluster.change(json!({"users": []})).await;
    cluster.ready().await;
    assert!(!let_in("second").await);
    assert_eq!(pods(&cluster).await, before, "nothing was restarted");
    contract::planned(&cluster, auditor, Duration::from_secs(1)).await;
    world.end().await;
}
