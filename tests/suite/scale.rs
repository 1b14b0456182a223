//! Scaling shards and replicas, out and in, while canaries are written.

use std::time::Duration;

use candor_tests::{Cluster, World, contract};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_go_from_three_to_five_and_back_under_writes() {
    let world = World::start("shards").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 0})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 800).await;

    cluster.change(json!({"shards": 5})).await;
    let object = cluster.ready().await;
    assert_eq!(
        (&object["status"]["shards"], &object["status"]["readyShards"]),
        (&json!(5), &json!(5))
    );
    cluster.whole(&auditor).await;
    let owned = slots_by_server(&cluster).await;
    assert_eq!(owned.len(), 5, "{owned:?}");
    assert!(
        owned.iter().all(|slots| (3276..=3277).contains(slots)),
        "every shard has its fifth: {owned:?}"
    );

    cluster.change(json!({"shards": 3})).await;
    cluster.ready().await;
    cluster.whole(&auditor).await;
    assert_eq!(slots_by_server(&cluster).await.len(), 3);
    assert_eq!(cluster.pods().await.len(), 3);
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    cluster.event("SlotsRebalancing").await;
    cluster.event("SlotsRebalanced").await;
    cluster.event("SlotsDraining").await;
    world.end().await;
}

/// The second spec arrives while members of the first one still join.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spec_that_shrinks_during_creation_is_ready_only_without_the_undesired_members() {
    let world = World::start("shrunk").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 6, "replicas": 0})).await;
    cluster
        .until("joining", |object| object["status"]["reason"] == "AddingNodes")
        .await;
    cluster.change(json!({"shards": 3})).await;
    cluster.ready().await;
    for server in cluster.servers().await.into_values() {
        let nodes: String = server.ask(&["CLUSTER", "NODES"]).await.expect("it answers");
        assert_eq!(
            nodes.lines().count(),
            3,
            "Ready, and undesired members are in the map: {nodes}"
        );
    }
    assert_eq!(cluster.pods().await.len(), 3);
    let foreign = cluster
        .events()
        .await
        .into_iter()
        .find(|one| one.reason == "ForeignNode");
    assert!(foreign.is_none(), "its own members are never unknown nodes");
    world.end().await;
}

/// Reverted as soon as status reports slot migration, so at some moment between the first and the last slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scale_out_that_is_reverted_half_way_loses_nothing_and_leaves_nothing() {
    let world = World::start("reverted").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 1})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    for (further, back) in [
        (json!({"shards": 5}), json!({"shards": 3})),
        (json!({"replicas": 2}), json!({"replicas": 1})),
    ] {
        cluster.change(further).await;
        cluster
            .until("on its way", |object| {
                let operation = &object["status"]["operation"];
                let moving = operation["slotsTotal"].as_i64().is_some_and(|total| total > 0);
                moving || (operation["kind"].is_string() && object["spec"]["replicas"] == 2)
            })
            .await;
        cluster.change(back).await;
        cluster.ready().await;
        cluster.whole(&auditor).await;
        assert_eq!(slots_by_server(&cluster).await.len(), 3);
        assert_eq!(cluster.pods().await.len(), 6);
    }
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

/// Servers without built-in slot migration: the operator migrates the slots key by key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn older_servers_are_scaled_under_writes_and_lose_nothing() {
    let world = World::start("older").await;
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 2, "replicas": 0, "image": "redis:7.0"}))
        .await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    for shards in [3, 2] {
        cluster.change(json!({"shards": shards})).await;
        cluster.ready().await;
        cluster.whole(&auditor).await;
        assert_eq!(slots_by_server(&cluster).await.len(), shards);
    }
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}

/// How many slots every server owns, as it reports; servers without slots are omitted.
async fn slots_by_server(cluster: &Cluster<'_>) -> Vec<usize> {
    let mut owned = Vec::new();
    for server in cluster.servers().await.into_values() {
        let nodes: String = server.ask(&["CLUSTER", "NODES"]).await.unwrap_or_default();
        let mine = nodes.lines().find(|line| line.contains("myself")).unwrap_or_default();
        let ranges = mine.split(' ').skip(8).filter(|word| !word.starts_with('['));
        let count = |range: &str| {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let number = |word: &str| word.parse::<usize>().unwrap_or(0);
            number(to) + 1 - number(from)
        };
        let slots: usize = ranges.map(count).sum();
        owned.extend((server.primary && slots > 0).then_some(slots));
    }
    owned
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_go_from_one_to_two_and_to_none() {
    let world = World::start("replicas").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 3, "replicas": 1})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    for (replicas, pods) in [(2, 9), (0, 3)] {
        cluster.change(json!({"replicas": replicas})).await;
        cluster.ready().await;
        cluster.whole(&auditor).await;
        assert_eq!(cluster.pods().await.len(), pods);
    }
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}
