//! Snapshots for tests: a `RedkeyCluster` of three primaries in common states.

use std::collections::BTreeMap;

use candor_api::RedkeyCluster;
use serde_json::{Value, json};

use super::fixtures::{NOW, condition, event_of, events, info};
use crate::commands::cluster::{MemberId, Object};
use crate::commands::liveness::Liveness;
use crate::commands::snapshot::Snapshot;

const LONG_AGO: &str = "2026-02-02T06:00:00Z";
const SLOTS: [&str; 3] = ["0-5460", "5461-10922", "10923-16383"];

/// The common states, by name.
pub fn states() -> Vec<(&'static str, Snapshot)> {
    vec![
        ("redkey_ready", ready()),
        ("redkey_creating", creating()),
        ("redkey_scaling_slow", scaling_slow()),
        ("redkey_scaling_fast", scaling_fast()),
        ("redkey_upgrading", upgrading()),
        ("redkey_error", error()),
        ("redkey_hibernated", hibernated()),
        ("redkey_maintenance", maintenance()),
        ("redkey_degraded", degraded()),
        ("redkey_unknown", unknown()),
        ("redkey_other_operator", other_operator()),
    ]
}

/// The `RedkeyCluster` of a snapshot.
pub fn redkey(snapshot: &mut Snapshot) -> &mut RedkeyCluster {
    match &mut snapshot.object {
        Object::Redkey(cluster) => cluster,
        Object::Valkey(_) => panic!("a ValkeyCluster"),
    }
}

fn id(ordinal: usize) -> String {
    format!("{ordinal:0<40x}", ordinal = ordinal + 10)
}

/// One shard per primary; with replicas, ordinals from `primaries` on replicate them in order.
fn topology(slots: &[&str], replicas: bool) -> Value {
    let shard = |index: usize| {
        let mut seats = vec![json!({"ordinal": index, "nodeId": id(index), "isPrimary": true})];
        if replicas {
            let ordinal = index + slots.len();
            seats.push(json!({"ordinal": ordinal, "nodeId": id(ordinal), "isPrimary": false}));
        }
        let keys = if slots[index].is_empty() { 0 } else { 1200 };
        json!({"shard": index, "slots": slots[index], "keys": keys, "members": seats})
    };
    (0..slots.len()).map(shard).collect()
}

fn nodes(primaries: usize, replicas: bool) -> Value {
    let node = |ordinal: usize| {
        let is_primary = ordinal < primaries;
        let of = if is_primary {
            String::new()
        } else {
            id(ordinal - primaries)
        };
        (
            id(ordinal),
            json!({"name": format!("cache-{ordinal}"), "ip": format!("10.1.0.{ordinal}"), "isPrimary": is_primary, "replicaOf": of}),
        )
    };
    let count = if replicas { 2 * primaries } else { primaries };
    (0..count).map(node).collect::<serde_json::Map<_, _>>().into()
}

fn pod(ordinal: usize, ready: bool) -> Value {
    let (status, reason) = if ready {
        ("True", "")
    } else {
        ("False", "ContainersNotReady")
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("cache-{ordinal}"), "namespace": "prod", "labels": {"redkey-cluster-name": "cache",
            "redis.redkeycluster.operator/component": "redis"}},
        "spec": {"containers": [{"name": "redis"}], "nodeName": format!("node-{}", ordinal % 3)},
        "status": {"phase": "Running", "podIP": format!("10.1.0.{ordinal}"), "conditions": [
            {"type": "Ready", "status": status, "reason": reason, "lastTransitionTime": LONG_AGO}]},
    })
}

/// The four conditions of operations, all of which are False but one.
fn operations(running: Option<(&str, &str, &str)>) -> Vec<Value> {
    let one = |type_: &str| match running {
        Some((running, message, since)) if running == type_ => {
            let reason = format!("RedkeyCluster{type_}");
            condition(type_, "True", &reason, message, since, "Warning")
        }
        _ => condition(type_, "False", "NotInProgress", "", LONG_AGO, ""),
    };
    ["ScalingUp", "ScalingDown", "Upgrading"].map(one).into()
}

fn well() -> Vec<Value> {
    vec![
        condition("Degraded", "False", "NotDegraded", "", LONG_AGO, ""),
        condition(
            "RobinReady",
            "True",
            "RobinReady",
            "Robin follows generation 1",
            LONG_AGO,
            "",
        ),
        condition("DataLost", "False", "NoDataLost", "", LONG_AGO, ""),
    ]
}

fn conditions(ready: Value, running: Option<(&str, &str, &str)>) -> Value {
    json!([vec![ready], operations(running), well()].concat())
}

fn is_ready() -> Value {
    condition(
        "Ready",
        "True",
        "RedkeyClusterReady",
        "Redkey cluster is ready",
        LONG_AGO,
        "",
    )
}

fn snapshot(spec: &Value, status: &Value, pods: &[bool]) -> Snapshot {
    let cluster = json!({
        "apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
        "metadata": {"name": "cache", "namespace": "prod", "generation": 1, "creationTimestamp": "2026-02-01T09:00:00Z"},
        "spec": spec, "status": status,
    });
    let pods = pods.iter().enumerate();
    Snapshot {
        now: NOW.parse().unwrap(),
        object: Object::Redkey(Box::new(serde_json::from_value(cluster).unwrap())),
        nodes: Vec::new(),
        pods: pods
            .map(|(ordinal, ready)| serde_json::from_value(pod(ordinal, *ready)).unwrap())
            .collect(),
        zones: (0..3)
            .map(|n| (format!("node-{n}"), ["a", "b", "c"][n].to_owned()))
            .collect(),
        events: Vec::new(),
        servers: BTreeMap::new(),
        around: crate::commands::surroundings::Surroundings::default(),
        operator: Liveness::Alive {
            holder: "candor-1".to_owned(),
            lease: "candor/candor-operator".to_owned(),
        },
        notes: Vec::new(),
    }
}

/// Every server responds; those from `primaries` on are replicas.
fn reach(snapshot: &mut Snapshot, primaries: u32) {
    for ordinal in 0..u32::try_from(snapshot.pods.len()).unwrap() {
        let primary = ordinal < primaries;
        let offset = if primary { 70_000 } else { 69_000 };
        snapshot
            .servers
            .insert(MemberId::Ordinal(ordinal), info(primary, offset));
    }
}

fn event(age: i64, reason: &str, message: &str, count: i32) -> Value {
    event_of("RedkeyCluster", "cache", age, reason, message, count)
}

/// Three primaries with a replica each.
pub fn ready() -> Snapshot {
    let status = json!({"status": "Ready", "substatus": {}, "primaries": 3, "nodes": nodes(3, true), "formed": true,
        "observedGeneration": 1, "topology": topology(&SLOTS, true), "conditions": conditions(is_ready(), None)});
    let spec = json!({"primaries": 3, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false});
    let mut snapshot = snapshot(&spec, &status, &[true; 6]);
    reach(&mut snapshot, 3);
    snapshot.events = events(&[event(200, "RedkeyClusterReady", "Redkey cluster is ready", 1)]);
    snapshot
}

/// Robin assigns slots for the first time.
fn creating() -> Snapshot {
    let since = "2026-02-05T09:59:55Z";
    let message = "Joining servers: 2 of 3 have joined";
    let status = json!({"status": "Configuring", "substatus": {}, "primaries": 0, "nodes": nodes(2, false),
        "observedGeneration": 1, "operation": {"kind": "Create", "mode": "Fast", "startedAt": "2026-02-05T09:59:52Z"},
        "conditions": conditions(condition("Ready", "False", "Configuring", message, since, "Info"), None)});
    snapshot(&json!({"primaries": 3}), &status, &[true, true, false])
}

/// From 3 to 5 primaries, keys are kept: slots move.
pub fn scaling_slow() -> Snapshot {
    let since = "2026-02-05T09:59:20Z";
    let message = "Scaling up from 3 to 5 primaries";
    let slots = ["1200-5460", "5461-10922", "10923-16383", "0-1199", ""];
    let status = json!({"status": "ScalingUp", "substatus": {"status": "RobinScaling"}, "primaries": 4,
        "nodes": nodes(5, false), "formed": true, "observedGeneration": 1, "topology": topology(&slots, false),
        "operation": {"kind": "ScaleUp", "mode": "Slow", "startedAt": since, "fromPrimaries": 3, "slotsMoved": 1200,
            "slotsTotal": 6553},
        "conditions": conditions(condition("Ready", "False", "RedkeyClusterScalingUp", message, since, "Warning"),
            Some(("ScalingUp", message, since)))});
    let mut snapshot = snapshot(
        &json!({"primaries": 5, "purgeKeysOnRebalance": false}),
        &status,
        &[true; 5],
    );
    reach(&mut snapshot, 5);
    snapshot.events = events(&[
        event(40, "RedkeyClusterScalingUp", message, 1),
        event(30, "SlotsRebalancing", "Moving 6553 slots to 2 primaries", 1),
    ]);
    snapshot
}

/// From 5 to 3 primaries, keys are purged: the `StatefulSet` is recreated.
fn scaling_fast() -> Snapshot {
    let since = "2026-02-05T09:59:50Z";
    let message = "Scaling down from 5 to 3 primaries";
    let status = json!({"status": "ScalingDown", "substatus": {"status": "FastScaling"}, "primaries": 0, "nodes": {},
        "formed": true, "observedGeneration": 1,
        "operation": {"kind": "ScaleDown", "mode": "Fast", "startedAt": since, "fromPrimaries": 5},
        "conditions": conditions(condition("Ready", "False", "RedkeyClusterScalingDown", message, since, "Warning"),
            Some(("ScalingDown", message, since)))});
    let mut snapshot = snapshot(&json!({"primaries": 3}), &status, &[true, false, false]);
    snapshot.events = events(&[
        event(10, "RedkeyClusterScalingDown", message, 1),
        event(8, "KeysPurged", "6000 keys are purged: purgeKeysOnRebalance is true", 1),
    ]);
    snapshot
}

/// A slow upgrade at partition 2: the pod is being recreated.
pub fn upgrading() -> Snapshot {
    let since = "2026-02-05T09:58:00Z";
    let message = "Upgrading to image redis:8.0.6";
    let slots = ["0-5460", "5461-10922", "", "10923-16383"];
    let status = json!({"status": "Upgrading", "substatus": {"status": "RollingConfig", "upgradingPartition": "2"},
        "primaries": 3, "nodes": nodes(4, false), "formed": true, "observedGeneration": 1,
        "topology": topology(&slots, false),
        "operation": {"kind": "Upgrade", "mode": "Slow", "startedAt": since, "attempts": 1, "fromPrimaries": 3,
            "slotsMoved": 10922, "slotsTotal": 27306, "extraNode": 3, "revision": "4f"},
        "conditions": conditions(condition("Ready", "False", "RedkeyClusterUpgrading", message, since, "Warning"),
            Some(("Upgrading", message, since)))});
    let spec = json!({"primaries": 3, "purgeKeysOnRebalance": false, "image": "redis:8.0.6"});
    let mut snapshot = snapshot(&spec, &status, &[true, true, false, true]);
    reach(&mut snapshot, 4);
    snapshot.servers.remove(&MemberId::Ordinal(2));
    snapshot.events = events(&[event(120, "RedkeyClusterUpgrading", message, 1)]);
    snapshot
}

/// An upgrade with an image that does not exist.
pub fn error() -> Snapshot {
    let since = "2026-02-05T09:48:00Z";
    let message = "cache-preflight waits (ImagePullBackOff): redis:9.9: manifest unknown";
    let status = json!({"status": "Error", "substatus": {"status": "FastUpgrading"}, "primaries": 3,
        "nodes": nodes(3, false), "formed": true, "observedGeneration": 1, "topology": topology(&SLOTS, false),
        "errorSince": since,
        "operation": {"kind": "Upgrade", "mode": "Fast", "startedAt": "2026-02-05T09:47:00Z", "attempts": 4},
        "conditions": conditions(condition("Ready", "False", "PreflightFailed", message, since, "Error"), None)});
    let mut snapshot = snapshot(&json!({"primaries": 3, "image": "redis:9.9"}), &status, &[true; 3]);
    reach(&mut snapshot, 3);
    snapshot.events = events(&[
        event(720, "PreflightFailed", message, 1),
        event(719, "ClusterError", message, 3),
    ]);
    snapshot
}

/// `primaries: 0`.
fn hibernated() -> Snapshot {
    let since = "2026-02-05T08:00:00Z";
    let mut status = json!({"status": "Ready", "substatus": {}, "primaries": 0, "nodes": {}, "formed": true,
        "observedGeneration": 1, "topology": [],
        "conditions": conditions(condition("Ready", "True", "Hibernating", "No server runs: primaries is 0", since, ""), None)});
    status["conditions"][5] = condition("RobinReady", "False", "Hibernating", "No Robin runs", since, "");
    let spec = json!({"primaries": 0, "ephemeral": false, "purgeKeysOnRebalance": false, "storage": "1Gi"});
    snapshot(&spec, &status, &[])
}

/// Ready and paused.
fn maintenance() -> Snapshot {
    let mut snapshot = ready();
    let cluster = redkey(&mut snapshot);
    cluster.spec.paused = true;
    let status = cluster.status.as_mut().unwrap();
    "Maintenance".clone_into(&mut status.status);
    let paused = condition(
        "Paused",
        "True",
        "Maintenance",
        "spec.paused is set",
        "2026-02-05T09:48:00Z",
        "Info",
    );
    status.conditions.push(serde_json::from_value(paused).unwrap());
    snapshot
}

/// A replica is lost, and so is Robin.
pub fn degraded() -> Snapshot {
    let since = "2026-02-05T09:59:57Z";
    let message = "Replica lost in shard 1: cache-4 refuses connections";
    let mut snapshot = ready();
    let status = redkey(&mut snapshot).status.as_mut().unwrap();
    "Configuring".clone_into(&mut status.status);
    let set = |condition: Value| serde_json::from_value(condition).unwrap();
    status.conditions[0] = set(condition("Ready", "False", "ReplicaLost", message, since, "Warning"));
    status.conditions[4] = set(condition("Degraded", "True", "ReplicaLost", message, since, "Warning"));
    let robin = "cache-robin-6d5f7-x is terminated (OOMKilled)";
    status.conditions[5] = set(condition(
        "RobinReady",
        "False",
        "RobinTerminated",
        robin,
        since,
        "Warning",
    ));
    snapshot.pods[4] = serde_json::from_value(pod(4, false)).unwrap();
    snapshot.servers.remove(&MemberId::Ordinal(4));
    snapshot.events = events(&[event(3, "ReplicaLost", message, 1), event(3, "RobinLost", robin, 1)]);
    snapshot
}

/// Status says Ready, and it is not known whether it still is.
pub fn unknown() -> Snapshot {
    let since = "2026-02-05T09:59:30Z";
    let message = "pods could not be listed: etcdserver: request timed out";
    let mut snapshot = ready();
    let status = redkey(&mut snapshot).status.as_mut().unwrap();
    let unknown = condition("Ready", "Unknown", "PodListError", message, since, "");
    status.conditions[0] = serde_json::from_value(unknown).unwrap();
    snapshot.pods.clear();
    snapshot.servers.clear();
    snapshot.notes = vec!["pods are not shown: etcdserver: request timed out".to_owned()];
    snapshot
}

/// A cluster that the existing operator still manages: its status has no topology.
pub fn other_operator() -> Snapshot {
    let since = "2026-02-05T09:50:00Z";
    let message = "redkey-operator-0 holds the lease redkey-operator/db95d8a6.inditex.dev";
    let mut conditions = conditions(is_ready(), None);
    let paused = condition("Paused", "True", "OtherOperatorActive", message, since, "Warning");
    conditions.as_array_mut().unwrap().push(paused);
    let status = json!({"status": "Ready", "substatus": {}, "primaries": 3, "nodes": nodes(3, false),
        "observedGeneration": 1, "conditions": conditions});
    let mut snapshot = snapshot(&json!({"primaries": 3}), &status, &[true; 3]);
    reach(&mut snapshot, 3);
    snapshot
}
