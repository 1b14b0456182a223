//! A cluster of either kind, as every screen shows it. The kinds differ in how they are translated into a [`Cluster`];
//! commands do not distinguish them beyond that.
//!
//! | topic | module |
//! |---|---|
//! | the kinds: names, labels, advice, events | [`kind`] |
//! | `NAME`, `vkc/NAME`, `rkcl/NAME` | [`address`] |
//! | reading clusters from the API server | [`fetch`] |
//! | the sentence that answers how a cluster is | [`answer`] |
//! | which slots are served | `impact` |
//! | the condition that decides, and its root cause | `cause` |
//! | what a user should do, as a command | `next_step` |
//! | members by their names instead of addresses | [`names`] |
//! | the translation of each kind | `valkey`, `redkey` |

pub mod address;
pub mod answer;
mod cause;
pub mod fetch;
mod impact;
pub mod kind;
pub mod names;
mod next_step;
pub mod redkey;
pub mod valkey;

use std::fmt;

use candor_api::valkey::status::MemberRole;
use candor_api::{Condition, RedkeyCluster, ValkeyCluster, ValkeyNode};
use candor_engine::model::MemberRef;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::Status;
use kube_status::severity::Severity;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::describe::typed;
pub use address::Address;
pub use cause::is_true;
pub use kind::Kind;

/// The object of a cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Object {
    /// A `ValkeyCluster`.
    Valkey(Box<ValkeyCluster>),
    /// A `RedkeyCluster`.
    Redkey(Box<RedkeyCluster>),
}

impl Object {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Valkey(_) => Kind::ValkeyCluster,
            Self::Redkey(_) => Kind::RedkeyCluster,
        }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Valkey(cluster) => &cluster.metadata,
            Self::Redkey(cluster) => &cluster.metadata,
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.metadata().name.clone().unwrap_or_default()
    }

    /// Its kind and name.
    pub fn reference(&self) -> ClusterRef {
        ClusterRef {
            kind: self.kind(),
            name: self.name(),
        }
    }

    /// The image of its servers: of its spec, else the one that the operator chose.
    pub fn image(&self) -> Option<&str> {
        let image = match self {
            Self::Valkey(cluster) => {
                let chosen = cluster.status.as_ref().map(|status| &status.image);
                cluster.spec.image.as_ref().or(chosen)
            }
            Self::Redkey(cluster) => cluster.spec.image.as_ref(),
        };
        image.map(String::as_str).filter(|image| !image.is_empty())
    }

    /// How to name it on a command line so that it is certainly this one.
    pub fn address(&self) -> String {
        format!("{}/{}", self.kind().short(), self.name())
    }

    /// As JSON, with its kind.
    pub fn value(&self) -> Value {
        match self {
            Self::Valkey(cluster) => typed(cluster.as_ref()),
            Self::Redkey(cluster) => typed(cluster.as_ref()),
        }
    }

    /// The cluster according to its status alone.
    pub fn view(&self) -> Cluster {
        self.view_with(&[], &[])
    }

    /// The cluster according to its status and to the objects of its members.
    pub fn view_with(&self, nodes: &[ValkeyNode], pods: &[Pod]) -> Cluster {
        let mut view = match self {
            Self::Valkey(cluster) => valkey::view(cluster, nodes),
            Self::Redkey(cluster) => redkey::view(cluster, pods),
        };
        for member in &mut view.members {
            let pod = pods.iter().find(|pod| view.kind.member_of(pod) == Some(member.id));
            let host = pod.and_then(|pod| pod.spec.as_ref()?.node_name.clone());
            member.host = host.unwrap_or_default();
        }
        view
    }
}

/// Which cluster, in the namespace of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterRef {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ClusterRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind.name(), self.name)
    }
}

/// A cluster of either kind.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// The generation of its spec.
    pub generation: Option<i64>,
    /// The generation that its status describes.
    pub observed_generation: Option<i64>,
    /// Its state in one word, such as `Ready`; empty before the first status.
    pub state: String,
    /// Why, in one word; empty before the first status.
    pub reason: String,
    /// The stage of its operation, if its kind names stages.
    pub stage: Option<Stage>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Whether the user asked the operator to make no changes.
    pub paused: bool,
    /// Desired shards: every one has a primary.
    pub shards: i32,
    /// Desired replicas of each shard.
    pub replicas: i32,
    /// Shards that are complete, or primaries that own slots.
    pub ready_shards: i32,
    /// Slots and keys of its shards, as last observed.
    pub slots: Vec<ShardSlots>,
    /// Its members.
    pub members: Vec<Member>,
    /// The operation in progress.
    pub operation: Option<Operation>,
}

impl Cluster {
    /// A condition by its type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|one| one.type_ == type_)
    }

    /// The status of its condition Ready.
    pub fn ready(&self) -> Option<Status> {
        self.condition("Ready").map(|ready| Status::of(ready))
    }
}

/// The stage of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// Its name, such as `RollingConfig`.
    pub name: String,
    /// The ordinal that a slow upgrade has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The step in a sentence: `step RollingConfig of pod 2`.
    pub step: String,
    /// What happens in it; empty if it is not a stage that this program knows.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

impl Stage {
    /// The step with its meaning.
    pub fn text(&self) -> String {
        match self.meaning.as_str() {
            "" => self.step.clone(),
            meaning => format!("{}: {meaning}", self.step),
        }
    }
}

/// Slots and keys of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSlots {
    /// Its index.
    pub shard: u32,
    /// Ranges such as `0-5460`.
    pub slots: String,
    /// Keys as of the last transition.
    pub keys: Option<u64>,
}

/// Which member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberId {
    /// Shard and place in it: `0-1`.
    Place(MemberRef),
    /// The ordinal of its pod in the `StatefulSet`: `2`.
    Ordinal(u32),
}

impl fmt::Display for MemberId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => place.fmt(out),
            Self::Ordinal(ordinal) => ordinal.fmt(out),
        }
    }
}

impl Serialize for MemberId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A member according to status and, where given, to its `ValkeyNode` or pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which.
    pub id: MemberId,
    /// Its shard, if it has one.
    pub shard: Option<u32>,
    /// Its id in the cluster; empty if it is not known.
    pub node_id: String,
    /// Its role.
    pub role: Option<MemberRole>,
    /// The member that it replicates, where status names one.
    pub replica_of: Option<MemberId>,
    /// Its pod; empty if it is not known.
    pub pod: String,
    /// Its address; empty if it is not known.
    pub ip: String,
    /// Whether it is ready.
    pub ready: Option<bool>,
    /// Why.
    pub reason: String,
    /// The severity of that reason.
    pub severity: Option<Severity>,
    /// The message of that reason.
    pub message: String,
    /// Since when it is ready or not.
    pub since: Option<Timestamp>,
    /// The Kubernetes node of its pod; empty if it is not known.
    pub host: String,
}

impl Member {
    /// A member of which only its place is known.
    pub fn new(id: MemberId, shard: Option<u32>) -> Self {
        Self {
            id,
            shard,
            node_id: String::new(),
            role: None,
            replica_of: None,
            pod: String::new(),
            ip: String::new(),
            ready: None,
            reason: String::new(),
            severity: None,
            message: String::new(),
            since: None,
            host: String::new(),
        }
    }
}

/// An operation in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// As text: `Scaling out`.
    pub kind: String,
    /// When it started.
    pub started_at: Timestamp,
    /// How often it failed and was retried.
    pub attempts: i32,
    /// The member that it is about; empty if it is not about one.
    pub member: String,
    /// The current step, from 1; 0 if steps are not counted.
    pub step: i32,
    /// The number of steps.
    pub steps: i32,
    /// Slots that have moved.
    pub slots_moved: Option<i32>,
    /// Slots that move in total.
    pub slots_total: Option<i32>,
    /// What happens now, as text; empty if the kind names no stages.
    pub stage: String,
}
