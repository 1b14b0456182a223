//! The readers on objects that a real scheduler, real controllers and a real kubelet wrote. Ignored unless asked for:
//! they need a cluster with a node in KUBECONFIG.
//!
//!     cargo test -p kube-status --features client --test live_readers -- --ignored
#![cfg(feature = "client")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use kube_status::readers::{Health, Reading, explain, read};
use serde_json::{Value, json};

async fn namespace(client: &Client, name: &str) -> String {
    let api: Api<Namespace> = Api::all(client.clone());
    let name = format!("kube-status-{name}-{}", std::process::id());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    api.create(&PostParams::default(), &namespace).await.unwrap().name_any()
}

async fn deploy(client: &Client, namespace: &str, pod: &Value) -> Deployment {
    let api: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let labels = json!({"app": "web"});
    let deployment = json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}}});
    api.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap())
        .await
        .unwrap()
}

/// Looks until the deployment and its pods say what is waited for.
async fn until(client: &Client, namespace: &str, expected: impl Fn(&Reading) -> bool) -> Reading {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let mut last = None;
    let reconciles = async {
        loop {
            let workload = read(&deployments.get("web").await.unwrap()).unwrap();
            let pods = pods.list(&ListParams::default()).await.unwrap();
            let pods: Vec<_> = pods.iter().map(|pod| (pod.name_any(), read(pod).unwrap())).collect();
            let reading = explain(workload, &pods);
            if expected(&reading) {
                return reading;
            }
            last = Some(reading);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), reconciles).await;
    found.unwrap_or_else(|_| panic!("still {last:?}"))
}

#[tokio::test]
#[ignore = "needs a cluster with a node"]
async fn an_image_that_does_not_exist_is_named_from_the_deployment_down() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "image").await;
    deploy(
        &client,
        &home,
        &json!({"containers": [{"name": "app", "image": "kube-status.invalid/none:1"}]}),
    )
    .await;
    let reading = until(&client, &home, |reading| reading.health == Health::Stuck).await;
    assert!(
        ["ErrImagePull", "ImagePullBackOff"].contains(&reading.reason.as_str()),
        "{reading:?}"
    );
    assert!(
        reading.message.contains("pod web-") && reading.message.contains("kube-status.invalid/none:1"),
        "{reading:?}"
    );
}

#[tokio::test]
#[ignore = "needs a cluster with a node"]
async fn an_unschedulable_pod_quotes_the_scheduler() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "nowhere").await;
    let pod = json!({"nodeSelector": {"kube-status": "nowhere"}, "containers": [{"name": "app", "image": "kube-status.invalid/none:1"}]});
    deploy(&client, &home, &pod).await;
    let reading = until(&client, &home, |reading| reading.reason == "Unschedulable").await;
    assert_eq!(reading.health, Health::Stuck);
    assert!(
        reading.message.contains("nodes are available"),
        "the scheduler's words: {reading:?}"
    );
}

#[tokio::test]
#[ignore = "needs a cluster with a node"]
async fn a_deployment_of_nothing_is_ready() {
    let client = Client::try_default().await.unwrap();
    let home = namespace(&client, "nothing").await;
    let created = deploy(
        &client,
        &home,
        &json!({"containers": [{"name": "app", "image": "kube-status.invalid/none:1"}]}),
    )
    .await;
    let api: Api<Deployment> = Api::namespaced(client.clone(), &home);
    let none = kube::api::Patch::Merge(json!({"spec": {"replicas": 0}}));
    api.patch(&created.name_any(), &kube::api::PatchParams::default(), &none)
        .await
        .unwrap();
    let reading = until(&client, &home, |reading| reading.health == Health::Ready).await;
    assert_eq!(reading.message, "0 of 0 replicas available");
}
