//! What Candor answers.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, schema};

/// What a cluster is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyClusterStatus {
    /// The state in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Why, for machines.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    #[schemars(length(max = 32768))]
    pub message: String,
    /// Shards with a primary that owns slots.
    #[serde(default)]
    pub shards: i32,
    /// Shards with a serving primary and all replicas in sync.
    #[serde(default)]
    pub ready_shards: i32,
    /// The generation all of this speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The members' label selector, for `kubectl scale` and autoscalers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub selector: String,
    /// What is being done right now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Whether the cluster was complete once.
    #[serde(default)]
    pub formed: bool,
    /// The image that was chosen when the spec named none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub image: String,
    /// The image that servers should run: `spec.image`, else the one that was chosen.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub server_image: String,
    /// Shards and members as last observed complete: healing starts from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub topology: Vec<ShardTopology>,
    /// Since when the same error stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_since: Option<Time>,
    /// The conditions, in the order people read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions", transform = schema::describe_cluster_conditions)]
    pub conditions: Vec<Condition>,
}

/// The state in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// Being created for the first time.
    Initializing,
    /// Changing to the desired state.
    Reconciling,
    /// Healthy and serving.
    Ready,
    /// Serving in part.
    Degraded,
    /// Nothing more can be done without a person.
    Failed,
}

/// What is being done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Which.
    pub kind: OperationKind,
    /// Since when.
    pub started_at: Time,
    /// How often it has failed so far and was tried again.
    #[serde(default)]
    pub attempts: i32,
    /// The member it is about, such as `0-1`, where it is about one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32))]
    pub member: String,
    /// The step it is in, from 1.
    #[serde(default)]
    pub step: i32,
    /// How many steps there are.
    #[serde(default)]
    pub steps: i32,
    /// Slots that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_moved: Option<i32>,
    /// Slots to move in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_total: Option<i32>,
}

/// The operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OperationKind {
    /// From nothing.
    Create,
    /// After a fault.
    Heal,
    /// More shards or replicas.
    ScaleOut,
    /// Fewer shards or replicas.
    ScaleIn,
    /// Members are replaced one by one.
    Roll,
    /// Slots are evened out.
    Rebalance,
    /// A planned failover: a user requested it, or the primary's node is cordoned.
    Failover,
    /// Objects, configuration, users, certificates or volumes are updated to match the spec.
    Configure,
    /// The cluster goes away.
    Delete,
}

/// One shard as last seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShardTopology {
    /// Which shard.
    pub shard: i32,
    /// Ranges such as `0-5460`.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub slots: String,
    /// Keys as of the last transition.
    #[serde(default)]
    pub keys: i64,
    /// Its members.
    #[serde(default)]
    #[schemars(length(max = 17))]
    pub members: Vec<MemberTopology>,
    /// Its data is gone, and that was said; until it is served again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_lost: bool,
}

/// One member as last seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemberTopology {
    /// Which member of its shard.
    pub node: i32,
    /// Its id in the cluster.
    #[serde(default)]
    #[schemars(length(max = 40))]
    pub node_id: String,
    /// Its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<MemberRole>,
    /// The uid of the pod that it last ran in. Evidence that a lost primary has terminated is about this pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_uid: String,
    /// The Kubernetes node of that pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub node_name: String,
    /// The uid of that pod's volume claim; only with persistence. An empty volume of the same claim proves a loss of data
    /// only on the same Kubernetes node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub claim_uid: String,
    /// That pod is confirmed terminated; only while its shard has no primary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pod_terminated: bool,
}

/// A member's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MemberRole {
    /// Owns slots.
    Primary,
    /// Follows.
    Replica,
}
