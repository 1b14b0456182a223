//! The events of `ValkeyCluster`: this file is their documentation. An event marks a transition; a healthy cluster
//! emits none.

use std::fmt::Write;

use kube_status::Reason;
use kube_status::events::Notice;

/// What happened. A severity makes it a Warning, none makes it Normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reason)]
pub enum ClusterEvent {
    /// A Service is created.
    ServiceCreated,
    /// A Service could not be created.
    #[reason(severity = Warning)]
    ServiceCreationFailed,
    /// A Service could not be updated.
    #[reason(severity = Warning)]
    ServiceUpdateFailed,
    /// The `ConfigMap` with the configuration is created.
    ConfigMapCreated,
    /// The `ConfigMap` could not be created.
    #[reason(severity = Warning)]
    ConfigMapCreationFailed,
    /// The `ConfigMap` could not be updated.
    #[reason(severity = Warning)]
    ConfigMapUpdateFailed,
    /// A member's Deployment is created.
    DeploymentCreated,
    /// A member's Deployment could not be created.
    #[reason(severity = Warning)]
    DeploymentCreationFailed,
    /// A member's Deployment could not be updated.
    #[reason(severity = Warning)]
    DeploymentUpdateFailed,
    /// A member's `StatefulSet` is created.
    StatefulSetCreated,
    /// A member's `StatefulSet` could not be created.
    #[reason(severity = Warning)]
    StatefulSetCreationFailed,
    /// A member's `StatefulSet` could not be updated.
    #[reason(severity = Warning)]
    StatefulSetUpdateFailed,
    /// A member's volume claim is created.
    PersistentVolumeClaimCreated,
    /// A member's volume claim could not be created.
    #[reason(severity = Warning)]
    PersistentVolumeClaimCreationFailed,
    /// A member's volume claim could not be updated.
    #[reason(severity = Warning)]
    PersistentVolumeClaimUpdateFailed,
    /// A Secret of the operator's own is created.
    InternalSecretsCreated,
    /// A Secret of the operator's own is updated.
    InternalSecretsUpdated,
    /// A Secret of the operator's own could not be created.
    #[reason(severity = Warning)]
    InternalSecretsCreationFailed,
    /// A Secret of the operator's own could not be updated.
    #[reason(severity = Warning)]
    InternalSecretsUpdateFailed,
    /// The `PodDisruptionBudget` is created.
    PodDisruptionBudgetCreated,
    /// The `PodDisruptionBudget` is updated.
    PodDisruptionBudgetUpdated,
    /// The `PodDisruptionBudget` is deleted.
    PodDisruptionBudgetDeleted,
    /// The `PodDisruptionBudget` could not be created.
    #[reason(severity = Warning)]
    PodDisruptionBudgetCreationFailed,
    /// The `PodDisruptionBudget` could not be updated.
    #[reason(severity = Warning)]
    PodDisruptionBudgetUpdateFailed,
    /// A member's `ValkeyNode` is created.
    ValkeyNodeCreated,
    /// A member's `ValkeyNode` is deleted: the member is removed.
    ValkeyNodeDeleted,
    /// A node is about to be added to the cluster.
    NodeAdding,
    /// A node has joined the cluster.
    NodeAdded,
    /// A node could not be added.
    #[reason(severity = Warning)]
    NodeAddFailed,
    /// A node met another (CLUSTER MEET).
    ClusterMeet,
    /// CLUSTER MEET failed.
    #[reason(severity = Warning)]
    ClusterMeetFailed,
    /// A primary has its slots.
    PrimaryCreated,
    /// Slots could not be given to a primary.
    #[reason(severity = Warning)]
    SlotAssignmentFailed,
    /// A replica follows its primary.
    ReplicaCreated,
    /// A replica could not be made to follow.
    #[reason(severity = Warning)]
    ReplicaCreationFailed,
    /// A shard has no primary that serves.
    #[reason(severity = Warning)]
    PrimaryLost,
    /// A shard lost a replica, not by the operator's hand.
    #[reason(severity = Warning)]
    ReplicaLost,
    /// Most primaries are gone.
    #[reason(severity = Warning)]
    QuorumLost,
    /// Slots begin to move from one shard to another.
    SlotsRebalancing,
    /// Slots have moved.
    SlotsRebalanced,
    /// Slots could not be moved.
    #[reason(severity = Warning)]
    SlotRebalanceFailed,
    /// A shard that is no longer desired is being drained.
    SlotsDraining,
    /// A shard could not be emptied.
    #[reason(severity = Warning)]
    DrainFailed,
    /// A failover to a replica has started.
    FailoverInitiated,
    /// A shard has a new primary.
    FailoverCompleted,
    /// A replica could not be made the primary.
    #[reason(severity = Warning)]
    FailoverFailed,
    /// A replica became the primary without a vote: most primaries were gone, and the old one was proved dead.
    #[reason(severity = Warning)]
    ReplicasTakenOver,
    /// A node that is gone for good is forgotten by all.
    StaleNodeForgotten,
    /// A node could not be forgotten.
    #[reason(severity = Warning)]
    NodeForgetFailed,
    /// Shards are still being created.
    WaitingForShards,
    /// Replicas of a shard are still being created.
    WaitingForReplicas,
    /// The cluster is ready and healthy.
    ClusterReady,
    /// A member's pod has nowhere to run.
    #[reason(severity = Warning)]
    PodUnschedulable,
    /// A member's pod does not start.
    #[reason(severity = Warning)]
    PodNotStarting,
    /// A node is in the cluster map that is none of the members.
    #[reason(severity = Warning)]
    ForeignNode,
    /// A shard came back empty: its keys are gone.
    #[reason(severity = Warning)]
    DataLost,
    /// A server rejected its configuration or certificate.
    #[reason(severity = Warning)]
    ConfigurationRefused,
    /// A server rejected a user.
    #[reason(severity = Warning)]
    UsersRefused,
    /// The spec cannot be carried out.
    #[reason(severity = Warning)]
    SpecInvalid,
    /// A volume cannot be bound, expanded or written to (a full disk).
    #[reason(severity = Warning)]
    VolumeFailed,
    /// The image is of a lower version than the data.
    #[reason(severity = Warning)]
    DowngradeRefused,
}

impl ClusterEvent {
    /// The event with its message.
    pub fn notice(self, note: impl Into<String>) -> Notice {
        match self.severity() {
            Some(_) => Notice::warning(self, note),
            None => Notice::normal(self, note),
        }
    }
}

/// The events as a table, in Markdown.
///
/// ```
/// let table = candor_api::valkey::events::documentation();
/// assert!(table.contains("| `PrimaryLost` | Warning | A shard has no primary that serves. |"));
/// ```
pub fn documentation() -> String {
    let mut out = String::from("| Event | Type | Meaning |\n|---|---|---|\n");
    for event in ClusterEvent::ALL {
        let kind = if event.severity().is_some() {
            "Warning"
        } else {
            "Normal"
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{}` | {kind} | {} |", event.name(), event.doc().trim());
    }
    out
}
