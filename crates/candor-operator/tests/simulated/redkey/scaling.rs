//! Changes of shape after failovers, so that the servers that leave are primaries.

use std::net::IpAddr;

use serde_json::json;
use valkey_sim::node::Follow;

use super::{send, spec};
use crate::support::redkey::Redkey;
use crate::support::{Operator, Stage};

/// Scales slowly from one shape to another. Before, every primary that has a replica hands over to it.
async fn reshaped((primaries, replicas): (u32, u32), to: (u32, u32)) {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    let mut spec = spec(primaries, false);
    spec["replicasPerPrimary"] = json!(replicas);
    cluster.create(spec).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    for ip in cluster.servers().await.into_values() {
        plan_failover(cluster, ip).await;
    }
    // A former primary counts too until it has heard of its successor.
    cluster.until("handed over", async || cluster.keys() == keys).await;
    cluster.ready().await;

    let change = json!({"primaries": to.0, "replicasPerPrimary": to.1});
    cluster.change(change).await;
    cluster.ready().await;
    assert_eq!(cluster.keys(), keys, "no key is lost");
    let owners = cluster.owners();
    assert_eq!(owners.len(), usize::try_from(to.0).unwrap(), "{owners:?}");
    assert_eq!(
        cluster.servers().await.len(),
        usize::try_from(to.0 * (1 + to.1)).unwrap()
    );
    operator.end().await;
}

/// Asks a replica to take over from its primary, as a person with redis-cli does.
async fn plan_failover(cluster: Redkey<'_>, ip: IpAddr) {
    let is_replica = || cluster.0.world.inspect(ip, |node| node.map.primary.is_some());
    if is_replica() != Some(true) {
        return;
    }
    // With a copy of its own, as a person would check first.
    let in_sync = async || cluster.0.world.inspect(ip, |node| node.follow == Follow::Up) == Some(true);
    cluster.until("in sync", in_sync).await;
    send(ip, &["CLUSTER", "FAILOVER"]).await;
    cluster.until("a primary", async || is_replica() == Some(false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_primaries_become_three_with_a_replica_each() {
    reshaped((6, 0), (3, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_primaries_with_replicas_become_four_without() {
    reshaped((3, 1), (4, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_primaries_become_one_with_three_replicas() {
    reshaped((2, 0), (1, 3)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_primaries_with_two_replicas_become_two_with_one() {
    reshaped((3, 2), (2, 1)).await;
}
