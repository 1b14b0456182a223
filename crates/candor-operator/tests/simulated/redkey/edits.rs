//! Edits in the middle of an operation: the mode is latched, the newest spec wins.

use serde_json::{Value, json};

use super::{send, spec};
use crate::support::redkey::{NAME, Redkey, Rows, row};
use crate::support::{Operator, Stage};

/// A cluster with keys that begins to scale from 3 to 5, and is changed when it shows a row. Returns the keys before.
async fn changed_at(cluster: Redkey<'_>, row: &str, change: Value) -> u64 {
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    cluster.change(json!({"primaries": 5})).await;
    cluster.row(row).await;
    cluster.change(change).await;
    cluster.ready().await;
    keys
}

async fn newest_wins(row: &str, primaries: u32) {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let keys = changed_at(cluster, row, json!({"primaries": primaries})).await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), usize::try_from(primaries).unwrap());
    assert_eq!(cluster.servers().await.len(), usize::try_from(primaries).unwrap());
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_slots_move_to_five_the_spec_changes_to_four() {
    newest_wins("ScalingUp/RobinScaling", 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_slots_move_to_five_the_spec_goes_back_to_three() {
    newest_wins("ScalingUp/RobinScaling", 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_pods_start_for_five_the_spec_changes_to_two() {
    newest_wins("ScalingUp/PodScaling", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_wins_at_once() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    changed_at(cluster, "ScalingUp/RobinScaling", json!({"primaries": 0})).await;
    assert_eq!(cluster.servers().await.len(), 0);
    cluster.change(json!({"primaries": 3})).await;
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 3);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_zero_and_three_are_wanted_one_after_the_other_while_slots_move_to_five() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    cluster.change(json!({"primaries": 5})).await;
    cluster.row("ScalingUp/RobinScaling").await;
    for primaries in [4, 0, 3] {
        cluster.change(json!({"primaries": primaries})).await;
    }
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 3);
    assert_eq!(cluster.servers().await.len(), 3);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_mode_of_a_running_operation_is_latched() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, true)).await;
    cluster.ready().await;
    let rows = Rows::record(&stage);
    cluster.change(json!({"primaries": 3})).await;
    cluster.row("ScalingUp/FastScaling").await;
    cluster.change(json!({"purgeKeysOnRebalance": false})).await;
    cluster.ready().await;
    let shown = rows.shown();
    assert!(
        !shown.iter().any(|row| row.contains("Robin") || row.contains("Pod")),
        "{shown:?}"
    );
    assert_eq!(cluster.owners().len(), 3);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_taken_back_in_mid_upgrade_and_then_more_primaries() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    cluster.change(json!({"image": "redis:8.0.6"})).await;
    cluster.row("Upgrading/SlowUpgrading/2").await;
    cluster.change(json!({"image": "redis:8.0"})).await;
    cluster.row("Upgrading/RollingConfig/2").await;
    cluster.change(json!({"primaries": 5})).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 5);
    for pod in cluster.pods().await {
        let image = pod.spec.unwrap().containers[0].image.clone();
        assert_eq!(image.as_deref(), Some("redis:8.0"), "{:?} of {NAME}", pod.metadata.name);
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_edit_of_shape_image_and_configuration_lands_whole() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let change = json!({"primaries": 3, "image": "redis:8.0.6", "config": "hz 20\n"});
    cluster.change(change).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 3);
    for ip in cluster.servers().await.into_values() {
        let told = stage
            .world
            .look(ip, |node| (node.version.clone(), node.config.get("hz").cloned()));
        assert_eq!(told, Some(("8.0.6".to_owned(), Some("20".to_owned()))));
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_scale_down_that_would_fail_for_lack_of_memory_moves_nothing_and_says_so() {
    memory_is_too_small("noeviction").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_scale_down_that_would_evict_keys_moves_nothing_and_says_so() {
    memory_is_too_small("allkeys-lru").await;
}

async fn memory_is_too_small(policy: &str) {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let mut spec = spec(3, false);
    spec["config"] = json!(format!("maxmemory 5000\nmaxmemory-policy {policy}\n"));
    cluster.create(spec).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    cluster.change(json!({"primaries": 2})).await;
    let rejected = async || {
        let status = cluster.status().await;
        let ready = status.conditions.into_iter().find(|one| one.type_ == "Ready");
        status.status == "Error" && ready.is_some_and(|ready| ready.reason == "NotEnoughMemory")
    };
    cluster.until("refused", rejected).await;
    assert_eq!(cluster.owners().len(), 3, "nothing is moved");
    assert_eq!(cluster.keys(), keys);
    cluster
        .until("reported", async || !cluster.events("NotEnoughMemory").await.is_empty())
        .await;

    // Keys are deleted: the operation goes on by itself.
    for ip in cluster.servers().await.into_values() {
        send(ip, &["FLUSHALL"]).await;
    }
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 2);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_upgrade_is_no_scaling() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(2, false)).await;
    cluster.ready().await;
    let rows = Rows::record(&stage);
    cluster.change(json!({"image": "redis:8.0.6"})).await;
    cluster.ready().await;
    let statuses = rows.statuses();
    let upgrading: Vec<_> = statuses.iter().filter(|one| one.status == "Upgrading").collect();
    let shown = |substatus: &str| upgrading.iter().any(|one| one.substatus.status == substatus);
    assert!(shown("ScalingUp") && shown("ScalingDown"), "{:?}", rows.shown());
    for status in upgrading {
        let says = |type_: &str| status.conditions.iter().find(|one| one.type_ == type_);
        let of = |type_: &str| says(type_).map(|one| one.status.as_str());
        let conditions = ["Upgrading", "ScalingUp", "ScalingDown"].map(of);
        assert_eq!(
            conditions,
            [Some("True"), Some("False"), Some("False")],
            "{}",
            row(status)
        );
    }
    for reason in ["RedkeyClusterScalingUp", "RedkeyClusterScalingDown"] {
        assert_eq!(cluster.events(reason).await, Vec::<String>::new());
    }
    operator.end().await;
}
