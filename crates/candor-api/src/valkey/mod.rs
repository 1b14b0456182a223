//! `valkey.io/v1alpha1`: clusters of Valkey servers and the windows on their members.

pub mod advice;
pub mod conditions;
pub mod events;
pub mod node;
pub mod node_conditions;
pub mod spec;
pub mod status;

/// The group of both kinds.
pub const GROUP: &str = "valkey.io";

/// The finalizer that orders a cluster's deletion.
pub const FINALIZER: &str = "valkey.io/cleanup";

/// On a volume that a scale-in left: proof that it owned no slots. Only such a volume is reset when met again.
pub const DRAINED: &str = "valkey.io/drained";

/// On a cluster: the `lastTransitionTime` of the `DataLost` condition that a person has seen.
pub const DATA_LOSS_ACKNOWLEDGED: &str = "valkey.io/data-loss-acknowledged";

/// On a cluster: `"true"` lets an image of a lower version run on newer data.
pub const ALLOW_DOWNGRADE: &str = "valkey.io/allow-downgrade";

/// On a cluster: a failover that a user requests, `SHARD/NODE[/MEMBER]`: the shard, the node id of the primary that
/// is replaced, and optionally the member to promote. The operator removes it when it is done or rejected.
pub const FAILOVER: &str = "valkey.io/failover";

/// How the event begins that answers such a request with a refusal: no other one of its reason is the last word.
pub const FAILOVER_REFUSED: &str = "The failover that was asked for is not done";

/// On a cluster: a time. A new one lets every member be replaced, one by one, as a new image would.
pub const RESTARTED_AT: &str = "valkey.io/restartedAt";
