//! Service, `ConfigMap` and `PodDisruptionBudget` of the servers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::json;

use super::{BuildError, Inputs, Note, PORT, names, overrides, typed};

/// The key of the `ConfigMap` with the configuration.
pub(super) const CONFIG_KEY: &str = "redis.conf";

/// The scripts that run in a pod, by their keys in the `ConfigMap`. The scripts that protect data are the same as in
/// the pods of a `ValkeyCluster`.
pub(super) const SCRIPTS: [(&str, &str); 6] = [
    ("lib.sh", include_str!("../scripts/lib.sh")),
    ("guard.sh", include_str!("../../../objects/scripts/guard.sh")),
    ("start.sh", include_str!("../../../objects/scripts/start.sh")),
    ("alive.sh", include_str!("../../../objects/scripts/alive.sh")),
    ("ready.sh", include_str!("../scripts/ready.sh")),
    ("joined.sh", include_str!("../../../objects/scripts/ready.sh")),
];

pub(super) fn config_map(inputs: &Inputs<'_>) -> Result<ConfigMap, BuildError> {
    let cluster = inputs.cluster;
    let mut data: BTreeMap<&str, &str> = SCRIPTS.into();
    let file = with_password(inputs);
    data.insert(CONFIG_KEY, &file);
    typed(
        "spec.config",
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": names::meta(cluster, &cluster.name_any(), &names::server_labels(cluster)),
            "data": data,
        }),
    )
}

/// The configuration. A server of the existing operator's template reads its password from there, as that operator
/// wrote it: without it, the server would restart without a password. It disappears with the last such server.
fn with_password(inputs: &Inputs<'_>) -> String {
    let mut file = inputs.config.file.clone();
    let needed = inputs.kept.is_some_and(|kept| kept.reads_password_from_config);
    if let Some(password) = inputs.config.password.as_ref().filter(|_| needed) {
        file.push_str(&super::credentials::lines(password));
    }
    file
}

pub(super) fn service(inputs: &Inputs<'_>, notes: &mut Vec<Note>) -> Result<Service, BuildError> {
    const FIELD: &str = "spec.override.service";
    let cluster = inputs.cluster;
    let name = cluster.name_any();
    let base = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names::meta(cluster, &name, &names::server_labels(cluster)),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": inputs.server_selector(),
            "ports": [{"name": "client", "port": PORT, "protocol": "TCP", "targetPort": PORT}],
        },
    });
    let over = cluster.spec.overrides.as_ref().and_then(|all| all.service.as_ref());
    let whole = overrides::service(FIELD, base, over, notes);
    overrides::read(FIELD, &whole, over, notes)
}

/// The `PodDisruptionBudget`, if it is enabled and there is more than one primary.
pub(super) fn budget(inputs: &Inputs<'_>) -> Result<Option<PodDisruptionBudget>, BuildError> {
    let cluster = inputs.cluster;
    let Some(pdb) = &cluster.spec.pdb else {
        return Ok(None);
    };
    if pdb.enabled != Some(true) || cluster.spec.primaries <= 1 {
        return Ok(None);
    }
    let name = cluster.name_any();
    let mut spec = json!({"selector": {"matchLabels": inputs.server_selector()}});
    let unavailable = pdb.pdb_size_unavailable.as_ref().and_then(size);
    match (unavailable, pdb.pdb_size_available.as_ref().and_then(size)) {
        (Some(most), _) => spec["maxUnavailable"] = json!(most),
        (None, Some(least)) => spec["minAvailable"] = json!(least),
        (None, None) => spec["maxUnavailable"] = json!(1),
    }
    typed(
        "spec.pdb",
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": names::meta(cluster, &names::budget(&name), &names::server_labels(cluster)),
            "spec": spec,
        }),
    )
    .map(Some)
}

/// A number or a percentage. 0 and an empty text count as absent, and a number in quotes counts as a number.
fn size(written: &IntOrString) -> Option<IntOrString> {
    match written {
        IntOrString::Int(0) => None,
        IntOrString::Int(number) => Some(IntOrString::Int(*number)),
        IntOrString::String(text) if text.is_empty() => None,
        IntOrString::String(text) => match text.parse::<i32>() {
            Ok(0) => None,
            Ok(number) => Some(IntOrString::Int(number)),
            Err(_) => Some(IntOrString::String(text.clone())),
        },
    }
}
