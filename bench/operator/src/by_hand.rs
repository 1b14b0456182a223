//! The person's way: kubectl for the servers, valkey-cli for the cluster.

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
    /// From apply to the last server that answers.
    pub answering: Duration,
    /// From there to a cluster in which all say ok and all replicas are linked.
    pub forming: Duration,
}

/// A workload of one server, as a person writes it down.
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

/// Creates a cluster with a replica for each shard, and takes it away again.
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
        // Not by force: the next row begins when the processes are gone.
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

/// valkey-cli --cluster rebalance onto the empty primaries: how long it took.
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
    let mut command = tokio::process::Command::new(generation.program("valkey-cli")?);
    command.args(words);
    run(command, None, within).await
}
