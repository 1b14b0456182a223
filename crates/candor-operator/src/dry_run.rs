//! Dry run: observes and plans as usual, logs what it would do, and writes nothing, neither to the API server nor to a
//! server.

use std::time::Duration;

use candor_api::ValkeyCluster;
use candor_engine::attempts::Attempts;
use candor_engine::plan::plan;
use jiff::Timestamp;

use crate::act::deletion::deletes_volumes;
use crate::decisions;
use crate::observe::observe;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The shortest requeue delay: planned steps are not executed, so there is no need to hurry.
const SHORTEST: Duration = Duration::from_secs(1);
/// Requeue delay while the cluster is being deleted.
const SELDOM: Duration = Duration::from_secs(30);

/// Logs what would be done; returns when to reconcile again.
pub async fn dry_run(context: &Context, key: &ClusterKey, cluster: &ValkeyCluster) -> Duration {
    if cluster.metadata.deletion_timestamp.is_some() {
        let volumes = if deletes_volumes(cluster) { ", its volumes" } else { "" };
        let would = format!("its workloads would be deleted{volumes}, and then it would be let go");
        decisions::log_dry_run(context, key, "the cluster is being deleted", &would);
        return SELDOM;
    }
    let observed = observe(context, key, cluster).await;
    let plan = plan(
        &observed.desired,
        &observed.observation,
        &observed.memory,
        &Attempts::default(),
        Timestamp::now(),
    );
    let steps: Vec<String> = plan.steps.iter().map(|step| format!("{step:?}")).collect();
    let would = if steps.is_empty() {
        "nothing".to_owned()
    } else {
        steps.join(", ")
    };
    decisions::log_dry_run(context, key, &plan.stage.to_string(), &would);
    plan.requeue_after.max(SHORTEST)
}
