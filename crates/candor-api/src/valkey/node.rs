//! `ValkeyNode`, the status of one member: written by the cluster's reconcile, read by users. It owns nothing, and no plan reads it.

// The columns of a CRD repeat their attributes.
#![allow(clippy::duplicated_attributes)]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::status::MemberRole;
use crate::{Condition, schema};

/// Which member it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "valkey.io",
    version = "v1alpha1",
    kind = "ValkeyNode",
    plural = "valkeynodes",
    singular = "valkeynode",
    shortname = "vkn",
    category = "valkey",
    namespaced,
    derive = "PartialEq",
    derive = "kube_status::Conditioned",
    attr = "conditioned(graded)",
    status = "ValkeyNodeStatus",
    doc = "One member of a ValkeyCluster. Made and written by the operator, never by a person.",
    printcolumn(name = "Ready", type_ = "boolean", json_path = ".status.ready"),
    printcolumn(name = "Role", type_ = "string", json_path = ".status.role"),
    printcolumn(name = "Pod", type_ = "string", json_path = ".status.podName"),
    printcolumn(name = "IP", type_ = "string", json_path = ".status.podIP", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyNodeSpec {
    /// The cluster it belongs to.
    #[schemars(length(max = 253))]
    pub cluster: String,
    /// Its shard.
    #[schemars(range(min = 0))]
    pub shard: i32,
    /// Its place in the shard.
    #[schemars(range(min = 0))]
    pub node: i32,
}

/// How the member is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyNodeStatus {
    /// Serves, and as a replica is in sync.
    #[serde(default)]
    pub ready: bool,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,
    /// Its pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub pod_name: String,
    /// Its pod's address.
    #[serde(default, rename = "podIP", skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_ip: String,
    /// Its id in the cluster.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 40))]
    pub node_id: String,
    /// The generation all of this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, `ConfigurationApplied`, `UsersApplied`, and `StorageReady` with persistence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
