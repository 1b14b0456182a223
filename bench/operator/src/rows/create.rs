//! Creation of clusters.

use crate::cluster::Cluster;
use crate::manual;
use crate::rows::{PATIENCE, spec};
use crate::stage::Stage;
use crate::table::{Row, each, median, seconds};
use crate::{Result, Sizes};
use std::time::Duration;

/// 3 shards with one replica each. The cluster is kept for the next rows.
pub async fn usual(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let begun = cluster.apply(&spec(3)).await?;
    let took = cluster.ready(1, begun, PATIENCE).await? - begun;
    let (met, manual_time) = match manual::create(stage, "hand", 3).await {
        Ok(manual_time) => (
            took <= manual_time.answering + manual_time.forming,
            seconds(manual_time.answering + manual_time.forming),
        ),
        Err(error) => (false, format!("failed: {error}")),
    };
    let row = Row::new(
        "create 3x1, apply to Ready",
        "not slower than by hand",
        seconds(took),
        met,
    );
    Ok(vec![row.manual(manual_time)])
}

/// A cluster for the rows that need one.
pub async fn quietly(cluster: &Cluster<'_>) -> Result<()> {
    let begun = cluster.create(&spec(3)).await?;
    cluster.ready(1, begun, PATIENCE).await.map(drop)
}

/// 3 shards with one replica each on a real cluster, the operator and the manual baseline in turns. A single round
/// says little there.
pub async fn real(stage: &Stage) -> Result<Vec<Row>> {
    const ROUNDS: usize = 5;
    const PROMISED: Duration = Duration::from_millis(5500);
    let (mut ours, mut manual_times, mut answering) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let cluster = Cluster::new(stage, &format!("bench-{round}"));
        let begun = cluster.apply(&spec(3)).await?;
        let ready = cluster.ready(1, begun, PATIENCE).await;
        cluster.delete().await?;
        ours.push(ready? - begun);
        let manual_time = manual::create(stage, &format!("hand-{round}"), 3).await?;
        answering.push(manual_time.answering);
        manual_times.push(manual_time.answering + manual_time.forming);
    }
    let (ready, manual_time) = (median(&ours), median(&manual_times));
    let row = Row::new(
        "create 3x1 on a real cluster, apply to Ready",
        "5.50 s and not slower than by hand",
        format!("{} (rounds: {})", seconds(ready), each(&ours)),
        ready <= PROMISED && ready <= manual_time,
    );
    let manual_time = format!(
        "{} (rounds: {}; servers answered after {})",
        seconds(manual_time),
        each(&manual_times),
        seconds(median(&answering))
    );
    Ok(vec![row.manual(manual_time)])
}

/// 30 shards with one replica each, measured from the moment when all processes respond.
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
    let manual_time = match manual::create(stage, "large-hand", shards).await {
        Ok(manual_time) => seconds(manual_time.forming),
        Err(error) => format!("failed: {error}"),
    };
    let row = Row::new(
        &format!("create {shards}x1, after all processes answer"),
        "10 s",
        format!("{} (they answered after {})", seconds(forming), seconds(answering)),
        forming <= Duration::from_secs(10),
    );
    Ok(vec![row.manual(manual_time)])
}
