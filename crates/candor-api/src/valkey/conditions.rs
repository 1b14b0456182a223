//! The conditions of `ValkeyCluster` and the reasons they are given with: this file is their documentation.

use kube_status::{ConditionType, Reason};

/// Why a cluster is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reason)]
pub enum ClusterReason {
    /// Every shard serves, every replica is in sync, nothing is left to do.
    ClusterHealthy,
    /// The operator is making changes. While the cluster is created for the first time this is Info.
    #[reason(severity = Warning)]
    Reconciling,
    /// The cluster is created for the first time and its first object cannot be made yet.
    #[reason(severity = Info, expected = "60s")]
    Initializing,
    /// Shards are still being created.
    #[reason(severity = Info, expected = "60s")]
    MissingShards,
    /// Replicas are missing or not in sync.
    #[reason(severity = Info, expected = "60s")]
    MissingReplicas,
    /// A Service could not be written.
    #[reason(severity = Error)]
    ServiceError,
    /// The `ConfigMap` could not be written.
    #[reason(severity = Error)]
    ConfigMapError,
    /// A member's Deployment or `StatefulSet` could not be written.
    #[reason(severity = Error)]
    DeploymentError,
    /// The `PodDisruptionBudget` could not be written.
    #[reason(severity = Error)]
    PodDisruptionBudgetError,
    /// A Secret of the operator's own could not be written.
    #[reason(severity = Error)]
    SecretError,
    /// A member's volume claim could not be written.
    #[reason(severity = Error)]
    PersistentVolumeClaimError,
    /// Pods could not be listed or watched: how the members are is not known.
    #[reason(severity = Error)]
    PodListError,
    /// A pod cannot be scheduled; the message is the scheduler's.
    #[reason(severity = Error)]
    PodUnschedulable,
    /// A pod does not start: its image, its configuration, or a crash; the message is the kubelet's.
    #[reason(severity = Error)]
    PodNotStarting,
    /// Members are replaced one by one.
    #[reason(severity = Warning)]
    UpdatingNodes,
    /// Members join the cluster.
    #[reason(severity = Warning)]
    AddingNodes,
    /// Slots move between primaries.
    #[reason(severity = Warning)]
    RebalancingSlots,
    /// The cluster is being deleted.
    #[reason(severity = Info, expected = "60s")]
    Deleting,
    /// Nothing is left to do.
    ReconcileComplete,
    /// The operator does not go on without a person: Ready has the cause.
    Stalled,
    /// A member could not be joined; the message has the error.
    #[reason(severity = Error)]
    NodeAddFailed,
    /// A shard has no primary that serves.
    #[reason(severity = Error)]
    PrimaryLost,
    /// A shard lost a replica, not by the operator's hand.
    #[reason(severity = Warning)]
    ReplicaLost,
    /// Most primaries are gone: the servers cannot elect, and reject writes.
    #[reason(severity = Error)]
    QuorumLost,
    /// A new shard gets no slots because moving them is not possible.
    #[reason(severity = Error)]
    NoSlotsAvailable,
    /// Slots could not be moved; the message has the server's error.
    #[reason(severity = Error)]
    RebalanceFailed,
    /// A planned failover failed; the message has the server's error.
    #[reason(severity = Error)]
    FailoverFailed,
    /// A removed node could not be forgotten by a member; the message has the server's error.
    #[reason(severity = Error)]
    NodeForgetFailed,
    /// A node is in the cluster map that is none of the members.
    #[reason(severity = Error)]
    ForeignNode,
    /// A shard came back empty: its keys are gone.
    #[reason(severity = Warning)]
    DataLost,
    /// Every shard and replica is there and joined.
    TopologyComplete,
    /// All 16384 slots have an owner.
    AllSlotsAssigned,
    /// Some slots have no owner.
    #[reason(severity = Warning)]
    SlotsUnassigned,
    /// `spec.paused` is set.
    #[reason(severity = Info)]
    PausedByUser,
    /// Some members are not ready; the message has what they say.
    #[reason(severity = Warning)]
    NodesNotReady,
    /// Of some members nothing is known.
    NodesUnknown,
    /// Every member is ready.
    AllNodesReady,
    /// Servers are being given their configuration.
    #[reason(severity = Warning)]
    ConfigurationPending,
    /// A server rejected its configuration or certificate; the message has its error.
    #[reason(severity = Error)]
    ConfigurationRefused,
    /// The spec cannot be carried out; the message says what to write instead.
    #[reason(severity = Error)]
    SpecInvalid,
    /// The image is of a lower version than the data. The annotation `valkey.io/allow-downgrade: "true"` insists.
    #[reason(severity = Error)]
    DowngradeRefused,
    /// Servers are being given their users.
    #[reason(severity = Warning)]
    UsersPending,
    /// A server rejected a user; the message has its error.
    #[reason(severity = Error)]
    UsersRefused,
    /// A user cannot be made of what the spec and its Secrets say.
    #[reason(severity = Error)]
    UsersInvalid,
    /// A volume is not there yet.
    #[reason(severity = Info, expected = "60s")]
    VolumePending,
    /// A volume grows.
    #[reason(severity = Info, expected = "10m")]
    VolumeResizing,
    /// A volume cannot be bound, expanded or written to (a full disk); the message says why.
    #[reason(severity = Error)]
    VolumeFailed,
    /// One zone has at least two primaries more than another that has replicas for them. Nothing is wrong; the loss of
    /// that zone would affect more shards than it must.
    #[reason(severity = Info)]
    PrimariesPiledUp,
}

/// The conditions of a `ValkeyCluster`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ConditionType)]
#[condition(reasons = ClusterReason)]
pub enum ClusterCondition {
    /// The cluster is fully functional and serves.
    #[condition(reasons(
        ClusterHealthy,
        Reconciling,
        MissingShards,
        MissingReplicas,
        ServiceError,
        ConfigMapError,
        DeploymentError,
        PodDisruptionBudgetError,
        SecretError,
        PersistentVolumeClaimError,
        PodListError,
        PodUnschedulable,
        PodNotStarting,
        UpdatingNodes,
        NodeAddFailed,
        RebalanceFailed,
        FailoverFailed,
        NodeForgetFailed,
        ConfigurationRefused,
        SpecInvalid,
        DowngradeRefused,
        UsersRefused,
        UsersInvalid,
        VolumeFailed,
        Deleting
    ))]
    Ready,
    /// The cluster is being created, changed, healed or deleted.
    #[condition(
        negative,
        reasons(
            Initializing,
            Reconciling,
            AddingNodes,
            RebalancingSlots,
            UpdatingNodes,
            Deleting,
            ReconcileComplete,
            Stalled
        )
    )]
    Progressing,
    /// The cluster is impaired and may still serve in part; absent while it is not.
    #[condition(
        negative,
        reasons(
            NodeAddFailed,
            PrimaryLost,
            ReplicaLost,
            QuorumLost,
            NoSlotsAvailable,
            RebalanceFailed,
            PodUnschedulable,
            PodNotStarting,
            ForeignNode,
            DataLost
        )
    )]
    Degraded,
    /// All members have joined and match the desired topology.
    #[condition(reasons(TopologyComplete, MissingShards, MissingReplicas))]
    ClusterFormed,
    /// All 16384 slots have an owner.
    #[condition(reasons(AllSlotsAssigned, SlotsUnassigned))]
    SlotsAssigned,
    /// Servers run with the configuration and the certificate that the spec asks for; shown while they do not.
    #[condition(reasons(ConfigurationPending, ConfigurationRefused, SpecInvalid, DowngradeRefused))]
    ConfigurationApplied,
    /// Every member is ready; shown while one is not.
    #[condition(reasons(NodesNotReady))]
    NodesReady,
    /// Members have their volumes, in the size that the spec asks for, and can write; shown while they do not.
    #[condition(reasons(VolumePending, VolumeResizing, VolumeFailed))]
    StorageReady,
    /// Servers have the users that the spec asks for; shown while they do not.
    #[condition(reasons(UsersPending, UsersRefused, UsersInvalid))]
    UsersApplied,
    /// A shard came back without its keys; stays until a person acknowledges it. Not part of Ready.
    #[condition(negative, reasons(DataLost))]
    DataLost,
    /// The operator reports status and makes no changes. Not part of Ready.
    #[condition(negative, reasons(PausedByUser))]
    Paused,
    /// Primaries are spread over zones; shown while planned failovers would spread them better. Not part of Ready.
    #[condition(reasons(PrimariesPiledUp))]
    PrimariesSpread,
}
