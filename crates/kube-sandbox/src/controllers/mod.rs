//! The controllers of a control plane, as far as operators and kubectl need them.
//!
//! Each is a pure plan (objects in, steps and status out; tested by tables) and a thin loop around it. All share one
//! watch per resource and sleep until something changes.

mod accounts;
mod deployment;
mod disruption;
mod endpoints;
mod event_ttl;
mod garbage;
mod hash;
mod namespaces;
mod nodes;
mod owners;
mod plane;
mod pods;
mod replicaset;
pub(crate) mod runtime;
mod statefulset;
mod volumes;
mod wiring;

pub use plane::Settings;

use kube::Client;
use tokio_util::sync::CancellationToken;

/// Runs every controller until `shutdown`. The client should be in-process, as `system:kube-controller-manager` in
/// `system:masters`. Volumes live in a folder for temporary files that goes with the controllers.
pub async fn run(client: Client, shutdown: CancellationToken) {
    let folder = match tempfile::Builder::new().prefix("kube-sandbox-volumes-").tempdir() {
        Ok(folder) => folder,
        Err(error) => {
            tracing::error!(%error, "no folder for volumes could be made; the controllers do not run");
            return;
        }
    };
    let volumes = folder.path().to_owned();
    run_with(client, Settings { volumes }, shutdown).await;
}

/// The same with settings.
pub async fn run_with(client: Client, settings: Settings, shutdown: CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = wiring::run_all(client, settings) => {}
    }
}
