//! Failures, and messages that say what to do next.

use candor_api::ValkeyCluster;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::PostParams;
use kube_sandbox::Sandbox;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::desk::Desk;
use crate::runner::{Cli, PROGRAM, end, lines, next, run};
use crate::terminal::Terminal;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_name_and_a_closed_pipe() {
    let desk = Desk::set().await;
    desk.stage.create("shop", json!({"shards": 1})).await;
    for word in [
        "status", "describe", "events", "history", "pause", "resume", "restart", "report", "audit",
    ] {
        let output = desk.run(&format!("{word} shpo")).await.badly();
        assert!(
            output.contains("there is no cluster \"shpo\" in namespace default"),
            "{word}: {output}"
        );
        assert!(output.contains("Did you mean shop?"), "{word}: {output}");
    }
    let output = desk.run("failover shpo --shard 0").await.badly();
    assert!(output.contains("Did you mean shop?"), "{output}");
    let elsewhere = desk.run("status shop -n kube-system").await.badly();
    assert!(
        elsewhere.contains("There is none at all there; list every namespace"),
        "{elsewhere}"
    );
    let output = desk.run("status --context nowhere").await.badly();
    assert!(output.contains("has no context \"nowhere\""), "{output}");
    let piped = desk.run("top shop").await.badly();
    assert!(piped.contains("candor status shop --watch"), "{piped}");

    // `| head -1`: a reader that closes the pipe early is not an error.
    for words in ["status", "docs conditions", "status shop -o json", "man"] {
        let mut shell = Command::new("bash");
        let line = format!("set -o pipefail; \"{PROGRAM}\" {words} | head -n 1");
        shell.args(["-c", &line]).env("KUBECONFIG", desk.kubeconfig());
        let output = run(shell).await;
        assert!(
            output.fine && output.err.is_empty() && output.out.lines().count() == 1,
            "{words}: {output:?}"
        );
    }
    desk.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_permission_is_named_with_how_to_grant_it() {
    let desk = Desk::set().await;
    let jane = desk.stage.sandbox.kubeconfig_for("jane", &[]).unwrap();
    std::fs::write(desk.folder.path().join("jane"), jane).unwrap();
    let output = desk.run("status --kubeconfig jane").await.badly();
    for part in [
        "cannot list resource \"valkeyclusters\"",
        "kubectl create role candor-list -n default --verb=list --resource=valkeyclusters.valkey.io",
        "--user=jane",
    ] {
        assert!(output.contains(part), "{part} is missing: {output}");
    }
    let all = desk.run("status -A --kubeconfig jane").await.badly();
    assert!(all.contains("kubectl create clusterrole"), "{all}");
    desk.end().await;
}

/// An API server without an operator.
async fn bare() -> (Sandbox, Cli) {
    let sandbox = Sandbox::bare().await.unwrap();
    let user = Cli::with(Some(sandbox.kubeconfig()));
    (sandbox, user)
}

/// The same with CRDs, a cluster that was ready once, and the lease of an operator that no longer runs.
async fn left_alone() -> (Sandbox, Cli) {
    let (sandbox, user) = bare().await;
    let client = sandbox.client_as("admin", &["system:masters"]);
    define(&sandbox, |_| {}).await;
    let clusters: Api<ValkeyCluster> = Api::default_namespaced(client.clone());
    let condition = json!({"type": "Ready", "status": "True", "reason": "ClusterHealthy", "message": "Cluster is healthy",
        "lastTransitionTime": "2026-02-05T09:00:00Z", "observedGeneration": 1});
    let mut shop = created(&clusters, "shop").await;
    let status = json!({"state": "Ready", "observedGeneration": 1, "conditions": [condition]});
    shop.status = Some(serde_json::from_value(status).unwrap());
    let written = clusters.replace_status("shop", &PostParams::default(), &shop).await;
    written.unwrap();
    let lease = json!({"metadata": {"name": "candor-operator"}, "spec": {"holderIdentity": "candor-0",
        "renewTime": "2026-02-05T10:00:00.000000Z", "leaseDurationSeconds": 15}});
    let lease: Lease = serde_json::from_value(lease).unwrap();
    let leases: Api<Lease> = Api::default_namespaced(client);
    leases.create(&PostParams::default(), &lease).await.unwrap();
    (sandbox, user)
}

async fn created(clusters: &Api<ValkeyCluster>, name: &str) -> ValkeyCluster {
    let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": name},
        "spec": {"shards": 1}});
    let cluster = serde_json::from_value(cluster).unwrap();
    clusters.create(&PostParams::default(), &cluster).await.unwrap()
}

async fn define(sandbox: &Sandbox, change: impl Fn(&mut Value)) {
    let api: Api<CustomResourceDefinition> = Api::all(sandbox.client_as("admin", &["system:masters"]));
    for crd in candor_api::crds::all() {
        let mut crd = serde_json::to_value(&crd).unwrap();
        change(&mut crd);
        let crd = serde_json::from_value(crd).unwrap();
        api.create(&PostParams::default(), &crd).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_or_old_crds_are_reported_with_how_to_install_them() {
    let (sandbox, user) = bare().await;
    for word in ["status", "status shop", "describe shop", "pause shop"] {
        let output = user.run(word).await.badly();
        assert!(output.contains("kubectl apply -f deploy/crds"), "{word}: {output}");
    }
    let doctor = user.run("doctor").await;
    assert!(!doctor.fine && doctor.out.contains("is not installed"), "{doctor:?}");
    // CRDs of an older version that lacks a field.
    define(&sandbox, |crd| {
        let status = crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/status/properties");
        status.and_then(|fields| fields.as_object_mut()?.remove("operation"));
    })
    .await;
    let doctor = user.run("doctor").await;
    assert!(
        !doctor.fine && doctor.out.contains(".status.operation is missing"),
        "{doctor:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_operator_the_age_of_status_is_reported() {
    let (sandbox, user) = left_alone().await;
    let list = user.run("status").await.well();
    let one = user.run("status shop").await.well();
    for output in [&list, &one] {
        assert!(output.contains("No operator has been alive for "), "{output}");
        assert!(
            output.contains("(lease default/candor-operator, last renewed by candor-0)"),
            "{output}"
        );
        assert!(output.contains("When last seen, "), "{output}");
    }
    let data = user.json("status shop").await;
    assert_eq!(data["operator"]["since"], "2026-02-05T10:00:00Z", "{data}");
    let doctor = user.run("doctor").await;
    assert!(
        !doctor.fine && doctor.out.contains("No operator has been alive"),
        "{doctor:?}"
    );
    // Fetched concurrently, shown in order.
    let clusters: Api<ValkeyCluster> = Api::default_namespaced(sandbox.client_as("admin", &["system:masters"]));
    for name in ["zoo", "bank", "attic"] {
        created(&clusters, name).await;
    }
    let doctor = user.run("doctor -o json").await;
    let findings: Value = serde_json::from_str(&doctor.out).unwrap();
    let reported: Vec<&str> = findings
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["what"].as_str())
        .collect();
    assert!(
        reported.ends_with(&["cluster attic", "cluster bank", "cluster shop", "cluster zoo"]),
        "{reported:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_api_server_a_watch_keeps_its_screen_and_shows_its_age() {
    let (sandbox, user) = left_alone().await;
    let mut watch = user.begin("status shop --watch");
    let mut reported = lines(watch.stdout.take());
    assert!(next(&mut reported).await.contains("default/shop Ready ClusterHealthy"));
    let line = format!(
        "{}; echo it ended with $?; exec sleep 600",
        user.line("status shop --watch")
    );
    let terminal = Terminal::start(user.folder.path(), (100, 30), &line);
    terminal.until("there", |text| text.contains("default/shop: ")).await;
    drop(sandbox);
    let gone = next(&mut reported).await;
    assert!(
        gone.contains("As of ") && gone.contains(" ago: the API server"),
        "{gone}"
    );
    let old = |text: &str| text.starts_with("As of ") && text.contains("s ago: the API server");
    let kept = terminal.until("old", old).await;
    assert!(kept.contains("default/shop: "), "the snapshot stays: {kept}");
    assert!(watch.try_wait().unwrap().is_none(), "it keeps watching");
    let ended = end(watch, Signal::INT).await;
    assert!(ended.fine && ended.err.is_empty(), "{ended:?}");
    terminal.press("C-c");
    terminal.until("ended", |text| text.contains("it ended with 0")).await;
    let refused = user.run("status").await.badly();
    assert!(refused.contains("kubectl config current-context"), "{refused}");
}

#[tokio::test]
async fn a_missing_kubeconfig_is_reported_with_where_to_get_one() {
    let user = Cli::with(None);
    let mut command = user.command("status");
    command.env("HOME", user.folder.path());
    let output = run(command).await.badly();
    assert!(
        output.contains("--kubeconfig") && output.contains("candor sandbox"),
        "{output}"
    );
}
