//! Client for one Valkey or Redis server, parsers for its replies, and slot movers. Knows no Kubernetes.
//!
//! | topic | module |
//! |---|---|
//! | slots, ranges, sets of slots | [`slot`] |
//! | node ids, epochs, versions | [`ids`] |
//! | a decoded reply, before it is parsed | [`reply`] |
//! | replies from a stream of bytes, within limits | [`decode`] |
//! | `CLUSTER NODES`: the cluster map of one node | [`nodes`] |
//! | `CLUSTER SHARDS` | [`shards`] |
//! | `INFO` and `CLUSTER INFO` | [`info`] |
//! | `ROLE` | [`role`] |
//! | `CLUSTER GETSLOTMIGRATIONS` | [`migrations`] |
//! | what a server supports, by version | [`capability`] |
//! | the connection to one server (feature `client`) | [`client`] |
//! | moving slots (feature `client`) | [`mover`] |
//!
//! Parsers accept the replies of Valkey 7.2 to 9.1 and Redis 7 to 8, and return a [`ParseError`] for anything else.
//! They never panic.
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

/// A reply that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{command}: expected {expected}, found {found:?}")]
pub struct ParseError {
    /// The command that was replied to, or the item that was parsed.
    pub command: &'static str,
    /// What was expected.
    pub expected: &'static str,
    /// What was found, shortened.
    pub found: String,
}

impl ParseError {
    /// Creates an error about one piece of text. Long text is shortened, so that no reply floods a log.
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
