//! Inputs beyond the operator's limits: too many members, too many concurrent requests, messages that no schema
//! accepts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_operator::Settings;
use candor_operator::runtime::limits;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(30);

/// The message of a condition that is False.
fn message(cluster: &ValkeyCluster, type_: &str) -> Option<String> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let found = conditions
        .iter()
        .find(|one| one.type_ == type_ && one.status == "False")?;
    Some(found.message.clone())
}

async fn deployments(stage: &Stage) -> usize {
    let api: Api<Deployment> = Api::default_namespaced(stage.client());
    api.list(&ListParams::default()).await.unwrap().items.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spec_above_the_limit_of_members_is_rejected_and_existing_members_stay_healed() {
    let stage = Stage::set().await;
    let settings = Settings {
        max_members: 5,
        ..Settings::default()
    };
    let operator = Operator::start_with(stage.client(), settings);
    let rejected = |cluster: &ValkeyCluster| {
        let message = message(cluster, "ConfigurationApplied").unwrap_or_default();
        message.contains("17000 members")
            && message.contains("shards times (1 + replicas) is 5 or less")
            && !is_ready(cluster)
    };
    stage.create("new", json!({"shards": 1000, "replicas": 16})).await;
    stage.until("new", "rejected", PATIENCE, rejected).await;
    assert_eq!(deployments(&stage).await, 0, "nothing is made");
    stage.change("new", json!({"shards": 1, "replicas": 0})).await;
    stage.ready("new").await;

    stage.create("cart", json!({"shards": 2, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods = stage.pods_of("cart").await;
    // A pod that only has a member's labels is not an existing member.
    let labels = json!({"valkey.io/cluster": "cart", "valkey.io/shard-index": "7", "valkey.io/node-index": "3"});
    let web = json!({"metadata": {"name": "web", "labels": labels},
        "spec": {"containers": [{"name": "web", "image": "web"}]}});
    let api: Api<Pod> = Api::default_namespaced(stage.client());
    let web = serde_json::from_value(web).unwrap();
    api.create(&PostParams::default(), &web).await.unwrap();
    stage.change("cart", json!({"shards": 1000, "replicas": 16})).await;
    let rejected_as_a_whole = |cluster: &ValkeyCluster| {
        let reason = cluster.status.as_ref().map(|status| status.reason.as_str());
        rejected(cluster) && reason == Some("SpecInvalid")
    };
    stage.until("cart", "rejected", PATIENCE, rejected_as_a_whole).await;
    api.delete("web", &DeleteParams::default()).await.unwrap();
    let mut left = stage.pods_of("cart").await;
    left.remove("7-3");
    assert_eq!(left, pods, "what runs stays");
    // A rejected spec does not block healing.
    let primary = stage.primary("cart", 0).await.unwrap();
    let pod = &pods[&format!("0-{}", primary.node)];
    stage.pods.kill("default", pod, Duration::from_millis(300));
    let replaced = |cluster: &ValkeyCluster| {
        let status = serde_json::to_value(&cluster.status).unwrap();
        let members = status["topology"][0]["members"].as_array().cloned().unwrap_or_default();
        members
            .iter()
            .any(|one| one["role"] == "primary" && one["nodeId"] != primary.node_id.as_str())
    };
    stage.until("cart", "failed over", PATIENCE, replaced).await;
    stage.change("cart", json!({"shards": 2, "replicas": 1})).await;
    stage.ready("cart").await;
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_under_way_at_once_are_bounded() {
    let stage = Stage::set().await;
    let (running, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let client = stage.client();
    let counted = {
        let (running, most) = (running.clone(), most.clone());
        tower::service_fn(move |request| {
            let (client, running, most) = (client.clone(), running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // As slow as an API server under load.
                tokio::time::sleep(Duration::from_millis(20)).await;
                let answer = client.send(request).await;
                running.fetch_sub(1, Ordering::SeqCst);
                answer
            }
        })
    };
    let operator = Operator::start(Client::new(counted, "default"));
    for name in ["one", "two", "three"] {
        stage.create(name, json!({"shards": 50, "replicas": 0})).await;
    }
    let begun = Instant::now();
    while deployments(&stage).await < 150 {
        assert!(begun.elapsed() < Duration::from_secs(90), "they are never all made");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let most = most.load(Ordering::SeqCst);
    println!("{most} requests at once");
    assert!(most <= limits::REQUESTS_AT_ONCE, "{most} requests at once");
    assert!(most > limits::PER_CLUSTER, "{most} requests at once");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_its_schema_does_not_take_is_cut_and_status_is_written() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    // The message quotes the invalid value.
    let wrong = json!({"shards": 1, "podSecurityContext": {"runAsUser": "x".repeat(50_000)}});
    stage.create("cart", wrong).await;
    let recorded = |cluster: &ValkeyCluster| {
        let status = cluster.status.as_ref().map(|status| status.message.as_str());
        message(cluster, "ConfigurationApplied").is_some_and(|message| message.ends_with("..."))
            && status.is_some_and(|message| message.ends_with("..."))
    };
    stage.until("cart", "told", PATIENCE, recorded).await;
    stage
        .change("cart", json!({"podSecurityContext": {"runAsUser": 1000}}))
        .await;
    stage.ready("cart").await;
    operator.end().await;
}
