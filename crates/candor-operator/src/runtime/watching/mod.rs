//! The watches: each watched kind feeds its cache, and each change enqueues the cluster that it concerns.

mod backoff;
mod follower;
mod nodes;
mod secrets;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Config};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::sleep;

use self::backoff::WatchBackoff;
use self::follower::{Follower, OnDelete};
use crate::act::apply::Object;
use crate::objects::labels;
use crate::runtime::cache::{Cache, ClusterKey, ClusterKind, Source};
use crate::runtime::caches::Caches;
use crate::runtime::guarded::Guarded;
use crate::runtime::metrics::Metrics;
use crate::runtime::settings::Settings;

pub use self::nodes::{is_cordoned, zone};

/// Runs the watches; a change enqueues the key of its cluster.
pub struct Watching {
    client: Client,
    namespaces: Vec<String>,
    relist: Duration,
    changed: UnboundedSender<ClusterKey>,
    metrics: Arc<Metrics>,
    tasks: JoinSet<()>,
    /// The kind of the clusters that the next watches are for.
    kind: ClusterKind,
    /// Watches begin when this is true.
    gate: tokio::sync::watch::Receiver<bool>,
}

/// How often the operator checks whether the CRD of `RedkeyCluster` is installed.
const INSTALLED: Duration = Duration::from_secs(5);

/// Opens the gate when the API server serves `RedkeyCluster`. Its CRD may be installed at any time.
async fn open_when_installed(client: Client, gate: tokio::sync::watch::Sender<bool>) {
    let version = format!("{}/v1", candor_api::redkey::GROUP);
    loop {
        if let Ok(list) = client.list_api_group_resources(&version).await
            && list.resources.iter().any(|one| one.name == "redkeyclusters")
        {
            gate.send_replace(true);
            // The receivers keep their gate.
            return std::future::pending().await;
        }
        sleep(INSTALLED).await;
    }
}

impl Watching {
    /// Starts a watch per kind and namespace.
    pub fn start(
        client: Client,
        settings: &Settings,
        caches: &Caches,
        changed: UnboundedSender<ClusterKey>,
        metrics: Arc<Metrics>,
    ) -> JoinSet<()> {
        let mut watching = Self {
            client,
            namespaces: settings.namespaces.clone(),
            relist: settings.relist,
            changed,
            metrics,
            tasks: JoinSet::new(),
            kind: ClusterKind::Valkey,
            gate: tokio::sync::watch::channel(true).1,
        };
        let ours = Config::default().labels(labels::CLUSTER);
        watching.kind(&caches.clusters, &Config::default(), |meta| {
            Some(ClusterKey {
                kind: ClusterKind::Valkey,
                namespace: meta.namespace.clone()?,
                name: meta.name.clone()?,
            })
        });
        watching.kind(&caches.valkey_nodes, &ours, ClusterKey::by_label);
        watching.kind(&caches.deployments, &ours, ClusterKey::by_label);
        watching.kind(&caches.stateful_sets, &ours, ClusterKey::by_label);
        let terminated = caches.terminated.clone();
        let deleted: OnDelete<Pod> = Arc::new(move |pod| terminated.deleted(pod));
        watching.kind_with(&caches.pods, &ours, ClusterKey::by_label, Some(&deleted));
        let tried = Config::default().labels(labels::PREFLIGHT_OF);
        watching.kind(&caches.preflights, &tried, ClusterKey::of_preflight);
        watching.kind(&caches.claims, &ours, ClusterKey::by_label);
        watching.kind(&caches.services, &ours, ClusterKey::by_label);
        watching.kind(&caches.configs, &ours, ClusterKey::by_label);
        watching.secrets(caches, &ours);
        watching.kind(&caches.budgets, &ours, ClusterKey::by_label);
        watching.foreign_secrets(caches);
        watching.nodes(caches);
        watching.redkeys(caches);
        watching.tasks
    }

    /// The watches for `RedkeyCluster`.
    fn redkeys(&mut self, caches: &Caches) {
        let (open, gate) = tokio::sync::watch::channel(false);
        self.gate = gate;
        self.tasks.spawn(open_when_installed(self.client.clone(), open));
        self.kind(&caches.redkeys, &Config::default(), |meta| {
            Some(ClusterKey {
                kind: ClusterKind::Redkey,
                namespace: meta.namespace.clone()?,
                name: meta.name.clone()?,
            })
        });
        self.kind = ClusterKind::Redkey;
        let ours = Config::default().labels(candor_api::redkey::CLUSTER_LABEL);
        let key = ClusterKey::by_redkey_label;
        self.kind(&caches.deployments, &ours, key);
        self.kind(&caches.stateful_sets, &ours, key);
        let terminated = caches.terminated.clone();
        let deleted: OnDelete<Pod> = Arc::new(move |pod| terminated.deleted(pod));
        self.kind_with(&caches.pods, &ours, key, Some(&deleted));
        let tried = Config::default().labels(labels::REDKEY_PREFLIGHT_OF);
        self.kind(&caches.preflights, &tried, ClusterKey::of_preflight);
        self.kind(&caches.claims, &ours, key);
        self.kind(&caches.services, &ours, key);
        self.kind(&caches.configs, &ours, key);
        self.kind(&caches.secrets, &ours, key);
        self.kind(&caches.budgets, &ours, key);
        self.kind(&caches.service_accounts, &ours, key);
        self.kind(&caches.roles, &ours, key);
        self.kind(&caches.role_bindings, &ours, key);
    }

    fn apis<K>(&self) -> Vec<(Source, Api<K>)>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        let source = |namespace: Option<String>| Source {
            namespace,
            kind: self.kind,
        };
        if self.namespaces.is_empty() {
            return vec![(source(None), Api::all(self.client.clone()))];
        }
        let named = |namespace: &String| {
            let api = Api::namespaced(self.client.clone(), namespace);
            (source(Some(namespace.clone())), api)
        };
        self.namespaces.iter().map(named).collect()
    }

    /// The endless event stream of a watch. Kinds are listed again at different times: listing all of them at once
    /// would need twice the memory.
    fn events<K>(
        &self,
        api: Api<Guarded<K>>,
        config: Config,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<Guarded<K>>>> + use<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let turn = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let relist = self.relist + self.relist / 50 * turn;
        let lives = stream::repeat_with(move || {
            let events = watcher::watcher(api.clone(), config.clone()).backoff(WatchBackoff::default());
            events.take_until(sleep(relist))
        });
        lives.flatten()
    }

    fn kind<K: Object>(&mut self, cache: &Cache<K>, config: &Config, about: fn(&ObjectMeta) -> Option<ClusterKey>) {
        self.kind_with(cache, config, about, None);
    }

    fn kind_with<K: Object>(
        &mut self,
        cache: &Cache<K>,
        config: &Config,
        about: fn(&ObjectMeta) -> Option<ClusterKey>,
        deleted: Option<&OnDelete<K>>,
    ) {
        for (source, api) in self.apis::<Guarded<K>>() {
            cache.expect(&source);
            let follower = Follower {
                cache: cache.clone(),
                source,
                about,
                deleted: deleted.cloned(),
                changed: self.changed.clone(),
                metrics: self.metrics.clone(),
            };
            let events = self.events(api, config.clone());
            let mut gate = self.gate.clone();
            self.tasks.spawn(async move {
                // The gate is closed only when the operator shuts down.
                let _ = gate.wait_for(|open| *open).await;
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    follower.follow(event);
                }
            });
        }
    }
}
