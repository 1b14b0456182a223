//! One Valkey or Redis node and one cluster map. Knows no Kubernetes.
//!
//! | you look for | it is in |
//! |---|---|
//! | slots, ranges, sets of slots | [`slot`] |
//! | node ids, shard ids, epochs, versions | [`ids`] |
//! | what a server answered, before it is understood | [`reply`] |
//! | replies from a stream of bytes, within limits | [`decode`] |
//! | `CLUSTER NODES`: who is there, as one node sees it | [`nodes`] |
//! | `CLUSTER SHARDS` | [`shards`] |
//! | `INFO` and `CLUSTER INFO` | [`info`] |
//! | `ROLE` | [`role`] |
//! | `CLUSTER GETSLOTMIGRATIONS` | [`migrations`] |
//! | what a server of a version can do | [`capability`] |
//! | one node's connection (feature `client`) | [`client`] |
//! | moving slots (feature `client`) | [`mover`] |
//!
//! Parsers take what any server from Valkey 7.2 to 9.1 and Redis 7 to 8 says, and answer anything else with
//! a [`ParseError`]; they never panic.
#![forbid(unsafe_code)]

pub mod capability;
#[cfg(feature = "client")]
pub mod client;
pub mod decode;
pub mod ids;
pub mod info;
pub mod migrations;
#[cfg(feature = "client")]
pub mod mover;
pub mod nodes;
pub mod reply;
pub mod role;
pub mod shards;
pub mod slot;

pub use capability::Capabilities;
pub use ids::{Epoch, NodeId, Version};
pub use nodes::{ClusterNodes, Flags, NodeEntry};
pub use reply::Reply;
pub use slot::{Slot, SlotRange, SlotSet};

/// What a server said could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{command}: expected {expected}, found {found:?}")]
pub struct ParseError {
    /// The command whose answer it was, or the thing that was read.
    pub command: &'static str,
    /// What should have stood there.
    pub expected: &'static str,
    /// What stood there, shortened.
    pub found: String,
}

impl ParseError {
    /// An error about one piece of text; long text is shortened, so that no answer of a server floods a log.
    pub fn new(command: &'static str, expected: &'static str, found: impl std::fmt::Display) -> Self {
        const SHOWN: usize = 80;
        let whole = found.to_string();
        let found = match whole.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &whole[..end]),
            None => whole,
        };
        Self {
            command,
            expected,
            found,
        }
    }
}
