//! Sends a manifest to the API server as a dry run and plans with the result. So defaults, validation, permissions and
//! fields that others own count as they would for `kubectl apply`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, ValidationDirective};
use serde_json::{Map, Value, json};

use crate::commands::cluster::fetch::decode;
use crate::commands::cluster::{ClusterRef, Object};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;

/// The field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";
/// The annotation in which kubectl stores what it applied last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The cluster as it would be after `kubectl apply` of a manifest.
pub async fn applied(
    at: &Connected,
    cluster: &ClusterRef,
    manifest: &Value,
    now: Option<&Object>,
) -> Result<Object, CommandError> {
    let mut manifest = manifest.clone();
    if let Some(fields) = manifest.as_object_mut() {
        fields.remove("status");
    }
    let params = PatchParams {
        dry_run: true,
        field_manager: Some(KUBECTL.to_owned()),
        field_validation: Some(ValidationDirective::Strict),
        force: false,
    };
    let patch = match now.map(Object::metadata) {
        Some(now) if !by_server(now) => Patch::Merge(merged(now, manifest)),
        _ => Patch::Apply(manifest),
    };
    ask(at, cluster, &params, &patch).await
}

/// The cluster as it would be after a change.
pub async fn changed(at: &Connected, cluster: &ClusterRef, change: Value) -> Result<Object, CommandError> {
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    ask(at, cluster, &params, &Patch::Merge(change)).await
}

async fn ask(
    at: &Connected,
    cluster: &ClusterRef,
    params: &PatchParams,
    patch: &Patch<Value>,
) -> Result<Object, CommandError> {
    let what = format!("{cluster} would be rejected");
    let answer = at.api(cluster.kind).patch(&cluster.name, params, patch).await;
    let answer = answer.map_err(|error| CommandError::of(&error, &what))?;
    decode(cluster.kind, answer).map_err(|message| CommandError::Refused { what, message })
}

/// Whether kubectl used server-side apply before: then it will do so again.
fn by_server(now: &ObjectMeta) -> bool {
    let entries = now.managed_fields.iter().flatten();
    entries
        .into_iter()
        .any(|entry| entry.manager.as_deref() == Some(KUBECTL) && entry.operation.as_deref() == Some("Apply"))
}

/// kubectl's patch: the manifest, plus the removal of fields that it applied last time and that the manifest no longer
/// has.
fn merged(now: &ObjectMeta, manifest: Value) -> Value {
    let last = now.annotations.as_ref().and_then(|all| all.get(LAST_APPLIED));
    let last: Value = last
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or(json!({}));
    let mut patch = manifest;
    if let (Some(patch), Some(last)) = (patch.as_object_mut(), last.as_object()) {
        end_removed(patch, last);
    }
    patch
}

fn end_removed(patch: &mut Map<String, Value>, last: &Map<String, Value>) {
    for (key, before) in last {
        match (patch.get_mut(key), before) {
            (None, _) => _ = patch.insert(key.clone(), Value::Null),
            (Some(Value::Object(inner)), Value::Object(before)) => end_removed(inner, before),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_left_the_file_ends_and_what_others_wrote_stays() {
        let last = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": "shop"},
            "spec": {"shards": 3, "replicas": 1, "config": {"a": "1", "b": "2"}}});
        let now = json!({"name": "shop", "annotations": {LAST_APPLIED: last.to_string(), "restarted": "now"}});
        let now: ObjectMeta = serde_json::from_value(now).unwrap();
        let file = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster", "metadata": {"name": "shop"},
            "spec": {"shards": 4, "config": {"a": "1"}}});
        let mut expected = file.clone();
        expected["spec"]["replicas"] = Value::Null;
        expected["spec"]["config"]["b"] = Value::Null;
        assert_eq!(merged(&now, file), expected);
    }
}
