//! How a member stands, and what is known of it from one connection to the next.

use std::sync::{Mutex, MutexGuard, PoisonError};

use candor_engine::observation::Server;
use jiff::Timestamp;
use tokio::time::Instant;
use valkey_admin::Reply;

use super::following::Following;
use super::questions::Outline;

/// How the member stands.
#[derive(Clone, Debug, Default)]
pub(super) enum Standing {
    /// No connection was made yet.
    #[default]
    New,
    /// It answered until its connection ended; another is being made.
    Between,
    /// Refused, and nobody ever listened.
    Nowhere,
    /// Refused, and somebody listened before.
    Dead(Timestamp),
    /// No usable answer.
    Silent(Timestamp),
    /// It answers.
    Up,
}

impl Standing {
    /// What can be said without asking.
    pub(super) fn server(&self) -> Option<Server> {
        match self {
            Self::New | Self::Between | Self::Up => None,
            Self::Nowhere => Some(Server::Nowhere),
            Self::Dead(since) => Some(Server::Dead { since: *since }),
            Self::Silent(since) => Some(Server::Silent { since: *since }),
        }
    }
}

/// What is known of a member; it outlives a connection, and a change of credentials.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) standing: Standing,
    /// Somebody listened at this address.
    pub(super) listened: bool,
    /// Why there is no usable answer.
    pub(super) trouble: Option<String>,
    /// It was our user or password that the server refused last.
    pub(super) refused_us: bool,
    pub(super) outline: Outline,
    pub(super) following: Following,
    /// The last whole answer, for when the server lives and is too busy to say more; as it came, which is a tenth of
    /// what it takes when it is understood.
    pub(super) told: Vec<Reply>,
    pub(super) run_id: String,
    /// When the process that answers now was first heard.
    pub(super) run_began: Option<Instant>,
    pub(super) last_answer: Option<Instant>,
    /// When the connection for acting was last asked for.
    pub(super) acted: Option<Instant>,
}

pub(super) fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
