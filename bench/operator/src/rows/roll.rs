//! A rolling restart of every member.

use std::time::Duration;

use serde_json::json;

use crate::Result;
use crate::cluster::Cluster;
use crate::table::{Row, seconds};

/// Changed resources need new pods: all six are replaced while canaries are written.
pub async fn roll(cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    cluster.settled().await?;
    let auditor = cluster.audit().await?;
    let (begun, generation) = cluster
        .change(&json!({"resources": {"limits": {"memory": "1Gi"}}}))
        .await?;
    let took = cluster.ready(generation, begun, Duration::from_secs(120)).await? - begun;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let each = took / 6;
    let outage = audit.longest_outage();
    Ok(vec![
        Row::new(
            "rolling restart of 6 members",
            "4 s a member",
            format!("{} a member, {} in all", seconds(each), seconds(took)),
            each <= Duration::from_secs(4),
        ),
        Row::new(
            "rolling restart: longest outage of a slot; lost writes",
            "0.30 s; 0",
            format!(
                "{}; {} of {} lost (auditor stalled {})",
                seconds(outage),
                audit.writes.lost,
                audit.writes.acknowledged,
                seconds(audit.stalled)
            ),
            outage <= Duration::from_millis(300) && audit.writes.lost == 0,
        ),
    ])
}
