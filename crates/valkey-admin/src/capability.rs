//! What a server can do. Decided by its version, corrected by what it answers: a server that says "unknown
//! command" is believed over its version.

use crate::ids::{Family, Version};

/// The ways slots can leave a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MoveBy {
    /// `CLUSTER MIGRATESLOTS` on the source (Valkey 9 and later): atomic, whole ranges at once.
    Push,
    /// `CLUSTER MIGRATION IMPORT` on the destination (Redis 8.4 and later).
    Pull,
    /// `SETSLOT`, `GETKEYSINSLOT`, `MIGRATE`: every server.
    Legacy,
}

/// What the server of a version can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// How slots leave it best.
    pub moves: MoveBy,
    /// Whether `shutdown-on-sigterm failover` is understood: the server hands over by itself on SIGTERM.
    pub failover_on_shutdown: bool,
    /// Whether `CLUSTER SHARDS` exists.
    pub shards: bool,
}

impl Capabilities {
    /// By version alone.
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
