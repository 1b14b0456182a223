//! Members, Robin and the operator that crash or freeze.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};

use crate::Result;
use crate::cluster::Cluster;
use crate::rows::PATIENCE;
use crate::stage::Stage;
use crate::table::{Row, seconds};
use crate::wait::until;

const NAMESPACE: &str = "default";

/// Sends SIGKILL to a primary, SIGSTOP to another.
pub async fn members(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    let (reported, outage) = killed(stage, cluster, async || Ok(())).await?;
    let mut rows = vec![
        Row::new(
            "Redkey: primary killed: Ready=False",
            "1.00 s",
            seconds(reported),
            reported <= Duration::from_secs(1),
        ),
        outage_row("primary killed", outage),
    ];
    let victim = cluster.member(true).await?;
    let begun = Instant::now();
    kubelet.freeze(NAMESPACE, &victim.pod)?;
    let reported = cluster.not_ready(begun, Duration::from_secs(20)).await;
    kubelet.thaw(NAMESPACE, &victim.pod)?;
    let reported = reported? - begun;
    cluster.settled().await?;
    rows.push(Row::new(
        "Redkey: primary frozen: Ready=False",
        "2.00 s",
        seconds(reported),
        reported <= Duration::from_secs(2),
    ));
    Ok(rows)
}

/// Sends SIGKILL to Robin or the operator or both, and to a primary at the same moment.
pub async fn processes(stage: &Stage, cluster: &Cluster<'_>) -> Result<Vec<Row>> {
    let robin = async || {
        let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
        kubelet.kill(NAMESPACE, &robin(stage).await?, None)?;
        Ok(())
    };
    let operator = async || {
        stage.kill_operator();
        Ok(())
    };
    let both = async || {
        stage.kill_operator();
        robin().await
    };
    let mut rows = Vec::new();
    let (_, outage) = killed(stage, cluster, robin).await?;
    rows.push(outage_row("primary and Robin killed", outage));
    let (late, outage) = killed(stage, cluster, operator).await?;
    rows.push(outage_row("primary and operator killed, Robin alone", outage));
    rows.push(return_row("primary and operator killed", late));
    let (late, _) = killed(stage, cluster, both).await?;
    rows.push(return_row("primary, Robin and operator killed", late));
    Ok(rows)
}

fn outage_row(what: &str, outage: Duration) -> Row {
    Row::new(
        &format!("Redkey: {what}: slots are served again"),
        "0.50 s",
        seconds(outage),
        outage <= Duration::from_millis(500),
    )
}

fn return_row(what: &str, late: Duration) -> Row {
    Row::new(
        &format!("Redkey: {what}: status is true after the operator's return"),
        "2.00 s",
        seconds(late),
        late <= Duration::from_secs(2),
    )
}

/// Kills a primary and what else is given. Returns the longest outage of a slot, and how long Ready stayed True after
/// the fault; without an operator, how long status stayed untrue after its return.
async fn killed(
    stage: &Stage,
    cluster: &Cluster<'_>,
    also: impl AsyncFnOnce() -> Result<()>,
) -> Result<(Duration, Duration)> {
    let kubelet = stage.sandbox()?.kubelet().ok_or("the sandbox has no kubelet")?;
    cluster.settled().await?;
    let auditor = cluster.audit().await?;
    let victim = cluster.member(true).await?;
    let begun = Instant::now();
    kubelet.kill(NAMESPACE, &victim.pod, None)?;
    also().await?;
    let reported = if stage.weight().is_ok() {
        cluster.not_ready(begun, PATIENCE).await? - begun
    } else {
        // Long enough that Robin has promoted the replica, and that the auditor has asked for every slot again.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let back = Instant::now();
        stage.start_operator()?;
        until("status is true", PATIENCE, async || {
            let now = auditor.now();
            (now.ready == now.whole).then(|| back.elapsed())
        })
        .await?
    };
    cluster.whole(&auditor).await?;
    let audit = auditor.finish().await;
    Ok((reported, audit.longest_outage()))
}

/// The pod of Robin.
async fn robin(stage: &Stage) -> Result<String> {
    let pods: Api<Pod> = Api::namespaced(stage.client(), NAMESPACE);
    let labels = "redkey-cluster-name=paired,redis.redkeycluster.operator/component=robin";
    let pods = pods.list(&ListParams::default().labels(labels)).await?;
    let mut pods = pods.into_iter();
    let running = pods.find(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(running.ok_or("there is no Robin")?.name_any())
}
