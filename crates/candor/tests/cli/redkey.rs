//! A `RedkeyCluster` of real servers with its Robin: the rows that `kubectl get rkcl -w` shows, cell by cell, and what
//! Robin does alone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::real::Real;

/// Longer than any operation on a small cluster takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(180);
/// Keys that a slow operation must keep.
const KEYS: usize = 600;

/// A cluster, and the rows that a watch has shown of it.
struct Watched<'a> {
    real: &'a Real,
    rows: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Status, substatus and partition, without empty cells.
fn row(cluster: &RedkeyCluster) -> String {
    let status = cluster.status.clone().unwrap_or_default();
    let cells = [
        status.status,
        status.substatus.status,
        status.substatus.upgrading_partition,
    ];
    cells
        .into_iter()
        .filter(|cell| !cell.is_empty())
        .collect::<Vec<_>>()
        .join("/")
}

impl<'a> Watched<'a> {
    async fn create(real: &'a Real, spec: Value) -> Self {
        let api: Api<RedkeyCluster> = Api::default_namespaced(real.client());
        let rows: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = rows.clone();
        let mut events = watcher(api.clone(), Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(cluster) = event else { continue };
                let mut rows = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if rows.last() != Some(&row(&cluster)) {
                    rows.push(row(&cluster));
                }
            }
        });
        let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
            "metadata": {"name": "cache"}, "spec": spec});
        let cluster = serde_json::from_value(cluster).unwrap();
        api.create(&PostParams::default(), &cluster).await.unwrap();
        let watched = Self { real, rows, task };
        watched.ready().await;
        watched
    }

    fn api(&self) -> Api<RedkeyCluster> {
        Api::default_namespaced(self.real.client())
    }

    /// Waits until the cluster is Ready in its newest generation.
    async fn ready(&self) {
        self.until("Ready", |cluster| {
            let status = cluster.status.clone().unwrap_or_default();
            status.status == "Ready" && status.observed_generation == cluster.metadata.generation
        })
        .await;
    }

    async fn until(&self, what: &str, so: impl Fn(&RedkeyCluster) -> bool) {
        let begun = Instant::now();
        loop {
            let cluster = self.api().get("cache").await.unwrap();
            if so(&cluster) {
                return;
            }
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(begun.elapsed() < PATIENCE, "not {what} in {PATIENCE:?}: {status}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Changes the spec, waits for Ready, and returns the rows since, with the Ready before.
    async fn rows_of(&self, change: Value) -> Vec<String> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let patch = Patch::Merge(json!({"spec": change}));
        self.api()
            .patch("cache", &PatchParams::default(), &patch)
            .await
            .unwrap();
        self.ready().await;
        self.shown().await
    }

    /// The rows so far, once the watch has shown the last Ready.
    async fn shown(&self) -> Vec<String> {
        let begun = Instant::now();
        loop {
            let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if rows.last().is_some_and(|row| row == "Ready") || begun.elapsed() > PATIENCE {
                return rows;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn pods(&self, component: &str) -> Vec<Pod> {
        let api: Api<Pod> = Api::default_namespaced(self.real.client());
        let labels = format!("redkey-cluster-name=cache,redis.redkeycluster.operator/component={component}");
        let pods = api.list(&ListParams::default().labels(&labels)).await.unwrap();
        pods.items
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .collect()
    }

    async fn addresses(&self) -> Vec<String> {
        let pods = self.pods("redis").await;
        pods.iter()
            .filter_map(|pod| pod.status.as_ref()?.pod_ip.clone())
            .collect()
    }

    /// Writes keys, each to the server that takes it.
    async fn write_keys(&self) {
        let addresses = self.addresses().await;
        for number in 0..KEYS {
            let command = format!("SET key-{number} value");
            let taken = addresses.iter().any(|address| ask(address, &command) == "+OK");
            assert!(taken, "no server took key-{number}");
        }
    }

    /// How many of the keys the servers have.
    async fn keys(&self) -> usize {
        let addresses = self.addresses().await;
        let found = (0..KEYS).filter(|number| {
            let command = format!("EXISTS key-{number}");
            addresses.iter().any(|address| ask(address, &command) == ":1")
        });
        found.count()
    }

    async fn events(&self, reason: &str) -> usize {
        let api: Api<Event> = Api::default_namespaced(self.real.client());
        let all = api.list(&ListParams::default()).await.unwrap().items;
        all.iter()
            .filter(|event| event.reason.as_deref() == Some(reason))
            .count()
    }
}

/// The first line of a server's reply; empty if it does not reply.
fn ask(address: &str, command: &str) -> String {
    let reply = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((address, 6379))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(format!("{command}\r\n").as_bytes())?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    reply().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkeycluster_shows_the_documented_rows_of_every_operation() {
    let real = Real::start().await;
    let cluster = Watched::create(&real, json!({"primaries": 3, "image": "redis:8-bookworm"})).await;
    assert_eq!(cluster.shown().await, ["", "Initializing", "Configuring", "Ready"]);

    let fast = |status: &str, stage: &str| {
        let stages = [
            status.to_owned(),
            format!("{status}/{stage}"),
            format!("{status}/Ending{stage}"),
        ];
        ["Ready".to_owned()]
            .into_iter()
            .chain(stages)
            .chain(["Ready".to_owned()])
            .collect::<Vec<_>>()
    };
    cluster.write_keys().await;
    let rows = cluster.rows_of(json!({"primaries": 5})).await;
    assert_eq!(rows, fast("ScalingUp", "FastScaling"));
    assert_eq!(
        cluster.keys().await,
        0,
        "a fast operation recreates the cluster without its keys"
    );
    assert_eq!(cluster.events("KeysPurged").await, 1);
    let rows = cluster.rows_of(json!({"primaries": 3})).await;
    assert_eq!(rows, fast("ScalingDown", "FastScaling"));
    let rows = cluster.rows_of(json!({"image": "redis:8.0.6"})).await;
    assert_eq!(rows, fast("Upgrading", "FastUpgrading"));

    assert_eq!(cluster.rows_of(json!({"purgeKeysOnRebalance": false})).await, ["Ready"]);
    cluster.write_keys().await;
    let rows = cluster.rows_of(json!({"primaries": 5})).await;
    let up = [
        "Ready",
        "ScalingUp",
        "ScalingUp/PodScaling",
        "ScalingUp/RobinScaling",
        "ScalingUp/EndingScaling",
        "Ready",
    ];
    assert_eq!(rows, up);
    assert_eq!(cluster.keys().await, KEYS, "a slow operation keeps every key");
    let rows = cluster.rows_of(json!({"primaries": 3})).await;
    let down = [
        "Ready",
        "ScalingDown",
        "ScalingDown/RobinScaling",
        "ScalingDown/PodScaling",
        "Ready",
    ];
    assert_eq!(rows, down);
    assert_eq!(cluster.keys().await, KEYS);

    let rows = cluster.rows_of(json!({"image": "redis:8.0"})).await;
    let mut upgrade = vec![
        "Ready".to_owned(),
        "Upgrading".to_owned(),
        "Upgrading/ScalingUp".to_owned(),
    ];
    upgrade.push("Upgrading/SlowUpgrading".to_owned());
    for partition in (0..=3).rev() {
        upgrade.push(format!("Upgrading/SlowUpgrading/{partition}"));
        upgrade.push(format!("Upgrading/RollingConfig/{partition}"));
    }
    upgrade.extend(["Upgrading/EndingSlowUpgrading/0", "Upgrading/ScalingDown/0", "Ready"].map(str::to_owned));
    assert_eq!(rows, upgrade);
    assert_eq!(cluster.keys().await, KEYS);
    assert_eq!(cluster.pods("redis").await.len(), 3);
    assert_eq!(cluster.events("DataLost").await, 0);
    drop(cluster);
    real.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn robin_heals_alone_and_the_operator_stands_in_for_it() {
    let real = Real::start().await;
    let spec = json!({"primaries": 3, "replicasPerPrimary": 1, "purgeKeysOnRebalance": false});
    let cluster = Watched::create(&real, spec).await;
    cluster.write_keys().await;

    // Without an operator, Robin promotes the replica of a deleted primary and attaches the new server.
    real.operators(0).await;
    let owner = cluster.owner_of_slot_0().await;
    cluster.delete_pod(&owner).await;
    let begun = Instant::now();
    while !cluster.serves().await {
        assert!(begun.elapsed() < PATIENCE, "Robin did not heal the cluster");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    real.operators(1).await;
    cluster.ready().await;
    assert_eq!(cluster.keys().await, KEYS);

    // Without Robin, the operator does the same, and says so.
    let robin = cluster.pods("robin").await.remove(0).metadata.name.unwrap();
    cluster.delete_pod(&robin).await;
    let owner = cluster.owner_of_slot_0().await;
    cluster.delete_pod(&owner).await;
    cluster.until("Degraded", |one| !row(one).starts_with("Ready")).await;
    cluster.ready().await;
    cluster
        .until("confirmed by Robin", |one| {
            let conditions = one.status.iter().flat_map(|status| &status.conditions);
            let mut robin = conditions.filter(|one| one.type_ == "RobinReady");
            robin.any(|one| one.status == "True")
        })
        .await;
    assert_eq!(cluster.keys().await, KEYS);
    assert_eq!(cluster.events("DataLost").await, 0);
    drop(cluster);
    real.end().await;
}

impl Watched<'_> {
    async fn delete_pod(&self, name: &str) {
        let api: Api<Pod> = Api::default_namespaced(self.real.client());
        api.delete(name, &DeleteParams::default().grace_period(0))
            .await
            .unwrap();
    }

    /// The pod of the server that takes slot 0.
    async fn owner_of_slot_0(&self) -> String {
        let pods = self.pods("redis").await;
        let takes = |pod: &&Pod| {
            let ip = pod
                .status
                .as_ref()
                .and_then(|status| status.pod_ip.clone())
                .unwrap_or_default();
            // This key is in slot 0.
            ask(&ip, "SET 06S value") == "+OK"
        };
        let pod = pods.iter().find(takes).expect("a server takes slot 0");
        pod.metadata.name.clone().unwrap()
    }

    /// Whether every key is there and every replica of six servers is in sync.
    async fn serves(&self) -> bool {
        let addresses = self.addresses().await;
        let replicas = addresses.iter().filter(|address| {
            let reply = ask(address, "ROLE");
            reply == "*5"
        });
        addresses.len() == 6 && replicas.count() == 3 && self.keys().await == KEYS
    }
}
