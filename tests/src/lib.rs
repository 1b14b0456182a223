//! Common parts of the end-to-end scenarios.
//!
//! | you look for | it is in |
//! |---|---|
//! | a Kubernetes with the operator in it: the sandbox, or the one in `CANDOR_TEST_KUBECONFIG` | [`World`] |
//! | the operator with the permissions of an installation, and which of them it used | [`OperatorOptions`], [`RequestLog`] |
//! | one cluster: apply, wait, query its servers | [`Cluster`] |
//! | keys that every replica has, and that must not be missing | [`Keys`] |
//! | kill, freeze, thaw, on both kinds of Kubernetes | [`faults`] |
//! | the assertions on every audit | [`contract`] |
//!
//! Scenarios are in `suite/`. Every function here panics when it fails: that fails the test.
#![allow(clippy::missing_panics_doc)]

mod cluster;
pub mod contract;
pub mod faults;
mod keys;
mod operator;
mod request_log;
mod rows;
mod servers;
mod world;

pub use candor_audit::Kind;
pub use cluster::{Cluster, Condition, Event};
pub use keys::Keys;
pub use operator::OperatorOptions;
pub use request_log::{Permission, RequestLog};
pub use rows::Rows;
pub use servers::Server;
pub use world::World;

use std::time::Duration;

/// Longer than any step takes on a busy host. The audit checks the promised times, not this limit.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `found` returns a value, polling every 20 ms.
pub async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = tokio::time::Instant::now();
    loop {
        if let Some(value) = found().await {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
