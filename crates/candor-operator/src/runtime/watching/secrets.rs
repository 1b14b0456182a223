//! The watches of Secrets: a Secret concerns every cluster that refers to it.

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Config;
use tokio::sync::mpsc::UnboundedSender;

use super::Watching;
use super::follower::{Follower, take, warn};
use crate::objects::labels;
use crate::runtime::cache::{ClusterKey, ClusterKind};
use crate::runtime::caches::Caches;
use crate::runtime::guarded::Guarded;

impl Watching {
    /// A Secret with a cluster's label concerns that cluster, and every other one that refers to it.
    pub(super) fn secrets(&mut self, caches: &Caches, ours: &Config) {
        for (source, api) in self.apis::<Guarded<Secret>>() {
            caches.secrets.expect(&source);
            let (caches, changed) = (caches.clone(), self.changed.clone());
            let follower = Follower {
                cache: caches.secrets.clone(),
                source,
                about: ClusterKey::by_label,
                deleted: None,
                changed: self.changed.clone(),
                metrics: self.metrics.clone(),
            };
            let events = self.events(api, ours.clone());
            self.tasks.spawn(async move {
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    for secret in follower.follow(event) {
                        concern_referring(&caches, &secret, &changed);
                    }
                }
            });
        }
    }

    /// A user's Secret concerns every cluster that refers to it.
    pub(super) fn foreign_secrets(&mut self, caches: &Caches) {
        for (source, api) in self.apis::<Guarded<PartialObjectMeta<Secret>>>() {
            caches.foreign_secrets.expect(&source);
            let (caches, changed, metrics) = (caches.clone(), self.changed.clone(), self.metrics.clone());
            // The operator's own Secrets are watched with their content.
            let others = Config::default().labels(&format!("!{}", labels::CLUSTER));
            let events = self.events(api, others);
            self.tasks.spawn(async move {
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    let secrets = match event {
                        Ok(event) => take(&caches.foreign_secrets, &source, event, &metrics),
                        Err(error) => {
                            warn::<Secret>(&error);
                            continue;
                        }
                    };
                    for secret in secrets {
                        concern_referring(&caches, &secret, &changed);
                    }
                }
            });
        }
    }
}

/// Enqueues every cluster that refers to a Secret.
fn concern_referring(caches: &Caches, secret: &ObjectMeta, changed: &UnboundedSender<ClusterKey>) {
    let clusters = caches.clusters.list(&ClusterKey {
        kind: ClusterKind::Valkey,
        namespace: secret.namespace.clone().unwrap_or_default(),
        name: String::new(),
    });
    let name = secret.name.as_deref().unwrap_or_default();
    for cluster in clusters
        .iter()
        .filter(|cluster| crate::credentials::secrets::refers(cluster, name))
    {
        let _ = changed.send(ClusterKey::of(cluster));
    }
    for cluster in caches.redkeys.list(&ClusterKey {
        namespace: secret.namespace.clone().unwrap_or_default(),
        ..ClusterKey::default()
    }) {
        let auth = cluster.spec.auth.as_ref().and_then(|auth| auth.secret.as_deref());
        if auth == Some(name) {
            let _ = changed.send(ClusterKey {
                kind: ClusterKind::Redkey,
                namespace: cluster.namespace().unwrap_or_default(),
                name: cluster.name_any(),
            });
        }
    }
}
