//! Slow scaling and upgrading: slots move with their keys, under writes.

use std::time::Duration;

use candor_audit::Audit;
use serde_json::json;

use super::{LONG, OTHER_IMAGE};
use crate::cluster::Cluster;
use crate::keys;
use crate::manual;
use crate::rows::PATIENCE;
use crate::servers::{Generation, Primaries};
use crate::table::{Row, seconds};
use crate::{Result, Sizes};

/// How long each scaling may take beyond the start of the pods.
const SCALED: Duration = Duration::from_secs(12);
/// How long a slot may be without an owner that takes writes.
const OUTAGE: Duration = Duration::from_millis(300);

/// Scales from 3 to 5 primaries and back, with many keys and 2,000 writes per second.
pub async fn scaling(cluster: &Cluster<'_>, sizes: Sizes) -> Result<Vec<Row>> {
    let all = 0..sizes.scale_keys;
    keys::fill(cluster.member(true).await?.address, all.clone()).await?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;

    let (begun, generation) = cluster.change(&json!({"primaries": 5})).await?;
    let pods = cluster.answering(5, PATIENCE).await? - begun;
    let up = (cluster.ready(generation, begun, LONG).await? - begun).saturating_sub(pods);
    cluster.whole(&auditor).await?;

    let (begun, generation) = cluster.change(&json!({"primaries": 3})).await?;
    let down = cluster.ready(generation, begun, LONG).await? - begun;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let gone = keys::missing(cluster.member(true).await?.address, all).await?;
    let manual_time = match person(sizes).await {
        Ok(took) => format!("{} for the slots alone, no writes", seconds(took)),
        Err(error) => format!("failed: {error}"),
    };
    let what = |figure: &str| format!("Redkey, {} keys, 2,000 writes/s: {figure}", sizes.scale_keys);
    Ok(vec![
        Row::new(
            &what("slow scaling 3 to 5, beyond the start of pods"),
            &seconds(SCALED),
            format!("{} (pods answered after {})", seconds(up), seconds(pods)),
            up <= SCALED,
        )
        .manual(manual_time),
        Row::new(
            &what("slow scaling 5 to 3"),
            &seconds(SCALED),
            seconds(down),
            down <= SCALED,
        ),
        kept(&what("scaling"), &audit, gone),
    ])
}

/// Replaces every server, with many keys and 2,000 writes per second.
pub async fn upgrade(cluster: &Cluster<'_>, sizes: Sizes, shape: &str, promised: Duration) -> Result<Vec<Row>> {
    let all = 0..sizes.scale_keys;
    keys::fill(cluster.member(true).await?.address, all.clone()).await?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;
    let (begun, generation) = cluster.change(&json!({"image": OTHER_IMAGE})).await?;
    let took = cluster.ready(generation, begun, LONG).await? - begun;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let gone = keys::missing(cluster.member(true).await?.address, all).await?;
    let what = format!(
        "Redkey, {} keys, 2,000 writes/s: slow upgrade of 3 primaries{shape}",
        sizes.scale_keys
    );
    Ok(vec![
        Row::new(&what, &seconds(promised), seconds(took), took <= promised),
        kept(&what, &audit, gone),
    ])
}

fn kept(what: &str, audit: &Audit, gone: u64) -> Row {
    let outage = audit.longest_outage();
    Row::new(
        &format!("{what}: longest outage of a slot; lost"),
        "0.30 s; 0",
        format!(
            "{}; {} of {} writes, {gone} of the keys (auditor stalled {})",
            seconds(outage),
            audit.writes.lost,
            audit.writes.acknowledged,
            seconds(audit.stalled)
        ),
        outage <= OUTAGE && audit.writes.lost == 0 && gone == 0,
    )
}

/// Moves the same slots and keys with redis-cli, on separate servers.
async fn person(sizes: Sizes) -> Result<Duration> {
    let primaries = Primaries::start(Generation::Redis, 5, 3).await?;
    keys::fill(primaries.members[0], 0..sizes.scale_keys).await?;
    manual::rebalance(Generation::Redis, primaries.members[0], Duration::from_secs(600)).await
}
