//! Clusters that keep their data.

use std::time::Duration;

use candor_tests::{Cluster, World, faults, promise, until};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Api, ListParams};
use serde_json::json;

async fn claims(world: &World) -> Vec<String> {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.client(), world.namespace());
    let list = claims.list(&ListParams::default()).await.expect("claims can be listed");
    list.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_members_killed_at_once_come_back_with_their_data() {
    let world = World::start("all-persistent").await;
    let cluster = Cluster::new(&world, "c");
    // With its default, `everysec`, a server acknowledges before it writes while the disk is busy with the last second: a
    // real disk under load cost 2 of 2,150 writes. Nothing lost can be asked of `always` alone.
    let durable = json!({"appendfsync": "always"});
    cluster
        .create(json!({"shards": 3, "replicas": 1, "persistence": {"size": "1Gi"}, "config": durable}))
        .await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 800).await;
    for server in cluster.servers().await.into_values() {
        faults::kill(&world, &server.pod).await;
    }
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    let audit = promise::kept(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", promise::told(&audit));
    promise::brief(&audit, Duration::from_secs(60));
    assert!(cluster.condition("DataLost").await.is_none());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_keeps_its_volumes_and_comes_back_with_its_keys() {
    let world = World::start("retain").await;
    let cluster = Cluster::new(&world, "c");
    let spec = json!({"shards": 3, "replicas": 0, "persistence": {"size": "1Gi", "reclaimPolicy": "Retain"}});
    cluster.create(spec.clone()).await;
    cluster.ready().await;
    let mut kept = 0;
    for server in cluster.servers().await.into_values() {
        for number in 0..30 {
            let key = format!("kept-{number}");
            kept += usize::from(server.ask::<String>(&["SET", &key, "1"]).await.is_some());
        }
    }
    assert_eq!(kept, 30, "every key has one owner");
    cluster.delete().await;
    until("no pod is left", async || cluster.pods().await.is_empty().then_some(())).await;
    assert_eq!(claims(&world).await.len(), 3);
    cluster.create(spec).await;
    cluster.ready().await;
    let mut found = 0;
    for server in cluster.servers().await.into_values() {
        found += server.ask::<usize>(&["DBSIZE"]).await.unwrap_or(0);
    }
    assert_eq!(found, 30, "it came back with its keys");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_cluster_takes_its_volumes_with_it_when_told_to() {
    let world = World::start("reclaim").await;
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 3, "replicas": 0, "persistence": {"size": "1Gi", "reclaimPolicy": "Delete"}}))
        .await;
    cluster.ready().await;
    assert_eq!(claims(&world).await.len(), 3);
    cluster.delete().await;
    until("no claim is left", async || {
        claims(&world).await.is_empty().then_some(())
    })
    .await;
    world.end().await;
}
