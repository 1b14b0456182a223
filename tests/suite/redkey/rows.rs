//! The rows that `kubectl get rkcl -w` shows of every operation, cell by cell, and what becomes of the keys.

use std::time::Duration;

use candor_tests::{Cluster, Keys, Kind, World, contract};
use serde_json::{Value, json};

/// Changes the spec and returns the rows from the Ready before to the Ready after.
async fn rows_of(cluster: &Cluster<'_>, change: Value) -> Vec<String> {
    let rows = cluster.rows();
    rows.begun().await;
    cluster.change(change).await;
    cluster.ready().await;
    rows.seen().await
}

fn fast(status: &str, stage: &str) -> Vec<String> {
    let (stage, ending) = (format!("{status}/{stage}"), format!("{status}/Ending{stage}"));
    vec!["Ready".into(), status.into(), stage, ending, "Ready".into()]
}

fn slow(status: &str, stages: &[&str]) -> Vec<String> {
    let stages = stages.iter().map(|stage| format!("{status}/{stage}"));
    let mut rows = vec!["Ready".to_owned(), status.to_owned()];
    rows.extend(stages);
    rows.push("Ready".to_owned());
    rows
}

/// A slow upgrade of three servers.
fn upgrade() -> Vec<String> {
    let mut stages = vec!["ScalingUp".to_owned(), "SlowUpgrading".to_owned()];
    for partition in (0..=3).rev() {
        stages.push(format!("SlowUpgrading/{partition}"));
        stages.push(format!("RollingConfig/{partition}"));
    }
    stages.extend(["EndingSlowUpgrading/0", "ScalingDown/0"].map(str::to_owned));
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    slow("Upgrading", &stages)
}

async fn times(cluster: &Cluster<'_>, reason: &str) -> usize {
    let events = cluster.events().await;
    events.iter().filter(|event| event.reason == reason).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fast_operations_show_their_rows_and_purge_the_keys_by_request() {
    let world = World::start("rkcl-fast").await;
    let cluster = Cluster::of(Kind::RedkeyCluster, &world, "cache");
    let rows = cluster.rows();
    cluster
        .create(json!({"primaries": 3, "image": "redis:8-bookworm"}))
        .await;
    cluster.ready().await;
    assert_eq!(rows.seen().await, ["", "Initializing", "Configuring", "Ready"]);

    Keys::write(&cluster, 60, 0).await;
    let rows = rows_of(&cluster, json!({"primaries": 5})).await;
    assert_eq!(rows, fast("ScalingUp", "FastScaling"));
    assert_eq!(times(&cluster, "KeysPurged").await, 1);
    for server in cluster.servers().await.into_values() {
        assert_eq!(server.ask::<usize>(&["DBSIZE"]).await, Some(0), "{}", server.pod);
    }
    let rows = rows_of(&cluster, json!({"primaries": 3})).await;
    assert_eq!(rows, fast("ScalingDown", "FastScaling"));
    let rows = rows_of(&cluster, json!({"image": "redis:8.0"})).await;
    assert_eq!(rows, fast("Upgrading", "FastUpgrading"));
    assert_eq!(times(&cluster, "DataLost").await, 0);
    assert_eq!(cluster.condition("DataLost").await.unwrap().status, "False");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_operations_show_their_rows_and_lose_no_write() {
    let world = World::start("rkcl-slow").await;
    let cluster = Cluster::of(Kind::RedkeyCluster, &world, "cache");
    cluster
        .create(json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8-bookworm"}))
        .await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;

    let rows = rows_of(&cluster, json!({"primaries": 5})).await;
    assert_eq!(
        rows,
        slow("ScalingUp", &["PodScaling", "RobinScaling", "EndingScaling"])
    );
    cluster.whole(&auditor).await;
    let rows = rows_of(&cluster, json!({"primaries": 3})).await;
    assert_eq!(rows, slow("ScalingDown", &["RobinScaling", "PodScaling"]));
    cluster.whole(&auditor).await;
    let rows = rows_of(&cluster, json!({"image": "redis:8.0"})).await;
    assert_eq!(rows, upgrade());
    cluster.whole(&auditor).await;
    assert_eq!(cluster.pods().await.len(), 3);
    assert_eq!(
        times(&cluster, "KeysPurged").await + times(&cluster, "DataLost").await,
        0
    );
    cluster.written(&auditor, 400).await;
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}
