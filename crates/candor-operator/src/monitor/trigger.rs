//! Triggers reconciles of a cluster: immediately, and only once for changes that occur together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::ClusterKey;
use super::timing::{ALERT, TOGETHER};

/// The reconcile trigger of one cluster. A trigger also shortens the probe interval of the cluster's members for a
/// while, because other members are about to report the same change: a broken link, a promotion, an updated cluster
/// map.
pub(super) struct Trigger {
    cluster: ClusterKey,
    changed: UnboundedSender<ClusterKey>,
    alert: watch::Sender<Instant>,
    calls: Mutex<Calls>,
}

struct Calls {
    last: Option<Instant>,
    pending: bool,
}

impl Trigger {
    pub(super) fn new(cluster: ClusterKey, changed: UnboundedSender<ClusterKey>) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            changed,
            alert: watch::Sender::new(Instant::now()),
            calls: Mutex::new(Calls {
                last: None,
                pending: false,
            }),
        })
    }

    pub(super) fn cluster(&self) -> &ClusterKey {
        &self.cluster
    }

    /// Subscribes to the time until which the cluster is alert.
    pub(super) fn alert(&self) -> watch::Receiver<Instant> {
        self.alert.subscribe()
    }

    /// Reports a change: triggers a reconcile and makes the cluster alert.
    pub(super) fn fire(self: &Arc<Self>) {
        self.be_alert();
        let now = Instant::now();
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.pending {
            return;
        }
        match calls.last.map(|last| last + TOGETHER) {
            Some(next) if next > now => {
                calls.pending = true;
                let trigger = self.clone();
                tokio::spawn(async move {
                    sleep_until(next).await;
                    let mut calls = trigger.calls.lock().unwrap_or_else(PoisonError::into_inner);
                    calls.pending = false;
                    trigger.call(&mut calls);
                });
            }
            _ => self.call(&mut calls),
        }
    }

    /// Makes the cluster alert after a change that the running reconcile already knows.
    pub(super) fn be_alert(&self) {
        const SLACK: Duration = Duration::from_millis(100);
        let until = Instant::now() + ALERT;
        // This wakes every member task. Many changes at once must not wake all of them many times.
        self.alert.send_if_modified(|held| {
            let later = *held + SLACK < until;
            if later {
                *held = until;
            }
            later
        });
    }

    fn call(&self, calls: &mut Calls) {
        calls.last = Some(Instant::now());
        // Sending fails only while the operator shuts down, when the receiver is gone.
        let _ = self.changed.send(self.cluster.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::unbounded_channel;

    fn trigger() -> (Arc<Trigger>, tokio::sync::mpsc::UnboundedReceiver<ClusterKey>) {
        let (sender, receiver) = unbounded_channel();
        let cluster = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".to_owned(),
            name: "cart".to_owned(),
        };
        (Trigger::new(cluster, sender), receiver)
    }

    #[tokio::test]
    async fn the_first_change_calls_at_once_and_those_that_follow_closely_call_once_more() {
        let (trigger, mut calls) = trigger();
        let start = Instant::now();
        for _ in 0..50 {
            trigger.fire();
        }
        assert!(calls.try_recv().is_ok(), "at once");
        assert!(calls.try_recv().is_err(), "once");
        assert!(calls.recv().await.is_some());
        assert!(start.elapsed() >= TOGETHER, "{:?}", start.elapsed());
        let left_over = tokio::time::timeout(TOGETHER * 5, calls.recv()).await;
        assert!(left_over.is_err());
        trigger.fire();
        assert!(calls.try_recv().is_ok(), "a later change calls at once again");
    }

    #[tokio::test]
    async fn a_burst_wakes_the_members_once() {
        let (trigger, _calls) = trigger();
        let mut alert = trigger.alert();
        trigger.fire();
        assert!(alert.has_changed().unwrap());
        alert.mark_unchanged();
        for _ in 0..50 {
            trigger.fire();
        }
        assert!(!alert.has_changed().unwrap());
    }
}
