//! Clusters from nothing.

use crate::by_hand;
use crate::cluster::Cluster;
use crate::rows::{PATIENCE, spec};
use crate::stage::Stage;
use crate::table::{Row, seconds};
use crate::{Result, Sizes};
use std::time::Duration;

/// 3 shards with a replica each: the cluster stays for the next rows.
pub async fn usual(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let begun = cluster.apply(&spec(3)).await?;
    let took = cluster.ready(1, begun, PATIENCE).await? - begun;
    let (met, hand) = match by_hand::create(stage, "hand", 3).await {
        Ok(hand) => (
            took <= hand.answering + hand.forming,
            seconds(hand.answering + hand.forming),
        ),
        Err(error) => (false, format!("failed: {error}")),
    };
    let row = Row::new(
        "create 3x1, apply to Ready",
        "not slower than by hand",
        seconds(took),
        met,
    );
    Ok(vec![row.by_hand(hand)])
}

/// 30 shards with a replica each, from the moment that all processes answer.
pub async fn large(stage: &Stage, sizes: Sizes) -> Result<Vec<Row>> {
    let shards = sizes.large_shards;
    let cluster = Cluster::new(stage, "large");
    let begun = cluster.apply(&spec(shards)).await?;
    let members = usize::try_from(shards * 2)?;
    let measured = async {
        let answering = cluster.answering(members, PATIENCE).await?;
        let ready = cluster.ready(1, begun, PATIENCE).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>((
            answering - begun,
            ready.saturating_duration_since(answering),
        ))
    }
    .await;
    cluster.delete().await?;
    let (answering, forming) = measured?;
    let hand = match by_hand::create(stage, "large-hand", shards).await {
        Ok(hand) => seconds(hand.forming),
        Err(error) => format!("failed: {error}"),
    };
    let row = Row::new(
        &format!("create {shards}x1, after all processes answer"),
        "10 s",
        format!("{} (they answered after {})", seconds(forming), seconds(answering)),
        forming <= Duration::from_secs(10),
    );
    Ok(vec![row.by_hand(hand)])
}
