//! The operator makes no changes: a dry run, and a cluster that is paused from its creation.

use std::time::Duration;

use candor_api::ValkeyCluster;
use candor_operator::runtime::lease::Timing;
use candor_operator::{LeaseSettings, Settings};
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube_sandbox::faults::Faults;
use serde_json::json;

use crate::observability::Log;
use crate::published::through;
use crate::support::{Operator, Stage};

#[tokio::test]
async fn a_dry_run_reports_the_plan_and_writes_nothing_whatever_happens_to_clusters() {
    let (log, log_of_new) = (Log::of("dry"), Log::of("dry-new"));
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("dry", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("dry").await;
    operator.end().await;
    let (pods, before) = (
        stage.pods_of("dry").await,
        stage.clusters("default").get("dry").await.unwrap(),
    );

    let faults = Faults::seeded(1);
    let settings = Settings {
        dry_run: true,
        lease: Some(LeaseSettings {
            client: through(&faults, stage.client()),
            namespace: "default".to_owned(),
            name: "candor-operator".to_owned(),
            identity: "dry".to_owned(),
            timing: Timing::default(),
        }),
        ..Settings::default()
    };
    let operator = Operator::start_with(through(&faults, stage.client()), settings);
    log.until(&["dry run", "all is as wanted", "nothing"]).await;
    stage.create("dry-new", json!({"shards": 1, "replicas": 0})).await;
    log_of_new
        .until(&["dry run", "members are missing", "CreateMember"])
        .await;
    stage.change("dry", json!({"shards": 2})).await;
    log.until(&["dry run", "CreateMember"]).await;
    let clusters = stage.clusters("default");
    clusters.delete("dry", &DeleteParams::default()).await.unwrap();
    log.until(&["dry run", "is being deleted", "workloads would be deleted"])
        .await;
    operator.end().await;

    let writes: Vec<String> = faults.writes().iter().map(ToString::to_string).collect();
    assert!(writes.is_empty(), "{writes:#?}");
    let after = clusters.get("dry").await.unwrap();
    assert_eq!(after.status, before.status);
    assert_eq!(after.finalizers(), before.finalizers(), "it is still held");
    assert_eq!(stage.pods_of("dry").await, pods);
    assert!(stage.pods_of("dry-new").await.is_empty());
    assert!(clusters.get("dry-new").await.unwrap().finalizers().is_empty());
}

#[tokio::test]
async fn a_cluster_that_is_paused_from_its_beginning_gets_only_a_status() {
    let stage = Stage::set().await;
    let faults = Faults::seeded(1);
    let operator = Operator::start_with(through(&faults, stage.client()), Settings::default());
    stage
        .create("calm", json!({"shards": 1, "replicas": 0, "paused": true}))
        .await;
    let paused = |cluster: &ValkeyCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.conditions.iter().any(|one| one.type_ == "Paused"))
    };
    stage.until("calm", "paused", Duration::from_secs(60), paused).await;
    assert!(
        stage
            .clusters("default")
            .get("calm")
            .await
            .unwrap()
            .finalizers()
            .is_empty()
    );
    stage.change("calm", json!({"paused": false})).await;
    stage.ready("calm").await;
    operator.end().await;
    let writes: Vec<String> = faults.writes().iter().map(ToString::to_string).collect();
    let message = ["/status ", "valkeynodes", "create events"];
    let first = writes
        .iter()
        .find(|write| !message.iter().any(|word| write.contains(word)));
    assert_eq!(
        first.map(String::as_str),
        Some("patch valkeyclusters.valkey.io default/calm"),
        "it is held before anything is made, and not before: {writes:#?}"
    );
}
