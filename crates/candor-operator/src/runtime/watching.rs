//! The watches: each watched kind feeds its cache, and each change enqueues the cluster that it concerns.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use candor_api::{RedkeyCluster, ValkeyCluster, ValkeyNode};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Config};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::objects::labels;
use crate::observe::pods::TerminatedPods;
use crate::runtime::cache::{Cache, ClusterKey, ClusterKind, Source};
use crate::runtime::guarded::{self, Guarded, Undecodable};
use crate::runtime::metrics::Metrics;
use crate::runtime::settings::Settings;

/// The caches of all watched kinds.
#[derive(Clone)]
pub struct Caches {
    /// The clusters, including the operator's own status writes.
    pub clusters: Cache<ValkeyCluster>,
    /// The other kind of clusters.
    pub redkeys: Cache<RedkeyCluster>,
    /// The `ValkeyNode` objects of members.
    pub valkey_nodes: Cache<ValkeyNode>,
    /// Workloads without volumes.
    pub deployments: Cache<Deployment>,
    /// Workloads with volumes.
    pub stateful_sets: Cache<StatefulSet>,
    /// Members' pods.
    pub pods: Cache<Pod>,
    /// Members' pods that terminated before they were deleted.
    pub terminated: TerminatedPods,
    /// Preflight pods.
    pub preflights: Cache<Pod>,
    /// Members' volume claims.
    pub claims: Cache<PersistentVolumeClaim>,
    /// Services of the clusters.
    pub services: Cache<Service>,
    /// The ConfigMap of each cluster.
    pub configs: Cache<ConfigMap>,
    /// The operator's own Secrets: passwords and ACL files.
    pub secrets: Cache<Secret>,
    /// The PodDisruptionBudget of each cluster.
    pub budgets: Cache<PodDisruptionBudget>,
    /// Metadata of all other Secrets: a change is noticed by the watch, and the content is read when it is needed.
    pub foreign_secrets: Cache<PartialObjectMeta<Secret>>,
    /// Service accounts of Robin.
    pub service_accounts: Cache<ServiceAccount>,
    /// The permissions of Robin.
    pub roles: Cache<Role>,
    /// Bindings of Robin's permissions.
    pub role_bindings: Cache<RoleBinding>,
    /// Nodes, to decide whether the reported status of their pods can be trusted.
    pub nodes: Cache<Node>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            clusters: Cache::of_namespaces(),
            redkeys: Cache::of_namespaces(),
            service_accounts: Cache::of_clusters(),
            roles: Cache::of_clusters(),
            role_bindings: Cache::of_clusters(),
            valkey_nodes: Cache::of_clusters(),
            deployments: Cache::of_clusters().packed(),
            stateful_sets: Cache::of_clusters().packed(),
            pods: Cache::of_clusters().packed(),
            terminated: TerminatedPods::default(),
            preflights: Cache::of_preflights(),
            claims: Cache::of_clusters(),
            services: Cache::of_clusters(),
            configs: Cache::of_clusters(),
            secrets: Cache::of_clusters(),
            budgets: Cache::of_clusters(),
            foreign_secrets: Cache::of_namespaces(),
            nodes: Cache::of_namespaces(),
        }
    }
}

impl Caches {
    /// Waits until everything that a reconcile needs has been listed once. Nodes are not included: an operator that is
    /// restricted to some namespaces may never list them.
    pub async fn ready(&self) {
        self.clusters.ready().await;
        self.valkey_nodes.ready().await;
        self.deployments.ready().await;
        self.stateful_sets.ready().await;
        self.pods.ready().await;
        self.preflights.ready().await;
        self.claims.ready().await;
        self.services.ready().await;
        self.configs.ready().await;
        self.secrets.ready().await;
        self.budgets.ready().await;
        self.foreign_secrets.ready().await;
    }

    /// Whether everything that a reconcile of a `RedkeyCluster` needs has been listed once.
    pub fn has_redkeys(&self) -> bool {
        let kind = ClusterKind::Redkey;
        self.redkeys.has_listed(ClusterKind::Valkey)
            && self.deployments.has_listed(kind)
            && self.stateful_sets.has_listed(kind)
            && self.pods.has_listed(kind)
            && self.preflights.has_listed(kind)
            && self.claims.has_listed(kind)
            && self.services.has_listed(kind)
            && self.configs.has_listed(kind)
            && self.secrets.has_listed(kind)
            && self.budgets.has_listed(kind)
            && self.service_accounts.has_listed(kind)
            && self.roles.has_listed(kind)
            && self.role_bindings.has_listed(kind)
    }

    /// The kinds that have not been listed yet.
    pub fn missing(&self) -> Vec<&'static str> {
        [
            ("valkeyclusters", self.clusters.is_ready()),
            ("valkeynodes", self.valkey_nodes.is_ready()),
            ("deployments", self.deployments.is_ready()),
            ("statefulsets", self.stateful_sets.is_ready()),
            ("pods", self.pods.is_ready() && self.preflights.is_ready()),
            ("persistentvolumeclaims", self.claims.is_ready()),
            ("services", self.services.is_ready()),
            ("configmaps", self.configs.is_ready()),
            ("secrets", self.secrets.is_ready() && self.foreign_secrets.is_ready()),
            ("poddisruptionbudgets", self.budgets.is_ready()),
        ]
        .into_iter()
        .filter(|(_, ready)| !ready)
        .map(|(kind, _)| kind)
        .collect()
    }
}

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

    fn kind<K>(&mut self, cache: &Cache<K>, config: &Config, about: fn(&ObjectMeta) -> Option<ClusterKey>)
    where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        self.kind_with(cache, config, about, None);
    }

    fn kind_with<K>(
        &mut self,
        cache: &Cache<K>,
        config: &Config,
        about: fn(&ObjectMeta) -> Option<ClusterKey>,
        deleted: Option<&OnDelete<K>>,
    ) where
        K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
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

    /// A Secret with a cluster's label concerns that cluster, and every other one that refers to it.
    fn secrets(&mut self, caches: &Caches, ours: &Config) {
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
    fn foreign_secrets(&mut self, caches: &Caches) {
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

    fn nodes(&mut self, caches: &Caches) {
        if !self.namespaces.is_empty() {
            return;
        }
        let (cache, pods, changed) = (caches.nodes.clone(), caches.pods.clone(), self.changed.clone());
        let metrics = self.metrics.clone();
        let events = self
            .events::<Node>(Api::all(self.client.clone()), Config::default())
            // Drop the image list, which takes most of a node's memory. Only `unschedulable`, the taints and the
            // conditions are used.
            .modify(|node| {
                if let Guarded::Decoded(node) = node
                    && let Some(status) = &mut node.status
                {
                    status.images = None;
                }
            });
        self.tasks.spawn(async move {
            let mut events = std::pin::pin!(events);
            let (mut closed, mut undecodable) = (BTreeSet::new(), BTreeSet::new());
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
                for node in nodes {
                    let name = node.name_any();
                    let now = is_cordoned(&node);
                    let news = if now {
                        closed.insert(name.clone())
                    } else {
                        closed.remove(&name)
                    };
                    if news {
                        concern(&pods, &name, &changed);
                    }
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

/// Enqueues every cluster with a member on a node.
fn concern(pods: &Cache<Pod>, node: &str, changed: &UnboundedSender<ClusterKey>) {
    let here = |pod: &Arc<Pod>| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
    for cluster in pods.clusters() {
        if pods.list(&cluster).iter().any(here) {
            let _ = changed.send(cluster);
        }
    }
}

/// The backoff of a failed watch. The first wait is very short, because events are missed meanwhile; it doubles while
/// the watch keeps failing. A successful start alone does not reset it.
#[derive(Debug, Default)]
struct WatchBackoff {
    last: Option<(Instant, Duration)>,
}

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// A watch that recovers within this time is not reported as failed.
const TROUBLE: Duration = Duration::from_millis(500);
/// A watch that ran for this long has recovered.
const HELD: Duration = Duration::from_secs(5);

impl WatchBackoff {
    fn after_failure(&mut self, now: Instant) -> Duration {
        let failing = self.last.filter(|(at, wait)| now < *at + *wait + HELD);
        let wait = failing.map_or(FIRST, |(_, wait)| (wait * 2).min(LONGEST));
        self.last = Some((now, wait));
        wait
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_failure(Instant::now()))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {}
}

/// Called with the last state of an object that was deleted.
type OnDelete<K> = Arc<dyn Fn(&K) + Send + Sync>;

/// Stores the events of one watch in its cache, and enqueues every change.
struct Follower<K> {
    cache: Cache<K>,
    source: Source,
    about: fn(&ObjectMeta) -> Option<ClusterKey>,
    deleted: Option<OnDelete<K>>,
    changed: UnboundedSender<ClusterKey>,
    metrics: Arc<Metrics>,
}

impl<K> Follower<K>
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    /// Processes an event; returns the metadata of the changed objects.
    fn follow(&self, event: watcher::Result<watcher::Event<Guarded<K>>>) -> Vec<ObjectMeta> {
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
                    tokio::spawn(tell_of_trouble(self.cache.clone(), kind, self.changed.clone()));
                }
                Vec::new()
            }
        }
    }
}

/// Stores an event in a cache; returns the metadata of the changed objects. An object that does not decode is skipped.
fn take<K>(cache: &Cache<K>, source: &Source, event: watcher::Event<Guarded<K>>, metrics: &Metrics) -> Vec<ObjectMeta>
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

fn skipped<K: Resource<DynamicType = ()>>(object: &Undecodable) {
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
async fn tell_of_trouble<K>(cache: Cache<K>, kind: ClusterKind, changed: UnboundedSender<ClusterKey>)
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

fn warn<K: Resource<DynamicType = ()>>(error: &watcher::Error) {
    tracing::warn!(kind = %K::kind(&()), %error, "watching failed; trying again");
}

#[cfg(test)]
mod node_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_once_is_back_at_once_and_one_that_keeps_failing_waits_longer() {
        let mut backoff = WatchBackoff::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = backoff.after_failure(now);
            backoff.reset();
            now += wait;
            waits.push(wait);
        }
        assert_eq!(waits[..3], [50, 100, 200].map(Duration::from_millis));
        assert_eq!(waits[11], LONGEST);
        assert_eq!(backoff.after_failure(now + HELD), FIRST);
    }
}
