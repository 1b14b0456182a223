//! From the events of one watch to its cache and to the queue.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::sleep;

use crate::runtime::cache::{Cache, ClusterKey, ClusterKind, Source};
use crate::runtime::guarded::{self, Guarded, Undecodable};
use crate::runtime::metrics::Metrics;

/// A watch that recovers within this time is not reported as failed.
const TROUBLE: Duration = Duration::from_millis(500);

/// Called with the last state of an object that was deleted.
pub(super) type OnDelete<K> = Arc<dyn Fn(&K) + Send + Sync>;

/// Stores the events of one watch in its cache, and enqueues every change.
pub(super) struct Follower<K> {
    pub(super) cache: Cache<K>,
    pub(super) source: Source,
    pub(super) about: fn(&ObjectMeta) -> Option<ClusterKey>,
    pub(super) deleted: Option<OnDelete<K>>,
    pub(super) changed: UnboundedSender<ClusterKey>,
    pub(super) metrics: Arc<Metrics>,
}

impl<K> Follower<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    /// Processes an event; returns the metadata of the changed objects.
    pub(super) fn follow(&self, event: watcher::Result<watcher::Event<Guarded<K>>>) -> Vec<ObjectMeta> {
        match event {
            Ok(event) => {
                if let (Some(deleted), watcher::Event::Delete(Guarded::Decoded(object))) = (&self.deleted, &event) {
                    deleted(object);
                }
                let changes = take(&self.cache, &self.source, event, &self.metrics);
                for key in changes.iter().filter_map(self.about) {
                    // The receiver is dropped only when the operator shuts down.
                    let _ = self.changed.send(key);
                }
                changes
            }
            Err(error) => {
                warn::<K>(&error);
                let kind = self.source.kind;
                let new = self.cache.trouble(kind).is_none();
                self.cache.fail(kind, error.to_string());
                if new {
                    tokio::spawn(report_trouble(self.cache.clone(), kind, self.changed.clone()));
                }
                Vec::new()
            }
        }
    }
}

/// Stores an event in a cache; returns the metadata of the changed objects. An object that does not decode is skipped.
pub(super) fn take<K>(
    cache: &Cache<K>,
    source: &Source,
    event: watcher::Event<Guarded<K>>,
    metrics: &Metrics,
) -> Vec<ObjectMeta>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
{
    let before = cache.undecodable_count();
    let changes = match guarded::sort(event) {
        Ok(event) => {
            let changed = cache.take(source, event);
            changed.iter().map(|object| object.meta().clone()).collect()
        }
        Err((event, object)) => {
            let news = cache.skip(source, &event, &object);
            if news {
                skipped::<K>(&object);
            }
            news.then_some(*object.meta).into_iter().collect()
        }
    };
    metrics.undecodable(&K::kind(&()), before, cache.undecodable_count());
    changes
}

pub(super) fn skipped<K: Resource<DynamicType = ()>>(object: &Undecodable) {
    tracing::error!(
        kind = %K::kind(&()),
        namespace = object.meta.namespace,
        name = object.meta.name,
        error = object.error,
        "object cannot be decoded and is skipped until it changes; was it written by a newer version?"
    );
}

/// Reports a watch that keeps failing. A watch that recovers at once is ignored. Otherwise every cluster is enqueued:
/// nothing else would trigger a reconcile for minutes.
async fn report_trouble<K>(cache: Cache<K>, kind: ClusterKind, changed: UnboundedSender<ClusterKey>)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone,
{
    sleep(TROUBLE).await;
    if cache.trouble(kind).is_some() {
        for key in cache.clusters() {
            let _ = changed.send(key);
        }
    }
}

pub(super) fn warn<K: Resource<DynamicType = ()>>(error: &watcher::Error) {
    tracing::warn!(kind = %K::kind(&()), %error, "watching failed; trying again");
}
