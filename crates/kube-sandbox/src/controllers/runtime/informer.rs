//! One watch per resource, shared by all its followers.

use std::sync::Arc;

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube::runtime::{WatchStreamExt, watcher};

/// A follower of a resource: a cache of typed objects, or the garbage collector's graph.
pub trait Sink: Send + Sync {
    /// A fresh list starts; what it does not name is gone.
    fn list_begins(&self);
    /// An object of that list.
    fn listed(&self, object: &DynamicObject);
    /// The list is complete.
    fn list_ends(&self);
    /// Created or changed.
    fn applied(&self, object: &DynamicObject);
    /// Gone; the object as it was last.
    fn deleted(&self, object: &DynamicObject);
}

/// Watches a resource in all namespaces until dropped.
pub async fn follow(client: kube::Client, resource: ApiResource, sinks: Vec<Arc<dyn Sink>>) {
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let mut stream = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = stream.next().await {
        match event {
            Ok(watcher::Event::Init) => sinks.iter().for_each(|sink| sink.list_begins()),
            Ok(watcher::Event::InitApply(object)) => sinks.iter().for_each(|sink| sink.listed(&object)),
            Ok(watcher::Event::InitDone) => sinks.iter().for_each(|sink| sink.list_ends()),
            Ok(watcher::Event::Apply(object)) => sinks.iter().for_each(|sink| sink.applied(&object)),
            Ok(watcher::Event::Delete(object)) => sinks.iter().for_each(|sink| sink.deleted(&object)),
            Err(error) => tracing::debug!(resource = %resource.plural, %error, "watch interrupted, starting again"),
        }
    }
}
