//! Random faults between the operator and its API server, an operator that is restarted whenever it was killed, and
//! kills of Robin.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use candor_tests::{World, faults};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube_sandbox::faults::{Done, Fault, Faults, Rule, Verb, WatchFault};
use tokio::task::JoinHandle;

/// How long a new operator may take until it has observed everything and reported it.
const BEGINNING: Duration = Duration::from_secs(2);

/// A random sequence that depends only on the seed (`SplitMix64`).
pub struct Lot(pub u64);

impl Lot {
    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// The operator with injected faults, restarted after every crash.
pub struct Operator {
    faults: Faults,
    /// Periods in which no operator could report, or the operator had just started.
    away: Arc<Mutex<Vec<(Instant, Instant)>>>,
    task: JoinHandle<()>,
}

impl Operator {
    pub fn start(world: &Arc<World>, seed: u64) -> Self {
        let faults = Faults::seeded(seed).remembering();
        faults.on_crash(world.killer());
        world.start_operator_behind(&faults);
        let away: Arc<Mutex<Vec<(Instant, Instant)>>> = Arc::default();
        let task = tokio::spawn(nurse(world.clone(), faults.clone(), away.clone()));
        Self { faults, away, task }
    }

    /// Injects a fault from now on and returns its description.
    pub fn disturb(&self, lot: &mut Lot) -> String {
        let nth = 1 + lot.below(25);
        let stale = Fault::StaleRead { back: 1 };
        let writes = |fault: Fault| Rule::new("mishap").writes().chance(0.15).then(fault);
        let watch = |fault: WatchFault| Rule::new("mishap").verb(Verb::Watch).then(Fault::Watch(fault));
        let crash = Rule::new("mishap").writes().then(Fault::Crash);
        let ms = Duration::from_millis;
        let (text, rules) = match lot.below(12) {
            0 | 1 => (format!("killed after write {nth}"), vec![crash.nth(nth)]),
            2 => (
                format!("killed after every {}th write", nth + 9),
                vec![crash.every(nth + 9)],
            ),
            3 => {
                let lists = Rule::new("mishap").verb(Verb::List).then(stale);
                (
                    format!("killed after write {nth}, then stale lists"),
                    vec![crash.nth(nth), lists],
                )
            }
            4 => ("409".to_owned(), vec![writes(Fault::conflict())]),
            5 => ("429".to_owned(), vec![writes(Fault::too_many_requests(0))]),
            6 => ("500".to_owned(), vec![writes(Fault::internal_error())]),
            7 => ("503".to_owned(), vec![writes(Fault::unavailable())]),
            8 => ("time-outs".to_owned(), vec![writes(Fault::TimeOut(ms(100)))]),
            9 => ("lost answers".to_owned(), vec![writes(Fault::LoseResponse)]),
            10 => (
                "late and merged events".to_owned(),
                vec![watch(WatchFault::Lag(ms(100))), watch(WatchFault::Coalesce(ms(50)))],
            ),
            _ => (
                "watches that expire".to_owned(),
                vec![watch(WatchFault::Expire { after: 5 })],
            ),
        };
        // An established stream is not disturbed: only a new watch is.
        if text.contains("events") || text.contains("watches") {
            self.faults.add(Rule::new("mishap").writes().nth(1).then(Fault::Crash));
        }
        for rule in rules {
            self.faults.add(rule);
        }
        text
    }

    /// Stops all faults.
    pub fn calm(&self) {
        self.faults.calm();
    }

    /// Stops restarting the operator.
    pub async fn end(mut self) {
        self.task.abort();
        // The task ends by being aborted, and has then released the world.
        let _ = (&mut self.task).await;
    }

    /// The number of crashes so far, and of all other faults.
    pub fn struck(&self) -> (usize, usize) {
        let log = self.faults.log();
        let crashes = log.iter().filter(|one| one.done == Done::Fault("crash")).count();
        let nothing = log.iter().filter(|one| one.done == Done::NothingOlder).count();
        (crashes, log.len() - crashes - 2 * nothing)
    }

    /// How much of a period had an operator that could report.
    pub fn attended(&self, from: Instant, to: Instant) -> Duration {
        let away = locked(&self.away);
        let away: Duration = away
            .iter()
            .map(|(gone, back)| to.min(*back).saturating_duration_since(from.max(*gone)))
            .sum();
        to.saturating_duration_since(from).saturating_sub(away)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(away: &Mutex<Vec<(Instant, Instant)>>) -> MutexGuard<'_, Vec<(Instant, Instant)>> {
    away.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn nurse(world: Arc<World>, faults: Faults, away: Arc<Mutex<Vec<(Instant, Instant)>>>) {
    loop {
        faults.crashed().await;
        let gone = Instant::now();
        faults.revive();
        world.start_operator_behind(&faults);
        locked(&away).push((gone, Instant::now() + BEGINNING));
    }
}

/// Kills Robin again and again while an operation runs; its kubelet starts it again.
pub struct Robin {
    kills: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Robin {
    /// Kills it in up to three seconds from now, and so on.
    pub fn kill_in(world: &Arc<World>, lot: &mut Lot) -> Self {
        let kills: Arc<Mutex<usize>> = Arc::default();
        let (world, counted, mut lot) = (world.clone(), kills.clone(), Lot(lot.below(u64::MAX)));
        let task = tokio::spawn(async move {
            let pods: Api<Pod> = Api::namespaced(world.client(), world.namespace());
            let robins = ListParams::default().labels("redis.redkeycluster.operator/component=robin");
            loop {
                tokio::time::sleep(Duration::from_millis(200 + lot.below(2800))).await;
                for pod in pods.list(&robins).await.into_iter().flatten() {
                    let statuses = pod
                        .status
                        .as_ref()
                        .and_then(|status| status.container_statuses.as_ref());
                    let mut states = statuses.into_iter().flatten().filter_map(|one| one.state.as_ref());
                    if states.any(|state| state.running.is_some()) {
                        faults::kill(&world, pod.metadata.name.as_deref().unwrap_or_default()).await;
                        *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                    }
                }
            }
        });
        Self { kills, task }
    }

    /// Ends it, and returns how often Robin was killed.
    pub fn kills(self) -> usize {
        self.task.abort();
        *self.kills.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
