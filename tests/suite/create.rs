//! From creation to Ready, with the messages of the status docs page.

use candor_tests::{Cluster, Condition, Event, World, contract};
use serde_json::json;

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.into(),
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
    }
}

fn normal(reason: &str, message: &str) -> Event {
    Event {
        kind: "Normal".into(),
        reason: reason.into(),
        message: message.into(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_shards_with_a_replica_each_become_ready_with_the_documented_status() {
    let world = World::start("create").await;
    let cluster = Cluster::new(&world, "sample");
    let rows = cluster.rows();
    let auditor = cluster.audit().await;
    cluster.create(json!({"shards": 3, "replicas": 1})).await;
    let object = cluster.ready().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    contract::assert_met(&cluster, auditor).await;

    assert_eq!(
        cluster.conditions().await,
        [
            condition("Ready", "True", "ClusterHealthy", "Cluster is healthy"),
            condition("Progressing", "False", "ReconcileComplete", "No changes needed"),
            condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster"),
            condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned"),
        ]
    );
    let status = &object["status"];
    assert_eq!(
        (&status["state"], &status["reason"]),
        (&json!("Ready"), &json!("ClusterHealthy"))
    );
    assert_eq!(status["message"], "Cluster is healthy");
    assert_eq!((&status["shards"], &status["readyShards"]), (&json!(3), &json!(3)));

    let rows = rows.seen().await;
    println!("rows: {}", rows.join(", "));
    let place = |row: &str| rows.iter().position(|seen| seen == row);
    assert_eq!(
        rows.first().map(String::as_str),
        Some("Initializing/Reconciling"),
        "{rows:?}"
    );
    assert_eq!(
        rows.last().map(String::as_str),
        Some("Ready/ClusterHealthy"),
        "{rows:?}"
    );
    let (reconciling, adding) = (place("Reconciling/Reconciling"), place("Reconciling/AddingNodes"));
    assert!(
        reconciling.is_some() && adding.is_some() && reconciling < adding,
        "{rows:?}"
    );
    let usual = [
        "Initializing/Reconciling",
        "Reconciling/Reconciling",
        "Reconciling/AddingNodes",
        "Ready/ClusterHealthy",
    ];
    assert!(rows.iter().all(|row| usual.contains(&row.as_str())), "{rows:?}");

    cluster.event("ClusterReady").await;
    let events = cluster.events().await;
    for event in &events {
        println!("{} {}: {}", event.kind, event.reason, event.message);
    }
    for wanted in [
        normal("ServiceCreated", "Created headless Service"),
        normal("ConfigMapCreated", "Created ConfigMap with configuration"),
        normal("DeploymentCreated", "Created deployment 1 of 6"),
        normal("DeploymentCreated", "Created deployment 6 of 6"),
        normal("WaitingForShards", "0 of 3 shards exist"),
        normal("PrimaryCreated", "Created primary with slots 0-5460"),
        normal("PrimaryCreated", "Created primary with slots 5461-10922"),
        normal("PrimaryCreated", "Created primary with slots 10923-16383"),
        normal("ClusterReady", "Cluster ready with 3 shards and 1 replicas"),
    ] {
        assert!(events.contains(&wanted), "{wanted:?} is missing");
    }
    let times = |reason: &str| events.iter().filter(|event| event.reason == reason).count();
    for (reason, count) in [
        ("NodeAdding", 6),
        ("NodeAdded", 6),
        ("ReplicaCreated", 3),
        ("ClusterReady", 1),
    ] {
        assert_eq!(times(reason), count, "{reason}");
    }
    for pod in cluster.pods().await {
        let ip = pod.status.and_then(|status| status.pod_ip).unwrap_or_default();
        let joined = normal("NodeAdded", &format!("Node {ip} joined cluster"));
        assert!(events.contains(&joined), "{joined:?} is missing");
    }
    assert!(
        events.iter().all(|event| event.kind == "Normal"),
        "all went well, and no event says otherwise"
    );
    world.end().await;
}
