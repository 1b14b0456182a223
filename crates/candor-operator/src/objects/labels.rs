//! Labels and annotations: the operator's own, and those that objects inherit from their cluster.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;
use candor_engine::model::{MemberRef, ShardIndex};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};

/// Label: the cluster that an object belongs to.
pub const CLUSTER: &str = "valkey.io/cluster";
/// Label: the shard of a member.
pub const SHARD: &str = "valkey.io/shard-index";
/// Label: the index of a member in its shard.
pub const NODE: &str = "valkey.io/node-index";
/// Label of a preflight pod, in place of [`CLUSTER`]. A preflight pod is not a member: no Service, no
/// `PodDisruptionBudget` and no count of members may select it.
pub const PREFLIGHT_OF: &str = "valkey.io/trial-of";
/// Label of a preflight pod: the `RedkeyCluster` it belongs to.
pub const REDKEY_PREFLIGHT_OF: &str = "redkey.inditex.dev/preflight-of";
/// Annotation of a preflight pod: the hash of what it checks.
pub const TRIED: &str = "valkey.io/tried";
/// Annotation of workloads and pods: the hash of their pod template. A live object is current if and only if its hash
/// equals the desired hash.
pub const TEMPLATE_HASH: &str = "valkey.io/template-hash";
/// Annotation of pods: the certificate that the operator last asked the server to load.
pub const CERTIFICATE: &str = "valkey.io/certificate";
/// Annotation of the `ConfigMap`: every key that was ever set at run time. With it the operator can reset keys that
/// the spec no longer sets.
pub const SET_BEFORE: &str = "valkey.io/set-before";

pub(super) const MANAGER: &str = "candor";

/// Labels of every object of a cluster.
pub fn of_cluster(cluster: &ValkeyCluster) -> BTreeMap<String, String> {
    let name = cluster.name_any();
    let mut labels = inherited(cluster.labels());
    let own = [
        (CLUSTER, name.as_str()),
        ("app.kubernetes.io/name", "valkey"),
        ("app.kubernetes.io/instance", &name),
        ("app.kubernetes.io/component", "valkey-cluster"),
        ("app.kubernetes.io/part-of", "valkey"),
        ("app.kubernetes.io/managed-by", MANAGER),
    ];
    labels.extend(own.map(|(key, value)| (key.to_owned(), value.to_owned())));
    labels
}

/// Labels of every object of a member.
pub fn of_member(cluster: &ValkeyCluster, member: MemberRef) -> BTreeMap<String, String> {
    let mut labels = of_cluster(cluster);
    labels.extend(place(member));
    labels
}

/// The labels by which a workload selects its pod.
pub fn of_pod(cluster: &str, member: MemberRef) -> [(String, String); 3] {
    let [shard, node] = place(member);
    [(CLUSTER.to_owned(), cluster.to_owned()), shard, node]
}

fn place(member: MemberRef) -> [(String, String); 2] {
    [
        (SHARD.to_owned(), member.shard.to_string()),
        (NODE.to_owned(), member.node.to_string()),
    ]
}

/// Annotations that objects inherit from their cluster. Annotations of Kubernetes and of the operator's own tools are
/// not inherited: `kubectl apply` stores the whole manifest in one, and acknowledging data loss must not restart a
/// member.
pub fn annotations(cluster: &ValkeyCluster) -> BTreeMap<String, String> {
    inherited(cluster.annotations())
}

pub(super) fn inherited(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let own = |key: &str| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        ["valkey.io", "kubernetes.io", "k8s.io"]
            .iter()
            .any(|ours| domain == *ours || domain.strip_suffix(ours).is_some_and(|rest| rest.ends_with('.')))
    };
    all.iter()
        .filter(|(key, _)| !own(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// The selector of all pods of a cluster.
pub fn cluster_selector(cluster: &ValkeyCluster) -> BTreeMap<String, String> {
    BTreeMap::from([(CLUSTER.to_owned(), cluster.name_any())])
}

/// The selector of the pods of one shard.
pub fn shard_selector(cluster: &ValkeyCluster, shard: ShardIndex) -> LabelSelector {
    let mut labels = cluster_selector(cluster);
    labels.insert(SHARD.to_owned(), shard.to_string());
    matching(labels)
}

/// The selector of one member's pod.
pub fn member_selector(cluster: &ValkeyCluster, member: MemberRef) -> LabelSelector {
    let mut labels = cluster_selector(cluster);
    labels.extend(place(member));
    matching(labels)
}

/// A selector with only `matchLabels`.
pub fn matching(labels: BTreeMap<String, String>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        ..LabelSelector::default()
    }
}

/// The member that a pod, workload or claim belongs to, according to its labels.
pub fn member_of(labels: &BTreeMap<String, String>) -> Option<MemberRef> {
    let number = |key: &str| labels.get(key)?.parse().ok();
    Some(MemberRef {
        shard: ShardIndex(number(SHARD)?),
        node: number(NODE)?,
    })
}

/// The template hash that a pod was created with.
pub fn template_hash(pod: &Pod) -> Option<&str> {
    pod.metadata
        .annotations
        .as_ref()?
        .get(TEMPLATE_HASH)
        .map(String::as_str)
}

/// Clears `blockOwnerDeletion`. The finalizer already orders the deletion, and a blocking owner reference would need
/// RBAC permissions on finalizers.
fn unblocking(owner: OwnerReference) -> OwnerReference {
    OwnerReference {
        block_owner_deletion: None,
        ..owner
    }
}

/// The owner reference to a cluster as the controller of its objects.
pub fn owner(cluster: &ValkeyCluster) -> Option<OwnerReference> {
    cluster.controller_owner_ref(&()).map(unblocking)
}

/// Name, labels and annotations of a shared object that the cluster owns.
pub(super) fn meta(cluster: &ValkeyCluster, name: String, labels: BTreeMap<String, String>) -> ObjectMeta {
    let annotations = annotations(cluster);
    ObjectMeta {
        name: Some(name),
        namespace: cluster.namespace(),
        labels: Some(labels),
        annotations: (!annotations.is_empty()).then_some(annotations),
        owner_references: owner(cluster).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}
