//! The scheduler: finds a node for every pod that has none, or says why it cannot.

use kube::Client;
use tokio_util::sync::CancellationToken;

/// Schedules until `shutdown`.
pub async fn run(_client: Client, shutdown: CancellationToken) {
    shutdown.cancelled().await;
}
