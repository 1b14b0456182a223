//! State that this process retains for each cluster between two reconciles: one value per cluster in one map, removed
//! by one call. Everything here may be lost in a crash.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::attempts::Attempts;

use crate::runtime::cache::ClusterKey;

/// Shortest interval between status writes that only contain progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// The retained state of one cluster.
#[derive(Debug, Default)]
pub struct ClusterState {
    /// Recent attempts.
    pub attempts: Attempts,
    /// Ordinals of a `RedkeyCluster` with a server that has the desired password already, and not the stored one.
    pub has_desired_password: BTreeSet<u32>,
    /// Uids of remembered pods that are confirmed deleted.
    pub deleted_pods: BTreeSet<String>,
    /// When status was last written.
    written: Option<Instant>,
    /// The last logged decision: its reason and its steps.
    decision: Option<(String, String)>,
}

impl ClusterState {
    /// How long a status write that only contains progress must wait; `None` if it may be written now.
    pub fn hold_progress(&self) -> Option<Duration> {
        let since = self.written?.elapsed();
        PROGRESS.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// Records a status write.
    pub fn written(&mut self) {
        self.written = Some(Instant::now());
    }

    /// Whether a decision differs from the last one.
    pub fn is_new_decision(&mut self, why: &str, steps: &str) -> bool {
        let decision = Some((why.to_owned(), steps.to_owned()));
        std::mem::replace(&mut self.decision, decision.clone()) != decision
    }
}

/// The state of every cluster. Only one task at a time reconciles a cluster, so its state has one user.
#[derive(Default)]
pub struct ClusterStates(Mutex<HashMap<ClusterKey, ClusterState>>);

impl ClusterStates {
    /// Reads or changes the state of a cluster.
    pub fn with<T>(&self, key: &ClusterKey, use_it: impl FnOnce(&mut ClusterState) -> T) -> T {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        use_it(states.entry(key.clone()).or_default())
    }

    /// The recent attempts of a cluster.
    pub fn attempts(&self, key: &ClusterKey) -> Attempts {
        self.with(key, |state| state.attempts.clone())
    }

    /// Removes the state of a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_new_once_and_again_after_another() {
        let mut state = ClusterState::default();
        let decisions = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "y"), ("a", "x")];
        let new = decisions.map(|(why, steps)| state.is_new_decision(why, steps));
        assert_eq!(new, [true, false, true, true, true]);
    }
}
