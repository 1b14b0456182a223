//! What a server supports, by its version. An "unknown command" reply overrides the version.

use crate::ids::{Family, Version};

/// How slots are migrated away from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveBy {
    /// `CLUSTER MIGRATESLOTS` on the source (Valkey 9 and later): atomic, whole ranges at once.
    Push,
    /// `CLUSTER MIGRATION IMPORT` on the destination (Redis 8.4 and later).
    Pull,
    /// `SETSLOT`, `GETKEYSINSLOT`, `MIGRATE`: every server.
    Legacy,
}

/// What a server of a version supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The best way to migrate slots away from it.
    pub moves: MoveBy,
    /// Whether `shutdown-on-sigterm failover` is supported: on SIGTERM the server starts a planned failover itself.
    pub failover_on_shutdown: bool,
    /// Whether `CLUSTER SHARDS` exists.
    pub shards: bool,
}

impl Capabilities {
    /// Returns what a version supports.
    pub fn of(version: Version) -> Self {
        let at_least = |major, minor| (version.major, version.minor) >= (major, minor);
        match version.family {
            Family::Valkey => Self {
                moves: if at_least(9, 0) { MoveBy::Push } else { MoveBy::Legacy },
                failover_on_shutdown: at_least(9, 0),
                shards: true,
            },
            Family::Redis => Self {
                moves: if at_least(8, 4) { MoveBy::Pull } else { MoveBy::Legacy },
                failover_on_shutdown: false,
                shards: at_least(7, 0),
            },
        }
    }
}
