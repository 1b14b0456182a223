//! What runs in Robin's pod is silent, of an older version, or another program: status does not believe it, no pod of a
//! server is deleted on its word, and it is replaced.

use std::time::{Duration, Instant};

use kube::ResourceExt;
use serde_json::json;

use super::{send, spec};
use crate::support::redkey::{NAME, Redkey};
use crate::support::robin::{Acting, frame};
use crate::support::{Operator, Stage};

/// Ends the process in Robin's pod: the next one in the same pod is another. Returns the pod's uid.
async fn replace_process(cluster: Redkey<'_>, by: Acting) -> String {
    let stage = cluster.0;
    let pod = cluster.robin_pod().await.unwrap();
    stage.robins.next(by);
    assert!(stage.pods.kill("default", &pod.name_any(), Duration::from_millis(10)));
    pod.uid().unwrap()
}

/// Whether Robin runs in another pod.
async fn is_replaced(cluster: Redkey<'_>, uid: &str) -> bool {
    let pod = cluster.robin_pod().await;
    pod.is_some_and(|pod| pod.uid().as_deref() != Some(uid))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_robin_of_a_healthy_cluster_is_deleted_after_fifteen_seconds() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let uid = replace_process(cluster, Acting::Silent).await;
    let begun = Instant::now();
    cluster
        .until("reported", async || cluster.says("RobinReady", "False").await)
        .await;
    cluster
        .until("replaced", async || is_replaced(cluster, &uid).await)
        .await;
    let took = begun.elapsed();
    assert!(
        took > Duration::from_secs(14) && took < Duration::from_secs(20),
        "{took:?}"
    );
    assert!(cluster.says("Ready", "True").await, "the servers are as desired");
    cluster
        .until("Robin responds", async || cluster.says("RobinReady", "True").await)
        .await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_robin_of_an_older_version_is_replaced_before_an_operation_begins() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    operator.end().await;

    // The operator is upgraded, and the spec has changed meanwhile.
    let uid = replace_process(cluster, Acting::Older).await;
    let runs = async || {
        let pod = cluster.robin_pod().await.unwrap();
        let container = pod.status.unwrap().container_statuses.unwrap().remove(0);
        container.restart_count == 1 && container.state.is_some_and(|state| state.running.is_some())
    };
    cluster.until("running", runs).await;
    cluster.change(json!({"primaries": 4})).await;
    let operator = Operator::start(stage.client());
    let is_leaving = async || {
        let pod = cluster.robin_pod().await;
        pod.is_none_or(|pod| pod.uid().as_ref() != Some(&uid) || pod.metadata.deletion_timestamp.is_some())
    };
    let begun = Instant::now();
    cluster
        .until("replaced", async || {
            let idle = cluster.status().await.operation.is_none();
            let leaving = is_leaving().await;
            assert!(idle || leaving, "an operation began with the older Robin");
            leaving
        })
        .await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 4);
    assert_eq!(cluster.keys(), keys);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_program_at_the_address_of_robin_that_replies_ready_is_not_believed() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let ip = stage.pods.address("default", &cluster.robin().await.unwrap()).unwrap();
    let healthy = frame(stage.client(), NAME, ip).await;
    let uid = replace_process(cluster, Acting::Foreign(healthy)).await;
    let rejected = async || {
        let robin = cluster.condition("RobinReady").await;
        robin.is_some_and(|robin| robin.status == "False" && robin.message.contains("certificate"))
    };
    cluster.until("rejected", rejected).await;

    let servers = cluster.servers().await;
    let slot = stage
        .world
        .inspect(servers[&0], |node| node.map.slots.iter().next().unwrap());
    let slot = slot.unwrap().get().to_string();
    for ip in servers.into_values() {
        send(ip, &["CLUSTER", "DELSLOTSRANGE", &slot, &slot]).await;
    }
    let begun = Instant::now();
    cluster
        .until("not Ready", async || !cluster.says("Ready", "True").await)
        .await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());

    // It is replaced as a silent one is, and the real one repairs the cluster.
    cluster
        .until("replaced", async || is_replaced(cluster, &uid).await)
        .await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.owners().len(), 3);
    operator.end().await;
}
