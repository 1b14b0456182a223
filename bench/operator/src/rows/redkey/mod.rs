//! A `RedkeyCluster` with its Robin: three clusters, one after the other. The first is scaled and upgraded fast, the
//! second slowly and under writes, the third has replicas and loses a member, Robin and the operator.

mod fast;
mod faults;
mod idle;
mod slow;

use std::time::Duration;

use candor_audit::Kind;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::requests::Requests;
use crate::rows::{PATIENCE, part};
use crate::stage::Stage;
use crate::table::{Row, Table, seconds};
use crate::{Result, Sizes};

/// How long a creation may take.
const CREATED: Duration = Duration::from_secs(5);
/// A tag of the same server as the sample's: a change of the image that is no change of version.
const OTHER_IMAGE: &str = "redis:8.0.6";
/// Longer than a slow upgrade with many keys takes.
const LONG: Duration = Duration::from_secs(180);

fn spec(replicas: u32, purge: bool) -> Value {
    json!({
        "primaries": 3, "replicasPerPrimary": replicas, "ephemeral": true, "purgeKeysOnRebalance": purge,
        "image": "redis:8-bookworm",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    })
}

/// All rows.
pub async fn life(stage: &Stage, sizes: Sizes, requests: &Requests, table: &mut Table) {
    let fast = Cluster::of(Kind::RedkeyCluster, stage, "fast");
    part(table, stage, "Redkey, fast", async {
        let mut rows = vec![created("3x0", &fast, &spec(0, true)).await?];
        rows.extend(fast::rows(&fast).await?);
        fast.delete().await?;
        Ok(rows)
    })
    .await;
    let slow = Cluster::of(Kind::RedkeyCluster, stage, "slow");
    part(table, stage, "Redkey, slow", async {
        created("3x0", &slow, &spec(0, false)).await?;
        let mut rows = slow::scaling(&slow, sizes).await?;
        rows.extend(slow::upgrade(&slow, sizes, "", Duration::from_secs(40)).await?);
        slow.delete().await?;
        Ok(rows)
    })
    .await;
    let paired = Cluster::of(Kind::RedkeyCluster, stage, "paired");
    part(table, stage, "Redkey, with replicas", async {
        let mut rows = vec![created("3x1", &paired, &spec(1, false)).await?];
        rows.extend(idle::idle(&paired, sizes, requests).await?);
        rows.extend(faults::members(stage, &paired).await?);
        rows.extend(faults::processes(stage, &paired).await?);
        rows.extend(slow::upgrade(&paired, sizes, " with a replica each", Duration::from_secs(15)).await?);
        paired.delete().await?;
        Ok(rows)
    })
    .await;
}

async fn created(shape: &str, cluster: &Cluster<'_>, spec: &Value) -> Result<Row> {
    let begun = cluster.apply(spec).await?;
    let took = cluster.ready(1, begun, PATIENCE).await? - begun;
    Ok(Row::new(
        &format!("Redkey: create {shape}, apply to Ready, Robin included"),
        &seconds(CREATED),
        seconds(took),
        took <= CREATED,
    ))
}
