//! The conditions of `ValkeyNode` and the reasons they are given with: this file is their documentation.

use kube_status::{ConditionType, Reason};

/// Why a member is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reason)]
pub enum NodeReason {
    /// A primary that serves its slots.
    Serving,
    /// A replica that has all that its primary has.
    InSync,
    /// It has no pod yet, or its pod has no address.
    #[reason(severity = Info, expected = "60s")]
    PodPending,
    /// Its pod cannot be scheduled; the message is the scheduler's.
    #[reason(severity = Error)]
    PodUnschedulable,
    /// Its pod does not start; the message is the kubelet's.
    #[reason(severity = Error)]
    PodNotStarting,
    /// Its server has not answered since its pod was started.
    #[reason(severity = Info, expected = "60s")]
    Starting,
    /// The operator restarts it.
    #[reason(severity = Info, expected = "60s")]
    Restarting,
    /// Its address refuses connections.
    #[reason(severity = Error)]
    Gone,
    /// It does not answer.
    #[reason(severity = Error)]
    Silent,
    /// It reads its dataset.
    #[reason(severity = Info, expected = "60s")]
    Loading,
    /// It is not part of the cluster yet, or owns no slots yet.
    #[reason(severity = Info, expected = "60s")]
    Joining,
    /// It reports slots that no primary serves.
    #[reason(severity = Error)]
    ClusterDown,
    /// A replica that does not have all that its primary has.
    #[reason(severity = Warning)]
    NotInSync,
    /// It is no longer desired and is being removed.
    #[reason(severity = Info, expected = "60s")]
    Leaving,
    /// It matches the spec.
    Applied,
    /// It is being updated to match the spec.
    #[reason(severity = Warning)]
    Pending,
    /// Its server rejects it; the message has the error.
    #[reason(severity = Error)]
    Refused,
    /// Its server does not answer.
    NoAnswer,
    /// Its volume is there, in the size that the spec asks for.
    Bound,
    /// Its volume is not there yet.
    #[reason(severity = Info, expected = "60s")]
    VolumePending,
    /// Its volume grows.
    #[reason(severity = Info, expected = "10m")]
    VolumeResizing,
    /// Its volume cannot be bound, expanded or written to (a full disk); the message says why.
    #[reason(severity = Error)]
    VolumeFailed,
}

/// The conditions of a `ValkeyNode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ConditionType)]
#[condition(reasons = NodeReason)]
pub enum NodeCondition {
    /// It serves, and as a replica is in sync.
    #[condition(reasons(
        Serving,
        InSync,
        PodPending,
        PodUnschedulable,
        PodNotStarting,
        Starting,
        Restarting,
        Gone,
        Silent,
        Loading,
        Joining,
        ClusterDown,
        NotInSync,
        Leaving
    ))]
    Ready,
    /// It runs with the configuration and the certificate that the spec asks for.
    #[condition(reasons(Applied, Pending, Refused, NoAnswer))]
    ConfigurationApplied,
    /// It has its volume, in the size that the spec asks for, and can write; only with persistence, or when it cannot.
    #[condition(reasons(Bound, VolumePending, VolumeResizing, VolumeFailed))]
    StorageReady,
    /// It has the users that the spec asks for.
    #[condition(reasons(Applied, Pending, Refused, NoAnswer))]
    UsersApplied,
}
