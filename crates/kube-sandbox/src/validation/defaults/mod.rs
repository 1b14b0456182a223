//! Values the real server fills in for built-in kinds.
//!
//! | you look for | it is in |
//! |---|---|
//! | pods and pod templates | `pod` |
//! | deployments, stateful sets and other sets of pods | `workloads` |
//! | services, volumes and everything else | `others` |

use serde_json::{Value, json};

mod others;
mod pod;
mod workloads;

/// Fills in what is missing in an object of a built-in kind.
pub fn apply(kind: &str, object: &mut Value) {
    match kind {
        "Pod" => pod::pod(object),
        "Deployment" => workloads::deployment(object),
        "ReplicaSet" => workloads::replica_set(object),
        "StatefulSet" => workloads::stateful_set(object),
        "DaemonSet" => workloads::daemon_set(object),
        "Job" => workloads::job(&mut object["spec"]),
        "CronJob" => workloads::cron_job(object),
        "Service" => others::service(object),
        "PersistentVolumeClaim" => others::claim(object),
        "PersistentVolume" => others::volume(object),
        "StorageClass" => others::storage_class(object),
        "Secret" => others::secret(object),
        "Namespace" => others::namespace(object),
        "Endpoints" => others::endpoints(object),
        "EndpointSlice" => others::endpoint_slice(object),
        "NetworkPolicy" => others::network_policy(object),
        "RoleBinding" | "ClusterRoleBinding" => others::binding(object),
        "PriorityClass" => set(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        "CustomResourceDefinition" => others::definition(object),
        _ => {}
    }
}

/// Sets a field that is not there.
fn set(object: &mut Value, field: &str, value: Value) {
    if object.is_null() {
        *object = json!({});
    }
    if let Some(map) = object.as_object_mut() {
        let entry = map.entry(field).or_insert(Value::Null);
        if entry.is_null() || entry.as_str() == Some("") {
            *entry = value;
        }
    }
}

/// The items of a list that may not be there.
fn each<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object
        .get_mut(field)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

/// A field that is there.
fn within<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Value> {
    object.get_mut(field).filter(|value| value.is_object())
}
