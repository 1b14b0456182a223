//! What Candor answers.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, schema};

/// The observed state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedkeyClusterStatus {
    /// Initializing, Configuring, Ready, `ScalingUp`, `ScalingDown`, Upgrading, Error or Maintenance.
    // Free text, because a person or another operator may have written it: see `ClusterStatus`.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub status: String,
    /// The stage of the running operation.
    #[serde(default)]
    pub substatus: Substatus,
    /// The servers by node id.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 8192))]
    pub nodes: BTreeMap<String, NodeStatus>,
    /// Primaries that own slots.
    #[serde(default)]
    pub primaries: i32,
    /// The servers' label selector, for `kubectl scale` and autoscalers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 512))]
    pub selector: String,
    /// The generation that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions, in the order people read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions", transform = schema::describe_redkey_conditions)]
    pub conditions: Vec<Condition>,
    /// Whether the cluster was complete once.
    #[serde(default)]
    pub formed: bool,
    /// The revision that pods of the existing operator stand for, as long as its pod template is in use.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub adopted: String,
    /// Shards and servers as last observed complete: healing and waking start from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1001))]
    pub topology: Vec<ShardTopology>,
    /// The running operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Since when the same error persists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_since: Option<Time>,
}

/// The stage of the running operation.
// Both fields are written also when they are empty: a field that an apply leaves out keeps the value of another writer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Substatus {
    /// The stage, such as `FastScaling`.
    // Free text, because another operator may have written it: see `ClusterSubstatus`.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub status: String,
    /// The ordinal that a slow upgrade has reached.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub upgrading_partition: String,
}

/// The status in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterStatus {
    /// Objects are created; pods or Robin are not there yet.
    Initializing,
    /// Robin joins servers, assigns slots, attaches replicas or rebalances.
    Configuring,
    /// Everything is as desired, and Robin confirms it.
    Ready,
    /// More servers are added.
    ScalingUp,
    /// Servers are removed.
    ScalingDown,
    /// Image, resources, labels or configuration change.
    Upgrading,
    /// Something failed: the conditions say what.
    Error,
    /// The operator reports status and makes no changes.
    Maintenance,
}

impl ClusterStatus {
    /// Every status.
    pub const ALL: [Self; 8] = [
        Self::Initializing,
        Self::Configuring,
        Self::Ready,
        Self::ScalingUp,
        Self::ScalingDown,
        Self::Upgrading,
        Self::Error,
        Self::Maintenance,
    ];

    /// The word in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Initializing => "Initializing",
            Self::Configuring => "Configuring",
            Self::Ready => "Ready",
            Self::ScalingUp => "ScalingUp",
            Self::ScalingDown => "ScalingDown",
            Self::Upgrading => "Upgrading",
            Self::Error => "Error",
            Self::Maintenance => "Maintenance",
        }
    }

    /// The status of that name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for ClusterStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A stage of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterSubstatus {
    /// The `StatefulSet` is recreated without its keys.
    FastScaling,
    /// Robin forms the recreated cluster.
    EndingFastScaling,
    /// Pods are added or removed.
    PodScaling,
    /// Slots move to new primaries, or away from leaving ones.
    RobinScaling,
    /// The balance is checked.
    EndingScaling,
    /// The `StatefulSet` is recreated from the new template without its keys.
    FastUpgrading,
    /// Robin forms the recreated cluster.
    EndingFastUpgrading,
    /// The extra server of a slow upgrade joins.
    ScalingUp,
    /// The server at the partition is emptied.
    SlowUpgrading,
    /// The pod at the partition is recreated and rejoins.
    RollingConfig,
    /// The extra server is emptied.
    EndingSlowUpgrading,
    /// The extra server is removed.
    ScalingDown,
}

impl ClusterSubstatus {
    /// Every stage.
    pub const ALL: [Self; 12] = [
        Self::FastScaling,
        Self::EndingFastScaling,
        Self::PodScaling,
        Self::RobinScaling,
        Self::EndingScaling,
        Self::FastUpgrading,
        Self::EndingFastUpgrading,
        Self::ScalingUp,
        Self::SlowUpgrading,
        Self::RollingConfig,
        Self::EndingSlowUpgrading,
        Self::ScalingDown,
    ];

    /// The word in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FastScaling => "FastScaling",
            Self::EndingFastScaling => "EndingFastScaling",
            Self::PodScaling => "PodScaling",
            Self::RobinScaling => "RobinScaling",
            Self::EndingScaling => "EndingScaling",
            Self::FastUpgrading => "FastUpgrading",
            Self::EndingFastUpgrading => "EndingFastUpgrading",
            Self::ScalingUp => "ScalingUp",
            Self::SlowUpgrading => "SlowUpgrading",
            Self::RollingConfig => "RollingConfig",
            Self::EndingSlowUpgrading => "EndingSlowUpgrading",
            Self::ScalingDown => "ScalingDown",
        }
    }

    /// The stage of that name. Earlier operators wrote `Resharding` for [`Self::SlowUpgrading`] and `RollingUpdate` for
    /// [`Self::RollingConfig`].
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "Resharding" => Some(Self::SlowUpgrading),
            "RollingUpdate" => Some(Self::RollingConfig),
            _ => Self::ALL.into_iter().find(|stage| stage.name() == name),
        }
    }
}

impl fmt::Display for ClusterSubstatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// One server as its cluster map has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// Its pod.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its address.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub ip: String,
    /// Whether it is a primary.
    #[serde(default)]
    pub is_primary: bool,
    /// The node id of its primary, for a replica.
    #[serde(default)]
    #[schemars(length(max = 40))]
    pub replica_of: String,
}

/// The running operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Which.
    pub kind: OperationKind,
    /// How, as it was decided at its start.
    pub mode: OperationMode,
    /// Since when.
    pub started_at: Time,
    /// How often it has failed so far and was retried.
    #[serde(default)]
    pub attempts: i32,
    /// Primaries when it began.
    #[serde(default)]
    pub from_primaries: i32,
    /// Slots that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_moved: Option<i32>,
    /// Slots to move in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots_total: Option<i32>,
    /// The ordinal of the extra server of a slow upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_node: Option<i32>,
    /// The hash of the pod template that an upgrade rolls out: another one restarts it at the last partition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub revision: String,
}

/// The operations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OperationKind {
    /// From nothing.
    Create,
    /// More servers.
    ScaleUp,
    /// Fewer servers.
    ScaleDown,
    /// Another image, configuration, label or resource.
    Upgrade,
    /// After a fault.
    Heal,
    /// No servers at all, or back from there.
    Hibernate,
}

/// How an operation treats keys; later edits of `purgeKeysOnRebalance` do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OperationMode {
    /// The cluster is recreated without them.
    Fast,
    /// Every key is kept.
    Slow,
}

/// One shard as last observed.
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
    /// Its servers.
    #[serde(default)]
    #[schemars(length(max = 101))]
    pub members: Vec<SeatTopology>,
    /// Its data is lost and reported as such, until it serves again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_lost: bool,
}

/// One server as last observed: the ordinal of its pod has its seat in the shard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeatTopology {
    /// The ordinal of its pod.
    pub ordinal: i32,
    /// Its id in the cluster.
    #[serde(default)]
    #[schemars(length(max = 40))]
    pub node_id: String,
    /// Whether it was the primary.
    #[serde(default)]
    pub is_primary: bool,
    /// The uid of the pod that it last ran in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub pod_uid: String,
    /// The Kubernetes node of that pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub node_name: String,
    /// The uid of the volume claim that it last ran with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub claim_uid: String,
    /// That pod is confirmed terminated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pod_terminated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_status_and_substatus_are_always_written() {
        let empty = serde_json::to_value(RedkeyClusterStatus::default()).unwrap();
        assert_eq!(empty["status"], "");
        assert_eq!(
            empty["substatus"],
            serde_json::json!({"status": "", "upgradingPartition": ""})
        );
        assert_eq!(empty["nodes"], serde_json::json!({}));
    }

    #[test]
    fn every_status_and_substatus_is_found_by_its_name() {
        for status in ClusterStatus::ALL {
            assert_eq!(ClusterStatus::parse(status.name()), Some(status));
        }
        for stage in ClusterSubstatus::ALL {
            assert_eq!(ClusterSubstatus::parse(stage.name()), Some(stage));
        }
        assert_eq!(ClusterStatus::parse(""), None);
        assert_eq!(
            ClusterSubstatus::parse("Resharding"),
            Some(ClusterSubstatus::SlowUpgrading)
        );
    }

    #[test]
    fn a_status_of_another_operator_is_decoded() {
        let theirs = serde_json::json!({
            "status": "Upgrading",
            "substatus": {"status": "Resharding", "upgradingPartition": "2"},
            "nodes": {"a1": {"name": "c-0", "ip": "10.0.0.1", "isPrimary": true, "replicaOf": ""}},
            "conditions": [{"type": "Upgrading", "status": "True", "reason": "RedkeyClusterUpgrading",
                "message": "Redkey cluster is upgrading", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        });
        let read: RedkeyClusterStatus = serde_json::from_value(theirs).unwrap();
        assert_eq!(read.substatus.upgrading_partition, "2");
        assert!(read.nodes["a1"].is_primary);
    }
}
