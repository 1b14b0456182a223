//! The cost of an idle cluster with six members and Robin.

use std::time::Duration;

use crate::cluster::Cluster;
use crate::requests::Requests;
use crate::stage::{robins, weight_of};
use crate::table::Row;
use crate::{Result, Sizes};

/// Measures a healthy cluster that has nothing to do.
pub async fn idle(cluster: &Cluster<'_>, sizes: Sizes, requests: &Requests) -> Result<Vec<Row>> {
    cluster.settled().await?;
    // What remains after a creation ends within a few seconds: events and a last reconcile.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let robins = robins()?;
    let [robin] = robins[..] else {
        return Err(format!("{} Robins run", robins.len()).into());
    };
    let (before, (_, spent_before)) = (requests.so_far(), weight_of(robin)?);
    tokio::time::sleep(Duration::from_secs(sizes.idle_seconds.into())).await;
    let (after, (resident, spent_after)) = (requests.so_far(), weight_of(robin)?);
    let window = f64::from(sizes.idle_seconds);
    let writes = after.writes - before.writes;
    let core = spent_after.saturating_sub(spent_before).as_secs_f64() * 100.0 / window;
    let megabytes = f64::from(u32::try_from(resident / 1024)?) / 1024.0;
    let what = |figure: &str| format!("Redkey, 6 members, idle for {window} s: {figure}");
    Ok(vec![
        Row::new(&what("writes"), "0", writes.to_string(), writes == 0),
        Row::new(
            &what("Robin's memory"),
            "15 MB",
            format!("{megabytes:.1} MB"),
            megabytes <= 15.0,
        ),
        Row::new(
            &what("Robin's processor"),
            "0.2 % of a core",
            format!("{core:.2} %"),
            core <= 0.2,
        ),
    ])
}
