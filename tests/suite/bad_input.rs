//! Errors that only a server, the scheduler or the kubelet can detect: a condition reports their message within
//! seconds, no running member is affected, and the condition clears as soon as the spec is correct again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use candor_audit::Auditor;
use candor_tests::{Cluster, Server, World, contract, until};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The deadline for a condition to report the error.
const REPORT_DEADLINE: Duration = Duration::from_secs(5);

/// An error in a spec, and the condition that reports it.
struct Wrong {
    spec: Value,
    /// The corrected spec.
    right: Value,
    condition: &'static str,
    reason: &'static str,
    message: &'static str,
}

fn wrongs() -> [Wrong; 4] {
    [
        Wrong {
            spec: json!({"resources": {"requests": {"memory": "9000Gi"}}}),
            right: json!({"resources": null}),
            condition: "Ready",
            reason: "PodUnschedulable",
            message: "Insufficient memory",
        },
        Wrong {
            spec: json!({"scheduling": {"nodeSelector": {"disk": "none"}}}),
            right: json!({"scheduling": null}),
            condition: "Ready",
            reason: "PodUnschedulable",
            message: "nodes are available",
        },
        Wrong {
            spec: json!({"config": {"no-such-key": "1"}}),
            right: json!({"config": {"no-such-key": null}}),
            condition: "ConfigurationApplied",
            reason: "ConfigurationRefused",
            message: "no-such-key",
        },
        Wrong {
            spec: json!({"users": [{"name": "app", "nopass": true, "permissions": "~* +nosuchcommand"}]}),
            right: json!({"users": []}),
            condition: "UsersApplied",
            reason: "UsersRefused",
            message: "nosuchcommand",
        },
    ]
}

/// An image that does not exist; the correction varies.
fn no_image(right: &str) -> Wrong {
    Wrong {
        spec: json!({"image": "example.com/no-such:9.1"}),
        right: json!({"image": right}),
        condition: "Ready",
        reason: "PodNotStarting",
        message: "example.com/no-such",
    }
}

/// Pods with their uids and the run ids of the servers in them.
type Processes = BTreeMap<String, (String, String)>;

/// The processes of all running pods, or of the pods in `known`.
async fn processes(cluster: &Cluster<'_>, known: Option<&Processes>) -> Processes {
    let mut found = Processes::new();
    for pod in cluster.pods().await {
        let name = pod.metadata.name.clone().unwrap_or_default();
        if known.is_some_and(|known| !known.contains_key(&name)) {
            continue;
        }
        let run = until(&format!("{name} answers"), async || {
            let info: String = Server::of(&pod).await?.ask(&["INFO", "server"]).await?;
            let run = info.lines().find_map(|line| line.trim_end().strip_prefix("run_id:"));
            run.map(str::to_owned)
        })
        .await;
        found.insert(name, (pod.metadata.uid.unwrap_or_default(), run));
    }
    found
}

/// Waits until the condition reports the error; returns its message and how long it took.
async fn reported(cluster: &Cluster<'_>, wrong: &Wrong, begun: Instant) -> (String, Duration) {
    let matches = |one: &Value| {
        let message = one["message"].as_str().unwrap_or_default();
        one["type"] == wrong.condition && one["reason"] == wrong.reason && message.contains(wrong.message)
    };
    let object = cluster
        .until(wrong.reason, |object| {
            object["status"]["conditions"]
                .as_array()
                .is_some_and(|all| all.iter().any(matches))
        })
        .await;
    let took = begun.elapsed();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let message = conditions
        .iter()
        .find(|one| matches(one))
        .map(|one| one["message"].to_string());
    let message = format!("{} {} {}", cluster.name(), wrong.reason, message.unwrap_or_default());
    println!("{:.1} s: {message}", took.as_secs_f64());
    (message, took)
}

/// Applies one wrong spec, waits for the condition, checks that no member was restarted, and corrects the spec.
async fn wronged(cluster: &Cluster<'_>, wrong: &Wrong) -> (String, Duration) {
    let before = processes(cluster, None).await;
    let begun = Instant::now();
    cluster.change(wrong.spec.clone()).await;
    let reported = reported(cluster, wrong, begun).await;
    assert_eq!(
        processes(cluster, Some(&before)).await,
        before,
        "{}: members were touched",
        reported.0
    );
    cluster.change(wrong.right.clone()).await;
    cluster.ready().await;
    if wrong.condition != "Ready" {
        assert!(
            cluster.condition(wrong.condition).await.is_none(),
            "{}: it still speaks",
            reported.0
        );
    }
    reported
}

/// Cordons or uncordons all nodes.
async fn cordon(world: &World, cordoned: bool) {
    let nodes: Api<Node> = Api::all(world.client());
    for node in nodes.list(&ListParams::default()).await.expect("machines") {
        let name = node.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(json!({"spec": {"unschedulable": cordoned}}));
        let patched = nodes.patch(&name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// No member of a new shard can be scheduled.
async fn no_room(world: &World, cluster: &Cluster<'_>) -> (String, Duration) {
    cordon(world, true).await;
    let wrong = Wrong {
        spec: json!({"shards": 4}),
        right: json!({"shards": 3}),
        condition: "Ready",
        reason: "PodUnschedulable",
        message: "nodes are available",
    };
    let reported = wronged(cluster, &wrong).await;
    cordon(world, false).await;
    reported
}

async fn begun<'a>(world: &'a World, name: &str, spec: Value) -> (Cluster<'a>, Auditor) {
    let cluster = Cluster::new(world, name);
    cluster.create(spec).await;
    cluster.ready().await;
    let auditor = cluster.audit_at(100).await;
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    (cluster, auditor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_that_only_kubernetes_or_servers_can_find_are_reported_with_their_message_and_cost_no_member() {
    let world = World::start("bad-input").await;
    let pair = begun(
        &world,
        "pair",
        json!({"shards": 3, "replicas": 1, "image": "valkey/valkey:8.0"}),
    );
    let lone = begun(
        &world,
        "lone",
        json!({"shards": 3, "replicas": 0, "image": "valkey/valkey:9.1"}),
    );
    let ((pair, of_pair), (lone, of_lone)) = futures::join!(pair, lone);
    let first = processes(&lone, None).await;
    let mut reported = Vec::new();
    let to = [
        (&pair, no_image("valkey/valkey:9.1")),
        (&lone, no_image("valkey/valkey:9.1")),
    ];
    reported.extend(join_all(to.iter().map(|(cluster, wrong)| wronged(cluster, wrong))).await);
    let rolled = pair
        .servers()
        .await
        .into_values()
        .map(|server| server.version[..3].to_owned());
    assert_eq!(
        rolled.collect::<Vec<_>>(),
        ["9.1"; 6],
        "a corrected spec goes on by itself"
    );
    for wrong in wrongs() {
        let both = [&pair, &lone].map(|cluster| wronged(cluster, &wrong));
        reported.extend(join_all(both).await);
    }
    reported.push(no_room(&world, &lone).await);
    assert_eq!(
        processes(&lone, None).await,
        first,
        "nobody was restarted from beginning to end"
    );
    let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
    let left = pods
        .list(&ListParams::default().labels("valkey.io/trial-of"))
        .await
        .expect("pods");
    assert!(left.items.is_empty(), "pods of trials are left: {:?}", left.items);
    for (cluster, auditor) in [(&pair, of_pair), (&lone, of_lone)] {
        cluster.written(&auditor, 200).await;
        // The outage of slots during a rolling update is tested by another scenario.
        let audit = contract::assert_met(cluster, auditor).await;
        assert_eq!(audit.writes.lost, 0, "{}", contract::details(&audit));
        for (message, took) in reported
            .iter()
            .filter(|(message, _)| message.starts_with(cluster.name()))
        {
            assert!(
                *took <= REPORT_DEADLINE + audit.stalled,
                "reported after {took:?}: {message}"
            );
        }
    }
    world.end().await;
}
