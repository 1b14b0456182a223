//! Fast scaling and upgrading: the servers are replaced, their keys are purged by request.

use std::time::Duration;

use serde_json::{Value, json};

use super::OTHER_IMAGE;
use crate::Result;
use crate::cluster::Cluster;
use crate::rows::PATIENCE;
use crate::table::{Row, seconds};

/// How long each may take beyond the start of the pods.
const PROMISED: Duration = Duration::from_secs(6);

/// Scales from 3 to 5 primaries, then changes the image.
pub async fn rows(cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    Ok(vec![
        row(cluster, "fast scaling 3 to 5", &json!({"primaries": 5}), 5).await?,
        row(cluster, "fast upgrade of 5", &json!({"image": OTHER_IMAGE}), 5).await?,
    ])
}

async fn row(cluster: &Cluster<'_>, what: &str, change: &Value, pods: usize) -> Result<Row> {
    let known = cluster.uids().await?;
    let (begun, generation) = cluster.change(change).await?;
    let answering = cluster.answering_beside(&known, pods, PATIENCE).await? - begun;
    let took = cluster.ready(generation, begun, PATIENCE).await? - begun;
    let beyond = took.saturating_sub(answering);
    Ok(Row::new(
        &format!("Redkey: {what}, beyond the start of pods"),
        &seconds(PROMISED),
        format!("{} (new pods answered after {})", seconds(beyond), seconds(answering)),
        beyond <= PROMISED,
    ))
}
