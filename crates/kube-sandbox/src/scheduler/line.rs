//! The line of pods that wait for a node.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::Notify;

use crate::controllers::machine::ObjectKey;

type Rank = (Reverse<i32>, Option<Timestamp>, ObjectKey);

/// Pods to be placed, the highest priority and the oldest first, and those that found no place until something
/// changes.
#[derive(Default)]
pub struct Line {
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Default)]
struct State {
    ready: BTreeSet<Rank>,
    stuck: HashSet<ObjectKey>,
    ranks: HashMap<ObjectKey, Rank>,
    /// Whether something changed since the pod in hand was taken: what it saw may be outdated.
    changed: bool,
}

fn rank(pod: &Pod) -> Rank {
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (Reverse(priority), created, ObjectKey::of(pod))
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a pod in line.
    pub fn add(&self, pod: &Pod) {
        let mut state = self.state();
        let rank = rank(pod);
        if let Some(old) = state.ranks.insert(rank.2.clone(), rank.clone()) {
            state.ready.remove(&old);
        }
        state.stuck.remove(&rank.2);
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
        state.stuck.remove(key);
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

    /// The pod in hand found no place: it waits for a change, unless one came meanwhile.
    pub fn stuck(&self, key: &ObjectKey) {
        let mut state = self.state();
        let Some(rank) = state.ranks.get(key).cloned() else {
            return;
        };
        if state.changed {
            state.ready.insert(rank);
            drop(state);
            self.wake.notify_one();
        } else {
            state.stuck.insert(key.clone());
        }
    }

    /// Something changed that may make room: everyone tries again.
    pub fn stir(&self) {
        let mut state = self.state();
        state.changed = true;
        let stuck = std::mem::take(&mut state.stuck);
        if stuck.is_empty() {
            return;
        }
        for key in stuck {
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
    async fn the_important_and_the_old_go_first() {
        let line = Line::default();
        line.add(&pod("late", 0, "2026-01-01T00:00:05Z"));
        line.add(&pod("early", 0, "2026-01-01T00:00:01Z"));
        line.add(&pod("urgent", 9, "2026-01-01T00:00:09Z"));
        let order = [line.next().await.name, line.next().await.name, line.next().await.name];
        assert_eq!(order, ["urgent", "early", "late"]);
    }

    #[tokio::test]
    async fn a_stuck_pod_comes_back_when_something_stirs() {
        let line = Line::default();
        line.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = line.next().await;
        line.stuck(&key);
        assert!(line.state().ready.is_empty());
        line.stir();
        assert_eq!(line.next().await, key);
    }

    #[tokio::test]
    async fn a_change_during_the_decision_is_not_lost() {
        let line = Line::default();
        line.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = line.next().await;
        line.stir();
        line.stuck(&key);
        assert_eq!(line.next().await, key);
    }

    #[tokio::test]
    async fn a_deleted_pod_does_not_come_back() {
        let line = Line::default();
        line.add(&pod("a", 0, "2026-01-01T00:00:01Z"));
        let key = line.next().await;
        line.remove(&key);
        line.stir();
        line.stuck(&key);
        assert!(line.state().ready.is_empty());
    }
}
