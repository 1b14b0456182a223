//! Names and labels that users of this kind select objects by.

use std::collections::BTreeMap;

use candor_api::RedkeyCluster;
use candor_api::redkey::{CLUSTER_LABEL, COMPONENT_LABEL, REDIS, ROBIN};
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

/// The `PodDisruptionBudget`.
pub fn budget(cluster: &str) -> String {
    format!("{cluster}-pdb")
}

/// The name of all of Robin's objects.
pub fn robin(cluster: &str) -> String {
    format!("{cluster}-robin")
}

/// The pod with an ordinal.
pub fn pod(cluster: &str, ordinal: u32) -> String {
    format!("{cluster}-{ordinal}")
}

/// The volume claim of an ordinal.
pub fn claim(cluster: &str, ordinal: u32) -> String {
    format!("data-{cluster}-{ordinal}")
}

/// The ordinal of a pod, by its name.
pub fn ordinal(cluster: &str, pod: &str) -> Option<u32> {
    let digits = pod.strip_prefix(cluster)?.strip_prefix('-')?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

/// The labels that select the servers.
pub fn server_selector(cluster: &str) -> BTreeMap<String, String> {
    selector(cluster, REDIS)
}

/// The labels that select Robin.
pub fn robin_selector(cluster: &str) -> BTreeMap<String, String> {
    selector(cluster, ROBIN)
}

fn selector(cluster: &str, component: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        (CLUSTER_LABEL.to_owned(), cluster.to_owned()),
        (COMPONENT_LABEL.to_owned(), component.to_owned()),
    ])
}

/// A selector as text, for `status.selector`.
pub fn selector_text(selector: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.join(",")
}

/// The labels of all objects of the servers: `spec.labels`, overridden by the operator's own labels.
pub fn server_labels(cluster: &RedkeyCluster) -> BTreeMap<String, String> {
    let mut labels = cluster.spec.labels.clone();
    labels.extend(server_selector(&cluster.name_any()));
    labels
}

/// The labels of all of Robin's objects.
pub fn robin_labels(cluster: &RedkeyCluster) -> BTreeMap<String, String> {
    let mut labels = cluster.spec.labels.clone();
    labels.extend(robin_selector(&cluster.name_any()));
    labels
}

/// The metadata of an object that its cluster owns.
pub(super) fn meta(cluster: &RedkeyCluster, name: &str, labels: &BTreeMap<String, String>) -> Value {
    let mut owner = cluster.controller_owner_ref(&());
    if let Some(owner) = &mut owner {
        // A blocking owner reference would need RBAC permissions on finalizers.
        owner.block_owner_deletion = None;
    }
    let owners: Vec<_> = owner.into_iter().collect();
    json!({
        "name": name,
        "namespace": cluster.namespace(),
        "labels": labels,
        "ownerReferences": owners,
    })
}
