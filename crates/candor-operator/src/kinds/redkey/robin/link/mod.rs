//! The link between the operator and Robin: one TLS connection per cluster, on which Robin streams what it observes.
//!
//! | topic | module |
//! |---|---|
//! | a frame: what Robin observes at one moment, and its encoding | [`frame`] |
//! | the certificates: pinned by the operator, replaced by Robin without an outage | [`tls`] |
//! | Robin's side: publishing frames, the listener | [`serve`] |
//! | the operator's side: one connection per cluster | [`follow`], to an [`endpoint`] |
//! | what the operator knows about a Robin, and how that changes | [`view`] |
//!
//! The operator sends one request, `POST` [`PATH`], with the token of the cluster's Secret, and both bodies stay open:
//!
//! - Robin sends lines. The newest frame comes first, then a frame after every change, and an empty line after a second
//!   without a frame (the heartbeat).
//! - The operator sends [`BEAT`] every few seconds, so that Robin closes the connection of an operator that has vanished, and
//!   [`REFRESH`] when Robin should read the `RedkeyCluster` and query the servers now.
//!
//! The operator sends nothing, the token included, before the certificate of the peer matched the cluster's Secret.

pub mod endpoint;
pub mod follow;
pub mod frame;
pub mod serve;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod view;

use std::time::Duration;

pub use endpoint::RobinEndpoint;
pub use follow::RobinLinks;
pub use frame::{Frame, FrameError, ObservedServer};
pub use serve::{Feed, LinkListener};
pub use tls::Identity;
pub use view::{Mismatch, RobinView};

/// The path of the request.
pub const PATH: &str = "/v1/observations";
/// What the operator sends to show that it is still there.
pub const BEAT: &[u8] = b"\n";
/// What the operator sends when Robin should observe now.
pub const REFRESH: &[u8] = b"refresh\n";

/// Robin sends something at least this often.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// A Robin from which nothing arrives for this long is silent.
pub const SILENCE: Duration = Duration::from_secs(2);
/// How often the operator sends [`BEAT`].
const OPERATOR_BEAT: Duration = Duration::from_secs(3);
/// Robin closes a connection on which the operator sent nothing for this long.
const OPERATOR_SILENCE: Duration = Duration::from_secs(10);
