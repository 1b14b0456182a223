//! The operations of a `RedkeyCluster` under faults, with its Robin: the same final state as undisturbed, the rows of
//! the contract in their order, and no key lost where none may be.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_api::RedkeyCluster;
use candor_operator::Settings;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, ResourceExt};
use kube_sandbox::faults::Faults;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use valkey_admin::Slot;

use crate::chapter::Scenario;
use crate::chapters::disturbed;
use crate::life::Life;
use crate::support::Stage;

const NAME: &str = "cache";
const PATIENCE: Duration = Duration::from_secs(120);
/// Keys of each primary before an operation.
const KEYS: u64 = 40;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Create,
    UpFast,
    UpSlow,
    DownFast,
    DownSlow,
    UpgradeFast,
    UpgradeSlow,
    Sleep,
}

impl Operation {
    fn is_fast(self) -> bool {
        matches!(self, Self::UpFast | Self::DownFast | Self::UpgradeFast)
    }

    fn spec(self) -> Value {
        let primaries = if matches!(self, Self::DownFast | Self::DownSlow) {
            3
        } else {
            2
        };
        json!({"primaries": primaries, "ephemeral": true, "purgeKeysOnRebalance": self.is_fast(),
            "image": "redis:8.0"})
    }

    /// What the user changes.
    fn change(self) -> Value {
        match self {
            Self::Create => json!({}),
            Self::UpFast | Self::UpSlow => json!({"primaries": 3}),
            Self::DownFast | Self::DownSlow => json!({"primaries": 2}),
            Self::UpgradeFast | Self::UpgradeSlow => json!({"image": "redis:8.0.6"}),
            Self::Sleep => json!({"primaries": 0}),
        }
    }

    /// The rows of the contract's part 4, as `status/substatus/partition`.
    fn rows(self) -> Vec<&'static str> {
        match self {
            Self::Create => vec!["", "Initializing", "Configuring", "Ready"],
            Self::UpFast => vec![
                "Ready",
                "ScalingUp",
                "ScalingUp/FastScaling",
                "ScalingUp/EndingFastScaling",
                "Ready",
            ],
            Self::UpSlow => vec![
                "Ready",
                "ScalingUp",
                "ScalingUp/PodScaling",
                "ScalingUp/RobinScaling",
                "ScalingUp/EndingScaling",
                "Ready",
            ],
            Self::DownFast => vec![
                "Ready",
                "ScalingDown",
                "ScalingDown/FastScaling",
                "ScalingDown/EndingFastScaling",
                "Ready",
            ],
            Self::DownSlow => vec![
                "Ready",
                "ScalingDown",
                "ScalingDown/RobinScaling",
                "ScalingDown/PodScaling",
                "Ready",
            ],
            Self::UpgradeFast => vec![
                "Ready",
                "Upgrading",
                "Upgrading/FastUpgrading",
                "Upgrading/EndingFastUpgrading",
                "Ready",
            ],
            Self::UpgradeSlow => vec![
                "Ready",
                "Upgrading",
                "Upgrading/ScalingUp",
                "Upgrading/SlowUpgrading",
                "Upgrading/SlowUpgrading/2",
                "Upgrading/RollingConfig/2",
                "Upgrading/SlowUpgrading/1",
                "Upgrading/RollingConfig/1",
                "Upgrading/SlowUpgrading/0",
                "Upgrading/RollingConfig/0",
                "Upgrading/EndingSlowUpgrading/0",
                "Upgrading/ScalingDown/0",
                "Ready",
            ],
            Self::Sleep => vec!["Ready", "ScalingDown", "Ready"],
        }
    }
}

/// The rows that a watch has shown, and the keys before.
struct Recorded {
    rows: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
    keys: u64,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Scenario for Operation {
    type Cluster = RedkeyCluster;
    type Witness = Recorded;

    fn number(self) -> usize {
        10 + self as usize
    }

    fn name(self) -> &'static str {
        NAME
    }

    async fn prepare(self, stage: &Stage) {
        if self == Self::Create {
            return;
        }
        let life = Life::start(stage.client(), Faults::seeded(1), Settings::default());
        create(stage, self.spec()).await;
        until("Ready", async || ready(stage).await).await;
        write_keys(stage).await;
        life.end().await;
    }

    async fn record(self, stage: &Stage) -> Recorded {
        let rows: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = rows.clone();
        let mut events = watcher(stage.redkey_clusters(), Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let Ok(cluster) = event else { continue };
                let mut rows = seen.lock().unwrap_or_else(PoisonError::into_inner);
                let row = row(&cluster);
                if rows.last() != Some(&row) {
                    rows.push(row);
                }
            }
        });
        Recorded {
            rows,
            task,
            keys: keys(stage),
        }
    }

    async fn begin(self, stage: &Stage) {
        if self == Self::Create {
            create(stage, self.spec()).await;
        } else {
            change(stage, self.change()).await;
        }
    }

    async fn is_over(self, stage: &Stage) -> bool {
        ready(stage).await
    }

    async fn complaints(self, stage: &Stage, witness: Recorded) -> Vec<String> {
        let rows = witness.rows.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let expected = self.rows();
        let mut rest = expected.iter();
        let in_order = rows.iter().all(|row| rest.any(|one| one == row));
        let mut wrong = Vec::new();
        if !in_order {
            wrong.push(format!("the rows are {rows:?}, not a part of {expected:?}"));
        }
        let (before, after) = (witness.keys, keys(stage));
        let wanted = if self.is_fast() || self == Self::Sleep {
            0
        } else {
            before
        };
        if after != wanted {
            wrong.push(format!("{after} keys are left of {before}, not {wanted}"));
        }
        wrong
    }
}

fn row(cluster: &RedkeyCluster) -> String {
    let status = cluster.status.clone().unwrap_or_default();
    let cells = [
        status.status,
        status.substatus.status,
        status.substatus.upgrading_partition,
    ];
    let cells: Vec<String> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
    cells.join("/")
}

async fn create(stage: &Stage, spec: Value) {
    let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
        "metadata": {"name": NAME}, "spec": spec});
    let cluster: RedkeyCluster = serde_json::from_value(cluster).unwrap();
    let api = stage.redkey_clusters();
    api.create(&PostParams::default(), &cluster).await.unwrap();
}

async fn change(stage: &Stage, spec: Value) {
    let patch = Patch::Merge(json!({ "spec": spec }));
    let api = stage.redkey_clusters();
    api.patch(NAME, &PatchParams::default(), &patch).await.unwrap();
}

/// Whether the cluster is Ready in its newest generation.
async fn ready(stage: &Stage) -> bool {
    let cluster = stage.redkey_clusters().get(NAME).await.unwrap();
    let status = cluster.status.clone().unwrap_or_default();
    status.status == "Ready" && status.observed_generation == cluster.metadata.generation
}

/// Waits with a deadline.
async fn until(what: &str, so: impl AsyncFn() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < PATIENCE, "not {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The servers' addresses.
async fn servers(stage: &Stage) -> Vec<std::net::IpAddr> {
    let api: Api<Pod> = Api::namespaced(stage.client(), "default");
    let labels = "redis.redkeycluster.operator/component=redis";
    let pods = api.list(&ListParams::default().labels(labels)).await.unwrap();
    let addresses = pods.iter().map(|pod| stage.pods.address("default", &pod.name_any()));
    addresses.flatten().collect()
}

/// Writes keys to slots all over the map.
async fn write_keys(stage: &Stage) {
    for ip in servers(stage).await {
        let owned = stage.world.look(ip, |node| node.map.slots.clone()).unwrap();
        let slots: Vec<Slot> = owned.iter().collect();
        let every = (slots.len() / usize::try_from(KEYS).unwrap()).max(1);
        for slot in slots.into_iter().step_by(every) {
            assert!(stage.world.write(ip, slot, 1));
        }
    }
}

/// The keys of all primaries.
fn keys(stage: &Stage) -> u64 {
    let of = |ip| {
        stage
            .world
            .look(ip, |node| if node.map.primary.is_none() { node.total() } else { 0 })
    };
    stage.world.members().into_iter().filter_map(of).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_created() {
    disturbed(Operation::Create).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_up_fast() {
    disturbed(Operation::UpFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_up_slowly() {
    disturbed(Operation::UpSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_down_fast() {
    disturbed(Operation::DownFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_scaled_down_slowly() {
    disturbed(Operation::DownSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_upgraded_fast() {
    disturbed(Operation::UpgradeFast).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_upgraded_slowly() {
    disturbed(Operation::UpgradeSlow).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redkey_cluster_is_put_to_sleep() {
    disturbed(Operation::Sleep).await;
}
