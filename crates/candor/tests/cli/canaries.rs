//! A report contains no secrets: the test puts known values wherever users and programs put secrets, and searches the
//! whole archive for them in every form in which they are still usable.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{LogParams, PostParams};
use kube::{Api, Client};
use kube_sandbox::Sandbox;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::runner::Cli;

/// In a Secret that the cluster references.
const OF_A_USER: &str = "canary-of-a-user-4711";
/// In the operator's own Secret, and in its log, as if a program logged too much.
const OF_THE_SYSTEM: &str = "canary-of-the-system-4712";
/// In no Secret: only its position shows that it is secret.
const IN_THE_SPEC: &str = "canary-in-the-spec-4713";
/// The token of a `RedkeyCluster`'s agent.
const OF_ROBIN: &str = "canary-of-robin-4714";

async fn make<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Creates the objects of a cluster without servers, and an operator pod that logs secrets.
async fn furnish(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in candor_api::crds::all() {
        definitions.create(&PostParams::default(), &crd).await.unwrap();
    }
    let encoded = |text: &str| STANDARD.encode(text);
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let users = json!({"metadata": {"name": "shop-users"}, "data": {"app": encoded(OF_A_USER)}});
    make(&secrets, users).await;
    let system = json!({"metadata": {"name": "internal-shop-system-passwords", "labels": {"valkey.io/cluster": "shop"}},
        "data": {"_operator": encoded(OF_THE_SYSTEM)}});
    make(&secrets, system).await;
    let cluster = json!({
        "apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
        "metadata": {"name": "shop", "annotations": {"note": format!("the password is {OF_A_USER}")}},
        "spec": {
            "shards": 1,
            "config": {"requirepass": IN_THE_SPEC, "maxmemory-policy": "allkeys-lru"},
            "users": [{"name": "app", "permissions": format!("+@all >{IN_THE_SPEC}")}],
        },
    });
    make(
        &Api::<candor_api::ValkeyCluster>::default_namespaced(client.clone()),
        cluster,
    )
    .await;
    let robin = json!({"metadata": {"name": "cache-robin", "labels": {"redkey-cluster-name": "cache"}},
        "data": {"token": encoded(OF_ROBIN), "requirepass": encoded(OF_A_USER)}});
    make(&secrets, robin).await;
    let cluster = json!({
        "apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
        "metadata": {"name": "cache", "annotations": {"note": format!("Robin's token is {OF_ROBIN}")}},
        "spec": {
            "primaries": 1,
            "auth": {"secret": "shop-users"},
            "config": format!("# servers\nmaxmemory 100mb\nrequirepass {IN_THE_SPEC}\nmasterauth \"{IN_THE_SPEC}\"\n"),
            "robin": {"template": {"spec": {"containers": [{"name": "robin", "env": [
                {"name": "API_TOKEN", "value": IN_THE_SPEC}]}]}}},
        },
    });
    make(
        &Api::<candor_api::RedkeyCluster>::default_namespaced(client.clone()),
        cluster,
    )
    .await;
    make(
        &Api::<Namespace>::all(client.clone()),
        json!({"metadata": {"name": "candor"}}),
    )
    .await;
    let says = format!(
        "echo operator begins; echo AUTH _operator {OF_THE_SYSTEM}; echo password={IN_THE_SPEC}; echo operator goes on; exec sleep 600"
    );
    let pod = json!({"metadata": {"name": "candor-0"}, "spec": {"containers": [
        {"name": "operator", "image": "busybox", "command": ["/bin/sh", "-c", says]}]}});
    make(&Api::<Pod>::namespaced(client.clone(), "candor"), pod).await;
    let lease = json!({"metadata": {"name": "candor-operator"}, "spec": {"holderIdentity": "candor-0",
        "renewTime": "2026-02-05T10:00:00.000000Z", "leaseDurationSeconds": 15}});
    make(&Api::<Lease>::namespaced(client.clone(), "candor"), lease).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_canary_leaves_with_a_report_and_the_operators_log_does() {
    let sandbox = Sandbox::start().await.unwrap();
    let client = sandbox.client_as("admin", &["system:masters"]);
    furnish(&client).await;
    let pods: Api<Pod> = Api::namespaced(client, "candor");
    let output = async {
        loop {
            let log = pods.logs("candor-0", &LogParams::default()).await.unwrap_or_default();
            if log.contains("operator goes on") {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let output = tokio::time::timeout(Duration::from_secs(30), output)
        .await
        .expect("the pod speaks within 30 s");
    assert!(
        output.contains(OF_THE_SYSTEM) && output.contains(IN_THE_SPEC),
        "there is something to hide: {output}"
    );

    let user = Cli::with(Some(sandbox.kubeconfig()));
    for cluster in ["shop", "cache"] {
        let file = format!("{cluster}.tar.gz");
        user.run(&format!("report {cluster} --file {file}")).await.well();
        search(&user.folder.path().join(file));
    }
}

/// Searches an archive for canaries, and for the operator's log.
fn search(archive: &std::path::Path) {
    let file = std::fs::File::open(archive).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut logged = false;
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        for canary in [OF_A_USER, OF_THE_SYSTEM, IN_THE_SPEC, OF_ROBIN] {
            let hash = format!("{:x}", Sha256::digest(canary));
            for form in [canary, &STANDARD.encode(canary), &hash] {
                assert!(!text.contains(form), "{canary} is in {path}:\n{text}");
            }
        }
        logged |= path.ends_with("logs/candor-0/operator.log")
            && text.contains("operator begins")
            && text.contains("operator goes on");
    }
    assert!(logged, "the operator's log is part of it");
}
