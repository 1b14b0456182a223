//! Events and conditions that were observed, collected over all scenes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use candor_api::ValkeyCluster;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::ListParams;
use kube::runtime::watcher;
use tokio::task::JoinHandle;

use crate::support::Stage;

/// Texts of events (`Warning PrimaryLost: …`) and of conditions (`Ready=False Reconciling: …`).
#[derive(Clone, Default)]
pub struct Collector(Arc<Mutex<(BTreeSet<String>, BTreeSet<String>)>>);

impl Collector {
    pub fn events(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    pub fn conditions(&self) -> BTreeSet<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// Adds the texts of `other` to this collection.
    pub fn join(&self, other: &Self) {
        let (events, conditions) = (other.events(), other.conditions());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.0.extend(events);
        all.1.extend(conditions);
    }

    /// Collects the stored events and checks their source.
    pub async fn read_events(&self, stage: &Stage) {
        let api: Api<Event> = Api::namespaced(stage.client(), "default");
        let ours = ListParams::default().fields("involvedObject.kind=ValkeyCluster");
        for event in api.list(&ours).await.unwrap() {
            let source = event.source.and_then(|source| source.component);
            assert_eq!(source.as_deref(), Some("valkeycluster-controller"));
            let (kind, reason) = (event.type_.unwrap(), event.reason.unwrap());
            let line = format!("{kind} {reason}: {}", event.message.unwrap());
            self.0.lock().unwrap_or_else(PoisonError::into_inner).0.insert(line);
        }
    }

    /// Collects every status that is written from now on.
    pub fn follow(&self, stage: &Stage) -> JoinHandle<()> {
        let (collected, api) = (self.clone(), stage.clusters("default"));
        tokio::spawn(async move {
            let mut changes = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
            while let Ok(Some(change)) = changes.try_next().await {
                if let watcher::Event::Apply(cluster) | watcher::Event::InitApply(cluster) = change {
                    let mut all = collected.0.lock().unwrap_or_else(PoisonError::into_inner);
                    all.1.extend(lines(&cluster));
                }
            }
        })
    }
}

/// The conditions of a cluster, one line each.
pub fn lines(cluster: &ValkeyCluster) -> Vec<String> {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    conditions
        .map(|one| format!("{}={} {}: {}", one.type_, one.status, one.reason, one.message))
        .collect()
}
