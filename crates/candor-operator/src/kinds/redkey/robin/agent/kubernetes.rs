//! What Robin reads from Kubernetes: the pods of the servers by a watch, its `RedkeyCluster` by GET.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use candor_api::RedkeyCluster;
use candor_api::redkey::{CLUSTER_LABEL, COMPONENT_LABEL, REDIS};
use futures::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use tokio::sync::{Mutex, Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::super::backoff::Backoff;
use crate::kinds::redkey::objects::names;
use crate::monitor::ClusterKey;

/// The pods of the servers, by ordinal.
pub(super) type Pods = BTreeMap<u32, Arc<Pod>>;

/// Deadline for reading the cluster.
const READ: Duration = Duration::from_secs(5);

/// Why the cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    /// The API server rejected the request, or could not be reached.
    #[error("{0}")]
    Failed(#[from] kube::Error),
    /// The API server did not respond.
    #[error("the API server did not respond within {} s", READ.as_secs())]
    Timeout(#[from] tokio::time::error::Elapsed),
}

/// The pods and the cluster as last read. Clones are handles.
#[derive(Clone)]
pub(super) struct Kubernetes {
    key: ClusterKey,
    pods: Api<Pod>,
    clusters: Api<RedkeyCluster>,
    known: Arc<Known>,
}

struct Known {
    /// None until they were listed once.
    pods: watch::Sender<Option<Arc<Pods>>>,
    /// None until it was read once, and when it does not exist.
    cluster: watch::Sender<Option<Arc<RedkeyCluster>>>,
    read_now: Notify,
    /// Reads do not overlap, so that an older one never replaces a newer one.
    turn: Mutex<()>,
}

impl Kubernetes {
    pub(super) fn new(client: Client, key: ClusterKey) -> Self {
        Self {
            pods: Api::namespaced(client.clone(), &key.namespace),
            clusters: Api::namespaced(client, &key.namespace),
            key,
            known: Arc::new(Known {
                pods: watch::Sender::new(None),
                cluster: watch::Sender::new(None),
                read_now: Notify::new(),
                turn: Mutex::new(()),
            }),
        }
    }

    /// The pods. What is known already counts as a change.
    pub(super) fn pods(&self) -> watch::Receiver<Option<Arc<Pods>>> {
        let mut pods = self.known.pods.subscribe();
        pods.mark_changed();
        pods
    }

    pub(super) fn cluster(&self) -> watch::Receiver<Option<Arc<RedkeyCluster>>> {
        self.known.cluster.subscribe()
    }

    /// Reads the cluster soon.
    pub(super) fn read_cluster_now(&self) {
        self.known.read_now.notify_one();
    }

    /// Waits until the cluster should be read at once.
    pub(super) async fn read_requested(&self) {
        self.known.read_now.notified().await;
    }

    /// Reads the cluster, and returns whether it has changed. After an error the last one stays known.
    pub(super) async fn read_cluster(&self) -> Result<bool, ReadError> {
        let _turn = self.known.turn.lock().await;
        let read = timeout(READ, self.clusters.get_opt(&self.key.name))
            .await??
            .map(Arc::new);
        let version = |cluster: &Option<Arc<RedkeyCluster>>| {
            let cluster = cluster.as_ref()?;
            Some((cluster.uid(), cluster.resource_version()))
        };
        Ok(self.known.cluster.send_if_modified(|held| {
            let changed = version(held) != version(&read);
            if changed {
                *held = read;
            }
            changed
        }))
    }

    /// Watches the pods. Returns never.
    pub(super) async fn watch_pods(&self) {
        let config = watcher::Config::default().labels(&format!("{CLUSTER_LABEL}={}", self.key.name));
        let events = watcher::watcher(self.pods.clone(), config);
        pin_mut!(events);
        let mut backoff = Backoff::default();
        let mut begun = Instant::now();
        let mut listing = Pods::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.apply(event, &mut listing),
                Err(error) => {
                    tracing::warn!(%error, "watching pods failed; trying again");
                    sleep(backoff.next(Instant::now(), begun.elapsed())).await;
                    begun = Instant::now();
                }
            }
        }
    }

    fn apply(&self, event: Event<Pod>, listing: &mut Pods) {
        match event {
            Event::Init => listing.clear(),
            Event::InitApply(pod) => {
                if let Some((ordinal, pod)) = self.server(pod) {
                    listing.insert(ordinal, pod);
                }
            }
            Event::InitDone => {
                self.known.pods.send_replace(Some(Arc::new(std::mem::take(listing))));
            }
            Event::Apply(pod) => {
                let name = pod.name_any();
                let server = self.server(pod);
                self.change(&name, server);
            }
            Event::Delete(pod) => self.change(&pod.name_any(), None),
        }
    }

    fn change(&self, name: &str, server: Option<(u32, Arc<Pod>)>) {
        let Some(ordinal) = names::ordinal(&self.key.name, name) else {
            return;
        };
        self.known.pods.send_modify(|held| {
            let pods = Arc::make_mut(held.get_or_insert_default());
            match server {
                Some((_, pod)) => drop(pods.insert(ordinal, pod)),
                None => drop(pods.remove(&ordinal)),
            }
        });
    }

    /// The ordinal of a server's pod. Labels alone do not make a pod a server: another controller's pod is none. A pod
    /// without a controller is one that its `StatefulSet` left behind and is about to adopt again.
    fn server(&self, mut pod: Pod) -> Option<(u32, Arc<Pod>)> {
        let ordinal = names::ordinal(&self.key.name, &pod.name_any())?;
        let mut owners = pod.owner_references().iter();
        let controller = owners.find(|owner| owner.controller == Some(true));
        // Older pods of the existing operator have another component label.
        let server = match controller {
            Some(owner) => owner.kind == "StatefulSet" && owner.name == self.key.name,
            None => pod.labels().get(COMPONENT_LABEL).is_some_and(|one| one == REDIS),
        };
        if !server {
            return None;
        }
        // Half of a pod's size, and never used.
        pod.metadata.managed_fields = None;
        Some((ordinal, Arc::new(pod)))
    }
}
