//! What the server does to objects of the built-in kinds before it stores them.
//!
//! | what | where |
//! |---|---|
//! | all rules of one kind | [`check`] |
//! | values for missing fields | [`defaults`] |
//! | what only the server may set | [`prepare_create`], [`service_addresses`] |
//! | names, labels, the metadata of every object | `names`, `metadata` |
//! | pods and their containers | `pod`, `container` |
//! | deployments, stateful sets | `workloads` |
//! | services, claims, secrets, budgets, leases, roles | `others` |
//! | CRDs, structural schemas | `crd` |
//! | errors about one field | [`field`] |

use serde_json::Value;

mod container;
mod crd;
pub mod defaults;
pub mod field;
mod metadata;
mod names;
mod others;
mod pod;
mod prepare;
mod workloads;

pub use prepare::{prepare_create, service_addresses};

use crate::status::Cause;

/// Everything wrong with an object of a built-in kind, or with the change from `old` to it.
pub fn check(kind: &str, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut errors = check_metadata(kind, false, object, old);
    let errors_mut = &mut errors;
    match kind {
        "Pod" => pod::check(object, old, errors_mut),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => workloads::check(kind, object, old, errors_mut),
        "Service" => others::service(object, old, errors_mut),
        "PersistentVolumeClaim" => others::claim(object, old, errors_mut),
        "ConfigMap" => others::config_map(object, old, errors_mut),
        "Secret" => others::secret(object, old, errors_mut),
        "PodDisruptionBudget" => others::budget(object, errors_mut),
        "Lease" => others::lease(object, errors_mut),
        "Role" | "ClusterRole" => others::role(object, kind == "Role", errors_mut),
        "RoleBinding" | "ClusterRoleBinding" => others::binding(object, old, kind == "RoleBinding", errors_mut),
        "CustomResourceDefinition" => crd::check(object, errors_mut),
        "StorageClass" => others::storage_class(object, old, errors_mut),
        _ => {}
    }
    errors
}

/// Everything wrong with the metadata of any object.
pub fn check_metadata(kind: &str, custom: bool, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut errors = Vec::new();
    metadata::check(kind, custom, object, old, &mut errors);
    errors
}
