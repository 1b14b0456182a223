//! Servers at members' addresses that reject the operator's user: the operator repairs a server that is proven to be a
//! member, and leaves any other server unchanged.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use candor_operator::Settings;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube_sandbox::faults::{Fault, Faults, Rule, Verb, WatchFault};
use serde_json::json;
use valkey_sim::node::Node;
use valkey_sim::{InjectedReply, Start};

use crate::published::{rejection, through};
use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);
const NAME: &str = "internal-cart-system-passwords";

/// What a server knows about the operator's users and about other nodes.
#[derive(Debug, PartialEq, Eq)]
struct Touched {
    operator: bool,
    met: bool,
}

const UNTOUCHED: Touched = Touched {
    operator: false,
    met: false,
};

async fn password(stage: &Stage, user: &str) -> String {
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    let secret = secrets.get(NAME).await.unwrap();
    String::from_utf8(secret.data.unwrap().remove(user).unwrap().0).unwrap()
}

fn touched(stage: &Stage, ip: IpAddr) -> Touched {
    let look = |node: &Node| Touched {
        operator: node.users.has("_operator"),
        met: !node.map.peers.is_empty(),
    };
    stage.world.inspect(ip, look).unwrap()
}

/// Starts another server at an address, as happens when a pod is gone and Kubernetes has not reported it yet.
async fn replace(stage: &Stage, ip: IpAddr, start: &Start) {
    stage.world.kill(ip);
    let begun = Instant::now();
    while stage.world.start(ip, start).await.is_err() {
        assert!(begun.elapsed() < PATIENCE, "{ip} stays in use");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn rejects(cluster: &ValkeyCluster) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut messages = conditions.map(|one| &one.message);
    messages.any(|message| message.contains("member 0-1") && message.contains("WRONGPASS"))
}

fn is_locked_out(cluster: &ValkeyCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| status.reason == "SecretError" && status.message.contains("Restore it from a backup"))
}

fn is_blind(cluster: &ValkeyCluster) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|one| one.type_ == "Ready");
    ready.any(|one| one.status == "Unknown" && one.reason == "PodListError")
}

/// Waits until a change of the spec has been reconciled.
async fn reconciled(stage: &Stage, memory: &str) {
    let limits = json!({"resources": {"limits": {"memory": memory}}});
    stage.change("cart", limits).await;
    let newest = |cluster: &ValkeyCluster| {
        let status = cluster.status.as_ref();
        status.is_some_and(|status| status.observed_generation == cluster.metadata.generation)
    };
    stage.until("cart", "reconciled", PATIENCE, newest).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_took_over_a_members_address_gets_neither_our_user_nor_a_meeting() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods = stage.pods_of("cart").await;
    let ip = stage.pods.address("default", &pods["0-1"]).unwrap();
    replace(&stage, ip, &Start::default()).await;
    stage.until("cart", "rejected", PATIENCE, rejects).await;
    for memory in ["100Mi", "200Mi", "300Mi"] {
        reconciled(&stage, memory).await;
        assert_eq!(touched(&stage, ip), UNTOUCHED);
    }
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_lost_our_user_is_repaired_because_status_knows_its_node_id() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods = stage.pods_of("cart").await;
    let known = password(&stage, "_operator").await;
    let ip = stage.pods.address("default", &pods["0-1"]).unwrap();
    let disk = stage.world.kill(ip);
    // It lost its users, but it is the same node.
    let start = Start {
        disk,
        ..Start::default()
    };
    replace(&stage, ip, &start).await;
    stage
        .until("cart", "not Ready", PATIENCE, |cluster| !is_ready(cluster))
        .await;
    stage.ready("cart").await;
    let admits = stage.world.inspect(ip, |node| node.users.admits("_operator", &known));
    assert_eq!(admits, Some(true));
    assert_eq!(stage.pods_of("cart").await, pods, "no pod was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_with_an_old_password_is_repaired_because_another_password_of_ours_works() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    let pods = stage.pods_of("cart").await;
    let exporter = password(&stage, "_exporter").await;
    let ip = stage.pods.address("default", &pods["0-1"]).unwrap();
    let start = Start {
        users: vec![
            "user _operator on >an-older-one +@all".to_owned(),
            format!("user _exporter on >{exporter} +info"),
        ],
        ..Start::default()
    };
    replace(&stage, ip, &start).await;
    stage
        .until("cart", "not Ready", PATIENCE, |cluster| !is_ready(cluster))
        .await;
    stage.ready("cart").await;
    assert_eq!(stage.pods_of("cart").await, pods, "no pod was replaced");
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_secret_is_made_again_at_members_only_and_not_at_a_server_at_a_members_address() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    operator.end().await;
    let pods = stage.pods_of("cart").await;
    let (member, unknown_server) = ("0-0", "0-1");
    let [member, unknown_server] = [member, unknown_server].map(|at| stage.pods.address("default", &pods[at]).unwrap());
    replace(&stage, unknown_server, &Start::default()).await;
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    secrets.delete(NAME, &DeleteParams::default()).await.unwrap();
    let operator = Operator::start(stage.client());
    stage.until("cart", "rejected", PATIENCE, rejects).await;
    reconciled(&stage, "100Mi").await;
    let known = password(&stage, "_operator").await;
    let admits = stage
        .world
        .inspect(member, |node| node.users.admits("_operator", &known));
    assert_eq!(admits, Some(true));
    assert_eq!(touched(&stage, unknown_server), UNTOUCHED);
    operator.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_secret_is_not_made_again_while_pods_cannot_be_listed() {
    let stage = Stage::set().await;
    let operator = Operator::start(stage.client());
    stage.create("cart", json!({"shards": 1, "replicas": 1})).await;
    stage.ready("cart").await;
    operator.end().await;
    let secrets: Api<Secret> = Api::default_namespaced(stage.client());
    secrets.delete(NAME, &DeleteParams::default()).await.unwrap();
    // Pods are listed once, and no server replies to ACL commands in the meantime.
    stage.world.inject("ACL", InjectedReply::NoReply);
    let expire = Rule::new("pods expire")
        .verb(Verb::Watch)
        .resource("pods")
        .then(Fault::Watch(WatchFault::Expire { after: 1 }));
    // At the start, members and preflight pods of both kinds are listed.
    let list = rejection("pods").verb(Verb::List).range(5, 1_000);
    let faults = Faults::seeded(1).with(expire).with(list);
    let operator = Operator::start_with(through(&faults, stage.client()), Settings::default());
    stage.until("cart", "locked out", PATIENCE, is_locked_out).await;
    // The watch of pods ends with its first event, and pods cannot be listed again.
    let pods: Api<Pod> = Api::default_namespaced(stage.client());
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "yes"}}}));
    for pod in stage.pods_of("cart").await.values() {
        pods.patch(pod, &PatchParams::default(), &patch).await.unwrap();
    }
    stage.until("cart", "blind", PATIENCE, is_blind).await;
    stage.world.clear_injected();
    // Each change is reconciled, and the pod list request of each reconcile fails.
    for touch in 0..5 {
        let before = faults.requests();
        stage.annotate("cart", "touched", &touch.to_string()).await;
        let begun = Instant::now();
        while faults.requests() == before {
            assert!(begun.elapsed() < PATIENCE, "not reconciled");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert!(secrets.get_opt(NAME).await.unwrap().is_none());
    faults.calm();
    stage.ready("cart").await;
    operator.end().await;
}
