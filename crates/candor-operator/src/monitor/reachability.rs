//! Reachability of a member, and the state that is retained between connections.

use std::sync::{Mutex, MutexGuard, PoisonError};

use candor_engine::observation::Server;
use jiff::Timestamp;
use tokio::time::Instant;
use valkey_admin::Reply;

use super::following::Following;
use super::questions::Outline;

/// Reachability of a member.
#[derive(Clone, Debug, Default)]
pub(super) enum Reachability {
    /// The first connection attempt has not finished yet.
    #[default]
    New,
    /// The member replied until its connection closed. The monitor is reconnecting.
    Between,
    /// The connection is refused, and no earlier connection succeeded.
    Nowhere,
    /// The connection is refused, and an earlier connection succeeded.
    Dead(Timestamp),
    /// The member gives no usable reply.
    Silent(Timestamp),
    /// The member replies.
    Up,
}

impl Reachability {
    /// The server state, if it is known without a query.
    pub(super) fn server(&self) -> Option<Server> {
        match self {
            Self::New | Self::Between | Self::Up => None,
            Self::Nowhere => Some(Server::Nowhere),
            Self::Dead(since) => Some(Server::Dead { since: *since }),
            Self::Silent(since) => Some(Server::Silent { since: *since }),
        }
    }
}

/// What is known about a member. It survives reconnects and a change of credentials.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) reachability: Reachability,
    /// A connection to this address has succeeded.
    pub(super) listened: bool,
    /// Why there is no usable reply.
    pub(super) trouble: Option<String>,
    /// The last failure was a rejection of the operator's user or password.
    pub(super) refused_us: bool,
    pub(super) outline: Outline,
    pub(super) following: Following,
    /// The last full reply, for a server that is alive but too busy to reply. It is stored undecoded, which takes a
    /// tenth of the memory.
    pub(super) told: Vec<Reply>,
    pub(super) run_id: String,
    /// When the current process first replied.
    pub(super) run_began: Option<Instant>,
    pub(super) last_answer: Option<Instant>,
    /// When the member replied again after it had not responded. Reset when its primary confirms its link.
    pub(super) resumed: Option<Instant>,
    /// When the connection for commands was last requested.
    pub(super) acted: Option<Instant>,
}

impl Known {
    /// Records the time if the member did not respond until now.
    pub(super) fn resume(&mut self) {
        if matches!(self.reachability, Reachability::Silent(_)) {
            self.resumed = Some(Instant::now());
        }
    }
}

pub(super) fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
