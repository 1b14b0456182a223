//! The `DittoServer` resource: what a user asks for, and what the operator answers.

use kube::{CustomResource, KubeSchema};
use kube_status::{Condition, Conditioned, conditions_schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conditions::ServerCondition;

/// The desired state of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "dittofs.dittofs.com",
    version = "v1alpha1",
    kind = "DittoServer",
    plural = "dittoservers",
    shortname = "ditto",
    shortname = "dittofs",
    namespaced,
    derive = "Conditioned",
    derive = "PartialEq",
    status = "DittoServerStatus",
    doc = "A DittoFS server: NFS on a volume, with a PostgreSQL cluster beside it where asked.",
    printcolumn(name = "READY", type_ = "string", json_path = ".status.readyReplicas"),
    printcolumn(name = "AVAILABLE", type_ = "string", json_path = ".status.availableReplicas"),
    printcolumn(name = "STATUS", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("size(self.metadata.name) <= 52")
        .message("the name may have at most 52 characters: its pods are labelled with it and a hash")
)]
#[x_kube(validation = Rule::new("self.nfsPort != self.apiPort").message("nfsPort and apiPort must differ"))]
#[serde(rename_all = "camelCase")]
pub struct DittoServerSpec {
    /// The server's image.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// One server, or none: 0 stops it and keeps everything else.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1))]
    pub replicas: i32,
    /// The server's configuration, free YAML with an object at the top level.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub config: String,
    /// The volume behind the exports.
    pub storage: Storage,
    /// Where NFS is served.
    #[serde(default = "nfs_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub nfs_port: i32,
    /// Where the API and the health pages are served.
    #[serde(default = "api_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub api_port: i32,
    /// Secrets; their keys are in the server's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub secret_refs: Vec<SecretRef>,
    /// The PostgreSQL cluster beside the server.
    #[serde(default)]
    pub percona: Percona,
}

/// A volume, fixed at creation: the claims of a `StatefulSet` cannot be changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new(
    "self.size == oldSelf.size && has(self.storageClassName) == has(oldSelf.storageClassName) && \
     (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)"
).message("storage is immutable"))]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Such as `10Gi`.
    #[schemars(length(max = 32), regex(pattern = r"^[0-9]+(\.[0-9]+)?([KMGTPE]i?|m|k)?$"))]
    pub size: String,
    /// Absent: the cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
}

/// A Secret of the same namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SecretRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The PostgreSQL cluster beside a server, run by Percona's operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Percona {
    /// Whether there is one. Switching it off leaves the cluster where it is, on its own.
    pub enabled: bool,
    /// Whether the cluster and all its data go with the server. Counts only while `enabled`.
    pub delete_with_server: bool,
}

/// What the operator last saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DittoServerStatus {
    /// The generation all of this speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many servers are asked for.
    pub replicas: i32,
    /// How many of them are ready.
    pub ready_replicas: i32,
    /// How many of them have been ready for long enough.
    pub available_replicas: i32,
    /// What clients mount, once the server was available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nfs_endpoint: Option<String>,
    /// One word for the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The hash of the configuration and its Secrets that pods are to run with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// The PostgreSQL cluster, while there is to be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percona_cluster_name: Option<String>,
    /// How it is, in full.
    #[schemars(schema_with = "conditions_schema::<ServerCondition>")]
    pub conditions: Vec<Condition>,
}

/// One word for the whole, derived from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// On the way.
    Pending,
    /// Ready.
    Running,
    /// Blocked until the spec is fixed.
    Failed,
    /// Asked to run no server.
    Stopped,
    /// Being deleted.
    Deleting,
}

impl DittoServer {
    /// The name of one of its objects: `config`, `headless`, `api`.
    pub fn named(&self, part: &str) -> String {
        format!("{}-{part}", self.metadata.name.as_deref().unwrap_or_default())
    }

    /// The name of its PostgreSQL cluster.
    pub fn database_name(&self) -> String {
        self.named("postgres")
    }
}

fn one() -> i32 {
    1
}

fn nfs_port() -> i32 {
    2049
}

fn api_port() -> i32 {
    8080
}
