//! Primaries that crash where no majority can vote, with quick or slow restarts, with or without an operator: their
//! replicas keep their data.

use std::time::Duration;

use candor_audit::Auditor;
use candor_tests::{Cluster, Keys, Server, World, contract, faults, until};
use serde_json::{Value, json};

const KEYS: usize = 120;
/// Enough to measure how long a slot is out.
const RATE: u32 = 100;

/// A cluster with keys that its replicas have, and an audit that has observed it as complete.
async fn started<'a>(world: &'a World, name: &str, spec: Value) -> (Cluster<'a>, Keys, Auditor) {
    let cluster = Cluster::new(world, name);
    cluster.create(spec).await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, KEYS, 1).await;
    let auditor = cluster.audit_at(RATE).await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 50).await;
    (cluster, keys, auditor)
}

/// How often the containers of a cluster's running servers were restarted.
async fn restarts(cluster: &Cluster<'_>) -> i32 {
    let pods = cluster.pods().await;
    let containers = pods
        .iter()
        .filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref());
    let servers = containers.flatten().filter(|one| one.name == "server");
    let running = servers.filter(|one| one.state.as_ref().is_some_and(|state| state.running.is_some()));
    running.map(|one| one.restart_count).sum()
}

/// Kills a server and waits until the kubelet has restarted the process.
async fn killed_and_restarted(world: &World, cluster: &Cluster<'_>, server: &Server) {
    let before = restarts(cluster).await;
    faults::kill(world, &server.pod).await;
    until(&format!("{} is restarted", server.pod), async || {
        (restarts(cluster).await > before).then_some(())
    })
    .await;
}

/// One and two shards: no majority can vote, so the operator needs evidence that the primary has terminated. Its
/// replica has every key. The restarted primary must wait until the replica is promoted, but not indefinitely.
async fn primaries_without_a_majority_are_replaced(world: World) {
    let (one, one_keys, one_audit) = started(&world, "one", json!({"shards": 1, "replicas": 1})).await;
    let (two, two_keys, two_audit) = started(&world, "two", json!({"shards": 2, "replicas": 1})).await;
    for (cluster, keys, auditor) in [(&one, &one_keys, one_audit), (&two, &two_keys, two_audit)] {
        let (old, candidate) = (cluster.primary(0).await, cluster.replica(0).await);
        faults::kill(&world, &old.pod).await;
        cluster.sees(&auditor, "broken", |now| !now.whole).await;
        cluster.whole(&auditor).await;
        assert_eq!(cluster.primary(0).await.pod, candidate.pod, "the replica leads now");
        keys.are_all_in(cluster).await;
        let audit = contract::assert_met(cluster, auditor).await;
        contract::brief(&audit, Duration::from_secs(5));
    }

    world.kill_operator();
    let (one_audit, two_audit) = (one.audit_at(RATE).await, two.audit_at(RATE).await);
    for cluster in [&one, &two] {
        killed_and_restarted(&world, cluster, &cluster.primary(0).await).await;
    }
    world.start_operator();
    let begun = tokio::time::Instant::now();
    for (cluster, keys, auditor) in [(&one, &one_keys, one_audit), (&two, &two_keys, two_audit)] {
        cluster.whole(&auditor).await;
        keys.are_all_in(cluster).await;
        assert!(cluster.condition("DataLost").await.is_none());
    }
    let took = begun.elapsed();
    println!("{}: whole {took:?} after the operator's start", world.namespace());
    assert!(took < Duration::from_secs(20), "whole only after {took:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_a_killed_primary_is_replaced_even_if_no_operator_observed_its_end() {
    let world = World::start("no-vote").await;
    primaries_without_a_majority_are_replaced(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_that_sees_no_nodes_replaces_killed_primaries_all_the_same() {
    let world = World::start_in_one_namespace("no-nodes").await;
    primaries_without_a_majority_are_replaced(world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_three_primaries_killed_at_once_are_replaced_by_their_replicas() {
    let world = World::start("majority").await;
    let (cluster, keys, auditor) = started(&world, "c", json!({"shards": 3, "replicas": 1})).await;
    let (first, second) = (cluster.primary(0).await, cluster.primary(1).await);
    faults::kill(&world, &first.pod).await;
    faults::kill(&world, &second.pod).await;
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    let audit = contract::assert_met(&cluster, auditor).await;
    contract::brief(&audit, Duration::from_secs(5));

    // The same while no operator runs.
    world.kill_operator();
    let auditor = cluster.audit_at(RATE).await;
    for shard in [1, 2] {
        killed_and_restarted(&world, &cluster, &cluster.primary(shard).await).await;
    }
    world.start_operator();
    let begun = tokio::time::Instant::now();
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    assert!(cluster.condition("DataLost").await.is_none());
    let took = begun.elapsed();
    println!("{}: whole {took:?} after the operator's start", world.namespace());
    assert!(took < Duration::from_secs(20), "whole only after {took:?}");
    world.end().await;
}

/// A shard, and the delay in milliseconds before the kubelet restarts its killed primary.
type Speed = (u32, u64);

fn restart_after(world: &World, pod: &str, millis: u64) {
    // A real kubelet has its own delay.
    if let Some(kubelet) = world.sandbox().and_then(|sandbox| sandbox.kubelet()) {
        kubelet.start_slowly(world.namespace(), pod, Duration::from_millis(millis));
    }
}

/// Kills every primary while the operator runs, then every new primary while it does not, each with its restart delay.
async fn killed_at_every_speed(world: World, image: &str, speeds: &[Speed]) {
    let config = json!({"cluster-node-timeout": "2000"});
    let spec = json!({"shards": 3, "replicas": 1, "image": image, "config": config});
    let (cluster, keys, auditor) = started(&world, "c", spec).await;
    for (shard, millis) in speeds.iter().copied() {
        let old = cluster.primary(shard).await;
        restart_after(&world, &old.pod, millis);
        faults::kill(&world, &old.pod).await;
        cluster.sees(&auditor, "broken", |now| !now.whole).await;
        cluster.whole(&auditor).await;
        keys.are_all_in(&cluster).await;
    }
    let audit = contract::assert_met(&cluster, auditor).await;
    contract::brief(&audit, Duration::from_secs(5));

    world.kill_operator();
    for (shard, millis) in speeds.iter().copied() {
        let old = cluster.primary(shard).await;
        restart_after(&world, &old.pod, millis);
        killed_and_restarted(&world, &cluster, &old).await;
        until(
            &format!("another primary in shard {shard}, and {} back", old.pod),
            async || {
                let servers = cluster.servers().await;
                let candidate = servers
                    .values()
                    .find(|one| one.shard == shard && one.primary && one.pod != old.pod);
                (candidate.is_some() && servers.contains_key(&old.pod)).then_some(())
            },
        )
        .await;
        keys.are_all_in(&cluster).await;
    }
    let auditor = cluster.audit_at(RATE).await;
    world.start_operator();
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn primaries_killed_at_any_speed_of_restart_fail_over_without_losing_keys() {
    let world = World::start("speeds").await;
    killed_at_every_speed(world, "valkey/valkey:9.1", &[(0, 0), (1, 300), (2, 1500)]).await;
}

/// In this version replicas follow an address, not a node id: the quicker the restart, the more data would be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn primaries_of_the_oldest_version_killed_at_any_speed_fail_over_without_losing_keys() {
    let world = World::start("speeds-old").await;
    killed_at_every_speed(world, "redis:7.0", &[(0, 0), (1, 300)]).await;
}
