//! The operator over simulated members: the whole line, in a fraction of a second each.

mod support;

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;
use support::{Operator, Stage, is_ready};
use valkey_admin::Slot;
use valkey_sim::node::Node;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_made_healed_scaled_and_deleted() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 3, "replicas": 1})).await;
    println!("3x1 Ready: {:?}", stage.ready("cart").await);
    let pods = stage.pods_of("cart").await;
    assert_eq!(pods.len(), 6);

    let slot = Slot::new(7).unwrap();
    let first = stage.pods.address("default", &pods["0-0"]).unwrap();
    assert!(stage.world.write(first, slot, 10));
    stage.pods.kill("default", &pods["0-0"], Duration::from_millis(300));
    let noticed = stage
        .until("cart", "not Ready", Duration::from_secs(2), |cluster| {
            !is_ready(cluster)
        })
        .await;
    println!(
        "primary killed: not Ready {noticed:?}, Ready again {:?}",
        stage.ready("cart").await
    );

    stage.change("cart", json!({"shards": 5})).await;
    println!("3 to 5 shards: {:?}", stage.ready("cart").await);
    stage.change("cart", json!({"shards": 3})).await;
    println!("5 to 3 shards: {:?}", stage.ready("cart").await);
    assert_eq!(stage.pods_of("cart").await.len(), 6);
    assert_eq!(keys(&stage, slot), [10], "one owner, with every key");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_secret_of_passwords_comes_back_as_it_was() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    let name = "internal-cart-system-passwords";
    let before = secrets.get(name).await.unwrap();
    secrets.delete(name, &DeleteParams::default()).await.unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let after = loop {
        match secrets.get_opt(name).await.unwrap() {
            Some(after) if after.uid() != before.uid() => break after,
            _ => assert!(Instant::now() < deadline, "the Secret did not come back"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(after.data, before.data, "servers know these passwords and no others");
    stage.ready("cart").await;
    operator.end().await;
}

/// Keys of a slot, at each member that owns it.
fn keys(stage: &Stage, slot: Slot) -> Vec<u64> {
    let look = |node: &Node| {
        let owned = node.map.primary.is_none() && node.map.slots.contains(slot);
        owned.then(|| node.keys.get(&slot.get()).copied().unwrap_or(0))
    };
    let members = stage.world.members().into_iter();
    members.filter_map(|ip| stage.world.look(ip, look).flatten()).collect()
}
