//! What objects of the built-in kinds may say, kind by kind.

mod core;
mod pods;
mod policy;
mod workloads;

use serde_json::Value;

use crate::kinds::Kind;
use crate::status::Cause;

/// Everything wrong with an object of a built-in kind, or with the change from `old` to it.
pub fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ConfigMap") => core::config_map(object, old, &mut causes),
        ("", "Secret") => core::secret(object, old, &mut causes),
        ("", "Service") => core::service(object, &mut causes),
        ("", "PersistentVolumeClaim") => core::claim(object, &mut causes),
        ("", "Pod") if old.is_none() => pods::spec(&object["spec"], "spec", &mut causes),
        ("apps", "Deployment") => workloads::deployment(object, old, &mut causes),
        ("apps", "ReplicaSet") => workloads::replica_set(object, old, &mut causes),
        ("apps", "StatefulSet") => workloads::stateful_set(object, old, &mut causes),
        ("policy", "PodDisruptionBudget") => policy::budget(object, &mut causes),
        ("coordination.k8s.io", "Lease") => policy::lease(object, &mut causes),
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => policy::role(object, &mut causes),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            policy::binding(object, old, &mut causes)
        }
        _ => {}
    }
    causes
}
