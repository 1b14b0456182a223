//! `redkey.inditex.dev/v1`: clusters of Redis servers in one `StatefulSet`, each with its agent Robin.

pub mod advice;
pub mod conditions;
pub mod events;
pub mod spec;
pub mod status;

/// The group of the kind.
pub const GROUP: &str = "redkey.inditex.dev";

/// On a cluster: `"true"` puts it into Maintenance, as `spec.paused` does.
pub const MAINTENANCE: &str = "redkey.inditex.dev/maintenance";

/// On a cluster: the `lastTransitionTime` of the `DataLost` condition that a person has acknowledged.
pub const DATA_LOSS_ACKNOWLEDGED: &str = "redkey.inditex.dev/data-loss-acknowledged";

/// On a cluster: a planned failover that a user requests, `SHARD/NODE[/ORDINAL]`: the shard, the node id of its primary,
/// and the ordinal of the pod to promote, if it matters. The operator removes it when it is answered.
pub const FAILOVER: &str = "redkey.inditex.dev/failover";

/// The finalizer that deletes volume claims, present while `deletePVC` is set and the cluster is not ephemeral.
pub const DELETE_PVC_FINALIZER: &str = "redkey.inditex.dev/delete-pvc";

/// Finalizers that other operators may have set: removed when the cluster is deleted, never added.
pub const HONOURED_FINALIZERS: [&str; 2] = ["redkey.inditex.dev/configmap-cleanup", "redkey.inditex.dev/rdb-backup"];

/// The label with the cluster's name on every object and pod.
pub const CLUSTER_LABEL: &str = "redkey-cluster-name";

/// The label that tells Redis pods from Robin: [`REDIS`] or [`ROBIN`].
pub const COMPONENT_LABEL: &str = "redis.redkeycluster.operator/component";

/// The component of servers.
pub const REDIS: &str = "redis";

/// The component of the agent.
pub const ROBIN: &str = "robin";

/// The image of servers when `spec.image` is absent or empty.
pub const DEFAULT_IMAGE: &str = "redis:8-bookworm";

/// The component that events are recorded under.
pub const EVENT_SOURCE: &str = "redkeycluster-controller";
