//! The queue of clusters to reconcile. A cluster is never reconciled twice at the same time. A change during a
//! reconcile causes another one directly after it. Each reconcile returns when the next one is due if nothing changes
//! before. A reconcile that panics is repeated after a backoff, even if something changes meanwhile: a change that the
//! panicking reconcile itself causes must not repeat it at once.

use std::collections::HashMap;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::time::{DelayQueue, delay_queue};

use crate::runtime::cache::ClusterKey;
use crate::runtime::metrics::Metrics;
use crate::runtime::panics::{Panic, caught};

/// The backoff after the first panic of a cluster's reconcile; it doubles with every further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
/// The longest backoff.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// A reconcile function: returns when to reconcile again, or `None` if the cluster is deleted.
pub type Reconcile = dyn Fn(ClusterKey) -> BoxFuture<'static, Option<Duration>> + Send + Sync;

/// The scheduling state of one cluster.
#[derive(Default)]
struct Turn {
    due: Option<delay_queue::Key>,
    running: bool,
    again: bool,
    /// Panics since the last reconcile that completed without one.
    panics: u32,
}

impl Turn {
    fn backs_off(&self) -> bool {
        self.panics > 0 && self.due.is_some()
    }

    /// Counts one more panic; returns how long to wait before the next reconcile.
    fn panicked(&mut self) -> Duration {
        let doubled = 1_u32.checked_shl(self.panics).unwrap_or(u32::MAX);
        self.panics += 1;
        FIRST_BACKOFF.saturating_mul(doubled).min(LONGEST_BACKOFF)
    }
}

/// Runs reconciles until `stop` is cancelled, then waits for those in progress.
pub async fn run(
    mut changes: UnboundedReceiver<ClusterKey>,
    stop: CancellationToken,
    metrics: &Metrics,
    reconcile: &Reconcile,
) {
    let mut turns: HashMap<ClusterKey, Turn> = HashMap::new();
    let mut due: DelayQueue<ClusterKey> = DelayQueue::new();
    let mut reconciles: JoinSet<(ClusterKey, Result<Option<Duration>, Panic>)> = JoinSet::new();
    loop {
        let start = tokio::select! {
            () = stop.cancelled() => break,
            Some(key) = changes.recv() => {
                let turn = turns.entry(key.clone()).or_default();
                if turn.backs_off() {
                    None
                } else {
                    if let Some(waiting) = turn.due.take() {
                        due.remove(&waiting);
                    }
                    turn.again |= turn.running;
                    (!turn.running).then_some(key)
                }
            }
            Some(expired) = due.next() => {
                let key = expired.into_inner();
                if let Some(turn) = turns.get_mut(&key) {
                    turn.due = None;
                }
                Some(key)
            }
            Some(done) = reconciles.join_next() => match done {
                Ok((key, Ok(next))) => finished(&mut turns, &mut due, key, next),
                Ok((key, Err(panic))) => {
                    let turn = turns.entry(key.clone()).or_default();
                    (turn.running, turn.again) = (false, false);
                    let wait = turn.panicked();
                    metrics.panicked(&key);
                    tracing::error!(
                        cluster = %key, %panic, retry_after = ?wait, backtrace = panic.backtrace,
                        "reconcile panicked; retrying after a back-off"
                    );
                    turn.due = Some(due.insert(key, wait));
                    None
                }
                // Panics are caught inside the task, and no task is aborted.
                Err(error) => {
                    tracing::error!(%error, "reconcile task ended without a result");
                    None
                }
            },
        };
        if let Some(key) = start {
            turns.entry(key.clone()).or_default().running = true;
            let future = reconcile(key.clone());
            reconciles.spawn(async move { (key, caught(future).await) });
        }
    }
    while reconciles.join_next().await.is_some() {}
}

/// Schedules the next reconcile after one has finished: at once if something changed meanwhile, else after the delay
/// that it returned.
fn finished(
    turns: &mut HashMap<ClusterKey, Turn>,
    due: &mut DelayQueue<ClusterKey>,
    key: ClusterKey,
    next: Option<Duration>,
) -> Option<ClusterKey> {
    let turn = turns.entry(key.clone()).or_default();
    (turn.running, turn.panics) = (false, 0);
    if std::mem::take(&mut turn.again) {
        return Some(key);
    }
    match next {
        Some(after) => {
            turn.due = Some(due.insert(key, after));
        }
        None => {
            turns.remove(&key);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use tokio::sync::{Notify, mpsc};

    use super::*;

    fn key(name: &str) -> ClusterKey {
        ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".into(),
            name: name.into(),
        }
    }

    #[tokio::test]
    async fn a_change_during_a_reconcile_means_another_one_and_never_two_at_once() {
        let (changed, changes) = mpsc::unbounded_channel();
        let (running, most, reconciles) = (
            Arc::<AtomicUsize>::default(),
            Arc::<AtomicUsize>::default(),
            Arc::<AtomicUsize>::default(),
        );
        let (begun, go) = (Arc::<Notify>::default(), Arc::<Notify>::default());
        let stop = CancellationToken::new();
        let observation = (
            running.clone(),
            most.clone(),
            reconciles.clone(),
            begun.clone(),
            go.clone(),
        );
        let reconcile = move |_: ClusterKey| {
            let (running, most, reconciles, begun, go) = observation.clone();
            let future = async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                begun.notify_one();
                go.notified().await;
                running.fetch_sub(1, Ordering::SeqCst);
                reconciles.fetch_add(1, Ordering::SeqCst);
                Some(Duration::from_secs(3600))
            };
            Box::pin(future) as BoxFuture<'static, Option<Duration>>
        };
        let queue = tokio::spawn({
            let stop = stop.clone();
            async move { run(changes, stop, &Metrics::default(), &reconcile).await }
        });
        changed.send(key("a")).unwrap();
        begun.notified().await;
        for _ in 0..10 {
            changed.send(key("a")).unwrap();
        }
        // The second cluster proves that all ten changes have been received: the channel keeps their order.
        changed.send(key("b")).unwrap();
        begun.notified().await;
        go.notify_one();
        go.notify_one();
        begun.notified().await;
        go.notify_one();
        stop.cancel();
        queue.await.unwrap();
        assert_eq!(reconciles.load(Ordering::SeqCst), 3, "a, a again, b");
        assert_eq!(most.load(Ordering::SeqCst), 2, "a and b, never a twice");
    }

    #[tokio::test]
    async fn a_reconcile_that_panics_is_repeated_with_back_off_until_it_succeeds() {
        let (changed, changes) = mpsc::unbounded_channel();
        let calls = Arc::<Mutex<Vec<Instant>>>::default();
        let succeeded = Arc::<Notify>::default();
        let stop = CancellationToken::new();
        let metrics = Arc::new(Metrics::default());
        let shared = (calls.clone(), succeeded.clone(), changed.clone());
        let reconcile = move |at: ClusterKey| {
            let (calls, succeeded, changed) = shared.clone();
            let future = async move {
                if at.name != "broken" {
                    return None;
                }
                let call = {
                    let mut calls = calls.lock().unwrap();
                    calls.push(Instant::now());
                    calls.len()
                };
                // A change during the reconcile, and one that the reconcile itself causes: neither shortens the
                // backoff.
                changed.send(at.clone()).unwrap();
                tokio::task::yield_now().await;
                assert!(call > 3, "call {call}");
                succeeded.notify_one();
                Some(Duration::from_secs(3600))
            };
            Box::pin(future) as BoxFuture<'static, Option<Duration>>
        };
        let queue = tokio::spawn({
            let (stop, metrics) = (stop.clone(), metrics.clone());
            async move { run(changes, stop, &metrics, &reconcile).await }
        });
        changed.send(key("broken")).unwrap();
        changed.send(key("other")).unwrap();
        tokio::time::timeout(Duration::from_secs(30), succeeded.notified())
            .await
            .expect("a reconcile that panicked is never repeated");
        stop.cancel();
        queue.await.unwrap();
        let calls = calls.lock().unwrap().clone();
        let pauses: Vec<Duration> = calls.windows(2).map(|two| two[1] - two[0]).take(3).collect();
        for (pause, least) in pauses.iter().zip([1, 2, 4].map(|times| FIRST_BACKOFF * times)) {
            assert!(*pause >= least, "{pauses:?}");
        }
        let text = metrics.text();
        let line = r#"candor_reconcile_panics_total{namespace="shop",name="broken",resource="ValkeyCluster"} 3"#;
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn the_back_off_doubles_up_to_its_limit() {
        let mut turn = Turn::default();
        let waits: Vec<Duration> = (0..40).map(|_| turn.panicked()).collect();
        assert_eq!(waits[..3], [1, 2, 4].map(|times| FIRST_BACKOFF * times));
        assert_eq!(waits[39], LONGEST_BACKOFF);
    }
}
