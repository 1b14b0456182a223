//! Objects that the operator cannot decode: each affects only itself, until it changes into something decodable.

use std::time::{Duration, Instant};

use axum::http::{Request, Response};
use candor_api::crds;
use candor_operator::Settings;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::observability::{figures, free_address};
use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(30);

/// The CRD of a newer version: its status has one more state.
async fn install_newer_crd(stage: &Stage) {
    let api: Api<CustomResourceDefinition> = Api::all(stage.client());
    let crd = crds::all().remove(0);
    let mut newer = crds::json(&crd);
    let status = &mut newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"];
    let states = status["properties"]["state"]["enum"].as_array_mut().unwrap();
    states.push(json!("Hibernating"));
    let params = PatchParams::apply("newer").force();
    let name = crd.metadata.name.unwrap();
    api.patch(&name, &params, &Patch::Apply(newer)).await.unwrap();
}

/// Writes a status as another version of the operator does.
async fn set_state(stage: &Stage, name: &str, state: Value) {
    let resource = ApiResource::erase::<candor_api::ValkeyCluster>(&());
    let api: Api<DynamicObject> = Api::default_namespaced_with(stage.client(), &resource);
    let patch = Patch::Merge(json!({"status": {"state": state}}));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

async fn until_undecodable(address: std::net::SocketAddr, kind: &str, number: f64) {
    let name = format!("candor_undecodable_objects{{kind=\"{kind}\"}}");
    let begun = Instant::now();
    loop {
        let now = figures(address).await.get(&name).copied().unwrap_or(0.0);
        if (now - number).abs() < 0.5 {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{name} is {now} and not {number}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_with_the_status_of_a_newer_version_is_skipped_until_it_can_be_decoded() {
    let stage = Stage::set().await;
    install_newer_crd(&stage).await;
    let address = free_address();
    let settings = || Settings {
        health: Some(address),
        ..Settings::default()
    };
    let operator = Operator::start_with(stage.client(), settings());
    stage.create("future", json!({"shards": 1, "replicas": 0})).await;
    stage.create("cart", json!({"shards": 1, "replicas": 0})).await;
    stage.ready("future").await;
    stage.ready("cart").await;
    let pods = stage.pods_of("future").await;

    // While the operator runs.
    set_state(&stage, "future", json!("Hibernating")).await;
    until_undecodable(address, "ValkeyCluster", 1.0).await;
    stage.change("cart", json!({"shards": 2})).await;
    stage.ready("cart").await;

    // In the first list of an operator.
    operator.end().await;
    let operator = Operator::start_with(stage.client(), settings());
    stage.change("cart", json!({"shards": 1})).await;
    stage.ready("cart").await;
    until_undecodable(address, "ValkeyCluster", 1.0).await;
    assert_eq!(stage.pods_of("future").await, pods, "nothing of it is touched");

    set_state(&stage, "future", json!("Ready")).await;
    until_undecodable(address, "ValkeyCluster", 0.0).await;
    stage.change("future", json!({"shards": 2})).await;
    stage.ready("future").await;
    operator.end().await;
}

/// A client that returns pod lists in which one pod has an address that is not a string. No current API server does
/// this.
fn spoiling(client: Client, pod: String) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, pod) = (client.clone(), pod.clone());
        async move {
            let uri = request.uri();
            let list = uri.path() == "/api/v1/pods" && !uri.query().unwrap_or_default().contains("watch=");
            let (head, body) = client.send(request).await?.into_parts();
            if !list {
                return Ok::<_, kube::Error>(Response::from_parts(head, body));
            }
            let bytes = body.collect_bytes().await?;
            let mut list: Value = serde_json::from_slice(&bytes).unwrap();
            for item in list["items"].as_array_mut().unwrap() {
                if item["metadata"]["name"] == pod.as_str() {
                    item["status"]["podIP"] = json!(7);
                }
            }
            Ok(Response::from_parts(
                head,
                Body::from(serde_json::to_vec(&list).unwrap()),
            ))
        }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undecodable_pod_affects_only_its_cluster_and_is_not_taken_for_deleted() {
    let stage = Stage::set().await;
    let address = free_address();
    let operator = Operator::start(stage.client());
    stage.create("odd", json!({"shards": 1, "replicas": 1})).await;
    stage.create("cart", json!({"shards": 1, "replicas": 0})).await;
    stage.ready("odd").await;
    stage.ready("cart").await;
    operator.end().await;
    let pods = stage.pods_of("odd").await;

    let settings = Settings {
        health: Some(address),
        ..Settings::default()
    };
    let operator = Operator::start_with(spoiling(stage.client(), pods["0-1"].clone()), settings);
    stage
        .until("odd", "not Ready", PATIENCE, |cluster| !is_ready(cluster))
        .await;
    until_undecodable(address, "Pod", 1.0).await;
    stage.change("cart", json!({"shards": 2})).await;
    stage.ready("cart").await;
    assert_eq!(stage.pods_of("odd").await, pods, "nothing was replaced");

    // The watch returns the pod in a form that can be decoded.
    let api: Api<Pod> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    api.patch(&pods["0-1"], &PatchParams::default(), &patch).await.unwrap();
    stage.ready("odd").await;
    until_undecodable(address, "Pod", 0.0).await;
    assert_eq!(stage.pods_of("odd").await, pods, "nothing was replaced");
    operator.end().await;
}
