//! The `StatefulSet` of the servers.

use candor_api::RedkeyClusterSpec;
use candor_api::redkey::spec::AccessMode;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::super::config::Merged;
use super::{BuildError, Inputs, Note, REVISION, names, overrides, pod};
use crate::objects::hash;

const FIELD: &str = "spec.override.statefulSet";

/// A hash of what a spec requires of the server pods. A different hash means an upgrade. It depends on the spec alone:
/// a new operator version with other defaults does not upgrade any cluster. It does not include the password, because
/// a password is applied to running servers.
pub fn revision(spec: &RedkeyClusterSpec, config: &Merged) -> String {
    hash::fingerprint(&json!({
        "image": spec.image.as_ref().filter(|image| !image.is_empty()),
        "resources": spec.resources,
        "labels": spec.labels,
        "config": config.changes,
        "override": spec.overrides.as_ref().and_then(|all| all.stateful_set.as_ref()),
    }))
}

pub(super) fn stateful_set(inputs: &Inputs<'_>, notes: &mut Vec<Note>) -> Result<StatefulSet, BuildError> {
    let cluster = inputs.cluster;
    let name = cluster.name_any();
    let labels = names::server_labels(cluster);
    let revision = revision(&cluster.spec, inputs.config);
    let mut metadata = names::meta(cluster, &name, &labels);
    metadata["annotations"][REVISION] = json!(revision);
    let base = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": inputs.replicas,
            "serviceName": name,
            "selector": {"matchLabels": inputs.server_selector()},
            // A pod that never became ready does not block the other pods.
            "podManagementPolicy": "Parallel",
            // An edit never restarts a pod that holds data: the operator deletes pods when their data is safe.
            "updateStrategy": {"type": "OnDelete"},
            "template": {
                "metadata": {"labels": labels, "annotations": {REVISION: revision}},
                "spec": pod::spec(inputs),
            },
            "volumeClaimTemplates": claims(&cluster.spec),
        },
    });
    let over = cluster
        .spec
        .overrides
        .as_ref()
        .and_then(|all| all.stateful_set.as_ref());
    let mut whole = overrides::stateful_set(FIELD, base, over, notes);
    if let Some(kept) = inputs.kept {
        kept.keep_in(&mut whole);
    }
    overrides::read(FIELD, &whole, over, notes)
}

/// The claim template `data`. An ephemeral cluster has none.
fn claims(spec: &RedkeyClusterSpec) -> Vec<Value> {
    let Some(storage) = spec.storage.as_ref().filter(|_| !spec.ephemeral) else {
        return Vec::new();
    };
    let mut modes: Vec<&str> = spec.access_modes.iter().map(|mode| mode.name()).collect();
    if modes.is_empty() {
        modes.push(AccessMode::ReadWriteOnce.name());
    }
    let mut claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": modes, "resources": {"requests": {"storage": storage}}},
    });
    if !spec.storage_class_name.is_empty() {
        claim["spec"]["storageClassName"] = json!(spec.storage_class_name);
    }
    vec![claim]
}
