//! What a change must not affect: running users while no server accepts the new ones, pods while only labels change, a
//! primary while no replica can replace it.

use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use valkey_sim::InjectedReply;

use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(60);

fn reports(cluster: &ValkeyCluster, reason: &str, expected: &str) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| status.reason == reason && status.message.contains(expected))
}

/// The ACL file that starting servers read.
async fn users_file(stage: &Stage) -> String {
    let api: Api<Secret> = Api::default_namespaced(stage.client());
    let secret = api.get("internal-cart-acl").await.unwrap();
    let file = secret.data.unwrap().remove("users.acl").unwrap();
    String::from_utf8(file.0).unwrap()
}

async fn file_has(stage: &Stage, expected: &str) {
    let begun = Instant::now();
    while !users_file(stage).await.contains(expected) {
        assert!(begun.elapsed() < PATIENCE, "{expected:?} never came into the file");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_that_no_server_knows_reaches_neither_running_users_nor_the_file_for_starting_ones() {
    let users = |rule: &str| {
        json!({"users": [
            {"name": "app", "nopass": true, "permissions": format!("~* {rule}")},
            {"name": "zoe", "nopass": true, "permissions": "~* +get"},
        ]})
    };
    let expected = "ERR Error in ACL SETUSER modifier '+nosuchcommand': Unknown command or category name in ACL";
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    let mut spec = users("+nosuchcommand");
    (spec["shards"], spec["replicas"]) = (json!(1), json!(1));
    stage.create("cart", spec).await;
    stage
        .until("cart", "refused", PATIENCE, |cluster| {
            reports(cluster, "UsersRefused", expected)
        })
        .await;
    assert!(!users_file(&stage).await.contains("zoe"), "nothing that nobody took");

    stage.change("cart", users("+@read")).await;
    stage.ready("cart").await;
    file_has(&stage, "user app on nopass resetchannels ~* +@read\n").await;
    stage.ready("cart").await;
    let good = users_file(&stage).await;

    stage.change("cart", users("+nosuchcommand")).await;
    stage
        .until("cart", "refused again", PATIENCE, |cluster| {
            reports(cluster, "UsersRefused", expected)
        })
        .await;
    assert_eq!(
        users_file(&stage).await,
        good,
        "a server that starts now reads what was good"
    );

    stage.change("cart", users("+@write")).await;
    stage.ready("cart").await;
    file_has(&stage, "user app on nopass resetchannels ~* +@write\n").await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_label_on_the_cluster_reaches_its_objects_without_a_restart() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods: Api<Pod> = Api::default_namespaced(stage.client());
    let uids = async || {
        let all = pods
            .list(&ListParams::default().labels("valkey.io/cluster=cart"))
            .await
            .unwrap();
        let mut uids: Vec<String> = all.iter().filter_map(ResourceExt::uid).collect();
        uids.sort();
        uids
    };
    let before = uids().await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"team": "blue"}, "annotations": {"contact": "nobody"}}}));
    let clusters = stage.clusters("default");
    clusters.patch("cart", &PatchParams::default(), &patch).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(stage.client());
    let begun = Instant::now();
    for member in ["valkey-cart-0-0", "valkey-cart-0-1"] {
        while deployments.get(member).await.unwrap().labels().get("team").is_none() {
            assert!(begun.elapsed() < PATIENCE, "{member} never got the label");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stage.ready("cart").await;
    assert_eq!(uids().await, before, "nobody was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_but_unperformed_failover_is_reported_and_the_rolling_update_continues() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    stage.world.inject("CLUSTER FAILOVER", InjectedReply::AcknowledgeOnly);
    stage
        .change("cart", json!({"resources": {"limits": {"memory": "256Mi"}}}))
        .await;
    let recorded = |cluster: &ValkeyCluster| {
        let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
        let mut expected = conditions.filter(|one| one.type_ == "Ready" && one.reason == "FailoverFailed");
        expected.any(|one| {
            one.message.starts_with("member 0-")
                && one
                    .message
                    .ends_with("acknowledged CLUSTER FAILOVER 4 times and is still a replica")
        })
    };
    stage.until("cart", "told of", PATIENCE, recorded).await;
    stage.world.clear_injected();
    stage.until("cart", "Ready", PATIENCE, crate::support::is_ready).await;
    operator.end().await;
}
