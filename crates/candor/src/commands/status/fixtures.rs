//! Snapshots for tests: a cluster of three shards in common states.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_engine::model::{MemberRef, ShardIndex};
use jiff::Timestamp;
use serde_json::{Value, json};
use valkey_admin::info::Info;

use super::furnished;
use crate::commands::cluster::{MemberId, Object};
use crate::commands::liveness::Liveness;
use crate::commands::snapshot::Snapshot;

/// The time of every snapshot.
pub const NOW: &str = "2026-02-05T10:00:00Z";

const IDS: [&str; 8] = ["a0", "a1", "b0", "b1", "c0", "c1", "d0", "d1"];
const SLOTS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

/// A condition as it is stored.
pub fn condition(type_: &str, status: &str, reason: &str, message: &str, since: &str, severity: &str) -> Value {
    let mut all = json!({"type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "observedGeneration": 1});
    if !severity.is_empty() {
        all["severity"] = json!(severity);
    }
    all
}

fn topology(shards: usize) -> Value {
    topology_with(shards, &SLOTS)
}

fn topology_with(shards: usize, slots: &[&str]) -> Value {
    let shard = |index: usize| {
        let member = |node: usize| {
            json!({"node": node, "nodeId": format!("{:0<40}", IDS[index * 2 + node]),
                "role": if node == 0 { "primary" } else { "replica" }})
        };
        json!({"shard": index, "slots": slots.get(index).unwrap_or(&""), "keys": 1200,
            "members": [member(0), member(1)]})
    };
    (0..shards).map(shard).collect()
}

fn node(shard: usize, node: usize, reason: &str, severity: &str, since: &str) -> Value {
    let ready = severity.is_empty();
    let message = if ready {
        ""
    } else {
        "Refuses connections since 2026-02-05T09:59:57Z"
    };
    json!({
        "apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyNode",
        "metadata": {"name": format!("shop-{shard}-{node}"), "namespace": "prod"},
        "spec": {"cluster": "shop", "shard": shard, "node": node},
        "status": {"ready": ready, "role": if node == 0 { "primary" } else { "replica" },
            "podName": format!("valkey-shop-{shard}-{node}-x"), "podIP": format!("10.0.{shard}.{node}"),
            "conditions": [
                condition("Ready", if ready { "True" } else { "False" }, reason, message, since, severity),
                condition("ConfigurationApplied", "True", "Applied", "", since, ""),
                condition("UsersApplied", "True", "Applied", "", since, ""),
            ]},
    })
}

fn pod(shard: usize, node: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("valkey-shop-{shard}-{node}-x"), "namespace": "prod",
            "labels": {"valkey.io/cluster": "shop", "valkey.io/shard-index": shard.to_string(), "valkey.io/node-index": node.to_string()}},
        "spec": {"containers": [{"name": "server", "image": "valkey/valkey:9.1"}], "nodeName": format!("node-{}", (shard + node) % 3)},
        "status": {"podIP": format!("10.0.{shard}.{node}"), "containerStatuses": [{"name": "server", "image": "",
            "imageID": "", "ready": true, "restartCount": usize::from(shard == 1 && node == 0)}]},
    })
}

fn event(age: i64, reason: &str, message: &str, count: i32) -> Value {
    event_of("ValkeyCluster", "shop", age, reason, message, count)
}

/// An event about a cluster, so many seconds ago.
pub fn event_of(kind: &str, name: &str, age: i64, reason: &str, message: &str, count: i32) -> Value {
    let at: Timestamp = NOW.parse().unwrap();
    let at = at - jiff::SignedDuration::from_secs(age);
    let lost = reason.ends_with("Lost") || reason.ends_with("Failed");
    json!({"metadata": {"name": format!("{name}.{reason}{age}"), "namespace": "prod"},
        "involvedObject": {"kind": kind, "name": name}, "reason": reason, "message": message,
        "type": if lost { "Warning" } else { "Normal" }, "count": count, "lastTimestamp": at})
}

/// A server's reply.
pub fn info(primary: bool, offset: u64) -> Info {
    let role = if primary { "master" } else { "slave" };
    let link = if primary {
        ""
    } else {
        "master_link_status:up\r\nslave_repl_offset:"
    };
    let offset = if primary {
        format!("master_repl_offset:{offset}")
    } else {
        format!("{link}{offset}")
    };
    Info::parse(&format!(
        "valkey_version:9.1.0\r\nrole:{role}\r\n{offset}\r\nused_memory:12582912\r\nmaxmemory:100663296\r\n\
         db0:keys=1234,expires=0\r\ninstantaneous_ops_per_sec:321\r\n\
         connected_clients:7\r\nkeyspace_hits:90\r\nkeyspace_misses:10\r\n"
    ))
    .unwrap()
}

fn snapshot(status: &Value, shards: usize, ready: bool) -> Snapshot {
    let reason = |node| if node == 0 { "Serving" } else { "InSync" };
    let since = "2026-02-02T06:00:00Z";
    let members = || (0..shards).flat_map(|shard| (0..2).map(move |node| (shard, node)));
    let cluster = json!({
        "apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
        "metadata": {"name": "shop", "namespace": "prod", "generation": 1, "creationTimestamp": "2026-02-01T09:00:00Z"},
        "spec": {"shards": shards, "replicas": 1, "image": "valkey/valkey:9.1"},
        "status": status,
    });
    Snapshot {
        now: NOW.parse().unwrap(),
        object: Object::Valkey(Box::new(serde_json::from_value(cluster).unwrap())),
        nodes: members()
            .map(|(shard, place)| {
                if ready {
                    node(shard, place, reason(place), "", since)
                } else {
                    node(shard, place, "PodPending", "Info", "2026-02-05T09:59:52Z")
                }
            })
            .map(|value| serde_json::from_value(value).unwrap())
            .collect(),
        pods: members()
            .map(|(shard, node)| serde_json::from_value(pod(shard, node)).unwrap())
            .collect(),
        zones: (0..3)
            .map(|n| (format!("node-{n}"), ["a", "b", "c"][n].to_owned()))
            .collect(),
        events: Vec::new(),
        servers: BTreeMap::new(),
        around: furnished::around(),
        operator: Liveness::Alive {
            holder: "candor-1".to_owned(),
            lease: "candor/candor-operator".to_owned(),
        },
        notes: Vec::new(),
    }
}

fn place(shard: usize, node: usize) -> MemberId {
    MemberId::Place(MemberRef {
        shard: ShardIndex(u32::try_from(shard).unwrap()),
        node: u32::try_from(node).unwrap(),
    })
}

/// The `ValkeyCluster` of a snapshot.
pub fn valkey(snapshot: &mut Snapshot) -> &mut ValkeyCluster {
    match &mut snapshot.object {
        Object::Valkey(cluster) => cluster,
        Object::Redkey(_) => panic!("a RedkeyCluster"),
    }
}

/// Events, decoded.
pub fn events(all: &[Value]) -> Vec<k8s_openapi::api::core::v1::Event> {
    all.iter()
        .map(|one| serde_json::from_value(one.clone()).unwrap())
        .collect()
}

/// Every server responds.
fn reach(snapshot: &mut Snapshot, shards: usize) {
    for shard in 0..shards {
        snapshot.servers.insert(place(shard, 0), info(true, 70_000));
        snapshot
            .servers
            .insert(place(shard, 1), info(false, 70_000 - 2048 * shard as u64));
    }
}

/// The common states, by name.
pub fn states() -> Vec<(&'static str, Snapshot)> {
    vec![
        ("healthy", healthy()),
        ("creating", creating()),
        ("scaling", moving()),
        ("degraded", primary_lost()),
        ("failed", failed()),
        ("data_lost", data_lost()),
        ("paused", paused()),
        ("deleting", deleting()),
        ("unreachable", unreachable()),
        ("no_operator", no_operator()),
        ("unseen", unseen()),
    ]
}

/// Three healthy shards; every server can be reached.
pub fn healthy() -> Snapshot {
    let since = "2026-02-02T06:00:00Z";
    let status = json!({"state": "Ready", "reason": "ClusterHealthy", "message": "Cluster is healthy", "shards": 3,
    "readyShards": 3, "formed": true, "observedGeneration": 1, "topology": topology(3), "conditions": [
        condition("Ready", "True", "ClusterHealthy", "Cluster is healthy", since, ""),
        condition("Progressing", "False", "ReconcileComplete", "No changes needed", since, ""),
        condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster", since, ""),
        condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned", since, ""),
    ]});
    let mut snapshot = snapshot(&status, 3, true);
    reach(&mut snapshot, 3);
    snapshot.events = events(&[event(
        273_600,
        "ClusterReady",
        "Cluster ready with 3 shards and 1 replicas",
        1,
    )]);
    snapshot
}

/// Eight seconds after its creation was requested.
pub fn creating() -> Snapshot {
    let since = "2026-02-05T09:59:52Z";
    let status = json!({"state": "Reconciling", "reason": "Reconciling", "message": "Creating shards", "shards": 0,
    "readyShards": 0, "observedGeneration": 1,
    "operation": {"kind": "Create", "startedAt": since, "step": 1, "steps": 4}, "conditions": [
        condition("Ready", "False", "MissingShards", "Waiting for all shards to be created", since, "Info"),
        condition("Progressing", "True", "Reconciling", "Creating shards", since, "Info"),
        condition("ClusterFormed", "False", "MissingShards", "Waiting for shards", since, "Info"),
    ]});
    let mut snapshot = snapshot(&status, 3, false);
    snapshot.events = events(&[
        event(8, "ServiceCreated", "Created headless Service", 1),
        event(7, "DeploymentCreated", "Created deployment 6 of 6", 6),
        event(6, "WaitingForShards", "0 of 3 shards exist", 1),
    ]);
    snapshot
}

/// A fourth shard receives its slots.
pub fn moving() -> Snapshot {
    let since = "2026-02-05T09:59:20Z";
    let status = json!({"state": "Reconciling", "reason": "RebalancingSlots", "message": "Rebalancing slots across primaries",
    "shards": 4, "readyShards": 3, "formed": true, "observedGeneration": 2,
    "topology": topology_with(4, &["1200-5460", "5461-10922", "10923-16383", "0-1199"]),
    "operation": {"kind": "ScaleOut", "startedAt": since, "step": 3, "steps": 3, "slotsMoved": 1200, "slotsTotal": 4096},
    "conditions": [
        condition("Ready", "False", "Reconciling", "Cluster is Reconciling", since, "Warning"),
        condition("Progressing", "True", "RebalancingSlots", "Rebalancing slots across primaries, 1200/4096", since, "Warning"),
        condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster", since, ""),
        condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned", since, ""),
    ]});
    let mut snapshot = snapshot(&status, 4, true);
    valkey(&mut snapshot).metadata.generation = Some(2);
    reach(&mut snapshot, 4);
    snapshot.events = events(&[event(
        40,
        "SlotsRebalancing",
        "Moving 1366 slots from shard 0 to shard 3",
        1,
    )]);
    snapshot
}

/// Shard 1 has no primary that responds.
pub fn primary_lost() -> Snapshot {
    let since = "2026-02-05T09:59:57Z";
    let status = json!({"state": "Degraded", "reason": "PrimaryLost", "message": "Primary lost in shard 1: member 1-0 refuses connections",
    "shards": 3, "readyShards": 2, "formed": true, "observedGeneration": 1, "topology": topology(3),
    "operation": {"kind": "Heal", "startedAt": since, "member": "1-0"}, "conditions": [
        condition("Ready", "False", "Reconciling", "Cluster is Reconciling", since, "Warning"),
        condition("Progressing", "True", "Reconciling", "Waiting for failover in shard 1", since, "Warning"),
        condition("Degraded", "True", "PrimaryLost", "Primary lost in shard 1: member 1-0 refuses connections", since, "Error"),
        condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster", "2026-02-02T06:00:00Z", ""),
        condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned", "2026-02-02T06:00:00Z", ""),
        condition("NodesReady", "False", "NodesNotReady", "* ValkeyNode shop-1-0: Refuses connections since 2026-02-05T09:59:57Z", since, "Warning"),
    ]});
    let mut snapshot = snapshot(&status, 3, true);
    snapshot.nodes[2] = serde_json::from_value(node(1, 0, "Gone", "Error", since)).unwrap();
    reach(&mut snapshot, 3);
    snapshot.servers.remove(&place(1, 0));
    snapshot.events = events(&[event(
        3,
        "PrimaryLost",
        "Primary lost in shard 1: member 1-0 refuses connections",
        1,
    )]);
    snapshot
}

/// A user must act.
pub fn failed() -> Snapshot {
    let since = "2026-02-05T09:48:00Z";
    let words = "valkey/valkey:9.9: manifest unknown; the pod valkey-shop-0-1-x waits (ImagePullBackOff)";
    let status = json!({"state": "Failed", "reason": "PodNotStarting", "message": words, "shards": 3, "readyShards": 2,
    "formed": true, "observedGeneration": 1, "topology": topology(3), "errorSince": since, "conditions": [
        condition("Ready", "False", "PodNotStarting", words, since, "Error"),
        condition("Progressing", "False", "Stalled", "Waiting for the cause to be removed: see Ready", since, ""),
        condition("Paused", "True", "PausedByUser", "spec.paused is set: the operator reports status and makes no changes", since, "Info"),
    ]});
    snapshot(&status, 3, true)
}

/// Healthy at the last reconcile; no operator is running now.
pub fn no_operator() -> Snapshot {
    let mut snapshot = healthy();
    snapshot.servers.clear();
    snapshot.operator = Liveness::Gone {
        holder: Some("candor-1".to_owned()),
        lease: "candor/candor-operator".to_owned(),
        since: Some("2026-02-05T09:54:50Z".parse().unwrap()),
    };
    snapshot.notes = vec![
        "no server can be reached from here: keys are as of the last change, lag and memory are not shown".to_owned(),
    ];
    snapshot
}

/// Created, and no operator has reconciled it.
pub fn unseen() -> Snapshot {
    let mut snapshot = snapshot(&json!({}), 3, true);
    valkey(&mut snapshot).status = None;
    snapshot.nodes.clear();
    snapshot.pods.clear();
    snapshot.operator = Liveness::NoLease;
    snapshot
}

/// A shard came back empty and serves again, and no user has acknowledged the loss.
pub fn data_lost() -> Snapshot {
    let (since, lost) = ("2026-02-05T09:56:30Z", "2026-02-05T09:56:20Z");
    let words = "Shard 1 came back empty: slots 5461-10922, 1200 keys last seen";
    let status = json!({"state": "Ready", "reason": "ClusterHealthy", "message": "Cluster is healthy", "shards": 3,
    "readyShards": 3, "formed": true, "observedGeneration": 1, "topology": topology(3), "conditions": [
        condition("Ready", "True", "ClusterHealthy", "Cluster is healthy", since, ""),
        condition("Progressing", "False", "ReconcileComplete", "No changes needed", since, ""),
        condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster", since, ""),
        condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned", since, ""),
        condition("DataLost", "True", "DataLost", words, lost, "Warning"),
    ]});
    let mut snapshot = snapshot(&status, 3, true);
    reach(&mut snapshot, 3);
    snapshot.events = events(&[
        event(
            230,
            "PrimaryLost",
            "Primary lost in shard 1: member 1-0 refuses connections",
            1,
        ),
        event(220, "DataLost", words, 1),
        event(210, "ClusterReady", "Cluster ready with 3 shards and 1 replicas", 1),
    ]);
    snapshot
}

/// Healthy and paused.
pub fn paused() -> Snapshot {
    let mut snapshot = healthy();
    valkey(&mut snapshot).spec.paused = Some(true);
    let since = "2026-02-05T09:48:00Z";
    let paused = condition(
        "Paused",
        "True",
        "PausedByUser",
        "spec.paused is set: the operator reports status and makes no changes",
        since,
        "Info",
    );
    let status = valkey(&mut snapshot).status.as_mut().unwrap();
    status.conditions.push(serde_json::from_value(paused).unwrap());
    snapshot
}

/// Being deleted: some members are gone already.
pub fn deleting() -> Snapshot {
    let since = "2026-02-05T09:59:48Z";
    let status = json!({"state": "Reconciling", "reason": "Deleting", "message": "Deleting the cluster", "shards": 3,
    "readyShards": 0, "formed": true, "observedGeneration": 1, "topology": topology(3),
    "operation": {"kind": "Delete", "startedAt": since, "step": 1, "steps": 1}, "conditions": [
        condition("Ready", "False", "Deleting", "Cluster is being deleted", since, "Info"),
        condition("Progressing", "True", "Deleting", "Deleting the cluster", since, "Info"),
    ]});
    let mut snapshot = snapshot(&status, 3, true);
    valkey(&mut snapshot).metadata.deletion_timestamp = serde_json::from_value(json!(since)).unwrap();
    snapshot.nodes.truncate(2);
    snapshot.pods.truncate(2);
    snapshot.events = events(&[event(12, "StaleNodeForgotten", "Forgot stale node", 1)]);
    snapshot
}

/// Neither the operator nor the CLI can reach the pods.
pub fn unreachable() -> Snapshot {
    let since = "2026-02-05T09:59:30Z";
    let words = "pods could not be listed: etcdserver: request timed out";
    let status = json!({"state": "Reconciling", "reason": "PodListError", "message": words, "shards": 3,
    "readyShards": 3, "formed": true, "observedGeneration": 1, "topology": topology(3), "errorSince": since, "conditions": [
        condition("Ready", "Unknown", "PodListError", words, since, ""),
        condition("Progressing", "False", "ReconcileComplete", "No changes needed", "2026-02-02T06:00:00Z", ""),
        condition("ClusterFormed", "True", "TopologyComplete", "All nodes joined cluster", "2026-02-02T06:00:00Z", ""),
        condition("SlotsAssigned", "True", "AllSlotsAssigned", "All slots assigned", "2026-02-02T06:00:00Z", ""),
    ]});
    let mut snapshot = snapshot(&status, 3, true);
    snapshot.pods.clear();
    snapshot.notes = vec![
        "pods are not shown: etcdserver: request timed out".to_owned(),
        "no server can be reached from here: keys are as of the last change, lag and memory are not shown".to_owned(),
    ];
    snapshot
}
