//! Members that crash or freeze.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::keys;
use crate::rows::PATIENCE;
use crate::stage::Stage;
use crate::table::{Row, seconds};
use crate::{Result, Sizes};

const NAMESPACE: &str = "default";

/// The node timeout that the operator configures unless the spec sets another.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends SIGKILL to a primary that holds many keys.
pub async fn killed(stage: &Stage, cluster: &Cluster<'_>, sizes: Sizes) -> Result<Vec<Row>> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    cluster.settled().await?;
    let all = 0..sizes.shard_keys * 3;
    keys::fill(cluster.member(true).await?.address, all.clone()).await?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;
    let victim = cluster.member(true).await?;
    let begun = Instant::now();
    kubelet.kill(NAMESPACE, &victim.pod, Some("server"))?;
    let reported = cluster.not_ready(begun, PATIENCE).await? - begun;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let gone = keys::missing(cluster.member(true).await?.address, all).await?;
    let (outage, late) = (audit.longest_outage(), audit.truth.worst_late_ready());
    let what = |figure: &str| format!("primary killed, {} keys in its shard: {figure}", sizes.shard_keys);
    Ok(vec![
        Row::new(
            &what("Ready=False"),
            "0.50 s",
            seconds(reported),
            reported <= Duration::from_millis(500),
        ),
        Row::new(
            &what("outage of a slot"),
            "0.50 s",
            format!("{} (auditor stalled {})", seconds(outage), seconds(audit.stalled)),
            outage <= Duration::from_millis(500),
        ),
        Row::new(
            &what("Ready after it is true"),
            "1.00 s",
            seconds(late),
            late <= Duration::from_secs(1),
        ),
        Row::new(
            &what("keys gone; canaries that had not left the primary"),
            "0; not bounded",
            format!("{gone}; {} of {}", audit.writes.lost, audit.writes.acknowledged),
            gone == 0,
        ),
    ])
}

/// The same with a node timeout of half a minute: after a crash the operator does not wait for an election.
pub async fn patient(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    let timeout = |millis: Value| json!({"config": {"cluster-node-timeout": millis}});
    let (begun, generation) = cluster.change(&timeout(json!("30000"))).await?;
    cluster.ready(generation, begun, PATIENCE).await?;
    let auditor = cluster.audit().await?;
    let victim = cluster.member(true).await?;
    let begun = Instant::now();
    kubelet.kill(NAMESPACE, &victim.pod, Some("server"))?;
    cluster.not_ready(begun, PATIENCE).await?;
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    let (begun, generation) = cluster.change(&timeout(Value::Null)).await?;
    cluster.ready(generation, begun, PATIENCE).await?;
    let outage = audit.longest_outage();
    Ok(vec![Row::new(
        "primary killed, node timeout 30 s: outage of a slot",
        "0.50 s",
        format!("{} (auditor stalled {})", seconds(outage), seconds(audit.stalled)),
        outage <= Duration::from_millis(500),
    )])
}

/// Sends SIGSTOP to a primary, then to a replica.
pub async fn frozen(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    let mut rows = Vec::new();
    for (primary, role) in [(true, "primary"), (false, "replica")] {
        cluster.settled().await?;
        let victim = cluster.member(primary).await?;
        let begun = Instant::now();
        kubelet.freeze(NAMESPACE, &victim.pod)?;
        let reported = cluster.not_ready(begun, Duration::from_secs(20)).await;
        kubelet.thaw(NAMESPACE, &victim.pod)?;
        let reported = reported? - begun;
        rows.push(Row::new(
            &format!("{role} frozen: Ready=False"),
            "2.00 s",
            seconds(reported),
            reported <= Duration::from_secs(2),
        ));
    }
    cluster.settled().await?;
    Ok(rows)
}

/// Sends SIGKILL to a primary while no operator runs: the servers elect a new primary themselves.
pub async fn alone(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;
    stage.kill_operator();
    let victim = cluster.member(true).await?;
    kubelet.kill(NAMESPACE, &victim.pod, Some("server"))?;
    let written = auditor.acknowledged();
    let begun = Instant::now();
    let allowed = NODE_TIMEOUT.mul_f64(1.5) + Duration::from_secs(1);
    // Long enough that every slot was due for another canary, whenever the election took place.
    tokio::time::sleep(allowed + Duration::from_secs(4)).await;
    stage.start_operator()?;
    let healed = cluster.whole(&auditor).await;
    let audit = auditor.finish().await;
    healed?;
    if audit.writes.acknowledged <= written {
        return Err(format!("no write was taken in {:?}", begun.elapsed()).into());
    }
    let outage = audit.longest_outage();
    Ok(vec![Row::new(
        "primary killed, no operator: outage of a slot",
        &seconds(allowed),
        seconds(outage),
        outage <= allowed,
    )])
}
