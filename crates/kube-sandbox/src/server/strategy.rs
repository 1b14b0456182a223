//! What each kind does with spec, status and generation on a write.

use serde_json::{Value, json};

use super::meta;
use crate::kinds::Kind;
use crate::validation;

fn id(kind: &Kind) -> (&str, &str) {
    (kind.group.as_str(), kind.plural.as_str())
}

/// Whether objects of a kind count their generations.
fn has_generation(kind: &Kind) -> bool {
    kind.custom
        || matches!(
            id(kind),
            ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
                | ("policy", "poddisruptionbudgets")
                | ("apiextensions.k8s.io", "customresourcedefinitions")
                | ("", "pods" | "replicationcontrollers")
                | ("batch", "jobs" | "cronjobs")
                | ("networking.k8s.io", _)
                | ("discovery.k8s.io", "endpointslices")
        )
}

/// Whether a PUT may leave out the resourceVersion.
pub fn allows_unconditional_update(kind: &Kind) -> bool {
    !(kind.custom
        || matches!(
            id(kind),
            ("policy", "poddisruptionbudgets")
                | ("coordination.k8s.io", "leases")
                | ("apiextensions.k8s.io", "customresourcedefinitions")
        ))
}

/// Whether a PUT to a name that is not there creates it.
pub fn allows_create_on_update(kind: &Kind) -> bool {
    matches!(
        id(kind),
        ("rbac.authorization.k8s.io", _)
            | ("coordination.k8s.io", "leases")
            | ("" | "events.k8s.io", "events")
            | ("", "services" | "endpoints" | "limitranges")
    )
}

/// Whether a finished deletion answers with the object instead of a `Status`.
pub fn returns_deleted_object(kind: &Kind) -> bool {
    matches!(
        id(kind),
        ("storage.k8s.io", "storageclasses")
            | (
                "",
                "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "serviceaccounts"
                    | "namespaces"
                    | "pods"
                    | "services"
                    | "resourcequotas"
            )
    )
}

/// A new object: its status is the server's to write, not the client's. A service that is made through its status gets no
/// address families.
pub fn on_create(kind: &Kind, subresource: &str, object: &mut Value) {
    if has_generation(kind) {
        meta::set(object, "generation", Some(json!(1)));
    } else {
        meta::set(object, "generation", None);
    }
    let spec = object["spec"].clone();
    // A kubelet registers its node together with the status it has.
    if id(kind) != ("", "nodes") {
        validation::prepare_create(kind, object);
    }
    if id(kind) == ("", "services") && subresource == "status" {
        object["spec"] = spec;
    }
    if id(kind) == ("", "namespaces") {
        let name = object["metadata"]["name"].clone();
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
    }
}

/// An update of the object itself: the status stays, and a change of the desired state is a new generation.
pub fn on_update(kind: &Kind, old: &Value, new: &mut Value) {
    if kind.has_status && !matches!(id(kind), ("", "nodes")) {
        keep(old, new, "status");
    }
    if id(kind) == ("", "namespaces") {
        keep(old, new, "spec");
    }
    let generation = old["metadata"]["generation"].as_i64();
    let changed = if kind.custom || !kind.has_status {
        differs_outside_metadata(old, new)
    } else {
        // A deployment's annotations go to its replica sets.
        let annotated =
            id(kind) == ("apps", "deployments") && old["metadata"]["annotations"] != new["metadata"]["annotations"];
        old["spec"] != new["spec"] || annotated
    };
    let generation = match generation {
        Some(g) if changed && has_generation(kind) => Some(g + 1),
        None if has_generation(kind) => Some(1),
        other => other,
    };
    meta::set(new, "generation", generation.map(Value::from));
}

/// An update through `/status`: everything but the status stays.
pub fn on_status_update(kind: &Kind, old: &Value, new: &mut Value) {
    let status = new.get("status").cloned();
    let metadata = new["metadata"].clone();
    let mut kept = old.clone();
    match status {
        Some(status) => kept["status"] = status,
        None => {
            if let Some(map) = kept.as_object_mut() {
                map.remove("status");
            }
        }
    }
    for field in ["managedFields", "resourceVersion"] {
        meta::set(&mut kept, field, metadata.get(field).cloned());
    }
    if !kind.custom {
        for field in ["annotations", "finalizers"] {
            meta::set(&mut kept, field, metadata.get(field).cloned());
        }
        if id(kind) != ("apps", "deployments") {
            meta::set(&mut kept, "labels", metadata.get("labels").cloned());
        }
        if id(kind) != ("", "pods") {
            let owners = metadata.get("ownerReferences").cloned();
            meta::set(&mut kept, "ownerReferences", owners);
        }
    }
    *new = kept;
}

/// An update through `/finalize`: only the namespace's own finalizers change.
pub fn on_finalize(old: &Value, new: &mut Value) {
    let finalizers = new["spec"]["finalizers"].clone();
    let version = new["metadata"].get("resourceVersion").cloned();
    *new = old.clone();
    new["spec"]["finalizers"] = match finalizers {
        Value::Array(list) => Value::Array(list),
        _ => json!([]),
    };
    meta::set(new, "resourceVersion", version);
}

fn keep(old: &Value, new: &mut Value, field: &str) {
    match old.get(field) {
        Some(value) => new[field] = value.clone(),
        None => {
            if let Some(map) = new.as_object_mut() {
                map.remove(field);
            }
        }
    }
}

fn differs_outside_metadata(old: &Value, new: &Value) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else {
        return old != new;
    };
    old.iter()
        .filter(|(k, _)| *k != "metadata")
        .any(|(k, v)| new.get(k) != Some(v))
        || new.keys().any(|k| k != "metadata" && !old.contains_key(k))
}
