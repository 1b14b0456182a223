//! The manual baseline: kubectl creates the servers, valkey-cli creates the cluster.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::keys::{PORT, formed, node};
use crate::servers::Generation;
use crate::stage::{Stage, run};
use crate::wait::until;

/// How long each step took.
pub struct Created {
    /// From `kubectl apply` until the last server responds.
    pub answering: Duration,
    /// From there until every server reports `cluster_state:ok` and all replicas are linked.
    pub forming: Duration,
}

/// The workload of one server, as a user would write it by hand.
fn workload(app: &str, index: u32) -> Value {
    let name = format!("{app}-{index}");
    let labels = json!({"app": app, "member": name});
    let options = [
        "valkey-server",
        "--port",
        "6379",
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "5000",
        "--save",
        "",
        "--protected-mode",
        "no",
    ];
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{
                        "name": "server", "image": "valkey/valkey:9.1", "args": options,
                        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    }],
                    "volumes": [{"name": "data", "emptyDir": {}}],
                },
            },
        },
    })
}

/// Creates a cluster with one replica per shard and deletes it again.
pub async fn create(stage: &Stage, app: &str, shards: u32) -> Result<Created> {
    let items: Vec<Value> = (0..shards * 2).map(|index| workload(app, index)).collect();
    let manifest = items.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let begun = Instant::now();
    stage.kubectl(&["apply", "--filename", "-"], Some(&manifest)).await?;
    let created = form(stage, app, items.len(), begun).await;
    let selector = format!("app={app}");
    let delete = [
        "delete",
        "deployments,pods",
        "--selector",
        &selector,
        // Not forced: the next row starts when the processes have terminated.
        "--grace-period",
        "1",
    ];
    stage.kubectl(&delete, None).await?;
    created
}

async fn form(stage: &Stage, app: &str, count: usize, begun: Instant) -> Result<Created> {
    let selector = format!("app={app}");
    let wait = [
        "wait",
        "--for=condition=Available",
        "--timeout=100s",
        "deployments",
        "--selector",
        &selector,
    ];
    stage.kubectl(&wait, None).await?;
    let ips = [
        "get",
        "pods",
        "--selector",
        &selector,
        "--output",
        "jsonpath={.items[*].status.podIP}",
    ];
    let ips = stage.kubectl(&ips, None).await?;
    let members: std::result::Result<Vec<SocketAddr>, _> = ips
        .split_whitespace()
        .map(|ip| ip.parse().map(|ip| SocketAddr::new(ip, PORT)))
        .collect();
    let members = members?;
    if members.len() != count {
        return Err(format!("{} of {count} servers have an address", members.len()).into());
    }
    for member in &members {
        let node = node(*member);
        until("a server answers", Duration::from_secs(30), async || {
            node.ping().await.ok()
        })
        .await?;
    }
    let answering = begun.elapsed();
    let mut words = vec!["--cluster".to_owned(), "create".to_owned()];
    words.extend(members.iter().map(ToString::to_string));
    words.extend(["--cluster-replicas", "1", "--cluster-yes"].map(str::to_owned));
    valkey_cli(Generation::Newest, &words, Duration::from_secs(60)).await?;
    until(
        "every node says ok and every replica is linked",
        Duration::from_secs(60),
        async || formed(&members).await.then_some(()),
    )
    .await?;
    Ok(Created {
        answering,
        forming: begun.elapsed().saturating_sub(answering),
    })
}

/// Runs `valkey-cli --cluster rebalance` onto the empty primaries and returns how long it took.
pub async fn rebalance(generation: Generation, through: SocketAddr, within: Duration) -> Result<Duration> {
    let begun = Instant::now();
    let through = through.to_string();
    let words = [
        "--cluster",
        "rebalance",
        &through,
        "--cluster-use-empty-masters",
        "--cluster-pipeline",
        "100",
    ];
    valkey_cli(generation, &words.map(str::to_owned), within).await?;
    Ok(begun.elapsed())
}

async fn valkey_cli(generation: Generation, words: &[String], within: Duration) -> Result<String> {
    let mut command = tokio::process::Command::new(generation.cli()?);
    command.args(words);
    run(command, None, within).await
}
