//! What this process keeps about each cluster between two reconciles: one value per cluster in one map, forgotten by
//! one call. Everything here may be lost in a crash.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use candor_engine::attempts::Attempts;

use crate::cache::ClusterKey;

/// Mere progress is written at most this often.
const PROGRESS: Duration = Duration::from_secs(1);

/// What is kept about one cluster.
#[derive(Debug, Default)]
pub struct ClusterState {
    /// What was tried lately.
    pub attempts: Attempts,
    /// When status was last written.
    written: Option<Instant>,
    /// The last decision that was logged: why, and the steps.
    decision: Option<(String, String)>,
}

impl ClusterState {
    /// How long mere progress must wait until it may be written; nothing when it may be written now.
    pub fn hold_progress(&self) -> Option<Duration> {
        let since = self.written?.elapsed();
        PROGRESS.checked_sub(since).filter(|left| !left.is_zero())
    }

    /// A status was written.
    pub fn written(&mut self) {
        self.written = Some(Instant::now());
    }

    /// Whether a decision differs from the last one.
    pub fn is_new_decision(&mut self, why: &str, steps: &str) -> bool {
        let decision = Some((why.to_owned(), steps.to_owned()));
        std::mem::replace(&mut self.decision, decision.clone()) != decision
    }
}

/// The state of every cluster. A cluster is reconciled by one task at a time, so its state has one user.
#[derive(Default)]
pub struct ClusterStates(Mutex<HashMap<ClusterKey, ClusterState>>);

impl ClusterStates {
    /// Reads or changes what is kept about a cluster.
    pub fn with<T>(&self, key: &ClusterKey, use_it: impl FnOnce(&mut ClusterState) -> T) -> T {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        use_it(states.entry(key.clone()).or_default())
    }

    /// What was tried for a cluster.
    pub fn attempts(&self, key: &ClusterKey) -> Attempts {
        self.with(key, |state| state.attempts.clone())
    }

    /// A cluster is gone.
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
