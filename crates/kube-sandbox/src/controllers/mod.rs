//! The controllers of a control plane, as far as operators and kubectl need them.
//!
//! Each is a pure plan (objects in, steps and status out; tested by tables) and a thin loop around it. All share one
//! watch per resource and sleep until something changes.

mod accounts;
mod deployment;
mod disruption;
mod endpoints;
mod garbage;
mod hash;
pub(crate) mod machine;
mod namespaces;
mod owners;
mod plane;
mod pods;
mod replicaset;
mod statefulset;
mod volumes;
mod wiring;

pub use plane::Settings;

use kube::Client;
use tokio_util::sync::CancellationToken;

/// Runs every controller until `shutdown`. The client should be in-process, as `system:kube-controller-manager` in
/// `system:masters`.
pub async fn run(client: Client, shutdown: CancellationToken) {
    run_with(client, Settings::default(), shutdown).await;
}

/// The same with settings.
pub async fn run_with(client: Client, settings: Settings, shutdown: CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = wiring::run_all(client, settings) => {}
    }
}
