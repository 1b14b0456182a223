//! The queue of pods that wait for a node.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::Notify;

use crate::controllers::runtime::ObjectKey;

type Rank = (Reverse<i32>, Option<Timestamp>, ObjectKey);

/// Pods to schedule, the highest priority and the oldest first, and unschedulable pods, which wait for a change.
#[derive(Default)]
pub struct SchedulingQueue {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    ready: BTreeSet<Rank>,
    unschedulable: HashSet<ObjectKey>,
    ranks: HashMap<ObjectKey, Rank>,
    /// Whether something changed since the current pod was taken: its decision may be outdated.
    changed: bool,
}

fn rank(pod: &Pod) -> Rank {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (Reverse(priority), created, ObjectKey::of(pod))
}

impl SchedulingQueue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a pod.
    pub fn add(&self, pod: &Pod) {
        let mut state = self.state();
        let rank = rank(pod);
        if let Some(old) = state.ranks.insert(rank.2.clone(), rank.clone()) {
            state.ready.remove(&old);
        }
        state.unschedulable.remove(&rank.2);
        state.ready.insert(rank);
        drop(state);
        self.wake.notify_one();
    }

    /// Forgets a pod.
    pub fn remove(&self, key: &ObjectKey) {
        let mut state = self.state();
        if let Some(rank) = state.ranks.remove(key) {
            state.ready.remove(&rank);
        }
        state.unschedulable.remove(key);
    }

    /// The next pod.
    pub async fn next(&self) -> ObjectKey {
        loop {
            {
                let mut state = self.state();
                if let Some(rank) = state.ready.pop_first() {
                    state.changed = false;
                    return rank.2;
                }
            }
            self.wake.notified().await;
        }
    }

    /// The current pod fits no node: it waits for a change, unless one came meanwhile.
    pub fn unschedulable(&self, key: &ObjectKey) {
        let mut state = self.state();
        let Some(rank) = state.ranks.get(key).cloned() else {
            return;
        };
        if state.changed {
            state.ready.insert(rank);
            drop(state);
            self.wake.notify_one();
        } else {
            state.unschedulable.insert(key.clone());
        }
    }

    /// Something changed that may make room: all unschedulable pods are retried.
    pub fn retry_all(&self) {
        let mut state = self.state();
        state.changed = true;
        let unschedulable = std::mem::take(&mut state.unschedulable);
        if unschedulable.is_empty() {
            return;
        }
        for key in unschedulable {
            if let Some(rank) = state.ranks.get(&key).cloned() {
                state.ready.insert(rank);
            }
        }
        drop(state);
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, priority: i32, created: &str) -> Pod {
        serde_json::from_value(
            json!({"metadata": {"name": name, "namespace": "n", "creationTimestamp": created},
            "spec": {"containers": [], "priority": priority}}),
        )
        .unwrap()
    }

    #[tokio::test]
    async fn pods_of_high_priority_and_old_pods_go_first() {
        let queue = SchedulingQueue::default();
        queue.add(&pod("late", 0, "2026-01-01T00:00:05Z"));
        queue.add(&pod("early", 0, "2026-01-01T00:00:01Z"));
        queue.add(&pod("urgent", 9, "2026-01-01T00:00:09Z"));
        let order = [
            queue.next().await.name,
            queue.next().await.name,
            queue.next().await.name,
        ];
        assert_eq!(order, ["urgent", "early", "late"]);
    }

    #[tokio::test]
    async fn an_unschedulable_pod_is_retried_after_a_change() {
        let queue = SchedulingQueue::default();
        queue.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = queue.next().await;
        queue.unschedulable(&key);
        assert!(queue.state().ready.is_empty());
        queue.retry_all();
        assert_eq!(queue.next().await, key);
    }

    #[tokio::test]
    async fn a_change_during_the_decision_is_not_lost() {
        let queue = SchedulingQueue::default();
        queue.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = queue.next().await;
        queue.retry_all();
        queue.unschedulable(&key);
        assert_eq!(queue.next().await, key);
    }

    #[tokio::test]
    async fn a_deleted_pod_does_not_come_back() {
        let queue = SchedulingQueue::default();
        queue.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = queue.next().await;
        queue.remove(&key);
        queue.retry_all();
        queue.unschedulable(&key);
        assert!(queue.state().ready.is_empty());
    }
}
