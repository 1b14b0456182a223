//! Objects that the operator cannot decode: each costs only itself, until it changes into something decodable.

use std::time::{Duration, Instant};

use candor_api::crds;
use candor_operator::Settings;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::seen::{figures, free_address};
use crate::support::{Operator, Stage};

const PATIENCE: Duration = Duration::from_secs(30);

/// The CRD of a newer version: its status knows one more state.
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
