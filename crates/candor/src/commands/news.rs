//! Change notifications for commands that show a live snapshot.

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc;

/// Notifies `bell` whenever an object of a kind changes, in one namespace or in all. A watch that breaks is restarted.
pub async fn listen<K>(client: Client, namespace: Option<String>, which: watcher::Config, bell: mpsc::Sender<()>)
where
    K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced(client, &namespace),
        None => Api::all(client),
    };
    let mut changes = std::pin::pin!(watcher(api, which).default_backoff());
    while let Some(change) = changes.next().await {
        // A full channel already holds a notification.
        if change.is_ok() && matches!(bell.try_send(()), Err(mpsc::error::TrySendError::Closed(()))) {
            return;
        }
    }
}
