//! Members that crash, freeze or disappear.

use std::time::Duration;

use candor_audit::{Audit, Auditor};
use candor_tests::{Cluster, World, contract, faults, until};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams};
use serde_json::json;

/// Three shards with one replica each, Ready, and an audit that has observed the cluster as complete and has written.
async fn started(world: &World) -> (Cluster<'_>, Auditor) {
    let cluster = Cluster::new(world, "c");
    cluster.create(json!({"shards": 3, "replicas": 1})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 800).await;
    (cluster, auditor)
}

/// Waits until the cluster is complete again, writes some more, and returns the figures.
async fn healed(cluster: &Cluster<'_>, auditor: Auditor) -> Audit {
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    contract::assert_met(cluster, auditor).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_primary_is_replaced_by_its_replica_and_comes_back_as_one() {
    let world = World::start("kill-primary").await;
    let (cluster, auditor) = started(&world).await;
    let (old, candidate) = (cluster.primary(1).await, cluster.replica(1).await);
    faults::kill(&world, &old.pod).await;
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    let audit = healed(&cluster, auditor).await;
    assert_eq!(cluster.primary(1).await.pod, candidate.pod, "the replica leads now");
    contract::brief(&audit, Duration::from_secs(5));
    // Writes acknowledged a moment before the kill may not have been replicated; all others must exist.
    assert!(audit.writes.lost <= 20, "{}", contract::details(&audit));
    let lost = cluster.event("PrimaryLost").await;
    assert!(lost.message.starts_with("Primary lost in shard 1"), "{lost:?}");
    cluster.event("FailoverCompleted").await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_replica_comes_back_and_nothing_is_lost() {
    let world = World::start("kill-replica").await;
    let (cluster, auditor) = started(&world).await;
    let replica = cluster.replica(2).await;
    faults::kill(&world, &replica.pod).await;
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    let audit = healed(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
    contract::brief(&audit, Duration::from_secs(1));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_primary_is_not_ready_within_two_seconds_and_its_replica_takes_over() {
    let world = World::start("freeze-primary").await;
    let (cluster, auditor) = started(&world).await;
    let old = cluster.primary(0).await;
    faults::freeze(&world, &old.pod).await;
    cluster.sees(&auditor, "not Ready", |now| !now.ready).await;
    // The servers elect a primary themselves: a missing reply is not evidence for the operator.
    candor_tests::until("another primary in shard 0", async || {
        let servers = cluster.servers().await;
        servers
            .into_values()
            .find(|server| server.shard == 0 && server.primary && server.pod != old.pod)
    })
    .await;
    faults::thaw(&world, &old.pod).await;
    let audit = healed(&cluster, auditor).await;
    contract::brief(&audit, Duration::from_secs(15));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_replica_is_not_ready_within_two_seconds_and_ready_again_after_its_thaw() {
    let world = World::start("freeze-replica").await;
    let (cluster, auditor) = started(&world).await;
    let replica = cluster.replica(1).await;
    faults::freeze(&world, &replica.pod).await;
    cluster
        .sees(&auditor, "not Ready", |now| !now.ready && !now.whole)
        .await;
    let degraded = cluster.condition("Degraded").await;
    faults::thaw(&world, &replica.pod).await;
    let audit = healed(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
    contract::brief(&audit, Duration::from_secs(1));
    let degraded = degraded.expect("status said why");
    assert_eq!(degraded.reason, "ReplicaLost");
    assert!(
        degraded.message.starts_with("Replica lost in shard 1: "),
        "{degraded:?}"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_restarted_and_comes_back() {
    let world = World::start("hang").await;
    let (cluster, auditor) = started(&world).await;
    let replica = cluster.replica(1).await;
    faults::freeze(&world, &replica.pod).await;
    until("its container is restarted", async || {
        let pods = cluster.pods().await;
        let pod = pods
            .iter()
            .find(|pod| pod.metadata.name.as_ref() == Some(&replica.pod))?;
        let servers = pod.status.as_ref()?.container_statuses.as_ref()?;
        servers.iter().any(|one| one.restart_count > 0).then_some(())
    })
    .await;
    let audit = healed(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_primary_pod_fails_over_and_loses_no_write() {
    let world = World::start("delete-pod").await;
    let (cluster, auditor) = started(&world).await;
    let old = cluster.primary(2).await;
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    pods.delete(&old.pod, &DeleteParams::default())
        .await
        .expect("the pod is there");
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    let audit = healed(&cluster, auditor).await;
    assert_eq!(audit.writes.lost, 0, "the server hands over before it ends: {audit}");
    contract::brief(&audit, Duration::from_secs(5));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_memory_was_lost_at_once_serves_again_and_reports_the_data_loss() {
    let world = World::start("all-killed").await;
    let (cluster, auditor) = started(&world).await;
    for server in cluster.servers().await.into_values() {
        faults::kill(&world, &server.pod).await;
    }
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    let audit = healed(&cluster, auditor).await;
    assert!(audit.writes.lost > 0, "nothing was kept: {audit}");
    let output = cluster.event("DataLost").await;
    assert_eq!(output.kind, "Warning");
    let stays = cluster
        .condition("DataLost")
        .await
        .expect("it stays until somebody acknowledges it");
    assert_eq!(stays.status, "True");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_killed_while_no_operator_runs_is_replaced_by_the_servers_alone() {
    let world = World::start("no-operator").await;
    let (cluster, auditor) = started(&world).await;
    world.kill_operator();
    let old = cluster.primary(1).await;
    faults::kill(&world, &old.pod).await;
    cluster.sees(&auditor, "broken", |now| !now.whole).await;
    candor_tests::until("another primary in shard 1", async || {
        let servers = cluster.servers().await;
        servers
            .into_values()
            .find(|server| server.shard == 1 && server.primary && server.pod != old.pod)
    })
    .await;
    world.start_operator();
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    let audit = auditor.finish().await;
    println!("{}\n{audit}", cluster.name());
    // 1.5 times the node timeout of 5 s, plus 1 s; twice that on a busy host.
    contract::brief(&audit, Duration::from_secs(17));
    assert!(audit.writes.lost <= 20, "{}", contract::details(&audit));
    world.end().await;
}
