//! Paths, values and bodies of Robin's API, compatible with its existing users.

use std::fmt;

use candor_api::redkey::status::ClusterStatus;
use serde::{Deserialize, Serialize};

/// The version of the protocol between the operator and Robin. Robin sends it in the header [`PROTOCOL_HEADER`] of
/// every response. The operator replaces a Robin with another version before it starts an operation.
pub const PROTOCOL: u32 = 1;

/// The header with the [`PROTOCOL`].
pub const PROTOCOL_HEADER: &str = "candor-protocol";

/// Paths.
pub mod path {
    /// Whether Robin is alive.
    pub const HEALTH: &str = "/health";
    /// Prometheus.
    pub const METRICS: &str = "/metrics";
    /// The status as the operator sees it.
    pub const STATUS: &str = "/v1/redkeycluster/status";
    /// The desired topology.
    pub const REPLICAS: &str = "/v1/redkeycluster/replicas";
    /// What Robin is doing.
    pub const OPERATION: &str = "/v1/cluster/status";
    /// What is wrong with the cluster.
    pub const CHECK: &str = "/v1/cluster/check";
    /// The servers.
    pub const NODES: &str = "/v1/cluster/nodes";
    /// Repairs.
    pub const FIX: &str = "/v1/cluster/fix";
    /// Forms the cluster again from scratch.
    pub const RECREATE: &str = "/v1/cluster/recreate";
    /// Moves slots.
    pub const MOVE: &str = "/v1/cluster/move";
    /// Resets a server. Its index or name follows.
    pub const RESET: &str = "/v1/cluster/reset";
}

/// Defines an enum with variants that are values of the API.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The value as text.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.name())
            }
        }
    };
}

message! {
    /// The status of the cluster according to the operator. It decides what Robin does automatically.
    RobinStatus {
        /// Pods are starting.
        Initializing,
        /// Robin forms the cluster.
        Configuring,
        /// Robin keeps the cluster healthy.
        Ready,
        /// Robin moves slots to new primaries.
        ScalingUp,
        /// Robin moves slots away from primaries that are removed.
        ScalingDown,
        /// Robin moves slots away from servers that are replaced.
        Upgrading,
        /// Robin keeps the cluster healthy as far as possible.
        Error,
        /// Robin does nothing automatically but accepts every call.
        Maintenance,
        /// Robin does nothing automatically.
        NoReconciling,
        /// The operator has not set the status yet.
        Unknown,
    }
}

impl From<ClusterStatus> for RobinStatus {
    fn from(status: ClusterStatus) -> Self {
        match status {
            ClusterStatus::Initializing => Self::Initializing,
            ClusterStatus::Configuring => Self::Configuring,
            ClusterStatus::Ready => Self::Ready,
            ClusterStatus::ScalingUp => Self::ScalingUp,
            ClusterStatus::ScalingDown => Self::ScalingDown,
            ClusterStatus::Upgrading => Self::Upgrading,
            ClusterStatus::Error => Self::Error,
            ClusterStatus::Maintenance => Self::Maintenance,
        }
    }
}

message! {
    /// What Robin is doing, or failed to do.
    Operation {
        /// Nothing: the cluster is as desired.
        Ready,
        /// The cluster is not as desired, and Robin cannot repair it.
        Error,
        /// Robin has not observed the cluster yet.
        Unknown,
        /// Robin forms the cluster again from scratch.
        Recreating,
        /// Recreating failed.
        RecreatingError,
        /// Robin moves slots between two servers.
        Resharding,
        /// Resharding failed.
        ReshardingError,
        /// Robin balances the slots.
        Rebalancing,
        /// Rebalancing failed.
        RebalancingError,
        /// Robin repairs the cluster.
        Fixing,
        /// Fixing failed.
        FixingError,
        /// Robin checks the cluster.
        CheckingIntegrity,
        /// The check failed.
        CheckingIntegrityError,
        /// Robin resets a server.
        Resetting,
        /// Resetting failed.
        ResettingError,
    }
}

/// `{"status": …}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status<T> {
    /// The value.
    pub status: T,
}

/// Replies of `GET /health`, and of calls that start work.
pub mod message {
    /// Robin is alive.
    pub const OK: &str = "OK";
    /// The work is not finished.
    pub const IN_PROGRESS: &str = "In progress";
    /// The work is finished.
    pub const COMPLETED: &str = "Completed";
}

/// The desired topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replicas {
    /// How many primaries.
    pub primaries: u32,
    /// How many replicas each of them has.
    pub replicas_per_primary: u32,
}

/// The desired topology in a request: omitted replicas stay unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewReplicas {
    pub primaries: u32,
    #[serde(default)]
    pub replicas_per_primary: Option<u32>,
}

/// What is wrong with the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Errors, such as slots without an owner or servers that disagree.
    pub errors: Vec<String>,
    /// Warnings, such as open slots.
    pub warnings: Vec<String>,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its pod.
    pub name: String,
    /// Its id in the cluster.
    pub id: String,
    /// Its address.
    pub ip: String,
    /// `primary` or `replica`.
    pub role: String,
    /// The id of its primary, for a replica.
    pub primary_id: String,
    /// How many servers report it as failing.
    pub failures: u32,
    /// When the last ping was sent, according to the cluster map.
    pub sent: u64,
    /// When the last pong was received.
    pub recv: u64,
    /// `connected` or `disconnected`.
    pub link_status: String,
}

/// The servers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nodes {
    /// In the order of their ordinals.
    pub nodes: Vec<Node>,
}

/// Slots to move between two servers, each named by its index or its pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The source server.
    pub from: String,
    /// The target server.
    pub to: String,
    /// The number of slots; 0 means all of them.
    #[serde(default)]
    pub slots: u16,
}

/// `{"error": …}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong, and what to do instead.
    pub error: String,
}
