//! The conditions of `RedkeyCluster` and the reasons they are given with: this file is their documentation.

use kube_status::{ConditionType, Reason};

/// Why a cluster is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reason)]
pub enum RedkeyReason {
    /// Every slot is served, every replica is in sync, and Robin confirms this generation.
    RedkeyClusterReady,
    /// Servers are added.
    #[reason(severity = Warning)]
    RedkeyClusterScalingUp,
    /// Servers are removed.
    #[reason(severity = Warning)]
    RedkeyClusterScalingDown,
    /// Image, resources, labels or configuration of the servers change.
    #[reason(severity = Warning)]
    RedkeyClusterUpgrading,
    /// No operation of this kind is running.
    NotInProgress,
    /// Objects are created; pods or Robin are not there yet.
    #[reason(severity = Info, expected = "60s")]
    Initializing,
    /// Robin joins servers, assigns slots, attaches replicas or rebalances.
    #[reason(severity = Info, expected = "60s")]
    Configuring,
    /// `spec.primaries` is 0: no server runs, and none is missing.
    Hibernating,
    /// The cluster is being deleted.
    #[reason(severity = Info, expected = "60s")]
    Deleting,
    /// Size, class or access mode of the storage differ from the volume claims of the `StatefulSet`.
    #[reason(severity = Error)]
    StorageMismatch,
    /// A running operation failed; the message has the error.
    #[reason(severity = Error)]
    OperationFailed,
    /// The preflight pod with the new template did not start; the message has the kubelet's message. Keys are untouched.
    #[reason(severity = Error)]
    PreflightFailed,
    /// The servers that stay have too little memory for the keys of those that leave. Nothing is moved.
    #[reason(severity = Error)]
    NotEnoughMemory,
    /// The spec cannot be carried out; the message says what to write instead.
    #[reason(severity = Error)]
    SpecInvalid,
    /// `spec.config` cannot be parsed; the message has the line.
    #[reason(severity = Error)]
    ConfigInvalid,
    /// `spec.config` sets keys that the operator owns: these lines are ignored.
    #[reason(severity = Warning)]
    ConfigIgnored,
    /// A server rejects its configuration; the message has its reply.
    #[reason(severity = Error)]
    ConfigRejected,
    /// The Secret of `spec.auth` is missing or has no usable `requirepass`. Servers keep the password they have.
    #[reason(severity = Error)]
    SecretInvalid,
    /// An object could not be written; the message has the API server's message.
    #[reason(severity = Error)]
    WriteFailed,
    /// Pods could not be listed or watched: the state of the servers is unknown.
    #[reason(severity = Error)]
    PodListError,
    /// A pod cannot be scheduled; the message has the scheduler's message.
    #[reason(severity = Error)]
    PodUnschedulable,
    /// A pod does not start: its image, its configuration, or a crash; the message has the kubelet's message.
    #[reason(severity = Error)]
    PodNotStarting,
    /// Another operator manages this cluster at the moment. Candor makes no changes.
    #[reason(severity = Warning)]
    OtherOperatorActive,
    /// `spec.paused` or the annotation `redkey.inditex.dev/maintenance` is set.
    #[reason(severity = Info)]
    Maintenance,
    /// A shard has no primary that serves.
    #[reason(severity = Error)]
    PrimaryLost,
    /// A shard lost a replica that no operation removed.
    #[reason(severity = Warning)]
    ReplicaLost,
    /// Most primaries are missing: the servers cannot elect, and reject writes.
    #[reason(severity = Error)]
    QuorumLost,
    /// Some slots have no owner.
    #[reason(severity = Error)]
    SlotsUncovered,
    /// A server could not join; the message has the error.
    #[reason(severity = Error)]
    NodeAddFailed,
    /// Slots could not be moved; the message has the server's reply.
    #[reason(severity = Error)]
    RebalanceFailed,
    /// A planned failover failed; the message has the server's reply.
    #[reason(severity = Error)]
    FailoverFailed,
    /// A removed node could not be forgotten; the message has the server's reply.
    #[reason(severity = Error)]
    NodeForgetFailed,
    /// The cluster map has a node that is no server of this cluster.
    #[reason(severity = Error)]
    ForeignNode,
    /// Every shard has all its servers.
    NotDegraded,
    /// Robin answers and follows this generation.
    RobinReady,
    /// Robin's pod is not there yet.
    #[reason(severity = Info, expected = "60s")]
    RobinStarting,
    /// Robin's pod is terminated or does not start. The operator executes its steps.
    #[reason(severity = Warning)]
    RobinTerminated,
    /// Robin does not respond. The operator observes by itself.
    #[reason(severity = Warning)]
    RobinUnresponsive,
    /// Robin speaks another protocol version and is being replaced.
    #[reason(severity = Info, expected = "60s")]
    RobinOutdated,
    /// A shard came back empty: its keys are lost.
    #[reason(severity = Warning)]
    DataLost,
    /// No data is known to be lost.
    NoDataLost,
    /// One zone has at least two primaries more than another that has replicas for them. Nothing is wrong; the loss of
    /// that zone would affect more shards than it must.
    #[reason(severity = Info)]
    PrimariesPiledUp,
}

/// The conditions of a `RedkeyCluster`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ConditionType)]
#[condition(reasons = RedkeyReason)]
pub enum RedkeyCondition {
    /// The cluster has the desired topology and configuration, and serves every slot.
    #[condition(reasons(
        RedkeyClusterReady,
        RedkeyClusterScalingUp,
        RedkeyClusterScalingDown,
        RedkeyClusterUpgrading,
        Initializing,
        Configuring,
        Hibernating,
        StorageMismatch,
        OperationFailed,
        PreflightFailed,
        NotEnoughMemory,
        SpecInvalid,
        ConfigInvalid,
        ConfigRejected,
        SecretInvalid,
        WriteFailed,
        PodListError,
        PodUnschedulable,
        PodNotStarting,
        OtherOperatorActive,
        PrimaryLost,
        ReplicaLost,
        QuorumLost,
        SlotsUncovered,
        NodeAddFailed,
        RebalanceFailed,
        FailoverFailed,
        NodeForgetFailed,
        Deleting
    ))]
    Ready,
    /// Servers are added.
    #[condition(negative, reasons(RedkeyClusterScalingUp, NotInProgress))]
    ScalingUp,
    /// Servers are removed.
    #[condition(negative, reasons(RedkeyClusterScalingDown, NotInProgress))]
    ScalingDown,
    /// Image, resources, labels or configuration of the servers change.
    #[condition(negative, reasons(RedkeyClusterUpgrading, NotInProgress))]
    Upgrading,
    /// Servers or slots are missing that no operation has taken away; the cluster may still serve in part.
    #[condition(
        negative,
        reasons(
            PrimaryLost,
            ReplicaLost,
            QuorumLost,
            SlotsUncovered,
            NodeAddFailed,
            RebalanceFailed,
            PodUnschedulable,
            PodNotStarting,
            ForeignNode,
            DataLost,
            NotDegraded
        )
    )]
    Degraded,
    /// Robin runs, answers and follows this generation. Not part of Ready: the operator executes its steps meanwhile.
    #[condition(reasons(
        RobinReady,
        RobinStarting,
        RobinTerminated,
        RobinUnresponsive,
        RobinOutdated,
        Hibernating
    ))]
    RobinReady,
    /// Servers run with the configuration that the spec asks for; present only while they do not.
    #[condition(reasons(ConfigInvalid, ConfigIgnored, ConfigRejected, SecretInvalid))]
    ConfigurationApplied,
    /// The operator reports status and makes no changes; present only while it does. Not part of Ready.
    #[condition(negative, reasons(Maintenance, OtherOperatorActive))]
    Paused,
    /// A shard came back without its keys; stays until a person acknowledges it. Not part of Ready.
    #[condition(negative, reasons(DataLost, NoDataLost))]
    DataLost,
    /// Primaries are spread over zones; present only while planned failovers would spread them better. Not part of
    /// Ready.
    #[condition(reasons(PrimariesPiledUp))]
    PrimariesSpread,
}
