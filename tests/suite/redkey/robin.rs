//! Robin without an operator, and the operator without Robin: each heals the cluster alone.

use std::collections::BTreeMap;

use candor_tests::{Cluster, Keys, Kind, Server, World, contract, faults, until};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;

const KEYS: usize = 120;

async fn primary(cluster: &Cluster<'_>) -> Server {
    let servers = cluster.servers().await;
    servers.into_values().find(|server| server.primary).unwrap()
}

/// Whether three primaries and three replicas in sync respond.
fn is_whole(servers: &BTreeMap<String, Server>, info: &[String]) -> bool {
    let linked = info
        .iter()
        .filter(|text| text.contains("master_link_status:up"))
        .count();
    let primaries = servers.values().filter(|server| server.primary).count();
    servers.len() == 6 && primaries == 3 && linked == 3
}

async fn robin(world: &World) -> String {
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    let labels = ListParams::default().labels("redis.redkeycluster.operator/component=robin");
    let found = pods.list(&labels).await.unwrap().items;
    found[0].metadata.name.clone().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_heals_alone_and_the_operator_stands_in_for_it() {
    let world = World::start("rkcl-heal").await;
    let cluster = Cluster::of(Kind::RedkeyCluster, &world, "cache");
    cluster
        .create(json!({"primaries": 3, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false}))
        .await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, KEYS, 1).await;
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    let now = DeleteParams::default().grace_period(0);

    // Without an operator, Robin promotes the replica of a deleted primary and attaches the new server.
    world.kill_operator();
    let old = primary(&cluster).await;
    let uid = pods.get(&old.pod).await.unwrap().metadata.uid;
    pods.delete(&old.pod, &now).await.unwrap();
    until("Robin heals the cluster", async || {
        let servers = cluster.servers().await;
        let mut info = Vec::new();
        for server in servers.values() {
            info.push(server.ask::<String>(&["INFO", "replication"]).await?);
            // A promoted server serves its slots a moment later.
            let cluster: String = server.ask(&["CLUSTER", "INFO"]).await?;
            cluster.contains("cluster_state:ok").then_some(())?;
        }
        let replaced = pods.get_opt(&old.pod).await.ok()??.metadata.uid != uid;
        (replaced && is_whole(&servers, &info)).then_some(())
    })
    .await;
    keys.are_all_in(&cluster).await;
    world.start_operator();
    cluster.ready().await;

    // Without Robin, the operator does the same, and says so.
    let auditor = cluster.audit_at(100).await;
    cluster.whole(&auditor).await;
    faults::kill(&world, &robin(&world).await).await;
    pods.delete(&primary(&cluster).await.pod, &now).await.unwrap();
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    cluster.whole(&auditor).await;
    until("Robin responds again", async || {
        cluster.condition("RobinReady").await.filter(|one| one.status == "True")
    })
    .await;
    keys.are_all_in(&cluster).await;
    assert_eq!(cluster.condition("DataLost").await.unwrap().status, "False");
    contract::assert_met(&cluster, auditor).await;
    world.end().await;
}
