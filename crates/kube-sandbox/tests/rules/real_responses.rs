//! Objects as a real kube-apiserver 1.34 stores them (`fixtures/responses.json`: what was sent, what came back from a
//! create and from a server-side apply) against what the sandbox makes of the same input.

use jiff::Timestamp;
use kube_sandbox::apply::{Writer, apply, track_update};
use kube_sandbox::kinds::{Kind, Registry};
use serde_json::{Value, json};

fn kind_of(object: &Value) -> std::sync::Arc<Kind> {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Registry::builtin()
        .find_kind(group, version, object["kind"].as_str().unwrap())
        .unwrap()
}

fn writer(manager: &str) -> Writer<'_> {
    Writer {
        manager,
        subresource: "",
        now: Timestamp::UNIX_EPOCH,
    }
}

/// What the server adds at random or by its clock, and what admission adds to pods, is no part of this comparison.
fn comparable(mut object: Value) -> Value {
    if let Some(entries) = object
        .pointer_mut("/metadata/managedFields")
        .and_then(Value::as_array_mut)
    {
        for entry in entries {
            entry.as_object_mut().unwrap().remove("time");
        }
    }
    object
}

fn responses() -> Vec<Value> {
    serde_json::from_str(include_str!("fixtures/responses.json")).unwrap()
}

/// What admission or controllers set, or nothing in the sandbox sets.
const KNOWN: &[&str] = &[
    "DaemonSet/metadata",
    "PersistentVolumeClaim/metadata/finalizers",
    "PersistentVolume/metadata/finalizers",
    "PersistentVolume/status/lastPhaseTransitionTime",
    "Node/spec/taints",
    "CustomResourceDefinition/status/storedVersions",
];

/// The first places where two values differ.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
                if ours.get(key).is_some() != theirs.get(key).is_some() || a != b {
                    differences(&format!("{path}/{key}"), a, b, found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), a, b, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: ours {ours}, theirs {theirs}")),
    }
}

#[test]
fn created_objects_are_stored_as_the_real_server_stores_them() {
    let mut found = Vec::new();
    for answer in responses().into_iter().filter(|a| a["input"]["kind"] != json!("Pod")) {
        let kind = kind_of(&answer["input"]);
        let mut object = answer["input"].clone();
        assert!(kind.schema.prune(&mut object).is_empty());
        kind.schema.default(&mut object);
        track_update(&kind, None, &mut object, writer("kubectl-create"));
        kube_sandbox::validation::prepare_create(&kind, &mut object);
        differences(&kind.kind, &comparable(object), &answer["created"], &mut found);
    }
    found.retain(|line| !KNOWN.iter().any(|known| line.starts_with(known)));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn applied_objects_have_the_real_servers_managed_fields() {
    let mut found = Vec::new();
    for answer in responses() {
        let kind = kind_of(&answer["input"]);
        let merged = apply(&kind, None, &answer["input"], writer("kubectl"), false).unwrap();
        let (ours, theirs) = (comparable(merged), &answer["applied"]);
        differences(
            &kind.kind,
            &ours["metadata"]["managedFields"],
            &theirs["metadata"]["managedFields"],
            &mut found,
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
