//! One `RedkeyCluster` on the stage: its object, its rows, its servers and their keys.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_api::redkey::status::RedkeyClusterStatus;
use candor_api::{Condition, RedkeyCluster};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use valkey_admin::{Slot, SlotSet};
use valkey_sim::node::Node;

use super::Stage;

/// The name of the cluster.
pub const NAME: &str = "cache";
/// Longer than any operation takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
/// Keys of each primary.
const KEYS: usize = 40;

/// The cluster.
#[derive(Clone, Copy)]
pub struct Redkey<'a>(pub &'a Stage);

impl Redkey<'_> {
    pub async fn create(self, spec: Value) {
        let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
            "metadata": {"name": NAME}, "spec": spec});
        let cluster: RedkeyCluster = serde_json::from_value(cluster).unwrap();
        let api = self.0.redkey_clusters();
        api.create(&PostParams::default(), &cluster).await.unwrap();
    }

    pub async fn change(self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let api = self.0.redkey_clusters();
        api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn annotate(self, name: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(name): value}}}));
        let api = self.0.redkey_clusters();
        api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
    }

    pub async fn status(self) -> RedkeyClusterStatus {
        let cluster = self.0.redkey_clusters().get(NAME).await.unwrap();
        cluster.status.unwrap_or_default()
    }

    /// Whether it is Ready in its newest generation.
    pub async fn is_ready(self) -> bool {
        let cluster = self.0.redkey_clusters().get(NAME).await.unwrap();
        let status = cluster.status.clone().unwrap_or_default();
        status.status == "Ready" && status.observed_generation == cluster.metadata.generation
    }

    pub async fn ready(self) {
        self.until("Ready", async || self.is_ready().await).await;
    }

    /// Waits with a deadline.
    pub async fn until(self, what: &str, so: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !so().await {
            if begun.elapsed() > PATIENCE {
                let status = serde_json::to_string_pretty(&self.status().await).unwrap();
                panic!("not {what}: {status}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until a row is shown.
    pub async fn row(self, desired: &str) {
        let shown = async || row(&self.status().await) == desired;
        self.until(desired, shown).await;
    }

    /// The addresses of the servers, by their pods' ordinals.
    pub async fn servers(self) -> BTreeMap<u32, IpAddr> {
        let ordinal = |pod: &Pod| pod.name_any().rsplit_once('-')?.1.parse().ok();
        let pods = self.pods().await;
        let found = pods
            .iter()
            .filter_map(|pod| Some((ordinal(pod)?, self.0.pods.address("default", &pod.name_any())?)));
        found.collect()
    }

    /// The servers' pods.
    pub async fn pods(self) -> Vec<Pod> {
        let api: Api<Pod> = Api::namespaced(self.0.client(), "default");
        let labels = format!("redkey-cluster-name={NAME},redis.redkeycluster.operator/component=redis");
        api.list(&ListParams::default().labels(&labels)).await.unwrap().items
    }

    /// Robin's pod.
    pub async fn robin(self) -> Option<String> {
        self.robin_pod().await.map(|pod| pod.name_any())
    }

    pub async fn robin_pod(self) -> Option<Pod> {
        let api: Api<Pod> = Api::namespaced(self.0.client(), "default");
        let labels = format!("redkey-cluster-name={NAME},redis.redkeycluster.operator/component=robin");
        let pods = api.list(&ListParams::default().labels(&labels)).await.unwrap();
        pods.items.into_iter().next()
    }

    pub async fn condition(self, type_: &str) -> Option<Condition> {
        let conditions = self.status().await.conditions;
        conditions.into_iter().find(|one| one.type_ == type_)
    }

    /// Whether a condition has this status.
    pub async fn says(self, type_: &str, status: &str) -> bool {
        let condition = self.condition(type_).await;
        condition.is_some_and(|one| one.status == status)
    }

    /// Writes keys to slots all over the map, and waits until all replicas have them. Returns how many.
    pub async fn write_keys(self) -> u64 {
        for ip in self.servers().await.into_values() {
            let slots: Vec<Slot> = self.0.world.look(ip, owned).unwrap().iter().collect();
            let every = (slots.len() / KEYS).max(1);
            for slot in slots.into_iter().step_by(every) {
                assert!(self.0.world.write(ip, slot, 1));
            }
        }
        let keys = self.keys();
        let copied = async || {
            let world = &self.0.world;
            let copy = |ip| world.look(ip, |node| (node.map.primary, node.offset, node.map.id));
            let all: Vec<_> = world.members().into_iter().filter_map(copy).collect();
            let offset = |id| all.iter().find(|one| one.2 == id).map(|one| one.1);
            all.iter()
                .all(|one| one.0.is_none_or(|primary| offset(primary) == Some(one.1)))
        };
        self.until("copied to replicas", copied).await;
        keys
    }

    /// The keys of all slots, each at its owner.
    pub fn keys(self) -> u64 {
        let of = |ip| {
            self.0.world.look(ip, |node| {
                let owner = node.map.primary.is_none();
                if owner { node.total() } else { 0 }
            })
        };
        self.0.world.members().into_iter().filter_map(of).sum()
    }

    /// What each primary owns.
    pub fn owners(self) -> Vec<SlotSet> {
        let of = |ip| self.0.world.look(ip, owned);
        let all = self.0.world.members().into_iter().filter_map(of);
        all.filter(|slots| !slots.is_empty()).collect()
    }

    /// The messages of events with a reason.
    pub async fn events(self, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::default_namespaced(self.0.client());
        let all = api.list(&ListParams::default()).await.unwrap().items.into_iter();
        let ours = all.filter(|event| event.reason.as_deref() == Some(reason));
        ours.filter_map(|event| event.message).collect()
    }
}

/// What a server owns as a primary.
fn owned(node: &Node) -> SlotSet {
    if node.map.primary.is_none() {
        node.map.slots.clone()
    } else {
        SlotSet::new()
    }
}

/// Status, substatus and partition, without empty cells.
pub fn row(status: &RedkeyClusterStatus) -> String {
    let cells = [
        &status.status,
        &status.substatus.status,
        &status.substatus.upgrading_partition,
    ];
    let cells: Vec<&str> = cells
        .into_iter()
        .map(String::as_str)
        .filter(|cell| !cell.is_empty())
        .collect();
    cells.join("/")
}

/// What a watch has shown since it began.
pub struct Rows {
    statuses: Arc<Mutex<Vec<RedkeyClusterStatus>>>,
    task: JoinHandle<()>,
}

impl Rows {
    pub fn record(stage: &Stage) -> Self {
        let statuses: Arc<Mutex<Vec<RedkeyClusterStatus>>> = Arc::default();
        let observation = statuses.clone();
        let mut events = watcher(stage.redkey_clusters(), Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(cluster) = event else { continue };
                let mut statuses = observation.lock().unwrap_or_else(PoisonError::into_inner);
                statuses.push(cluster.status.unwrap_or_default());
            }
        });
        Self { statuses, task }
    }

    /// Every status.
    pub fn statuses(&self) -> Vec<RedkeyClusterStatus> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The rows, repeats collapsed.
    pub fn shown(&self) -> Vec<String> {
        let mut rows: Vec<String> = self.statuses().iter().map(row).collect();
        rows.dedup();
        rows
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        self.task.abort();
    }
}
