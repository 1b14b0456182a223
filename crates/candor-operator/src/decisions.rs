//! What was decided, and why: one log line for each decision, and none while it stays the same.

use candor_engine::plan::Plan;

use crate::cache::ClusterKey;
use crate::context::Context;

/// Logs what is going to be done, or waited for, and why.
pub fn log(context: &Context, key: &ClusterKey, plan: &Plan) {
    let (why, steps) = (plan.stage.to_string(), format!("{:?}", plan.steps));
    if context.states.with(key, |state| state.is_new_decision(&why, &steps)) {
        tracing::info!(cluster = %key, why, steps, "decided");
    }
}

/// Logs what would be done, and why.
pub fn log_dry_run(context: &Context, key: &ClusterKey, why: &str, would: &str) {
    if context.states.with(key, |state| state.is_new_decision(why, would)) {
        tracing::info!(cluster = %key, why, would, "dry run: nothing is done");
    }
}
