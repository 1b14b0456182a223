//! Servers that come and go with their volumes: no key is lost on the way.

use candor_tests::{Cluster, Keys, Kind, World, until};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;

async fn claims(world: &World) -> Vec<String> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(world.client(), world.namespace());
    let list = api.list(&ListParams::default()).await.unwrap();
    let mut names: Vec<String> = list.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names
}

fn named(count: usize) -> Vec<String> {
    (0..count).map(|ordinal| format!("data-cache-{ordinal}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_zero_two_and_five_primaries_with_volumes_keep_every_key() {
    let world = World::start("rkcl-volumes").await;
    let cluster = Cluster::of(Kind::RedkeyCluster, &world, "cache");
    let spec = |primaries: u32| {
        json!({"primaries": primaries, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "64Mi",
            "deletePVC": false, "image": "redis:8.0"})
    };
    cluster.create(spec(3)).await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, 90, 0).await;
    // Asked for and taken back before a server leaves: nothing is deleted.
    cluster.change(json!({"deletePVC": true})).await;
    cluster.ready().await;
    cluster.change(json!({"deletePVC": false, "primaries": 0})).await;
    cluster.ready().await;
    assert_eq!(cluster.pods().await.len(), 0);
    assert_eq!(claims(&world).await, named(3));

    cluster.change(json!({"primaries": 2})).await;
    cluster.ready().await;
    assert_eq!(cluster.pods().await.len(), 2);
    keys.are_all_in(&cluster).await;
    assert_eq!(claims(&world).await, named(3), "the claim of the last server stays");

    // The third server starts with the volume of its earlier life.
    cluster.change(json!({"primaries": 5})).await;
    cluster.ready().await;
    assert_eq!(cluster.pods().await.len(), 5);
    keys.are_all_in(&cluster).await;
    assert_eq!(cluster.condition("DataLost").await.unwrap().status, "False");

    // All claims are of an earlier life: the cluster comes back with its keys.
    cluster.delete().await;
    until("no pod is left", async || cluster.pods().await.is_empty().then_some(())).await;
    assert_eq!(claims(&world).await, named(5));
    cluster.create(spec(5)).await;
    cluster.ready().await;
    keys.are_all_in(&cluster).await;

    // With fewer servers too: those that the spec does not ask for come back, give up their slots and leave.
    cluster.delete().await;
    until("no pod is left", async || cluster.pods().await.is_empty().then_some(())).await;
    cluster.create(spec(3)).await;
    cluster.ready().await;
    assert_eq!(cluster.pods().await.len(), 3);
    keys.are_all_in(&cluster).await;
    assert_eq!(claims(&world).await, named(5));
    assert_eq!(cluster.condition("DataLost").await.unwrap().status, "False");
    world.end().await;
}
