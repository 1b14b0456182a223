//! The scale subresource: `kubectl scale` works, and a `HorizontalPodAutoscaler` finds the number of primaries and the
//! pods of the servers there.

use std::process::{Command, Output};

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;

use super::spec;
use crate::support::redkey::{NAME, Redkey};
use crate::support::{Operator, Stage};

/// kubectl of `make setup`, or the one in the path.
fn kubectl(kubeconfig: &std::path::Path, words: &[&str]) -> Output {
    let home = std::env::var("HOME").unwrap();
    let cache = std::env::var("CANDOR_CACHE").unwrap_or_else(|_| format!("{home}/.cache/candor"));
    let path = format!("{cache}/bin:{}", std::env::var("PATH").unwrap());
    let mut command = Command::new("env");
    command.arg(format!("PATH={path}")).arg("kubectl").args(words);
    command.env("KUBECONFIG", kubeconfig).output().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_scales_the_primaries_and_the_selector_selects_the_servers() {
    let stage = Stage::set().await;
    let cluster = Redkey(&stage);
    let operator = Operator::start(stage.client());
    cluster.create(spec(3, false)).await;
    cluster.ready().await;
    let keys = cluster.write_keys().await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, stage.sandbox.kubeconfig()).unwrap();
    let kubectl = |words: &[&str]| tokio::task::block_in_place(|| kubectl(&kubeconfig, words));

    let path = format!("/apis/redkey.inditex.dev/v1/namespaces/default/redkeyclusters/{NAME}/scale");
    let scale = kubectl(&["get", "--raw", &path]);
    let scale: Value = serde_json::from_slice(&scale.stdout).unwrap_or_else(|error| panic!("{error}: {scale:?}"));
    assert_eq!(
        (&scale["spec"]["replicas"], &scale["status"]["replicas"]),
        (&3.into(), &3.into())
    );
    let selector = scale["status"]["selector"].as_str().unwrap();
    let pods: Api<Pod> = Api::namespaced(stage.client(), "default");
    let selected = pods.list(&ListParams::default().labels(selector)).await.unwrap();
    let mut names: Vec<String> = selected.iter().map(ResourceExt::name_any).collect();
    names.sort();
    assert_eq!(names, ["cache-0", "cache-1", "cache-2"], "{selector}");

    let scaled = kubectl(&["scale", "rkcl", NAME, "--current-replicas=3", "--replicas=4"]);
    assert!(scaled.status.success(), "{scaled:?}");
    cluster.ready().await;
    assert_eq!(cluster.owners().len(), 4);
    assert_eq!(cluster.keys(), keys);
    assert_eq!(cluster.status().await.primaries, 4);
    let refused = kubectl(&["scale", "rkcl", NAME, "--current-replicas=3", "--replicas=5"]);
    assert!(!refused.status.success(), "{refused:?}");
    let negative = kubectl(&["scale", "rkcl", NAME, "--replicas=1001"]);
    let said = String::from_utf8_lossy(&negative.stderr).into_owned();
    assert!(said.contains("should be less than or equal to 1000"), "{said}");
    operator.end().await;
}
