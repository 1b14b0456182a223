//! The scheduler: finds a node for every pod that has none, or reports why it cannot, worded as the real scheduler does.
//!
//! | what | where |
//! |---|---|
//! | the decision: filters in order, then scores | `decide` |
//! | the cluster a decision sees | `cluster` |
//! | requests, allocatable | `resources`, `quantity` |
//! | `nodeSelector` and node affinity | `selectors` |
//! | taints and tolerations | `taints` |
//! | affinity between pods | `affinity` |
//! | topology spread | `spread` |
//! | claims and where their volumes are | `volumes` |
//! | the messages | `reasons` |
//! | the queue of waiting pods | `queue` |
//! | caches, bindings, events | `live` |

mod affinity;
mod cluster;
mod decide;
mod live;
mod queue;
mod reasons;
mod resources;
mod selectors;
mod spread;
pub(crate) mod taints;
pub(crate) mod volumes;

use kube::Client;
use tokio_util::sync::CancellationToken;

/// Schedules until `shutdown`. The client should be in-process, as `system:kube-scheduler`.
pub async fn run(client: Client, shutdown: CancellationToken) {
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = live::run(client) => {}
    }
}
