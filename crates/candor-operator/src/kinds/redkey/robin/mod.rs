//! Robin's HTTP API: what both of its sides know, without the part that talks to Redis servers or to Kubernetes.
//!
//! | you look for | it is in |
//! |---|---|
//! | bodies, words and paths | [`api`] |
//! | what stands behind the API | [`RobinState`] |
//! | the router: codes, errors, limits, deadlines | [`server`] |
//! | the bearer token | `auth` |
//! | `GET /metrics` | [`metrics`] |
//!
//! `GET` is open to everyone who reaches the port. Everything that changes something needs the token of the cluster's
//! Secret. A call that is rejected changes nothing.

pub mod api;
mod auth;
pub mod metrics;
pub mod server;
#[cfg(test)]
mod tests;

use std::future::Future;

use api::{Check, Move, Node, Operation, Replicas, RobinStatus};

pub use auth::Tokens;

/// What stands behind the API. A method that changes something returns before its work is done: work that takes time is
/// started, and the same call reports it as running.
pub trait RobinState: Send + Sync + 'static {
    /// The tokens that allow changes.
    fn tokens(&self) -> Tokens;

    /// The status as the operator sees it.
    fn status(&self) -> RobinStatus;

    /// Sets it.
    fn set_status(&self, status: RobinStatus) -> impl Future<Output = Result<(), Rejection>> + Send;

    /// The desired topology.
    fn replicas(&self) -> Replicas;

    /// Sets it.
    fn set_replicas(&self, desired: Replicas) -> impl Future<Output = Result<Change, Rejection>> + Send;

    /// What Robin is doing.
    fn operation(&self) -> Operation;

    /// What is wrong with the cluster, asked of its servers.
    fn check(&self) -> impl Future<Output = Result<Check, Rejection>> + Send;

    /// The servers.
    fn nodes(&self) -> Vec<Node>;

    /// Repairs the cluster.
    fn fix(&self) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Forms the cluster anew, without its keys.
    fn recreate(&self) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Moves slots between two servers.
    fn move_slots(&self, what: Move) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Resets one server, by its index or by the name of its pod.
    fn reset(&self, node: String) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// The text of `GET /metrics`.
    fn metrics(&self) -> impl Future<Output = String> + Send;
}

/// What became of a new topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is the one there was.
    Unchanged,
    /// Robin begins to bring it about.
    Started,
}

/// What became of a request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It begins.
    Started,
    /// It had begun before.
    Running,
    /// It is done.
    Completed,
}

/// Why a call is rejected. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// There is no such server.
    #[error("Node '{0}' not found: name a pod of the cluster or its index")]
    UnknownNode(String),
    /// The call does not fit what Robin is doing, and the status is not Maintenance.
    #[error("{0}")]
    Conflict(String),
    /// A server, or Robin itself, failed.
    #[error("{0}")]
    Failed(String),
}
