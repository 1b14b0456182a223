//! Merges partial objects of the spec over the operator's objects as `kubectl patch` does, except for owned fields.

use candor_api::redkey::{CLUSTER_LABEL, COMPONENT_LABEL, REDIS, ROBIN};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BuildError, Note, pod};
use crate::objects::merge;

const OWNED: &str = "the operator owns it";
const UNKNOWN: &str = "Kubernetes knows no such field here";

/// Metadata fields that the operator owns in every object.
const OWNED_METADATA: [&str; 3] = ["/metadata/name", "/metadata/namespace", "/metadata/ownerReferences"];

const OWNED_OF_SET: [&str; 6] = [
    "/spec/replicas",
    "/spec/selector",
    "/spec/serviceName",
    "/spec/podManagementPolicy",
    "/spec/updateStrategy",
    "/spec/volumeClaimTemplates",
];

const OWNED_OF_SERVICE: [&str; 4] = ["/spec/selector", "/spec/clusterIP", "/spec/clusterIPs", "/spec/type"];

/// The pod's spec inside a `StatefulSet`.
const POD: &str = "/spec/template/spec";

/// Fields that identify the object. They are ignored without a note.
const SILENT: [&str; 3] = ["/apiVersion", "/kind", "/status"];

/// The `StatefulSet` with the override merged over it.
pub(super) fn stateful_set(field: &str, base: Value, over: Option<&Value>, notes: &mut Vec<Note>) -> Value {
    let Some(over) = over else {
        return base;
    };
    let mut over = over.clone();
    let mut ignored = Vec::new();
    take_owned(&mut over, &base, &OWNED_OF_SET, &mut ignored);
    take_labels(&mut over, &base, "/metadata/labels", &mut ignored);
    take_labels(&mut over, &base, "/spec/template/metadata/labels", &mut ignored);
    take_named(
        &mut over,
        &format!("{POD}/volumes"),
        "name",
        &pod::VOLUMES,
        &mut ignored,
    );
    let server = position(&over, &format!("{POD}/containers"), REDIS);
    if let Some(index) = server {
        let mounts = format!("{POD}/containers/{index}/volumeMounts");
        let folders = [
            pod::CONFIG_FOLDER,
            pod::SCRIPTS_FOLDER,
            pod::CREDENTIALS_FOLDER,
            pod::DATA_FOLDER,
        ];
        take_named(&mut over, &mounts, "mountPath", &folders, &mut ignored);
    }
    note(field, ignored, notes);
    let mut whole = base.clone();
    merge::merge(&mut whole, &over);
    keep_container(&mut whole, &base, POD, REDIS);
    whole
}

/// The Service with the override merged over it. An override may add ports but cannot change the client port.
pub(super) fn service(field: &str, base: Value, over: Option<&Value>, notes: &mut Vec<Note>) -> Value {
    let Some(over) = over else {
        return base;
    };
    let mut over = over.clone();
    let mut ignored = Vec::new();
    take_owned(&mut over, &base, &OWNED_OF_SERVICE, &mut ignored);
    take_labels(&mut over, &base, "/metadata/labels", &mut ignored);
    if let Some(Value::Array(ports)) = over.pointer_mut("/spec/ports") {
        let client = &base["spec"]["ports"][0];
        ports.retain(|port| {
            let ours = port["port"] == client["port"] || port["name"] == client["name"];
            let same = port
                .as_object()
                .is_some_and(|all| all.iter().all(|(key, value)| client.get(key) == Some(value)));
            if ours && !same {
                ignored.push(("/spec/ports".to_owned(), OWNED));
            }
            !ours
        });
    }
    note(field, ignored, notes);
    let mut whole = base.clone();
    merge::merge(&mut whole, &over);
    if whole["spec"]["ports"].as_array().is_none_or(Vec::is_empty) {
        whole["spec"]["ports"] = base["spec"]["ports"].clone();
    }
    whole
}

/// Robin's pod template with the template of the spec merged over it. The operator owns the image and the command of
/// the container `robin`, and its access to the API server.
pub(super) fn robin(field: &str, base: Value, over: Option<&Value>, notes: &mut Vec<Note>) -> Value {
    let Some(over) = over else {
        return base;
    };
    let mut over = over.clone();
    let mut ignored = Vec::new();
    take_labels(&mut over, &base, "/metadata/labels", &mut ignored);
    take_owned(&mut over, &base, &["/spec/automountServiceAccountToken"], &mut ignored);
    take_named(&mut over, "/spec/volumes", "name", &super::robin::VOLUMES, &mut ignored);
    note(field, ignored, notes);
    if let Some(index) = position(&over, "/spec/containers", ROBIN) {
        for key in ["image", "command", "args"] {
            let container = over.pointer_mut(&format!("/spec/containers/{index}"));
            let written = container.and_then(|one| one.as_object_mut()?.remove(key));
            let ours = base["spec"]["containers"][0].get(key);
            if written.is_some_and(|value| !value.is_null() && Some(&value) != ours) {
                let field = format!("{field}.spec.containers[{index}].{key}");
                notes.push(Note::RobinReplaced { field });
            }
        }
    }
    let mut whole = base.clone();
    let resources = position(&over, "/spec/containers", ROBIN)
        .is_some_and(|index| over["spec"]["containers"][index]["resources"].is_object());
    if resources {
        // Requests of the template combined with the operator's limits could exceed these limits.
        take(&mut whole, "/spec/containers/0/resources");
    }
    merge::merge(&mut whole, &over);
    keep_container(&mut whole, &base, "/spec", ROBIN);
    whole
}

/// Decodes the merged object. A field of the override that Kubernetes does not know is ignored and noted. A value of
/// the wrong type is an error.
pub(super) fn read<T: DeserializeOwned + Serialize>(
    field: &'static str,
    whole: &Value,
    over: Option<&Value>,
    notes: &mut Vec<Note>,
) -> Result<T, BuildError> {
    let typed: T = super::typed(field, whole.clone())?;
    let understood = super::typed::<Value>(field, serde_json::to_value(&typed).unwrap_or_default())?;
    let mut unknown = Vec::new();
    lost(whole, &understood, "", &mut unknown);
    // The operator itself writes only known fields.
    if over.is_some() {
        note(field, unknown.into_iter().map(|path| (path, UNKNOWN)).collect(), notes);
    }
    Ok(typed)
}

type IgnoredFields = Vec<(String, &'static str)>;

fn note(field: &str, ignored: IgnoredFields, notes: &mut Vec<Note>) {
    for (path, reason) in ignored {
        let field = format!("{field}{}", path.replace('/', "."));
        notes.push(Note::OverrideIgnored { field, reason });
    }
}

/// Removes owned fields from an override, and notes those that would have changed something.
fn take_owned(over: &mut Value, base: &Value, owned: &[&str], ignored: &mut IgnoredFields) {
    for path in SILENT {
        take(over, path);
    }
    for path in OWNED_METADATA.iter().chain(owned) {
        let written = take(over, path);
        if written.is_some_and(|value| !empty(&value) && base.pointer(path) != Some(&value)) {
            ignored.push(((*path).to_owned(), OWNED));
        }
    }
}

fn take(value: &mut Value, path: &str) -> Option<Value> {
    let (parent, key) = path.rsplit_once('/')?;
    value.pointer_mut(parent)?.as_object_mut()?.remove(key)
}

/// Removes the labels that objects are selected by.
fn take_labels(over: &mut Value, base: &Value, path: &str, ignored: &mut IgnoredFields) {
    for key in [CLUSTER_LABEL, COMPONENT_LABEL] {
        let written = over
            .pointer_mut(path)
            .and_then(|labels| labels.as_object_mut()?.remove(key));
        let ours = base.pointer(path).and_then(|labels| labels.get(key));
        if written.is_some_and(|value| Some(&value) != ours) {
            ignored.push((format!("{path}/{key}"), OWNED));
        }
    }
    // An override that removes all labels would also remove the operator's labels.
    if over.pointer(path).is_some_and(Value::is_null) {
        take(over, path);
    }
}

/// Removes entries of a list by their key.
fn take_named(over: &mut Value, path: &str, key: &str, owned: &[&str], ignored: &mut IgnoredFields) {
    let Some(Value::Array(entries)) = over.pointer_mut(path) else {
        return;
    };
    entries.retain(|entry| {
        let name = entry[key].as_str().unwrap_or_default();
        let ours = owned.contains(&name);
        if ours {
            ignored.push((format!("{path}[{name}]"), OWNED));
        }
        !ours
    });
}

fn position(over: &Value, path: &str, name: &str) -> Option<usize> {
    over.pointer(path)?
        .as_array()?
        .iter()
        .position(|one| one["name"] == name)
}

/// Ensures that the operator's container exists and is the first one: `kubectl exec` and `kubectl logs` use the first
/// one.
fn keep_container(whole: &mut Value, base: &Value, pod: &str, name: &str) {
    let ours = base
        .pointer(&format!("{pod}/containers/0"))
        .cloned()
        .unwrap_or_default();
    // Restores parts that a null removed. A part of another type causes an error when the object is decoded.
    for path in ["/spec", "/spec/template", pod] {
        let (Some(part), Some((parent, key))) = (base.pointer(path), path.rsplit_once('/')) else {
            continue;
        };
        let Some(fields) = whole.pointer_mut(parent).and_then(Value::as_object_mut) else {
            return;
        };
        if fields.get(key).is_none_or(Value::is_null) {
            fields.insert(key.to_owned(), part.clone());
        }
    }
    let Some(spec) = whole.pointer_mut(pod).and_then(Value::as_object_mut) else {
        return;
    };
    let list = spec.entry("containers").or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(containers) = list else {
        return;
    };
    let found = containers.iter().position(|one| one["name"] == name);
    let own = found.map_or(ours, |index| containers.remove(index));
    containers.insert(0, own);
    restore(whole, base, &format!("{pod}/volumes"), "name");
    restore(whole, base, &format!("{pod}/containers/0/volumeMounts"), "mountPath");
    restore(whole, base, &format!("{pod}/containers/0/env"), "name");
}

/// Restores the operator's entries that are missing from a list because a null removed the whole list.
fn restore(whole: &mut Value, base: &Value, path: &str, key: &str) {
    let Some(ours) = base.pointer(path).and_then(Value::as_array) else {
        return;
    };
    let Some((parent, name)) = path.rsplit_once('/') else {
        return;
    };
    let Some(fields) = whole.pointer_mut(parent).and_then(Value::as_object_mut) else {
        return;
    };
    let list = fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(entries) = list {
        let missing = |one: &&Value| !entries.iter().any(|other| other[key] == one[key]);
        let missing: Vec<Value> = ours.iter().filter(missing).cloned().collect();
        entries.extend(missing);
    }
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// Collects every field of `written` that is missing in `understood`.
fn lost(written: &Value, understood: &Value, path: &str, all: &mut Vec<String>) {
    match (written, understood) {
        (Value::Object(written), Value::Object(understood)) => {
            for (key, value) in written.iter().filter(|(_, value)| !empty(value)) {
                match understood.get(key) {
                    None => all.push(format!("{path}/{key}")),
                    Some(kept) => lost(value, kept, &format!("{path}/{key}"), all),
                }
            }
        }
        (Value::Array(written), Value::Array(understood)) => {
            for (index, (value, kept)) in written.iter().zip(understood).enumerate() {
                lost(value, kept, &format!("{path}[{index}]"), all);
            }
        }
        _ => {}
    }
}
