//! Paths, words and bodies, as users of this API know them.

use std::fmt;

use candor_api::redkey::status::ClusterStatus;
use serde::{Deserialize, Serialize};

/// The version of what the operator and Robin tell each other, in the header [`PROTOCOL_HEADER`] of every answer. A Robin
/// with another one is replaced before any operation starts.
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
    /// Forms the cluster anew.
    pub const RECREATE: &str = "/v1/cluster/recreate";
    /// Moves slots.
    pub const MOVE: &str = "/v1/cluster/move";
    /// Resets a server; its index or name follows.
    pub const RESET: &str = "/v1/cluster/reset";
}

/// An enum whose variants are words of the API.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word.
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

words! {
    /// The status of the cluster as the operator sees it, which decides what Robin does by itself.
    RobinStatus {
        /// Pods start.
        Initializing,
        /// Robin forms the cluster.
        Configuring,
        /// Robin keeps the cluster healthy.
        Ready,
        /// Robin gives new primaries their slots.
        ScalingUp,
        /// Robin takes slots away from leaving primaries.
        ScalingDown,
        /// Robin moves slots for servers that are replaced.
        Upgrading,
        /// Robin keeps the cluster healthy as far as it can.
        Error,
        /// Robin does nothing by itself and carries out every call.
        Maintenance,
        /// Robin does nothing by itself.
        NoReconciling,
        /// The operator has not said yet.
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

words! {
    /// What Robin is doing, or failed to do.
    Operation {
        /// Nothing: the cluster is as desired.
        Ready,
        /// The cluster is not as desired, and Robin cannot help.
        Error,
        /// Robin has not observed the cluster yet.
        Unknown,
        /// Forms the cluster anew.
        Recreating,
        /// Failed to.
        RecreatingError,
        /// Moves slots between two servers.
        Resharding,
        /// Failed to.
        ReshardingError,
        /// Evens out the slots.
        Rebalancing,
        /// Failed to.
        RebalancingError,
        /// Repairs the cluster.
        Fixing,
        /// Failed to.
        FixingError,
        /// Checks the cluster.
        CheckingIntegrity,
        /// Failed to.
        CheckingIntegrityError,
        /// Resets a server.
        Resetting,
        /// Failed to.
        ResettingError,
    }
}

/// `{"status": …}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status<T> {
    /// The word.
    pub status: T,
}

/// What `GET /health` answers, and what work reports.
pub mod words {
    /// Alive.
    pub const OK: &str = "OK";
    /// Work that is not done.
    pub const IN_PROGRESS: &str = "In progress";
    /// Work that is done.
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

/// The desired topology as it is sent: replicas that are not named stay as they are.
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
    /// Slots without an owner, servers that disagree, and the like.
    pub errors: Vec<String>,
    /// Open slots and the like.
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
    /// When the last ping was sent, as its cluster map has it.
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
    /// From where.
    pub from: String,
    /// Where to.
    pub to: String,
    /// How many; 0 is all of them.
    #[serde(default)]
    pub slots: u16,
}

/// `{"error": …}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong, and what to do instead.
    pub error: String,
}
