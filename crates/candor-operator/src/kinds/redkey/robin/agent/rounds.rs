//! The loops of the agent: following what changes, and driving round by round.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::super::backoff::Backoff;
use super::driver::{Driven, Driver, Round};
use super::files::Loaded;
use super::requests::Requests;
use super::state::{Agent, Overrides};
use crate::monitor::ClusterKey;

/// A round that takes longer is cancelled.
const ROUND_LIMIT: Duration = Duration::from_secs(10);
/// How often the observing loop wakes without a change.
const TICK: Duration = Duration::from_secs(1);
/// The `RedkeyCluster` is read at most this often.
const READ_GAP: Duration = Duration::from_millis(50);

/// What the rounds and the HTTP API share.
#[derive(Default)]
pub(super) struct Rounds {
    wake: Notify,
    requests: Mutex<Requests>,
    overrides: Mutex<Overrides>,
}

impl Rounds {
    /// Runs a round soon.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    pub(super) fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn overrides(&self) -> MutexGuard<'_, Overrides> {
        self.overrides.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Driver> Agent<D> {
    /// The content of the files in use.
    pub(super) fn loaded(&self) -> Arc<Loaded> {
        self.observer.loaded()
    }

    /// Uses changed files.
    pub(super) fn apply(&self, loaded: Loaded) {
        self.observer.apply(loaded);
        // The operator writes the configuration together with the spec.
        self.kubernetes.read_cluster_now();
        self.rounds.wake();
    }

    pub(super) async fn follow_pods(self: Arc<Self>) {
        self.kubernetes.watch_pods().await;
    }

    /// Reads the `RedkeyCluster` when it may have changed.
    pub(super) async fn follow_cluster(self: Arc<Self>) {
        let mut pods = self.kubernetes.pods();
        let mut backoff = Backoff::default();
        loop {
            match self.kubernetes.read_cluster().await {
                Ok(changed) => {
                    backoff = Backoff::default();
                    if changed {
                        self.rounds.wake();
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "reading the RedkeyCluster failed; trying again");
                    sleep(backoff.next(Instant::now(), Duration::ZERO)).await;
                    continue;
                }
            }
            sleep(READ_GAP).await;
            tokio::select! {
                () = sleep(self.interval()) => {}
                () = self.kubernetes.read_requested() => {}
                changed = pods.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Reads and observes at once when the operator asks.
    pub(super) async fn follow_operator(self: Arc<Self>) {
        loop {
            self.observer.feed.refresh_requested().await;
            if let Err(error) = self.kubernetes.read_cluster().await {
                tracing::warn!(%error, "reading the RedkeyCluster failed");
            }
            self.observer.observe().await;
            self.observer.publish();
            self.rounds.wake();
            sleep(READ_GAP).await;
        }
    }

    /// Observes the servers when something changes, also while a round is running.
    pub(super) async fn observe_forever(self: Arc<Self>, mut triggers: UnboundedReceiver<ClusterKey>) {
        let mut pods = self.kubernetes.pods();
        loop {
            self.observer.feed.progress();
            tokio::select! {
                trigger = triggers.recv() => if trigger.is_none() { return },
                changed = pods.changed() => if changed.is_err() { return },
                () = sleep(TICK) => {
                    if !self.observer.has_login_problems() {
                        continue;
                    }
                    self.observer.try_desired_password().await;
                }
            }
            while triggers.try_recv().is_ok() {}
            self.observer.observe().await;
            self.observer.publish();
            self.rounds.wake();
        }
    }

    /// Runs rounds until it is stopped. A running round is finished.
    pub(super) async fn drive_forever(&self, stop: &CancellationToken) {
        let mut due = Instant::now();
        let mut ended = Instant::now();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.rounds.wake.notified() => {}
                () = sleep_until(due) => {}
            }
            let again = self.round(ended).await;
            ended = Instant::now();
            due = ended + again.unwrap_or_else(|| self.interval());
        }
    }

    /// One round. Returns when to run the next one.
    async fn round(&self, since: Instant) -> Option<Duration> {
        let cluster = self.kubernetes.cluster().borrow().clone()?;
        let snapshot = self.observer.observe_since(since).await?;
        let loaded = self.loaded();
        let request = self.rounds.requests().running();
        let round = Round {
            key: &self.observer.key,
            cluster: &cluster,
            configuration: &loaded.configuration,
            status: self.effective_status(),
            replicas: self.effective_replicas(),
            pods: &snapshot.pods,
            servers: &snapshot.servers,
            passwords: &snapshot.passwords,
            monitor: &self.observer.monitor,
            request: request.as_ref(),
            now: Timestamp::now(),
        };
        let driven = timeout(ROUND_LIMIT, self.driver.drive(round)).await;
        let driven = driven.unwrap_or_else(|_| {
            tracing::warn!("a round took longer than {} s and was cancelled", ROUND_LIMIT.as_secs());
            Driven {
                generation: cluster.metadata.generation,
                again: Some(TICK),
                ..Driven::default()
            }
        });
        if let (Some(request), Some(result)) = (request, &driven.finished) {
            self.rounds.requests().end(request, Instant::now(), result.clone());
        }
        let again = driven.again;
        self.observer.settle(&snapshot, driven);
        again
    }

    /// Time between two rounds of an idle cluster.
    fn interval(&self) -> Duration {
        let seconds = self.loaded().configuration.redis.reconciler.interval_seconds;
        Duration::from_secs(u64::try_from(seconds.max(1)).unwrap_or(1))
    }
}
