//! What a person writes. Defaults are the operator's, not the schema's: a new version must not change what is
//! stored.

// The columns of a CRD repeat their attributes.
#![allow(clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status::ValkeyClusterStatus;
use crate::schema;

/// The desired state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "valkey.io",
    version = "v1alpha1",
    kind = "ValkeyCluster",
    plural = "valkeyclusters",
    singular = "valkeycluster",
    shortname = "vkc",
    category = "all",
    category = "valkey",
    namespaced,
    derive = "PartialEq",
    derive = "kube_status::Conditioned",
    attr = "conditioned(graded)",
    status = "ValkeyClusterStatus",
    doc = "A cluster of Valkey servers: shards with replicas, created, healed, scaled, upgraded and deleted by Candor.",
    scale(
        spec_replicas_path = ".spec.shards",
        status_replicas_path = ".status.shards",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "ReadyShards", type_ = "integer", json_path = ".status.readyShards", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Paused", type_ = "boolean", json_path = ".spec.paused", priority = 1),
    printcolumn(
        name = "DataLost",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"DataLost\")].status",
        priority = 1
    ),
    printcolumn(name = "Image", type_ = "string", json_path = ".status.serverImage", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    validation = Rule::new("size(self.metadata.name) <= 40")
        .message("the name may have at most 40 characters: objects of its members are named after it")
)]
#[x_kube(validation = Rule::new(
    "(has(self.workloadType) ? self.workloadType : (has(self.persistence) ? 'StatefulSet' : 'Deployment')) == \
     (has(oldSelf.workloadType) ? oldSelf.workloadType : (has(oldSelf.persistence) ? 'StatefulSet' : 'Deployment'))"
).message("workloadType is immutable"))]
#[x_kube(validation = Rule::new("!has(self.persistence) || !has(self.workloadType) || self.workloadType == 'StatefulSet'")
    .message("persistence requires workloadType StatefulSet"))]
#[x_kube(validation = Rule::new("!has(oldSelf.persistence) || has(self.persistence)")
    .message("persistence cannot be removed once set"))]
#[x_kube(validation = Rule::new("has(oldSelf.persistence) || !has(self.persistence)")
    .message("persistence cannot be added after creation"))]
#[x_kube(validation = Rule::new(
    "(has(self.networking) && has(self.networking.tls)) == (has(oldSelf.networking) && has(oldSelf.networking.tls))"
).message("networking.tls cannot be added or removed after creation: members with and without it cannot talk to each \
    other; make a second cluster"))]
#[serde(rename_all = "camelCase")]
pub struct ValkeyClusterSpec {
    /// How many shards share the slots.
    #[schemars(range(min = 1, max = 1000))]
    pub shards: i32,
    /// How many replicas each shard has. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 16))]
    pub replicas: Option<i32>,
    /// The server's image. Absent: `valkey/valkey:9.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Secrets for pulling images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::preserved_list")]
    pub image_pull_secrets: Vec<Value>,
    /// Requests and limits of the server container; `maxmemory` is 75 % of the memory limit unless `config` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Absent: StatefulSet with persistence, else Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_type: Option<WorkloadType>,
    /// Volumes for the data. Absent: data lives in memory and in the replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
    /// Keys of `valkey.conf`, free but for those that the operator owns.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::config")]
    #[x_kube(validation = Rule::new(
        "self.all(key, !(key in ['cluster-enabled', 'cluster-config-file', 'dir', 'port', 'aclfile']) && \
         !key.startsWith('tls-') && !key.startsWith('cluster-announce-'))"
    ).message(
        "config may not set cluster-enabled, cluster-config-file, dir, port, aclfile, tls-* or cluster-announce-*: \
         the operator owns them; remove the key (TLS is set under networking.tls)"
    ))]
    pub config: BTreeMap<String, String>,
    /// ACL users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub users: Vec<User>,
    /// Partial containers, merged by name over `server` and `metrics-exporter`; others are added as sidecars.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::containers")]
    pub containers: Vec<Value>,
    /// How clients and members talk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networking: Option<Networking>,
    /// Whether evictions are held to one member at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<PodDisruptionBudget>,
    /// Merged over the restricted defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub pod_security_context: Option<Value>,
    /// How long a server may take to hand over and stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86400))]
    pub termination_grace_period_seconds: Option<i64>,
    /// Metrics beside every server. Absent: enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exporter: Option<Exporter>,
    /// Where members may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduling: Option<Scheduling>,
    /// Report status, make no changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// What is set aside.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: BTreeMap<String, Quantity>,
    /// What is never exceeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: BTreeMap<String, Quantity>,
}

/// The workload behind one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WorkloadType {
    /// Without volumes.
    Deployment,
    /// With a volume.
    StatefulSet,
}

/// A volume per member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new(
    "!isQuantity(string(self.size)) || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0"
).message("persistence.size may only be expanded"))]
#[x_kube(validation = Rule::new(
    "has(self.storageClassName) == has(oldSelf.storageClassName) && \
     (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)"
).message("persistence.storageClassName is immutable"))]
#[serde(rename_all = "camelCase")]
pub struct Persistence {
    /// Such as `10Gi`.
    #[schemars(schema_with = "schema::quantity")]
    pub size: Quantity,
    /// Absent: the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
    /// What happens to volumes when the cluster is deleted, or when a scale-in removes their member. Absent: Retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
}

/// What happens to volumes when the cluster is deleted, or when a scale-in removes their member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimPolicy {
    /// They stay; a cluster of the same name finds its data again.
    #[default]
    Retain,
    /// They go with the cluster.
    Delete,
}

/// One ACL user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("!self.name.startsWith('_')")
    .message("a user's name may not start with _: such names are the operator's own; choose another"))]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    #[x_kube(validation = Rule::new(r"!self.matches('\\s')").message("a user's name has no spaces in it: write one word"))]
    #[x_kube(validation = Rule::new(r"!self.matches('[\\p{Cc}\\p{Cf}]')")
        .message("a user's name has no control characters and no invisible ones in it: remove them"))]
    pub name: String,
    /// Absent: enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Where its passwords are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<PasswordSecret>,
    /// Needs no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nopass: Option<bool>,
    /// Has no password: logins are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resetpass: Option<bool>,
    /// Commands and categories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Commands>,
    /// Key patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// Channels of publish and subscribe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Channels>,
    /// Raw ACL rules, appended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub permissions: Option<String>,
}

/// Where a user's passwords are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PasswordSecret {
    /// Absent: `<cluster>-users`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// Absent: the user's name. Several keys are several valid passwords, for rotation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(max = 253)))]
    pub keys: Vec<String>,
}

/// What a user may run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Commands {
    /// Commands, `command|subcommand` or `@category`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 128)))]
    pub allow: Vec<String>,
    /// The same, taken away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 128)))]
    pub deny: Vec<String>,
}

/// Which keys a user may touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// Patterns to read and write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 512)))]
    pub read_write: Vec<String>,
    /// Patterns to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 512)))]
    pub read_only: Vec<String>,
    /// Patterns to write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 512)))]
    pub write_only: Vec<String>,
}

/// Which channels a user may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 512)))]
    pub patterns: Vec<String>,
}

/// How clients and members talk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Networking {
    /// Absent: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// TLS, for clients and members alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// The certificates of the servers.
    pub certificates: Certificates,
}

/// The certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Certificates {
    /// What every server presents.
    pub server: CertificateSecret,
}

/// A Secret with `ca.crt`, `tls.crt` and `tls.key`; a changed one is reloaded without a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSecret {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,
}

/// Evictions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodDisruptionBudget {
    /// Absent: Cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<BudgetMode>,
}

/// Whether there is a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetMode {
    /// One member of the whole cluster at a time.
    #[default]
    Cluster,
    /// None.
    Disabled,
}

/// The metrics container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exporter {
    /// Absent: enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Absent: the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Further arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub args: Vec<String>,
    /// Of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub security_context: Option<Value>,
}

/// Where members may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scheduling {
    /// As in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::preserved_list")]
    pub tolerations: Vec<Value>,
    /// As in a pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::config")]
    pub node_selector: BTreeMap<String, String>,
    /// As in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub affinity: Option<Value>,
    /// As in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::preserved_list")]
    pub topology_spread_constraints: Vec<Value>,
    /// As in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,
    /// Over nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Topology>,
    /// Over zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<ZoneTopology>,
}

/// How members are spread over one kind of place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// What is spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
}

/// How members are spread over zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneTopology {
    /// What is spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Only these zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinning: Option<Pinning>,
}

/// Only these zones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pinning {
    /// Their names.
    #[schemars(length(max = 32), inner(length(max = 253)))]
    pub zones: Vec<String>,
}

/// What is spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Members of one shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<SpreadRule>,
    /// Primaries of all shards; holds at placement only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primaries: Option<SpreadRule>,
    /// All members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pods: Option<SpreadRule>,
}

/// How strictly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpreadRule {
    /// Absent: Preferred for members of one shard, else Disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SpreadMode>,
}

/// How strictly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SpreadMode {
    /// Not at all.
    Disabled,
    /// If possible.
    Preferred,
    /// Or the pod waits.
    Required,
}
