//! Change notifications for commands that show a live snapshot.

use futures::StreamExt;
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::mpsc;

use super::connect::Connected;

/// Where to watch for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In the namespace of the connection.
    Namespace,
    /// In every namespace.
    Everywhere,
}

/// Notifies `changed` whenever an object of a resource changes. A watch that breaks is restarted. Objects are not
/// decoded, so that one that cannot be decoded does not break the watch.
pub async fn listen(
    at: Connected,
    scope: Scope,
    resource: ApiResource,
    which: watcher::Config,
    changed: mpsc::Sender<()>,
) {
    let api: Api<DynamicObject> = match scope {
        Scope::Namespace => Api::namespaced_with(at.client, &at.namespace, &resource),
        Scope::Everywhere => Api::all_with(at.client, &resource),
    };
    let mut changes = std::pin::pin!(watcher(api, which).default_backoff());
    while let Some(change) = changes.next().await {
        // A full channel already holds a notification.
        if change.is_ok() && matches!(changed.try_send(()), Err(mpsc::error::TrySendError::Closed(()))) {
            return;
        }
    }
}
