//! A server's pod without its labels. Its `StatefulSet` releases it, and its server is still a node of the cluster: it
//! may have the last copy of its keys.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::recreated::{delete, stored};
use super::{replicated, spec};
use crate::support::redkey::{NAME, Redkey};
use crate::support::robin::{Acting, frame};
use crate::support::{Operator, Stage};

fn pods(stage: &Stage) -> Api<Pod> {
    Api::namespaced(stage.client(), "default")
}

async fn label(stage: &Stage, pod: &str, value: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": {"redkey-cluster-name": value}}}));
    pods(stage).patch(pod, &PatchParams::default(), &patch).await.unwrap();
}

/// Waits until a condition names the pod and says more about it.
async fn reported(cluster: Redkey<'_>, words: &[&str]) {
    let said = async || {
        let conditions = cluster.status().await.conditions;
        conditions
            .iter()
            .any(|one| words.iter().all(|word| one.message.contains(word)))
    };
    cluster.until("reported", said).await;
}

async fn is_there(stage: &Stage, pod: &Pod) -> bool {
    let now = pods(stage).get_opt(&pod.name_any()).await.unwrap();
    now.is_some_and(|now| now.uid() == pod.uid() && now.metadata.deletion_timestamp.is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_deleted_and_replaced() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(replicated()).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let pod = replica(cluster, 0).await;
    label(&stage, &pod.name_any(), Value::Null).await;
    cluster.until("deleted", async || !is_there(&stage, &pod).await).await;
    cluster.ready().await;
    assert_eq!(cluster.servers().await.len(), 6);
    assert_eq!(cluster.keys(), keys);
    operator.end().await;
}

/// The replica of a shard.
async fn replica(cluster: Redkey<'_>, shard: usize) -> Pod {
    let status = cluster.status().await;
    let members = &status.topology[shard].members;
    let replica = members.iter().find(|one| !one.is_primary).unwrap();
    let name = format!("{NAME}-{}", replica.ordinal);
    pods(cluster.0).get(&name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_with_the_only_copy_of_its_keys_is_kept_whatever_old_claims_exist() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    // The claims of an earlier life have nothing to do with the keys of this one.
    cluster.create(stored(3, 0)).await;
    cluster.ready().await;
    delete(cluster).await;
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let name = format!("{NAME}-1");
    let pod = pods(&stage).get(&name).await.unwrap();
    label(&stage, &name, Value::Null).await;
    reported(
        cluster,
        &[&name, "has data that no replica has in sync", "kubectl label"],
    )
    .await;
    assert!(is_there(&stage, &pod).await, "it has the only copy");
    label(&stage, &name, json!(NAME)).await;
    cluster.ready().await;
    assert!(is_there(&stage, &pod).await);
    assert_eq!(cluster.keys(), keys);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_not_deleted_on_the_word_of_robin_alone() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(replicated()).await;
    cluster.ready().await;
    cluster.write_keys().await;
    // Robin reports for ever that all servers are well.
    let robin = cluster.robin().await.unwrap();
    let healthy = frame(stage.client(), NAME, stage.pods.address("default", &robin).unwrap()).await;
    stage.robins.next(Acting::Stale(healthy));
    assert!(stage.pods.kill("default", &robin, Duration::from_secs(1)));
    cluster
        .until("Robin is gone", async || cluster.says("RobinReady", "False").await)
        .await;
    cluster
        .until("Robin responds", async || cluster.says("RobinReady", "True").await)
        .await;

    // The primary of a shard terminates, and its replica loses its labels: nobody else has the keys.
    let pod = replica(cluster, 0).await;
    let status = cluster.status().await;
    let primary = status.topology[0].members.iter().find(|one| one.is_primary).unwrap();
    let primary = format!("{NAME}-{}", primary.ordinal);
    assert!(stage.pods.kill("default", &primary, Duration::from_secs(600)));
    label(&stage, &pod.name_any(), Value::Null).await;
    let lost = async || {
        let ready = cluster.condition("Ready").await;
        ready.is_some_and(|ready| ready.reason == "PrimaryLost")
    };
    cluster.until("asked", lost).await;
    assert!(is_there(&stage, &pod).await, "it has the last copy");
    operator.end().await;
}
