//! The cost of an idle cluster.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::requests::Requests;
use crate::stage::Stage;
use crate::table::Row;
use crate::{Result, Sizes};

/// Measures a healthy cluster that has nothing to do.
pub async fn idle(stage: &Stage, cluster: &Cluster<'_>, sizes: Sizes, requests: &Requests) -> Result<Vec<Row>> {
    cluster.settled().await?;
    // What remains after a creation ends within a few seconds: events and a last reconcile.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, (_, spent_before)) = (requests.so_far(), stage.weight()?);
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds.into())).await;
    let (after, (resident, spent_after)) = (requests.so_far(), stage.weight()?);
    let window = f64::from(sizes.idle_seconds);
    let writes = after.writes - before.writes;
    let per_minute = f64::from(after.reads - before.reads + writes) * 60.0 / window;
    let watches = after.watches - before.watches;
    let core = spent_after.saturating_sub(spent_before).as_secs_f64() * 100.0 / window;
    let megabytes = f64::from(u32::try_from(resident / 1024)?) / 1024.0;
    let what = |figure: &str| format!("idle for {window} s: {figure}");
    Ok(vec![
        Row::new(&what("writes"), "0", writes.to_string(), writes == 0),
        Row::new(
            &what("API requests a minute"),
            "4",
            format!("{per_minute:.0} (watches begun anew: {watches})"),
            per_minute <= 4.0,
        ),
        Row::new(
            &what("memory"),
            "25 MB",
            format!("{megabytes:.1} MB"),
            megabytes <= 25.0,
        ),
        Row::new(
            &what("processor"),
            "0.3 % of a core",
            format!("{core:.2} %"),
            core <= 0.3,
        ),
    ])
}
