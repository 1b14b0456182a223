//! An upgrade of the operator from one version to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use candor_operator::manifests::NAME;
use candor_tests::{Cluster, OperatorOptions, World, contract, until};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::json;

fn version(name: &str) -> OperatorOptions {
    OperatorOptions {
        identity: Some(name.to_owned()),
        exporter_image: Some(format!("candor:{name}")),
        ..OperatorOptions::default()
    }
}

/// The existing pods, and how often their containers were restarted.
async fn pods(cluster: &Cluster<'_>) -> BTreeMap<String, (String, i32)> {
    let all = cluster.pods().await.into_iter().map(|pod| {
        let status = pod.status.unwrap_or_default();
        let restarts = status.container_statuses.unwrap_or_default();
        let restarts = restarts.iter().map(|one| one.restart_count).sum();
        let name = pod.metadata.name.unwrap_or_default();
        (name, (pod.metadata.uid.unwrap_or_default(), restarts))
    });
    all.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_upgraded_during_a_scale_out_loses_no_data_and_restarts_no_member() {
    let world = World::prepare("upgrade").await;
    world.start_operator_with(version("old"));
    let cluster = Cluster::new(&world, "c");
    // Its image comes with the operator, so an upgrade would change it; a real cluster may not have it.
    let exporter = json!({"enabled": world.sandbox().is_some()});
    cluster.create(json!({"shards": 3, "exporter": exporter})).await;
    cluster.ready().await;
    let auditor = cluster.audit().await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 800).await;
    let before = pods(&cluster).await;
    assert_eq!(before.len(), 3);

    // As a Deployment does: the new operator is up and waits before the old one gets SIGTERM.
    cluster.change(json!({"shards": 5})).await;
    world.start_operator_with(version("new"));
    until("a new member", async || (cluster.pods().await.len() > 3).then_some(())).await;
    world.stop_operator().await;

    let object = cluster.ready().await;
    assert_eq!(object["status"]["readyShards"], json!(5));
    cluster.whole(&auditor).await;
    let leases: Api<Lease> = Api::namespaced(world.client(), &world.options().namespace);
    let lease = leases.get(NAME).await.expect("the lease is there").spec;
    assert_eq!(lease.and_then(|spec| spec.holder_identity).as_deref(), Some("new"));

    // The new operator changes nothing that the old one created.
    cluster.written(&auditor, 800).await;
    let after = pods(&cluster).await;
    assert_eq!(after.len(), 5);
    for (name, was) in &before {
        assert_eq!(after.get(name), Some(was), "{name} was not touched");
    }
    contract::planned(&cluster, auditor, Duration::from_secs(2)).await;
    world.end().await;
}
