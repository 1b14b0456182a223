//! Logs each decision of the plan with its reason: one line per decision, and none while it stays the same.

use candor_engine::plan::Plan;

use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// Logs the planned steps, or what the operator waits for, with the reason.
pub fn log(context: &Context, key: &ClusterKey, plan: &Plan) {
    let (why, steps) = (plan.stage.to_string(), format!("{:?}", plan.steps));
    if context.states.with(key, |state| state.is_new_decision(&why, &steps)) {
        tracing::info!(cluster = %key, why, steps, "decided");
    }
}

/// Logs what a dry run would do, with the reason.
pub fn log_dry_run(context: &Context, key: &ClusterKey, why: &str, would: &str) {
    if context.states.with(key, |state| state.is_new_decision(why, would)) {
        tracing::info!(cluster = %key, why, would, "dry run: nothing is done");
    }
}
