//! Compares status with the members' actual state, on one clock.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_api::{Condition, RedkeyCluster, ValkeyCluster};
use k8s_openapi::NamespaceResourceScope;
use kube::Api;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use valkey_admin::SlotSet;
use valkey_sim::World;
use valkey_sim::node::Follow;

use crate::support::Stage;

/// How long status may report outdated state.
const DEADLINE: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The longest plausible wait: a longer one means that the test host was stalled.
const LONGEST: Duration = Duration::from_millis(25);

/// How slow the test host is. A check queries the same API server as the operator, on the same cores. If a response
/// takes several times longer than the best ones, elapsed time counts that many times less. On an idle host, responses
/// take about as long as usual, and every millisecond counts fully.
fn slowness(answer: Duration) -> f64 {
    /// The fastest response so far, in microseconds.
    static QUICKEST: AtomicU64 = AtomicU64::new(u64::MAX);
    let micros = u64::try_from(answer.as_micros()).unwrap_or(u64::MAX).max(1);
    let quickest = QUICKEST.fetch_min(micros, Ordering::Relaxed).min(micros);
    // Twice the fastest response is the usual time.
    let usual = Duration::from_micros(quickest * 2);
    answer.div_duration_f64(usual).max(1.0)
}

/// Checks one cluster until dropped.
pub struct Auditor {
    task: JoinHandle<()>,
    findings: Arc<Mutex<Findings>>,
}

/// What a cluster's status says, and the shape that its spec asks for.
pub trait AuditedKind:
    kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The conditions of its status.
    fn conditions(&self) -> &[Condition];
    /// The number of primaries, and of replicas of each.
    fn shape(&self) -> (i32, i32);
}

impl AuditedKind for ValkeyCluster {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn shape(&self) -> (i32, i32) {
        (self.spec.shards, self.spec.replicas.unwrap_or(0))
    }
}

impl AuditedKind for RedkeyCluster {
    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map_or(&[], |status| &status.conditions)
    }

    fn shape(&self) -> (i32, i32) {
        (self.spec.primaries, self.spec.replicas_per_primary)
    }
}

/// The results so far.
#[derive(Default)]
struct Findings {
    /// The number of the operator that is running, if any.
    life: Option<u32>,
    lives: u32,
    /// Elapsed time, adjusted for stalls of the test host.
    passed: Duration,
    false_ready: Duration,
    lies: Vec<String>,
}

impl Auditor {
    /// Starts checking. `excuse` is the delay that a disturbance adds to an observation or report.
    pub fn start<K: AuditedKind>(stage: &Stage, name: &str, excuse: Duration) -> Self {
        let findings: Arc<Mutex<Findings>> = Arc::default();
        let watch = watch::<K>(
            Api::namespaced(stage.client(), "default"),
            name.to_owned(),
            stage.world.clone(),
            DEADLINE + excuse,
            findings.clone(),
        );
        let task = tokio::spawn(watch);
        Self { task, findings }
    }

    /// Marks that another operator has started and has its initial state. It is not responsible for what status
    /// reported before.
    pub fn new_life(&self) {
        let mut findings = locked(&self.findings);
        findings.lives += 1;
        findings.life = Some(findings.lives);
    }

    /// Returns a callback for the moment when the operator is killed. From then on no operator is responsible for
    /// status.
    pub fn death(&self) -> impl Fn() + Send + Sync + use<> {
        let findings = self.findings.clone();
        move || locked(&findings).life = None
    }

    /// How long Ready was falsely reported beyond the deadline, and what was false.
    pub fn false_ready(&self) -> (Duration, Vec<String>) {
        let findings = locked(&self.findings);
        (findings.false_ready, findings.lies.clone())
    }

    /// Elapsed time, adjusted for stalls of the test host.
    pub fn passed(&self) -> Duration {
        locked(&self.findings).passed
    }
}

impl Drop for Auditor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(findings: &Mutex<Findings>) -> MutexGuard<'_, Findings> {
    findings.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch<K: AuditedKind>(
    api: Api<K>,
    name: String,
    world: World,
    deadline: Duration,
    findings: Arc<Mutex<Findings>>,
) {
    /// A false report: its duration so far, and the operator that is responsible for it.
    struct Lie {
        lasts: Duration,
        life: u32,
    }
    let mut lie: Option<Lie> = None;
    loop {
        let begun = Instant::now();
        tokio::time::sleep(POLL_INTERVAL).await;
        let waited = begun.elapsed().min(LONGEST);
        let life = locked(&findings).life;
        let asked = Instant::now();
        let cluster = api.get_opt(&name).await.ok().flatten();
        let answer = asked.elapsed();
        let wrong = cluster.and_then(|cluster| wrong(&world, &cluster));
        let took = (waited + answer).div_f64(slowness(answer));
        let mut findings = locked(&findings);
        findings.passed += took;
        // An operator that was killed during this check is not responsible for its result.
        let life = life.filter(|life| findings.life == Some(*life));
        lie = match (wrong, life) {
            (Some(message), Some(life)) => {
                let before = lie.filter(|lie| lie.life == life);
                let lasted = before.as_ref().map_or(Duration::ZERO, |lie| lie.lasts);
                // A false report begins with the first check that observes it: the state before that check is unknown.
                let lasts = if before.is_some() {
                    lasted + took
                } else {
                    Duration::ZERO
                };
                if lasts > deadline {
                    if lasted <= deadline {
                        findings.lies.push(message);
                    }
                    findings.false_ready += lasts.saturating_sub(lasted.max(deadline));
                }
                Some(Lie { lasts, life })
            }
            _ => None,
        };
    }
}

/// Why a reported Ready condition is false.
fn wrong(world: &World, cluster: &impl AuditedKind) -> Option<String> {
    let mut conditions = cluster.conditions().iter();
    let ready = conditions.find(|one| one.type_ == "Ready" && one.status == "True")?;
    let newest = cluster.meta().generation;
    if ready.observed_generation != newest {
        let observation = ready.observed_generation;
        return Some(format!(
            "Ready is said of generation {observation:?}, the newest is {newest:?}"
        ));
    }
    let (shards, replicas) = cluster.shape();
    is_not_whole(world, shards, replicas).map(|message| format!("Ready is said, and {message}"))
}

/// Checks that every slot has exactly one primary, the number of shards is as desired, and every replica is in sync.
/// Otherwise returns the deviation.
fn is_not_whole(world: &World, shards: i32, replicas: i32) -> Option<String> {
    let (mut owners, mut in_step, mut covered, mut total) = (0, 0, SlotSet::new(), 0);
    for ip in world.members() {
        world.inspect(ip, |node| {
            if node.map.primary.is_none() && !node.map.slots.is_empty() {
                owners += 1;
                total += node.map.slots.len();
                covered = covered.union(&node.map.slots);
            }
            in_step += i32::from(node.map.primary.is_some() && node.follow == Follow::Up);
        });
    }
    let desired = shards * replicas;
    let whole = covered.is_full() && total == covered.len() && owners == shards && in_step == desired;
    (!whole).then(|| {
        format!(
            "{owners} of {shards} primaries own {} slots ({total} claims), {in_step} of {desired} replicas are in step",
            covered.len()
        )
    })
}
