//! A cluster that is deleted and created again over the volumes of its earlier life: slots and keys come back, whatever
//! its new size is, and a part of them is never replaced by empty servers.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use valkey_admin::SlotSet;
use valkey_sim::node::Node;

use super::send;
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

pub(super) fn stored(primaries: u32, replicas: u32) -> Value {
    json!({"primaries": primaries, "replicasPerPrimary": replicas, "ephemeral": false, "storage": "1Gi",
        "purgeKeysOnRebalance": false, "image": "redis:8.0"})
}

fn claims(stage: &Stage) -> Api<PersistentVolumeClaim> {
    Api::namespaced(stage.client(), "default")
}

pub(super) async fn delete(cluster: Redkey<'_>) {
    let api = cluster.0.redkey_clusters();
    api.delete(NAME, &DeleteParams::default()).await.unwrap();
    let gone = async || api.get_opt(NAME).await.unwrap().is_none() && cluster.servers().await.is_empty();
    let begun = std::time::Instant::now();
    while !gone().await {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "its pods stay");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Lives as one shape, is deleted, and lives again as another one.
async fn lives((primaries, replicas): (u32, u32), then: (u32, u32)) {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(stored(primaries, replicas)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    if replicas > 0 {
        // The last servers become primaries.
        let is_replica = |ip| stage.world.look(ip, |node| node.map.primary.is_some()) == Some(true);
        let servers = cluster.servers().await;
        for ip in servers.into_values().filter(|ip| is_replica(*ip)) {
            send(ip, &["CLUSTER", "FAILOVER"]).await;
            cluster.until("a primary", async || !is_replica(ip)).await;
        }
        cluster.until("handed over", async || cluster.keys() == keys).await;
        cluster.ready().await;
    }
    delete(cluster).await;
    let all = claims(&stage).list(&ListParams::default()).await.unwrap().items.len();

    cluster.create(stored(then.0, then.1)).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "no key is lost");
    assert_eq!(cluster.owners().len(), usize::try_from(then.0).unwrap());
    let servers = usize::try_from(then.0 * (1 + then.1)).unwrap();
    assert_eq!(cluster.servers().await.len(), servers);
    let left = claims(&stage).list(&ListParams::default()).await.unwrap().items.len();
    assert_eq!(left, all.max(servers), "claims stay");
    assert_eq!(cluster.events("DataLost").await, Vec::<String>::new());
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_size() {
    lives((3, 0), (3, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fewer_primaries() {
    lives((5, 0), (3, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_primaries() {
    lives((1, 0), (3, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_replicas_after_failovers() {
    lives((3, 1), (3, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_of_a_part_of_the_slots_are_not_replaced_by_empty_servers() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(stored(5, 0)).await;
    cluster.ready().await;
    cluster.write_keys().await;
    let servers = cluster.servers().await;
    let left = [3, 4].map(|ordinal| {
        let of = |node: &Node| (node.total(), node.map.slots.clone());
        stage.world.look(servers[&ordinal], of).unwrap()
    });
    let keys: u64 = left.iter().map(|(keys, _)| keys).sum();
    let slots = left[0].1.union(&left[1].1);
    delete(cluster).await;
    for ordinal in 0..3 {
        let name = format!("data-{NAME}-{ordinal}");
        claims(&stage).delete(&name, &DeleteParams::default()).await.unwrap();
    }
    cluster.create(stored(3, 0)).await;
    let reported = async || {
        let ready = cluster.condition("Ready").await;
        let lost = ready.is_some_and(|ready| ["PrimaryLost", "QuorumLost"].contains(&ready.reason.as_str()));
        lost && cluster.keys() == keys
    };
    cluster.until("reported", reported).await;
    let owned = cluster.owners().into_iter();
    let owned = owned.fold(SlotSet::new(), |all, slots| all.union(&slots));
    assert_eq!(owned, slots, "slots with keys that may come back have no new owner");
    assert_eq!(cluster.events("DataLost").await, Vec::<String>::new());
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ephemeral_cluster_created_again_at_once_loses_nothing_that_it_had() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(super::spec(3, false)).await;
    cluster.ready().await;
    cluster.write_keys().await;
    let old: Vec<_> = cluster.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
    stage
        .redkey_clusters()
        .delete(NAME, &DeleteParams::default())
        .await
        .unwrap();
    cluster.create(super::spec(3, false)).await;
    cluster.ready().await;
    let new: Vec<_> = cluster.pods().await.into_iter().map(|pod| pod.metadata.uid).collect();
    assert_eq!(new.len(), 3);
    assert!(
        new.iter().all(|uid| !old.contains(uid)),
        "pods of the earlier life are no servers"
    );
    assert_eq!(cluster.owners().len(), 3);
    assert_eq!(cluster.events("DataLost").await, Vec::<String>::new());
    operator.end().await;
}
