//! Members with undecodable replies: status reports the problem for these members, and the operator still manages the
//! others.

use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use valkey_admin::Slot;
use valkey_sim::Undecodable;

use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(60);

fn degraded(cluster: &ValkeyCluster, reason: &str) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let condition = |type_: &str, reason: &str, expected: &str| {
        let mut all = conditions.clone();
        all.any(|one| one.type_ == type_ && one.reason == reason && one.message.contains(expected))
    };
    let ready = conditions
        .clone()
        .any(|one| one.type_ == "Ready" && one.status == "True");
    !ready && condition("Degraded", reason, "says cannot be understood: ")
}

/// Deletes an object of the cluster and waits until the operator restores it.
async fn service_comes_back(stage: &Stage) {
    let services: Api<Service> = Api::default_namespaced(stage.client());
    let before = services.get("valkey-cart-client").await.unwrap().uid();
    services
        .delete("valkey-cart-client", &DeleteParams::default())
        .await
        .unwrap();
    let begun = Instant::now();
    loop {
        match services.get_opt("valkey-cart-client").await.unwrap() {
            Some(after) if after.uid() != before => return,
            _ => assert!(begun.elapsed() < PATIENCE, "the Service did not come back"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undecodable_reply_of_one_member_is_reported_and_the_others_are_reconciled() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 3, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods = stage.pods_of("cart").await;
    let address = |member: &str| stage.pods.address("default", &pods[member]).unwrap();
    // A replica is compared by its replication offset, and without a write it has none.
    assert!(stage.world.write(address("1-0"), Slot::new(6000).unwrap(), 7));
    for undecodable in [
        Undecodable::Noise,
        Undecodable::WrongType,
        Undecodable::MapWithoutItself,
    ] {
        stage.world.garble(address("0-1"), Some(undecodable));
        // A probe does not request the cluster map. An invalid map is only found by a reconcile that starts for
        // another reason.
        service_comes_back(&stage).await;
        stage
            .until("cart", &format!("{undecodable:?}"), PATIENCE, |cluster| {
                degraded(cluster, "ReplicaLost")
            })
            .await;
        service_comes_back(&stage).await;
        stage.world.garble(address("0-1"), None);
        stage.ready("cart").await;
    }
    stage.world.garble(address("0-1"), Some(Undecodable::WrongType));
    stage
        .until("cart", "nonsense", PATIENCE, |cluster| degraded(cluster, "ReplicaLost"))
        .await;
    stage.pods.kill("default", &pods["1-0"], Duration::from_secs(2));
    let begun = Instant::now();
    while stage.primary("cart", 1).await.is_none_or(|primary| primary.node != 1) {
        assert!(begun.elapsed() < PATIENCE, "nobody took over in shard 1");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stage.world.garble(address("0-1"), None);
    stage.ready("cart").await;
    assert_eq!(stage.pods_of("cart").await, pods, "nobody was restarted for it");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_reply_is_reported_with_its_member_and_does_not_affect_other_clusters() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 3, "replicas": 1})).await;
    stage.create("other", json!({"shards": 3, "replicas": 1})).await;
    stage.ready("cart").await;
    stage.ready("other").await;
    let pods = stage.pods_of("cart").await;
    let members: Vec<_> = pods
        .values()
        .filter_map(|pod| stage.pods.address("default", pod))
        .collect();
    assert_eq!(members.len(), 6);
    let hostile = stage.pods.address("default", &pods["0-1"]).unwrap();
    stage.world.garble(hostile, Some(Undecodable::EndlessText));
    stage
        .until("cart", "an endless reply", PATIENCE, |cluster| {
            let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
            let message =
                format!("member 0-1 says cannot be understood: {hostile}:6379: sent a reply above the limit of 1 MiB");
            conditions
                .filter(|one| one.type_ == "Degraded")
                .any(|one| one.message.contains(&message))
        })
        .await;
    for member in members {
        stage.world.garble(member, Some(Undecodable::EndlessText));
    }
    stage.change("other", json!({"shards": 4})).await;
    stage
        .until("other", "scaled", PATIENCE, |cluster| {
            cluster.status.as_ref().is_some_and(|status| status.ready_shards == 4)
        })
        .await;
    operator.end().await;
}
