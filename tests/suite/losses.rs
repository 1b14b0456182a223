//! Loss of the resources below pods: a node is drained, a volume is lost, a pod loses its label.

use std::time::Duration;

use candor_tests::{Cluster, Keys, Server, World, contract, until};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::api::{Api, DeleteParams, EvictParams, Patch, PatchParams};
use serde_json::json;

/// Enough to measure how long a slot is out.
const RATE: u32 = 100;

/// Evicts every pod as soon as its disruption budget allows it, as `kubectl drain` does.
async fn evict(world: &World, cluster: &Cluster<'_>, node: &str) {
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    until(&format!("no pod is left on {node}"), async || {
        let mut left = 0;
        for pod in cluster.pods().await {
            let here = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
            if here {
                left += 1;
                // Rejected while another member is missing: retried.
                let _ = pods
                    .evict(&pod.metadata.name.unwrap_or_default(), &EvictParams::default())
                    .await;
            }
        }
        (left == 0).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_loses_its_members_one_at_a_time_and_the_cluster_loses_nothing() {
    let world = World::start("drain").await;
    // A real cluster of one node has no other node for them.
    if world.sandbox().is_none() {
        return world.end().await;
    }
    let cluster = Cluster::new(&world, "c");
    // These servers do not start a failover themselves on SIGTERM.
    cluster
        .create(json!({"shards": 3, "replicas": 1, "image": "valkey/valkey:8.0"}))
        .await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, 120, 1).await;
    let auditor = cluster.audit_at(RATE).await;
    cluster.whole(&auditor).await;
    let first = cluster.primary(0).await.pod;
    let pods = cluster.pods().await;
    let of_it = pods.iter().find(|pod| pod.metadata.name.as_ref() == Some(&first));
    let node = of_it.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
    let node = node.expect("a running pod has a node");
    let nodes: Api<Node> = Api::all(world.client());
    nodes.cordon(&node).await.expect("the node is there");
    let here = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) == Some(&node);
    let here: Vec<_> = pods.iter().filter(here).map(|pod| pod.metadata.name.clone()).collect();
    until("its primaries gave way", async || {
        for shard in 0..3 {
            if here.contains(&Some(cluster.primary(shard).await.pod)) {
                return None;
            }
        }
        Some(())
    })
    .await;
    cluster.ready().await;
    evict(&world, &cluster, &node).await;
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    contract::planned(&cluster, auditor, Duration::from_secs(1)).await;
    let elsewhere = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) != Some(&node);
    assert!(cluster.pods().await.iter().all(elsewhere));
    world.end().await;
}

/// Deletes a member's claim and pod, as when a disk failed and a user removed what was left.
async fn lose_volume(world: &World, cluster: &Cluster<'_>, server: &Server) {
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.client(), world.namespace());
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    let workload = server.pod.strip_suffix("-0").expect("a pod of a StatefulSet");
    let claim = format!("{workload}-data");
    let before = claims.get(&claim).await.expect("the claim of a member").metadata.uid;
    claims
        .delete(&claim, &DeleteParams::default())
        .await
        .expect("it can go");
    let at_once = DeleteParams::default().grace_period(0);
    pods.delete(&server.pod, &at_once).await.expect("the pod is there");
    until(&format!("{} has another claim", cluster.name()), async || {
        let now = claims.get_opt(&claim).await.ok()??.metadata;
        (now.uid != before && now.deletion_timestamp.is_none()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_volume_of_a_primary_or_a_replica_costs_no_key() {
    let world = World::start("lost-volume").await;
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 2, "replicas": 1, "persistence": {"size": "64Mi"}}))
        .await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, 120, 1).await;
    let auditor = cluster.audit_at(RATE).await;
    cluster.whole(&auditor).await;
    lose_volume(&world, &cluster, &cluster.replica(0).await).await;
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    let (old, candidate) = (cluster.primary(1).await, cluster.replica(1).await);
    lose_volume(&world, &cluster, &old).await;
    cluster.whole(&auditor).await;
    keys.are_all_in(&cluster).await;
    assert_eq!(cluster.primary(1).await.pod, candidate.pod, "the replica leads now");
    assert!(cluster.condition("DataLost").await.is_none());
    let audit = contract::assert_met(&cluster, auditor).await;
    contract::brief(&audit, Duration::from_secs(10));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_lost_with_the_only_copy_is_reported_as_data_loss_and_the_slots_are_served_again() {
    let world = World::start("only-copy").await;
    let cluster = Cluster::new(&world, "c");
    cluster
        .create(json!({"shards": 3, "replicas": 0, "persistence": {"size": "64Mi"}}))
        .await;
    cluster.ready().await;
    Keys::write(&cluster, 120, 0).await;
    lose_volume(&world, &cluster, &cluster.primary(1).await).await;
    cluster.event("DataLost").await;
    cluster.ready().await;
    let lost = cluster
        .condition("DataLost")
        .await
        .expect("it stays until acknowledged");
    assert!(lost.message.starts_with("Shard 1 came back empty"), "{}", lost.message);
    let mut slots = 0;
    for server in cluster.servers().await.into_values() {
        let info: String = server.ask(&["CLUSTER", "INFO"]).await.expect("it answers");
        assert!(info.contains("cluster_state:ok"), "{info}");
        slots += usize::from(info.contains("cluster_slots_ok:16384"));
    }
    assert_eq!(slots, 3, "every server sees every slot served");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_loses_its_label_is_replaced_and_costs_no_key() {
    let world = World::start("lost-label").await;
    let cluster = Cluster::new(&world, "c");
    cluster.create(json!({"shards": 2, "replicas": 1})).await;
    cluster.ready().await;
    let keys = Keys::write(&cluster, 120, 1).await;
    let auditor = cluster.audit_at(RATE).await;
    cluster.whole(&auditor).await;
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    for server in [cluster.replica(0).await, cluster.primary(1).await] {
        let before = pods.get(&server.pod).await.expect("the pod is there").metadata.uid;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"valkey.io/cluster": null}}}));
        let params = PatchParams::default();
        pods.patch(&server.pod, &params, &patch)
            .await
            .expect("it can be edited");
        until(&format!("{} is deleted", server.pod), async || {
            let now = pods.get_opt(&server.pod).await.ok()?;
            now.is_none_or(|now| now.metadata.uid != before).then_some(())
        })
        .await;
        cluster.whole(&auditor).await;
        keys.are_all_in(&cluster).await;
    }
    assert!(cluster.condition("DataLost").await.is_none());
    contract::planned(&cluster, auditor, Duration::from_secs(1)).await;
    world.end().await;
}
