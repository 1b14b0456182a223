//! The watch of Kubernetes nodes: a node that appears, disappears, is cordoned or uncordoned, or is in another zone
//! concerns every cluster with a member on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use super::Watching;
use super::follower::{skipped, warn};
use crate::runtime::cache::{Cache, ClusterKey, ClusterKind, Source};
use crate::runtime::caches::Caches;
use crate::runtime::guarded::{self, Guarded};
use crate::runtime::metrics::Metrics;

impl Watching {
    pub(super) fn nodes(&mut self, caches: &Caches) {
        if !self.namespaces.is_empty() {
            return;
        }
        let (cache, pods, changed) = (caches.nodes.clone(), caches.pods.clone(), self.changed.clone());
        let metrics = self.metrics.clone();
        let events = self
            .events::<Node>(Api::all(self.client.clone()), Config::default())
            // Drop the image list, which takes most of a node's memory. Only `unschedulable`, the zone, the taints and
            // the conditions are used.
            .modify(|node| {
                if let Guarded::Decoded(node) = node
                    && let Some(status) = &mut node.status
                {
                    status.images = None;
                }
            });
        self.tasks.spawn(async move {
            let mut events = std::pin::pin!(events);
            let (mut known, mut undecodable) = (BTreeMap::new(), BTreeSet::new());
            while let Some(event) = events.next().await {
                let nodes = match event {
                    Ok(event) => cache.take(&Source::default(), bare(event, &mut undecodable, &metrics)),
                    Err(error) => {
                        warn::<Node>(&error);
                        // The cached nodes may be outdated: nodes are unknown until they are listed again.
                        cache.fail(ClusterKind::Valkey, error.to_string());
                        continue;
                    }
                };
                let mut news: BTreeSet<String> = nodes.iter().map(|node| node.name_any()).collect();
                news.retain(|name| {
                    let now = cache.get_in("", name).map(|node| (is_cordoned(&node), zone(&node)));
                    let before = match &now {
                        Some(facts) => known.insert(name.clone(), facts.clone()),
                        None => known.remove(name),
                    };
                    before != now
                });
                if !news.is_empty() {
                    concern(&pods, &news, &changed);
                }
            }
        });
    }
}

/// Whether a node is cordoned: it accepts no new pods, because it is or will be drained.
pub fn is_cordoned(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    spec.and_then(|spec| spec.unschedulable) == Some(true)
}

/// The zone of a node; empty if it has none.
pub fn zone(node: &Node) -> String {
    node.labels()
        .get("topology.kubernetes.io/zone")
        .cloned()
        .unwrap_or_default()
}

/// Enqueues every cluster with a member on one of these nodes.
fn concern(pods: &Cache<Pod>, nodes: &BTreeSet<String>, changed: &UnboundedSender<ClusterKey>) {
    let here = |pod: &Arc<Pod>| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node.is_some_and(|node| nodes.contains(node))
    };
    for cluster in pods.clusters() {
        if pods.list(&cluster).iter().any(here) {
            let _ = changed.send(cluster);
        }
    }
}

/// A node that does not decode still exists: if it were missing, its pods would count as confirmed terminated. Nothing
/// else is known about it, so it is treated as not Ready.
fn bare(
    event: watcher::Event<Guarded<Node>>,
    undecodable: &mut BTreeSet<String>,
    metrics: &Metrics,
) -> watcher::Event<Node> {
    let before = undecodable.len();
    let event = match guarded::sort(event) {
        Ok(watcher::Event::Init) => {
            undecodable.clear();
            watcher::Event::Init
        }
        Ok(event) => {
            if let watcher::Event::InitApply(node) | watcher::Event::Apply(node) | watcher::Event::Delete(node) = &event
            {
                undecodable.remove(&node.name_any());
            }
            event
        }
        Err((event, object)) => {
            let name = object.meta.name.clone().unwrap_or_default();
            let deleted = matches!(event, watcher::Event::Delete(()));
            if deleted {
                undecodable.remove(&name);
            } else if undecodable.insert(name) {
                skipped::<Node>(&object);
            }
            let node = Node {
                metadata: *object.meta,
                ..Node::default()
            };
            match event {
                watcher::Event::InitApply(()) => watcher::Event::InitApply(node),
                watcher::Event::Delete(()) => watcher::Event::Delete(node),
                _ => watcher::Event::Apply(node),
            }
        }
    };
    metrics.undecodable("Node", before, undecodable.len());
    event
}

#[cfg(test)]
mod tests;
