//! What was decided, and why: one line in the log for each decision, and none while it stays the same.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use candor_engine::plan::Plan;

use crate::cache::ClusterKey;

/// The last decision about each cluster.
#[derive(Default)]
pub struct Decisions(Mutex<HashMap<ClusterKey, (String, String)>>);

impl Decisions {
    /// Says what is going to be done, or waited for, and why.
    pub fn note(&self, key: &ClusterKey, plan: &Plan) {
        let (why, steps) = (plan.stage.to_string(), format!("{:?}", plan.steps));
        if self.is_new(key, &why, &steps) {
            tracing::info!(cluster = %key, why, steps, "decided");
        }
    }

    /// Says what would be done, and why.
    pub fn rehearse(&self, key: &ClusterKey, why: &str, would: &str) {
        if self.is_new(key, why, would) {
            tracing::info!(cluster = %key, why, would, "dry run: nothing is done");
        }
    }

    /// A cluster is gone.
    pub fn forget(&self, key: &ClusterKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn is_new(&self, key: &ClusterKey, why: &str, what: &str) -> bool {
        let decision = (why.to_owned(), what.to_owned());
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert(key.clone(), decision.clone()) != Some(decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_new_once_and_again_after_another() {
        let (decisions, key) = (
            Decisions::default(),
            ClusterKey {
                namespace: "shop".into(),
                name: "cart".into(),
            },
        );
        let told = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "y"), ("a", "x")];
        let new = told.map(|(why, what)| decisions.is_new(&key, why, what));
        assert_eq!(new, [true, false, true, true, true]);
    }
}
