//! The readers beside kstatus: random objects of every kind with a reader, the health compared. Where the two are meant
//! to differ, the reason is counted.

use std::collections::BTreeMap;
use std::io;

use fastrand::Rng;
use kube_status::readers::{Health, read_value};
use serde_json::{Map, Value, json};

use crate::go::Go;

const BATCH: u64 = 500;

/// Makes the spec and the status of one kind.
type Make = fn(&mut Rng) -> (Value, Value);

/// Compares this many objects, prints the result, and returns whether there was no difference.
pub fn compare(go: &mut Go, cases: u64, seed: u64) -> io::Result<bool> {
    println!("readers and kstatus: {cases} objects of seed {seed}");
    let mut excepted: BTreeMap<&str, u64> = BTreeMap::new();
    let mut first = 0;
    while first < cases {
        let numbers = first..cases.min(first + BATCH);
        let objects: Vec<Value> = numbers
            .map(|n| object(&mut Rng::with_seed(seed.wrapping_mul(0x9e37_79b9).wrapping_add(n))))
            .collect();
        let lines: Vec<String> = objects
            .iter()
            .map(|object| json!({"op": "kstatus", "object": object}).to_string())
            .collect();
        for (object, answer) in objects.iter().zip(go.ask_all(&lines)?) {
            let theirs = answer["facts"]["status"].as_str().unwrap_or("an error");
            let ours = read_value(object).map_or("an error", |reading| class(reading.health));
            if theirs == ours {
                continue;
            }
            let Some(reason) = exception(object, theirs, ours) else {
                println!("an object is read differently: {object}\nkstatus: {answer}\nkube-status: {ours}");
                return Ok(false);
            };
            *excepted.entry(reason).or_default() += 1;
        }
        first += BATCH;
    }
    let sum: u64 = excepted.values().sum();
    println!("  {} equal, {sum} excepted, 0 different", cases - sum);
    for (reason, count) in excepted {
        println!("  excepted {count}: {reason}");
    }
    Ok(true)
}

/// kstatus' word for a health. It has none for what is stuck.
fn class(health: Health) -> &'static str {
    match health {
        Health::Ready => "Current",
        Health::Progressing | Health::Stuck => "InProgress",
        Health::Failed => "Failed",
        Health::Deleting => "Terminating",
        Health::Unknown => "Unknown",
    }
}

fn condition<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    list.into_iter().flatten().find(|c| c["type"] == type_)
}

fn is(object: &Value, type_: &str, status: &str) -> bool {
    condition(object, type_).is_some_and(|c| c["status"] == status)
}

/// Why the two are meant to differ here.
fn exception(object: &Value, theirs: &str, ours: &str) -> Option<&'static str> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let count = |name: &str| number(&format!("/status/{name}")).unwrap_or(0);
    let expected = number("/spec/replicas").unwrap_or(1);
    let on_delete = text("/spec/updateStrategy/type") == "OnDelete";
    let waiting = object.pointer("/status/containerStatuses/0/state/waiting/reason");
    let answers = (theirs, ours);
    match text("/kind") {
        "Job" if answers == ("Current", "InProgress") => {
            Some("a job that has started is current there, here one that is done is")
        }
        "Job" if is(object, "FailureTarget", "True") && ours == "Failed" => {
            Some("a job whose pods are being stopped because it fails has failed here")
        }
        "Pod" if text("/status/phase") == "Failed" => Some("a pod that failed is current there"),
        "Pod" if text("/status/phase") == "Unknown" => Some("a pod of a lost node is an error there"),
        "Pod" if is(object, "PodScheduled", "False") => {
            Some("a pod that fits no node has failed there after 15 seconds, here it is stuck")
        }
        "Pod" if waiting.is_some_and(|w| w == "CrashLoopBackOff") && ours == "Failed" => {
            Some("a crash loop is only seen there once every container has started")
        }
        "PersistentVolumeClaim" if text("/status/phase") == "Lost" => Some("a lost volume is in progress there"),
        "PersistentVolumeClaim" if answers == ("Current", "InProgress") => Some("a resize is not seen there"),
        "Service" if text("/spec/type") == "LoadBalancer" => {
            Some("a load balancer is current there with a cluster IP, here with an address")
        }
        "CustomResourceDefinition"
            if condition(object, "Established").is_some_and(|c| c["reason"] == "NotAccepted") =>
        {
            Some("names that are not accepted yet are a failure there")
        }
        "Deployment" if is(object, "ReplicaFailure", "True") => Some("a deployment's ReplicaFailure is not seen there"),
        "Deployment" if answers == ("InProgress", "Current") => Some(
            "a deployment's words: there Available and NewReplicaSetAvailable are waited for, here counts that are full are enough",
        ),
        "DaemonSet" | "StatefulSet" if on_delete => {
            Some("OnDelete: there nothing or everything counts, here all but the update")
        }
        "StatefulSet" if answers == ("Current", "InProgress") && count("availableReplicas") < expected => {
            Some("a stateful set's available replicas are not looked at there")
        }
        "StatefulSet" if answers == ("InProgress", "Current") => {
            Some("a stateful set's current and updated replicas are not looked at here while its revisions are equal")
        }
        "StatefulSet" if text("/status/currentRevision") != text("/status/updateRevision") => {
            Some("a partition of 0 hides a stateful set's revisions there")
        }
        "Cart" if is(object, "Stalled", "True") && is(object, "Reconciling", "True") => {
            Some("stalled and reconciling: there the first in the list counts, here stalled does")
        }
        "Cart" if condition(object, "Ready").is_none() => {
            Some("a custom resource that does not say Ready is current there")
        }
        "Cart" if is(object, "Ready", "Unknown") => Some("Ready=Unknown is in progress there, unknown here"),
        "Cart" if condition(object, "Ready").is_some_and(|c| c["severity"].is_string()) => {
            Some("a severity is not seen there")
        }
        "Cart"
            if condition(object, "Ready")
                .is_some_and(|c| c["observedGeneration"] != object["metadata"]["generation"]) =>
        {
            Some("the generation a condition speaks of is not seen there")
        }
        _ => None,
    }
}

/// An object of one of the kinds, in one of the states it can be in, likely and unlikely ones alike.
fn object(rng: &mut Rng) -> Value {
    let generation = rng.i64(1..4);
    let mut metadata = json!({"name": "x", "generation": generation});
    if rng.u8(..20) == 0 {
        metadata["deletionTimestamp"] = json!("2026-02-05T10:00:00Z");
    }
    let kinds: [(&str, &str, Make); 10] = [
        ("apps/v1", "Deployment", deployment),
        ("apps/v1", "ReplicaSet", replica_set),
        ("apps/v1", "StatefulSet", stateful_set),
        ("apps/v1", "DaemonSet", daemon_set),
        ("batch/v1", "Job", job),
        ("v1", "Pod", pod),
        ("v1", "PersistentVolumeClaim", claim),
        ("v1", "Service", service),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition),
        ("shop.io/v1", "Cart", cart),
    ];
    let (api_version, kind, make) = kinds[rng.usize(..kinds.len())];
    let (spec, mut status) = make(rng);
    if rng.u8(..4) > 0 {
        status["observedGeneration"] = json!(if rng.u8(..4) > 0 { generation } else { rng.i64(0..5) });
    }
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, "status": status})
}

/// Some of these fields with small numbers, mostly the one that means "done".
fn counts(rng: &mut Rng, done: i64, names: &[&str]) -> Value {
    let mut out = Map::new();
    for name in names {
        if rng.u8(..10) > 0 {
            let number = if rng.u8(..4) > 0 { done } else { rng.i64(0..5) };
            out.insert((*name).to_owned(), json!(number));
        }
    }
    Value::Object(out)
}

/// Some of these conditions, in this order: type, and the reasons it may have.
fn conditions(rng: &mut Rng, types: &[(&str, &[&str])]) -> Value {
    let mut list = Vec::new();
    for (type_, reasons) in types {
        if rng.bool() {
            let status = ["True", "True", "False", "Unknown"][rng.usize(..4)];
            let reason = reasons[rng.usize(..reasons.len())];
            list.push(json!({"type": type_, "status": status, "reason": reason, "message": "words"}));
        }
    }
    Value::Array(list)
}

fn replicas(rng: &mut Rng) -> (Value, i64) {
    if rng.u8(..8) == 0 {
        return (json!({}), 1);
    }
    let expected = rng.i64(0..4);
    (json!({"replicas": expected}), expected)
}

fn deployment(rng: &mut Rng) -> (Value, Value) {
    let (mut spec, expected) = replicas(rng);
    spec["progressDeadlineSeconds"] = json!(if rng.u8(..4) > 0 { 600 } else { i32::MAX });
    let names = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    let mut status = counts(rng, expected, &names);
    let mut list = Vec::new();
    if rng.u8(..6) > 0 {
        let (word, reason) = [
            ("True", "NewReplicaSetAvailable"),
            ("True", "NewReplicaSetAvailable"),
            ("True", "ReplicaSetUpdated"),
            ("False", "ProgressDeadlineExceeded"),
        ][rng.usize(..4)];
        list.push(json!({"type": "Progressing", "status": word, "reason": reason}));
    }
    if rng.u8(..6) > 0 {
        list.push(json!({"type": "Available", "status": if rng.u8(..4) > 0 { "True" } else { "False" }}));
    }
    if rng.u8(..10) == 0 {
        list.push(json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}));
    }
    status["conditions"] = Value::Array(list);
    (spec, status)
}

fn replica_set(rng: &mut Rng) -> (Value, Value) {
    let (spec, expected) = replicas(rng);
    let names = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let mut status = counts(rng, expected, &names);
    status["conditions"] = conditions(rng, &[("ReplicaFailure", &["FailedCreate"])]);
    (spec, status)
}

fn stateful_set(rng: &mut Rng) -> (Value, Value) {
    let (mut spec, expected) = replicas(rng);
    spec["updateStrategy"] = match rng.u8(..4) {
        0 => json!({"type": "OnDelete"}),
        1 => json!({"type": "RollingUpdate", "rollingUpdate": {"partition": rng.i64(0..3)}}),
        _ => json!({"type": "RollingUpdate"}),
    };
    let names = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
    ];
    let mut status = counts(rng, expected, &names);
    status["currentRevision"] = json!("a");
    status["updateRevision"] = json!(if rng.u8(..4) > 0 { "a" } else { "b" });
    (spec, status)
}

fn daemon_set(rng: &mut Rng) -> (Value, Value) {
    let strategy = if rng.u8(..5) == 0 { "OnDelete" } else { "RollingUpdate" };
    let names = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberReady",
        "numberAvailable",
    ];
    (json!({"updateStrategy": {"type": strategy}}), counts(rng, 3, &names))
}

fn job(rng: &mut Rng) -> (Value, Value) {
    let mut status = counts(rng, 1, &["active", "succeeded", "failed"]);
    if rng.bool() {
        status["startTime"] = json!("2026-02-05T10:00:00Z");
    }
    let type_ = ["Complete", "Failed", "FailureTarget", "Suspended"][rng.usize(..4)];
    status["conditions"] = conditions(rng, &[(type_, &["Why"])]);
    (json!({"completions": 1}), status)
}

fn pod(rng: &mut Rng) -> (Value, Value) {
    let phase = ["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"][rng.usize(..6)];
    let state = match rng.u8(..4) {
        0 => json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        1 => json!({"waiting": {"reason": "ImagePullBackOff"}}),
        2 => json!({"waiting": {"reason": "ContainerCreating"}}),
        _ => json!({"running": {"startedAt": "2026-02-05T10:00:00Z"}}),
    };
    let mut status = json!({"phase": phase, "containerStatuses": [
        {"name": "app", "image": "app:1", "restartCount": 1, "ready": false, "state": state},
    ]});
    status["conditions"] = match (phase, rng.u8(..3)) {
        ("Pending", 0) => json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
        ("Running", 0) => json!([{"type": "Ready", "status": "True"}]),
        ("Running", 1) => json!([{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]),
        _ => json!([]),
    };
    (json!({"containers": [{"name": "app", "image": "app:1"}]}), status)
}

fn claim(rng: &mut Rng) -> (Value, Value) {
    let phase = ["Pending", "Bound", "Bound", "Lost"][rng.usize(..4)];
    let mut status = json!({"phase": phase, "capacity": {"storage": "1Gi"}});
    status["conditions"] = conditions(rng, &[("Resizing", &[""]), ("FileSystemResizePending", &[""])]);
    (
        json!({"volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}}),
        status,
    )
}

fn service(rng: &mut Rng) -> (Value, Value) {
    let type_ = ["ClusterIP", "NodePort", "LoadBalancer"][rng.usize(..3)];
    let mut spec = json!({"type": type_});
    if rng.bool() {
        spec["clusterIP"] = json!("10.0.0.7");
    }
    let points = if rng.bool() {
        json!([{"ip": "192.0.2.7"}])
    } else {
        json!([])
    };
    (spec, json!({"loadBalancer": {"ingress": points}}))
}

fn definition(rng: &mut Rng) -> (Value, Value) {
    let names: (&str, &[&str]) = ("NamesAccepted", &["NoConflicts", "ListKindConflict"]);
    let established: (&str, &[&str]) = ("Established", &["InitialNamesAccepted", "Installing", "NotAccepted"]);
    (json!({}), json!({"conditions": conditions(rng, &[names, established])}))
}

fn cart(rng: &mut Rng) -> (Value, Value) {
    let mut list = conditions(
        rng,
        &[
            ("Stalled", &["GaveUp"]),
            ("Reconciling", &["AtWork"]),
            ("Ready", &["Up"]),
            ("Paused", &["Asked"]),
        ],
    );
    for condition in list.as_array_mut().into_iter().flatten() {
        if rng.u8(..4) == 0 {
            condition["severity"] = json!(["Error", "Warning", "Info"][rng.usize(..3)]);
        }
        if rng.u8(..3) == 0 {
            condition["observedGeneration"] = json!(rng.i64(1..4));
        }
    }
    (json!({"size": 1}), json!({"conditions": list}))
}
