//! Robin: its HTTP API, its link to the operator, and its process.
//!
//! | topic | module |
//! |---|---|
//! | bodies, values and paths | [`api`] |
//! | the state behind the API | [`RobinState`] |
//! | the router: status codes, errors, limits, deadlines | [`server`] |
//! | the bearer token | `auth` |
//! | `GET /metrics` | [`metrics`] |
//! | the observations that the operator follows over TLS | [`link`] |
//! | the process `candor robin` | [`agent`] |
//!
//! `GET` requests need no token: every client that reaches the port may send them. Every request that changes something
//! needs the token of the cluster's Secret. A rejected request changes nothing.

pub mod agent;
pub mod api;
mod auth;
mod backoff;
pub mod link;
pub mod metrics;
pub mod server;
#[cfg(test)]
mod tests;

use std::future::Future;

use api::{Check, Move, Node, Operation, Replicas, RobinStatus};

pub use auth::Tokens;

/// The state behind the API. A method that changes something returns before its work is finished: it starts the work,
/// and a repeated call reports it as running.
pub trait RobinState: Send + Sync + 'static {
    /// The tokens that authorize changes.
    fn tokens(&self) -> Tokens;

    /// The status according to the operator.
    fn status(&self) -> RobinStatus;

    /// Sets the status.
    fn set_status(&self, status: RobinStatus) -> impl Future<Output = Result<(), Rejection>> + Send;

    /// The desired topology.
    fn replicas(&self) -> Replicas;

    /// Sets the desired topology.
    fn set_replicas(&self, desired: Replicas) -> impl Future<Output = Result<Change, Rejection>> + Send;

    /// What Robin is doing.
    fn operation(&self) -> Operation;

    /// Queries the servers for problems of the cluster.
    fn check(&self) -> impl Future<Output = Result<Check, Rejection>> + Send;

    /// The servers.
    fn nodes(&self) -> Vec<Node>;

    /// Repairs the cluster.
    fn fix(&self) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Forms the cluster again from scratch, without its keys.
    fn recreate(&self) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Moves slots between two servers.
    fn move_slots(&self, what: Move) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// Resets one server, by its index or by the name of its pod.
    fn reset(&self, node: String) -> impl Future<Output = Result<Work, Rejection>> + Send;

    /// The text of `GET /metrics`.
    fn metrics(&self) -> impl Future<Output = String> + Send;
}

/// The result of setting a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The topology is the same as before.
    Unchanged,
    /// Robin starts to apply it.
    Started,
}

/// The result of a request for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The work has been started.
    Started,
    /// The work was already running.
    Running,
    /// The work is finished.
    Completed,
}

/// Why a request is rejected. A rejected request has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The request cannot be carried out as it is written.
    #[error("{0}")]
    Invalid(String),
    /// The server does not exist.
    #[error("Node '{0}' not found: name a pod of the cluster or its index")]
    UnknownNode(String),
    /// The request conflicts with Robin's current operation, and the status is not Maintenance.
    #[error("{0}")]
    Conflict(String),
    /// A server, or Robin itself, failed.
    #[error("{0}")]
    Failed(String),
}
