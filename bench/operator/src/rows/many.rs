//! Many clusters of simulated members, one operator.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use valkey_sim::pods::Pods;
use valkey_sim::{Timing, World};

use crate::cluster::Cluster;
use crate::rows::spec;
use crate::stage::Stage;
use crate::table::{Row, seconds};
use crate::{Result, Sizes};

/// Clusters that are created concurrently, as many as a busy user would.
const AT_ONCE: usize = 8;

/// Memory and CPU with all of them healthy, and how soon the operator acts on a change in one.
pub async fn clusters(stage: &Stage, sizes: Sizes) -> Result<Vec<Row>> {
    let world = World::new(Timing::default());
    let _pods = Pods::run(
        stage.sandbox()?.client_as("kubelet", &["system:masters"]),
        world,
        3,
        "9.1.2",
    )
    .await?;
    let clusters: Vec<Cluster<'_>> = (0..sizes.clusters)
        .map(|n| Cluster::new(stage, &format!("c{n}")))
        .collect();
    let within = Duration::from_secs(400);
    let created = futures::stream::iter(&clusters)
        .map(Ok)
        .try_for_each_concurrent(AT_ONCE, async |cluster| {
            let begun = cluster.create(&spec(3)).await?;
            cluster.ready(1, begun, within).await.map(|_| ())
        });
    tokio::time::timeout(within, created)
        .await
        .map_err(|_| format!("{} clusters are not Ready after {} s", sizes.clusters, within.as_secs()))??;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (resident, _) = stage.weight()?;
    let mut times = Vec::new();
    for cluster in clusters.iter().cycle().step_by(7).take(100) {
        let value = if times.len() % 2 == 0 {
            "allkeys-lru"
        } else {
            "allkeys-lfu"
        };
        let (begun, generation) = cluster.change(&json!({"config": {"maxmemory-policy": value}})).await?;
        times.push(cluster.noticed(generation, begun, Duration::from_secs(20)).await? - begun);
    }
    times.sort();
    let worst = times
        .get(times.len() * 99 / 100)
        .or(times.last())
        .copied()
        .unwrap_or_default();
    let megabytes = f64::from(u32::try_from(resident / 1024)?) / 1024.0;
    let what = |figure: &str| format!("{} clusters x 6 simulated members: {figure}", sizes.clusters);
    Ok(vec![
        Row::new(
            &what("memory"),
            "100 MB",
            format!("{megabytes:.1} MB"),
            megabytes <= 100.0,
        ),
        Row::new(
            &what("a change in one is acted on, p99"),
            "0.20 s",
            format!("{} (median {})", seconds(worst), seconds(times[times.len() / 2])),
            worst <= Duration::from_millis(200),
        ),
    ])
}
