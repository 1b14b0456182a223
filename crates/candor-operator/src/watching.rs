//! The watches: every kind that matters into its cache, every change to the cluster it is about.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use candor_api::{ValkeyCluster, ValkeyNode};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
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

use crate::cache::{Cache, ClusterKey, Source};
use crate::objects::labels;
use crate::settings::Settings;

/// Everything the operator knows of the API server.
#[derive(Clone)]
pub struct Caches {
    /// The clusters, our own status writes included.
    pub clusters: Cache<ValkeyCluster>,
    /// The windows on members.
    pub nodes: Cache<ValkeyNode>,
    /// Workloads without volumes.
    pub deployments: Cache<Deployment>,
    /// Workloads with volumes.
    pub stateful_sets: Cache<StatefulSet>,
    /// Members' pods.
    pub pods: Cache<Pod>,
    /// Pods that are tried before a roll.
    pub trials: Cache<Pod>,
    /// Members' volumes.
    pub claims: Cache<PersistentVolumeClaim>,
    /// Ours.
    pub services: Cache<Service>,
    /// Ours.
    pub configs: Cache<ConfigMap>,
    /// Ours: passwords and ACL files.
    pub secrets: Cache<Secret>,
    /// Ours.
    pub budgets: Cache<PodDisruptionBudget>,
    /// Everybody's Secrets, without what is in them: a change is heard of, the content is read when it is needed.
    pub foreign_secrets: Cache<PartialObjectMeta<Secret>>,
    /// Machines, to know whether what they say of their pods can be believed.
    pub machines: Cache<Node>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            clusters: Cache::of_namespaces(),
            nodes: Cache::of_clusters(),
            deployments: Cache::of_clusters().packed(),
            stateful_sets: Cache::of_clusters().packed(),
            pods: Cache::of_clusters().packed(),
            trials: Cache::of_trials(),
            claims: Cache::of_clusters(),
            services: Cache::of_clusters(),
            configs: Cache::of_clusters(),
            secrets: Cache::of_clusters(),
            budgets: Cache::of_clusters(),
            foreign_secrets: Cache::of_namespaces(),
            machines: Cache::of_namespaces(),
        }
    }
}

impl Caches {
    /// Waits until all that a reconcile needs has been listed once. Machines are not waited for: an operator that may
    /// only see some namespaces never sees them.
    pub async fn ready(&self) {
        self.clusters.ready().await;
        self.nodes.ready().await;
        self.deployments.ready().await;
        self.stateful_sets.ready().await;
        self.pods.ready().await;
        self.trials.ready().await;
        self.claims.ready().await;
        self.services.ready().await;
        self.configs.ready().await;
        self.secrets.ready().await;
        self.budgets.ready().await;
        self.foreign_secrets.ready().await;
    }

    /// What has not been listed yet.
    pub fn missing(&self) -> Vec<&'static str> {
        [
            ("valkeyclusters", self.clusters.is_ready()),
            ("valkeynodes", self.nodes.is_ready()),
            ("deployments", self.deployments.is_ready()),
            ("statefulsets", self.stateful_sets.is_ready()),
            ("pods", self.pods.is_ready() && self.trials.is_ready()),
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

/// Runs the watches; a change is told by the key of its cluster.
pub struct Watching {
    client: Client,
    namespaces: Vec<String>,
    relist: Duration,
    changed: UnboundedSender<ClusterKey>,
    tasks: JoinSet<()>,
}

impl Watching {
    /// Starts a watch per kind and namespace.
    pub fn start(
        client: Client,
        settings: &Settings,
        caches: &Caches,
        changed: UnboundedSender<ClusterKey>,
    ) -> JoinSet<()> {
        let mut watching = Self {
            client,
            namespaces: settings.namespaces.clone(),
            relist: settings.relist,
            changed,
            tasks: JoinSet::new(),
        };
        let ours = Config::default().labels(labels::CLUSTER);
        watching.kind(&caches.clusters, &Config::default(), |cluster| {
            vec![ClusterKey::of(cluster)]
        });
        watching.kind(&caches.nodes, &ours, of_label);
        watching.kind(&caches.deployments, &ours, of_label);
        watching.kind(&caches.stateful_sets, &ours, of_label);
        watching.kind(&caches.pods, &ours, of_label);
        let tried = Config::default().labels(labels::TRIAL_OF);
        watching.kind(&caches.trials, &tried, |pod| {
            ClusterKey::of_trial(pod).into_iter().collect()
        });
        watching.kind(&caches.claims, &ours, of_label);
        watching.kind(&caches.services, &ours, of_label);
        watching.kind(&caches.configs, &ours, of_label);
        watching.kind(&caches.secrets, &ours, of_label);
        watching.kind(&caches.budgets, &ours, of_label);
        watching.foreign_secrets(caches);
        watching.machines(caches);
        watching.tasks
    }

    fn apis<K>(&self) -> Vec<(Source, Api<K>)>
    where
        K: Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        if self.namespaces.is_empty() {
            return vec![(None, Api::all(self.client.clone()))];
        }
        let named = |namespace: &String| (Some(namespace.clone()), Api::namespaced(self.client.clone(), namespace));
        self.namespaces.iter().map(named).collect()
    }

    /// What a watch tells, for ever. Kinds take turns at being listed anew: all of them at once would need twice the
    /// room.
    fn events<K>(&self, api: Api<K>, config: Config) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + use<K>
    where
        K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let turn = u32::try_from(self.tasks.len()).unwrap_or(u32::MAX);
        let relist = self.relist + self.relist / 50 * turn;
        let lives = stream::repeat_with(move || {
            let events = watcher::watcher(api.clone(), config.clone()).backoff(Breath::default());
            events.take_until(sleep(relist))
        });
        lives.flatten()
    }

    fn kind<K>(&mut self, cache: &Cache<K>, config: &Config, about: fn(&K) -> Vec<ClusterKey>)
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
        for (source, api) in self.apis::<K>() {
            cache.expect(&source);
            let (cache, changed) = (cache.clone(), self.changed.clone());
            let events = self.events(api, config.clone());
            self.tasks.spawn(async move {
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    follow(&cache, &source, event, about, &changed);
                }
            });
        }
    }

    /// A user's Secret concerns every cluster that refers to it.
    fn foreign_secrets(&mut self, caches: &Caches) {
        for (source, api) in self.apis::<PartialObjectMeta<Secret>>() {
            caches.foreign_secrets.expect(&source);
            let (caches, changed) = (caches.clone(), self.changed.clone());
            // Ours are watched with their content.
            let others = Config::default().labels(&format!("!{}", labels::CLUSTER));
            let events = self.events(api, others);
            self.tasks.spawn(async move {
                let mut events = std::pin::pin!(events);
                while let Some(event) = events.next().await {
                    let secrets = match event {
                        Ok(event) => caches.foreign_secrets.take(&source, event),
                        Err(error) => {
                            warn::<Secret>(&error);
                            continue;
                        }
                    };
                    for secret in secrets {
                        let namespace = secret.namespace().unwrap_or_default();
                        let clusters = caches.clusters.list(&ClusterKey {
                            namespace,
                            name: String::new(),
                        });
                        let name = secret.name_any();
                        let concerned = clusters.iter().filter(|cluster| crate::secrets::refers(cluster, &name));
                        for cluster in concerned {
                            let _ = changed.send(ClusterKey::of(cluster));
                        }
                    }
                }
            });
        }
    }

    fn machines(&mut self, caches: &Caches) {
        if !self.namespaces.is_empty() {
            return;
        }
        let (cache, pods, changed) = (caches.machines.clone(), caches.pods.clone(), self.changed.clone());
        let events = self
            .events(Api::<Node>::all(self.client.clone()), Config::default())
            // Of a machine only whether it is closed, its taints and its conditions matter; images and the like take most of the room.
            .modify(|node| {
                if let Some(status) = &mut node.status {
                    status.images = None;
                }
            });
        self.tasks.spawn(async move {
            let mut events = std::pin::pin!(events);
            let mut closed = BTreeSet::new();
            while let Some(event) = events.next().await {
                let machines = match event {
                    Ok(event) => cache.take(&None, event),
                    Err(error) => {
                        warn::<Node>(&error);
                        continue;
                    }
                };
                for machine in machines {
                    let name = machine.name_any();
                    let now = is_closed(&machine);
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

/// Whether a machine takes no new pods: it is being drained, or will be.
pub fn is_closed(machine: &Node) -> bool {
    let spec = machine.spec.as_ref();
    spec.and_then(|spec| spec.unschedulable) == Some(true)
}

/// Every cluster with a member on a machine is looked at.
fn concern(pods: &Cache<Pod>, machine: &str, changed: &UnboundedSender<ClusterKey>) {
    let here = |pod: &Arc<Pod>| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(machine);
    for cluster in pods.clusters() {
        if pods.list(&cluster).iter().any(here) {
            let _ = changed.send(cluster);
        }
    }
}

/// How long a watch that failed waits: hardly at all the first time, because what it would have told is missed
/// meanwhile; longer each time while it keeps failing. A beginning alone is no success.
#[derive(Debug, Default)]
struct Breath {
    last: Option<(Instant, Duration)>,
}

/// The first wait.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);
/// A watch that is back within this time has cost nothing.
const TROUBLE: Duration = Duration::from_millis(500);
/// A watch that held for so long has recovered.
const HELD: Duration = Duration::from_secs(5);

impl Breath {
    fn after_failure(&mut self, now: Instant) -> Duration {
        let failing = self.last.filter(|(at, wait)| now < *at + *wait + HELD);
        let wait = failing.map_or(FIRST, |(_, wait)| (wait * 2).min(LONGEST));
        self.last = Some((now, wait));
        wait
    }
}

impl Iterator for Breath {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.after_failure(Instant::now()))
    }
}

impl Backoff for Breath {
    fn reset(&mut self) {}
}

fn of_label<K: ResourceExt>(object: &K) -> Vec<ClusterKey> {
    ClusterKey::by_label(object).into_iter().collect()
}

fn follow<K>(
    cache: &Cache<K>,
    source: &Source,
    event: watcher::Result<watcher::Event<K>>,
    about: fn(&K) -> Vec<ClusterKey>,
    changed: &UnboundedSender<ClusterKey>,
) where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    match event {
        Ok(event) => {
            for object in cache.take(source, event) {
                for key in about(&object) {
                    // The receiver is gone only when the operator ends.
                    let _ = changed.send(key);
                }
            }
        }
        Err(error) => {
            warn::<K>(&error);
            let new = cache.trouble().is_none();
            cache.fail(error.to_string());
            if new {
                tokio::spawn(tell_of_trouble(cache.clone(), changed.clone()));
            }
        }
    }
}

/// A watch that fails and is back at once is nobody's concern. Of one that is not, every cluster is told: nothing else
/// would have it looked at for minutes.
async fn tell_of_trouble<K>(cache: Cache<K>, changed: UnboundedSender<ClusterKey>)
where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Clone,
{
    sleep(TROUBLE).await;
    if cache.trouble().is_some() {
        for key in cache.clusters() {
            let _ = changed.send(key);
        }
    }
}

fn warn<K: Resource<DynamicType = ()>>(error: &watcher::Error) {
    tracing::warn!(kind = %K::kind(&()), %error, "watching failed; trying again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_fails_once_is_back_at_once_and_one_that_keeps_failing_waits_longer() {
        let mut breath = Breath::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..12 {
            let wait = breath.after_failure(now);
            breath.reset();
            now += wait;
            waits.push(wait);
        }
        assert_eq!(waits[..3], [50, 100, 200].map(Duration::from_millis));
        assert_eq!(waits[11], LONGEST);
        assert_eq!(breath.after_failure(now + HELD), FIRST);
    }
}
