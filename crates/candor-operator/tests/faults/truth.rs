//! Status against the members' own truth, on one clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use kube::Api;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use valkey_admin::SlotSet;
use valkey_sim::World;
use valkey_sim::node::Follow;

use crate::support::{Stage, is_ready};

/// How long status may say what is no longer so.
const DEADLINE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(10);

/// Watches one cluster until dropped.
pub struct Auditor {
    task: JoinHandle<()>,
    lives: Arc<AtomicU64>,
    false_ready: Arc<Mutex<Duration>>,
}

impl Auditor {
    pub fn start(stage: &Stage, name: &str) -> Self {
        let lives: Arc<AtomicU64> = Arc::default();
        let false_ready: Arc<Mutex<Duration>> = Arc::default();
        let watch = watch(
            stage.clusters("default"),
            name.to_owned(),
            stage.world.clone(),
            lives.clone(),
            false_ready.clone(),
        );
        Self {
            task: tokio::spawn(watch),
            lives,
            false_ready,
        }
    }

    /// Another operator runs from now on: nobody answers for what status said before it.
    pub fn new_life(&self) {
        self.lives.fetch_add(1, Ordering::Relaxed);
    }

    /// How long Ready was said beyond the deadline while it was not so.
    pub async fn false_ready(&self) -> Duration {
        *self.false_ready.lock().await
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(
    api: Api<ValkeyCluster>,
    name: String,
    world: World,
    lives: Arc<AtomicU64>,
    false_ready: Arc<Mutex<Duration>>,
) {
    let mut since: Option<Instant> = None;
    let (mut last, mut life) = (Instant::now(), 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let cluster = api.get_opt(&name).await.ok().flatten();
        let lie = cluster.is_some_and(|cluster| {
            let (shards, replicas) = (cluster.spec.shards, cluster.spec.replicas.unwrap_or(0));
            says_ready(&cluster) && !(is_ready(&cluster) && is_whole(&world, shards, replicas))
        });
        let now = Instant::now();
        let current = lives.load(Ordering::Relaxed);
        if !lie || current != life {
            since = None;
        }
        life = current;
        if lie {
            since = since.or(Some(now));
        }
        if since.is_some_and(|since| now - since > DEADLINE) {
            *false_ready.lock().await += now - last;
        }
        last = now;
    }
}

fn says_ready(cluster: &ValkeyCluster) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    conditions
        .into_iter()
        .any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Every slot with exactly one primary, as many shards as wanted, every replica in step.
fn is_whole(world: &World, shards: i32, replicas: i32) -> bool {
    let (mut owners, mut in_step, mut covered, mut total) = (0, 0, SlotSet::new(), 0);
    for ip in world.members() {
        world.look(ip, |node| {
            if node.map.primary.is_none() && !node.map.slots.is_empty() {
                owners += 1;
                total += node.map.slots.len();
                covered = covered.union(&node.map.slots);
            }
            in_step += i32::from(node.map.primary.is_some() && node.follow == Follow::Up);
        });
    }
    covered.is_full() && total == covered.len() && owners == shards && in_step == shards * replicas
}
