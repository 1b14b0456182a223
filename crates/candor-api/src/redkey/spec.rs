//! What a person writes. The schema's defaults are those that users of this kind see in their tables and stored
//! objects; every other default is the operator's.

// The columns of a CRD repeat their attributes.
#![allow(clippy::duplicated_attributes)]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::status::RedkeyClusterStatus;
use crate::schema;

/// The desired state of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "redkey.inditex.dev",
    version = "v1",
    kind = "RedkeyCluster",
    plural = "redkeyclusters",
    singular = "redkeycluster",
    shortname = "rkcl",
    namespaced,
    derive = "PartialEq",
    derive = "kube_status::Conditioned",
    attr = "conditioned(graded)",
    status = "RedkeyClusterStatus",
    doc = "A cluster of Redis servers: primaries with replicas in one StatefulSet, formed and moved by its agent Robin.",
    scale(
        spec_replicas_path = ".spec.primaries",
        status_replicas_path = ".status.primaries",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Primaries", type_ = "integer", json_path = ".spec.primaries"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicasPerPrimary"),
    printcolumn(name = "Ephemeral", type_ = "boolean", json_path = ".spec.ephemeral"),
    printcolumn(name = "PurgeKeys", type_ = "boolean", json_path = ".spec.purgeKeysOnRebalance"),
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".spec.storage"),
    printcolumn(name = "StorageClassName", type_ = "string", json_path = ".spec.storageClassName", priority = 1),
    printcolumn(name = "DeletePVC", type_ = "boolean", json_path = ".spec.deletePVC", priority = 1),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Substatus", type_ = "string", json_path = ".status.substatus.status"),
    printcolumn(name = "Partition", type_ = "string", json_path = ".status.substatus.upgradingPartition", priority = 1),
    validation = Rule::new("size(self.metadata.name) <= 52 && !self.metadata.name.contains('.')")
        .message("the name may have at most 52 characters and no dots: a StatefulSet and a Service are named after it")
)]
#[x_kube(validation = Rule::new("self.ephemeral || has(self.storage)")
    .message("Ephemeral or storage must be set"))]
#[x_kube(validation = Rule::new("!(self.ephemeral && has(self.storage))")
    .message("Ephemeral and storage cannot be combined"))]
#[x_kube(validation = Rule::new("self.ephemeral || !self.purgeKeysOnRebalance")
    .message("Cannot set purgeKeysOnRebalance to true for non-ephemeral clusters"))]
#[serde(rename_all = "camelCase")]
pub struct RedkeyClusterSpec {
    /// How many primaries share the slots. 0 hibernates the cluster: no pod runs, volumes stay.
    #[schemars(range(min = 0, max = 1000))]
    pub primaries: i32,
    /// How many replicas each primary has.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub replicas_per_primary: i32,
    /// The server's image. Absent: `redis:8-bookworm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// Whether data lives in memory only. Immutable.
    #[serde(default = "yes")]
    #[x_kube(validation = Rule::new("self == oldSelf").message("Changing the ephemeral field is not allowed"))]
    pub ephemeral: bool,
    /// Whether scaling and upgrades recreate the cluster without its keys, which is fast, or keep every key, which is
    /// slow.
    #[serde(default = "yes")]
    pub purge_keys_on_rebalance: bool,
    /// The size of each server's volume, such as `10Gi`. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))")
        .message("write the size of a volume: a number above 0 with an optional unit, such as 500Mi or 10Gi"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("Changing the storage size is not allowed"))]
    pub storage: Option<String>,
    /// The storage class of the volumes. Empty: the cluster's default class. Immutable.
    #[serde(default)]
    #[schemars(length(max = 253))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("Changing the storage class name is not allowed"))]
    pub storage_class_name: String,
    /// How the volumes can be mounted. Immutable.
    #[serde(default = "read_write_once")]
    #[schemars(length(max = 8))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("Changing the storage access modes is not allowed"))]
    pub access_modes: Vec<AccessMode>,
    /// Whether volume claims are deleted with their servers. Absent: they stay.
    #[serde(default, rename = "deletePVC", skip_serializing_if = "Option::is_none")]
    pub delete_pvc: Option<bool>,
    /// Text in the form of `redis.conf`, merged over the defaults. Keys that the operator owns are ignored unless they
    /// have its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 131_072))]
    pub config: Option<String>,
    /// Requests and limits of the server container. Absent: memory of `maxmemory` and 300Mi, and one CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Labels for the objects and pods of the cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// The servers' password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// Limits on evictions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdb: Option<Pdb>,
    /// Partial objects, merged over those that the operator makes.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub overrides: Option<Override>,
    /// The cluster's agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robin: Option<Robin>,
    /// Accepted and without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// Accepted and without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<bool>,
    /// Report status but make no changes: the cluster is in Maintenance.
    #[serde(default)]
    pub paused: bool,
}

fn yes() -> bool {
    true
}

fn read_write_once() -> Vec<AccessMode> {
    vec![AccessMode::ReadWriteOnce]
}

/// An ephemeral cluster without servers; what the schema's defaults make of an empty spec.
impl Default for RedkeyClusterSpec {
    fn default() -> Self {
        Self {
            primaries: 0,
            replicas_per_primary: 0,
            image: None,
            ephemeral: yes(),
            purge_keys_on_rebalance: yes(),
            storage: None,
            storage_class_name: String::new(),
            access_modes: read_write_once(),
            delete_pvc: None,
            config: None,
            resources: None,
            labels: BTreeMap::new(),
            auth: None,
            pdb: None,
            overrides: None,
            robin: None,
            version: None,
            backup: None,
            paused: false,
        }
    }
}

impl RedkeyClusterSpec {
    /// Servers of the whole cluster: `primaries * (1 + replicasPerPrimary)`.
    pub fn nodes(&self) -> i32 {
        self.primaries
            .saturating_mul(self.replicas_per_primary.saturating_add(1))
    }

    /// The image of the servers.
    pub fn server_image(&self) -> &str {
        self.image
            .as_deref()
            .filter(|image| !image.is_empty())
            .unwrap_or(super::DEFAULT_IMAGE)
    }
}

/// How a volume can be mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AccessMode {
    /// By one node, to read and write.
    ReadWriteOnce,
    /// By many nodes, to read.
    ReadOnlyMany,
    /// By many nodes, to read and write.
    ReadWriteMany,
}

impl AccessMode {
    /// The mode as the API spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadWriteOnce => "ReadWriteOnce",
            Self::ReadOnlyMany => "ReadOnlyMany",
            Self::ReadWriteMany => "ReadWriteMany",
        }
    }
}

/// Requests, limits and claims of a container.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Reserved for the container.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub requests: BTreeMap<String, Quantity>,
    /// Never exceeded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub limits: BTreeMap<String, Quantity>,
    /// Dynamic resources, as in a pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::preserved_list")]
    pub claims: Vec<Value>,
}

/// The servers' password.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Auth {
    /// A Secret with the key `requirepass`. A changed password is applied to running servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub secret: Option<String>,
}

/// Limits on evictions; only with more than one primary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pdb {
    /// Whether there is a `PodDisruptionBudget`. Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// How many servers may be missing: a number or a percentage. Wins over `pdbSizeAvailable`; 0 and empty are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count_or_percentage")]
    pub pdb_size_unavailable: Option<IntOrString>,
    /// How many servers must be there: a number or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::count_or_percentage")]
    pub pdb_size_available: Option<IntOrString>,
}

/// Partial objects, merged over those that the operator makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Over the `StatefulSet`; replicas, selector, serviceName, the container `redis` and the volumes `config` and `data`
    /// stay the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub stateful_set: Option<Value>,
    /// Over the Service; its selector, its port and that it is headless stay the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub service: Option<Value>,
}

/// The cluster's agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Robin {
    /// A partial pod template, merged over the operator's; image and command of the container `robin` are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::preserved")]
    pub template: Option<Value>,
    /// How often it acts and what it measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RobinConfig>,
}

/// How often Robin acts and what it measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RobinConfig {
    /// Its reconcile loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconciler: Option<RobinReconciler>,
    /// How it watches the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<RobinCluster>,
    /// What it measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<RobinMetrics>,
}

/// Robin's reconcile loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RobinReconciler {
    /// Seconds between two reconciles of a cluster in which nothing happens.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 86400))]
    pub interval_seconds: i32,
    /// Seconds after which a finished operation is forgotten.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 86400))]
    pub operation_clean_up_interval_seconds: i32,
}

impl Default for RobinReconciler {
    fn default() -> Self {
        Self {
            interval_seconds: thirty(),
            operation_clean_up_interval_seconds: thirty(),
        }
    }
}

/// How Robin watches the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RobinCluster {
    /// Seconds between two full checks of a healthy cluster.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1, max = 86400))]
    pub health_probe_period_seconds: i32,
    /// Seconds that a fault may last before it is an error.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1, max = 86400))]
    pub healing_time_seconds: i32,
    /// How often a connection is tried before it is an error.
    #[serde(default = "ten")]
    #[schemars(range(min = 0, max = 1000))]
    pub max_retries: i32,
    /// The pause between two tries: seconds, or a duration such as `10s`.
    #[serde(default = "ten_seconds")]
    #[schemars(schema_with = "schema::seconds_or_duration")]
    pub back_off: IntOrString,
}

impl Default for RobinCluster {
    fn default() -> Self {
        Self {
            health_probe_period_seconds: sixty(),
            healing_time_seconds: sixty(),
            max_retries: ten(),
            back_off: ten_seconds(),
        }
    }
}

/// What Robin measures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RobinMetrics {
    /// Seconds between two measurements.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1, max = 86400))]
    pub interval_seconds: i32,
    /// Fields of INFO that become metrics, such as `used_memory`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 128)))]
    pub redis_info_keys: Vec<String>,
}

impl Default for RobinMetrics {
    fn default() -> Self {
        Self {
            interval_seconds: sixty(),
            redis_info_keys: Vec::new(),
        }
    }
}

fn ten() -> i32 {
    10
}

fn thirty() -> i32 {
    30
}

fn sixty() -> i32 {
    60
}

fn ten_seconds() -> IntOrString {
    IntOrString::Int(10)
}
