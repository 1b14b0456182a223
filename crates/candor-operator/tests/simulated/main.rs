//! The operator with simulated members: complete reconciles, each in a fraction of a second.
//!
//! | topic | module |
//! |---|---|
//! | what a change must not affect | [`no_disruption`] |
//! | users' Secrets that are rotated, deleted and emptied | [`secrets`] |
//! | the operator's own Secret, lost while no operator was running | [`lost_secret`] |
//! | a dry run | [`dry_run`] |
//! | health, metrics and the log after a known sequence of events; namespaces | [`observability`] |
//! | objects that a user deleted or edited | [`manual_edits`] |
//! | clusters of the existing operator of `RedkeyCluster` | [`adopted`] |
//! | objects of other owners with the operator's names or labels | [`owners`] |
//! | members with undecodable replies | [`undecodable_reply`] |
//! | members that come back empty | [`empty_restart`] |
//! | a primary that may still be running behind a partition | [`partitioned`] |
//! | a member's pod without its labels | [`relabelled`] |
//! | rolling updates, reported as such | [`rolling_update`] |
//! | a `RedkeyCluster`: edits in mid-operation, changes of shards and replicas, manual edits | [`redkey`] |
//! | servers at members' addresses that reject the operator's user | [`rejected_login`] |
//! | objects that cannot be decoded | [`undecodable`] |
//! | specs that ask for too much, and messages that are too long | [`limits`] |
//! | every declared event and condition, observed as it is written | [`published`] |
//! | every invalid value of every field, rejected with a message that says what to write instead | [`invalid_specs`] |

#[allow(dead_code)] // this binary uses its part
#[path = "../support/mod.rs"]
mod support;

mod adopted;
mod dry_run;
mod empty_restart;
mod invalid_specs;
mod limits;
mod lost_secret;
mod manual_edits;
mod no_disruption;
mod observability;
mod owners;
mod partitioned;
mod published;
mod redkey;
mod rejected_login;
mod relabelled;
mod rolling_update;
mod secrets;
mod undecodable;
mod undecodable_reply;

use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_api::valkey::FAILOVER;
use candor_api::valkey::status::MemberTopology;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::api::{DeleteParams, ListParams};
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
    // Writes that reached no replica before the primary terminates are lost. This is expected.
    let copied = |ip| {
        let copy = |node: &Node| node.map.primary.is_some() && node.keys.get(&slot.get()) == Some(&10);
        stage.world.inspect(ip, copy).unwrap_or(false)
    };
    while !stage.world.members().into_iter().any(copied) {
        tokio::task::yield_now().await;
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_requested_failover_is_performed_reported_and_its_request_removed_across_operators() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 2, "replicas": 1})).await;
    stage.ready("cart").await;
    let first = stage.primary("cart", 1).await.unwrap();
    stage.annotate("cart", FAILOVER, &format!("1/{}", first.node_id)).await;
    let second = answered(&stage).await;
    assert_ne!(first.node, second.node);
    // Events are sent asynchronously.
    let deadline = Instant::now() + Duration::from_secs(10);
    while events(&stage, "FailoverCompleted").await.is_empty() {
        assert!(Instant::now() < deadline, "nobody was told of it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let recorded = events(&stage, "FailoverCompleted").await;
    assert_eq!(recorded.len(), 1, "{recorded:?}");
    for (reason, number) in [("FailoverInitiated", 1), ("FailoverFailed", 0), ("PrimaryLost", 0)] {
        assert_eq!(events(&stage, reason).await.len(), number, "{reason}");
    }

    // Requested while no operator is running: the next operator performs it.
    operator.end().await;
    stage.annotate("cart", FAILOVER, &format!("1/{}", second.node_id)).await;
    let operator = Operator::start(stage.client());
    let third = answered(&stage).await;
    assert_eq!(third.node, first.node);

    // An operator completed the failover but stopped before it recorded this. The next one removes the request and
    // starts no second failover.
    operator.end().await;
    stage.annotate("cart", FAILOVER, &format!("1/{}", second.node_id)).await;
    let operator = Operator::start(stage.client());
    assert_eq!(answered(&stage).await, third);
    operator.end().await;
}

/// Waits until a failover request in shard 1 is completed and the cluster is ready. Returns the primary at that time.
async fn answered(stage: &Stage) -> MemberTopology {
    let so = |cluster: &ValkeyCluster| !cluster.annotations().contains_key(FAILOVER) && is_ready(cluster);
    stage.until("cart", "answered", Duration::from_secs(30), so).await;
    stage.primary("cart", 1).await.unwrap()
}

/// The events with a reason.
async fn events(stage: &Stage, reason: &str) -> Vec<String> {
    let api: Api<Event> = Api::default_namespaced(stage.client());
    let all = api.list(&ListParams::default()).await.unwrap().items.into_iter();
    let ours = all.filter(|event| event.reason.as_deref() == Some(reason));
    ours.filter_map(|event| event.message).collect()
}

/// The number of keys in a slot, at each member that owns it.
fn keys(stage: &Stage, slot: Slot) -> Vec<u64> {
    let look = |node: &Node| {
        let owned = node.map.primary.is_none() && node.map.slots.contains(slot);
        owned.then(|| node.keys.get(&slot.get()).copied().unwrap_or(0))
    };
    let members = stage.world.members().into_iter();
    members
        .filter_map(|ip| stage.world.inspect(ip, look).flatten())
        .collect()
}
