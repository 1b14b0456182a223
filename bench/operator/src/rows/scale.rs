//! Scaling shards out and in under writes.

use std::time::Duration;

use serde_json::json;

use crate::cluster::Cluster;
use crate::keys;
use crate::manual;
use crate::rows::PATIENCE;
use crate::servers::{Generation, Primaries};
use crate::table::{Row, seconds};
use crate::{Result, Sizes};

/// Scales from 3 to 5 shards and back, with many keys and 2,000 writes per second.
pub async fn scale(cluster: &Cluster<'_>, sizes: Sizes) -> Result<Vec<Row>> {
    cluster.settled().await?;
    let all = 0..sizes.scale_keys;
    keys::fill(cluster.member(true).await?.address, all.clone()).await?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;

    let (begun, generation) = cluster.change(&json!({"shards": 5})).await?;
    let answering = cluster.answering(10, PATIENCE).await?;
    let out_in_all = cluster.ready(generation, begun, PATIENCE).await? - begun;
    let pods = answering - begun;
    let out = out_in_all.saturating_sub(pods);
    cluster.whole(&auditor).await?;

    let (begun, generation) = cluster.change(&json!({"shards": 3})).await?;
    let back = cluster.ready(generation, begun, PATIENCE).await? - begun;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let gone = keys::missing(cluster.member(true).await?.address, all).await?;
    let outage = audit.longest_outage();
    let manual_time = match person(sizes).await {
        Ok(took) => format!("{} for the slots alone, no writes", seconds(took)),
        Err(error) => format!("failed: {error}"),
    };
    let what = |figure: &str| format!("{} keys, 2,000 writes/s: {figure}", sizes.scale_keys);
    let promised = Duration::from_secs(4);
    Ok(vec![
        Row::new(
            &what("3 to 5 shards, beyond the start of pods"),
            "4.00 s",
            format!("{} (pods answered after {})", seconds(out), seconds(pods)),
            out <= promised,
        )
        .manual(manual_time),
        Row::new(&what("5 to 3 shards"), "4.00 s", seconds(back), back <= promised),
        Row::new(
            &what("longest outage of a slot; lost"),
            "0.30 s; 0",
            format!(
                "{}; {} of {} writes, {gone} of the keys (auditor stalled {})",
                seconds(outage),
                audit.writes.lost,
                audit.writes.acknowledged,
                seconds(audit.stalled)
            ),
            outage <= Duration::from_millis(300) && audit.writes.lost == 0 && gone == 0,
        ),
    ])
}

/// Moves the same slots and keys with valkey-cli, on separate servers.
async fn person(sizes: Sizes) -> Result<Duration> {
    let primaries = Primaries::start(Generation::Newest, 5, 3).await?;
    keys::fill(primaries.members[0], 0..sizes.scale_keys).await?;
    manual::rebalance(Generation::Newest, primaries.members[0], Duration::from_secs(600)).await
}
