//! What the server sets on a new object, whatever the client sent.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// Resets what a create may not set and sets what only the server may: the first status, a namespace's finalizer.
/// Call it after defaulting and after [`crate::apply::track_update`]: these fields have no manager.
pub fn prepare_create(kind: &Kind, object: &mut Value) {
    if kind.has_status {
        let empty = kind.schema.root().zero.as_ref().and_then(|zero| zero.get("status"));
        match empty {
            Some(empty) => object["status"] = empty.clone(),
            None => {
                if let Some(map) = object.as_object_mut() {
                    map.remove("status");
                }
            }
        }
    }
    if kind.custom {
        return;
    }
    match kind.kind.as_str() {
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": qos_class(object)}),
        "Namespace" => {
            object["status"] = json!({"phase": "Active"});
            object["spec"] = json!({"finalizers": ["kubernetes"]});
        }
        "PersistentVolumeClaim" | "PersistentVolume" => object["status"] = json!({"phase": "Pending"}),
        "Service" => service_addresses(&mut object["spec"]),
        _ => {}
    }
}

/// The address families of a service. The address itself is allocated by the server.
pub fn service_addresses(spec: &mut Value) {
    let present = |spec: &Value, field: &str| spec.get(field).is_some_and(|v| !v.is_null());
    if spec["type"] == json!("ExternalName") {
        return;
    }
    let headless = spec["clusterIP"] == json!("None");
    let selected = spec["selector"].as_object().is_some_and(|s| !s.is_empty());
    if !present(spec, "ipFamilies") {
        spec["ipFamilies"] = if headless && !selected {
            json!(["IPv4", "IPv6"])
        } else {
            json!(["IPv4"])
        };
    }
    if !present(spec, "ipFamilyPolicy") {
        spec["ipFamilyPolicy"] = json!(if headless && !selected {
            "RequireDualStack"
        } else {
            "SingleStack"
        });
    }
    if let Some(address) = spec["clusterIP"].as_str().filter(|a| !a.is_empty()).map(str::to_owned) {
        spec["clusterIPs"] = json!([address]);
    }
}

/// `Guaranteed` where every container limits cpu and memory and requests as much, `BestEffort` where none asks for
/// anything, else `Burstable`.
fn qos_class(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"];
    let containers: Vec<&Value> = lists
        .iter()
        .flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten())
        .collect();
    let asks = |container: &Value, kind: &str, name: &str| container["resources"][kind].get(name).cloned();
    let names = ["cpu", "memory"];
    let nothing = |c: &&Value| {
        names
            .iter()
            .all(|n| asks(c, "limits", n).is_none() && asks(c, "requests", n).is_none())
    };
    let all = |c: &&Value| {
        names.iter().all(|n| {
            let limit = asks(c, "limits", n);
            limit.is_some() && asks(c, "requests", n).is_none_or(|request| Some(request) == limit)
        })
    };
    if containers.iter().all(nothing) {
        "BestEffort"
    } else if containers.iter().all(all) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
