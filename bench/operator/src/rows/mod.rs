//! The rows, in the order in which they are measured.

mod create;
mod faults;
mod idle;
mod many;
mod movers;
mod redkey;
mod roll;
mod scale;

use std::time::Duration;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::requests::Requests;
use crate::servers::Generation;
use crate::stage::{Stage, run};
use crate::table::Table;
use crate::{Bench, Result, Sizes};

/// Longer than any step that still counts as completed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The spec of the sample without the exporter: its process is not part of the operator's cost.
fn spec(shards: u32) -> Value {
    json!({"shards": shards, "replicas": 1, "image": "valkey/valkey:9.1", "exporter": {"enabled": false}})
}

/// Measures every part that was requested.
pub async fn all(bench: &Bench, requests: Requests) -> Table {
    let sizes = if bench.small { Sizes::SMALL } else { Sizes::FULL };
    let mut table = Table::default();
    facts(&mut table).await;
    if let Some(kubeconfig) = &bench.kubeconfig {
        match Stage::real(&bench.candor, kubeconfig).await {
            Ok(stage) => part(&mut table, &stage, "create 3x1 on a real cluster", create::real(&stage)).await,
            Err(error) => table.add("the real cluster", Err(error)),
        }
        return table;
    }
    let wanted = |part: &str| bench.only.is_empty() || bench.only.iter().any(|only| only == part);
    let life: Vec<&str> = LIFE.into_iter().filter(|part| wanted("3x1") || wanted(part)).collect();
    if !life.is_empty() || wanted("30x1") {
        match Stage::with_servers(&bench.candor).await {
            Ok(stage) => {
                if !life.is_empty() {
                    usual(&stage, sizes, (&requests, &life), &mut table).await;
                }
                if wanted("30x1") {
                    part(&mut table, &stage, "create many shards", create::large(&stage, sizes)).await;
                }
            }
            Err(error) => table.add("the sandbox with servers", Err(error)),
        }
    }
    if wanted("redkey") {
        match Stage::with_servers(&bench.candor).await {
            Ok(stage) => redkey::life(&stage, sizes, &requests, &mut table).await,
            Err(error) => table.add("the sandbox with servers", Err(error)),
        }
    }
    if wanted("movers") {
        say("moving slots");
        table.add("the legacy mover", movers::legacy(sizes).await);
    }
    if wanted("many") {
        match Stage::without_kubelet(&bench.candor).await {
            Ok(stage) => part(&mut table, &stage, "many clusters", many::clusters(&stage, sizes)).await,
            Err(error) => table.add("the sandbox without a kubelet", Err(error)),
        }
    }
    table
}

/// The parts that share one cluster.
const LIFE: [&str; 5] = ["create", "idle", "roll", "faults", "scale"];

/// One cluster from creation on, row after row.
async fn usual(stage: &Stage, sizes: Sizes, (requests, life): (&Requests, &[&str]), table: &mut Table) {
    let cluster = Cluster::new(stage, "bench");
    if life.contains(&"create") {
        part(table, stage, "create 3x1", create::usual(stage, &cluster)).await;
    } else if let Err(error) = create::quietly(&cluster).await {
        table.add("create 3x1", Err(error));
    }
    // Without the cluster, nothing else can be measured.
    if !table.complete() {
        return;
    }
    for what in life {
        match *what {
            "idle" => part(table, stage, what, idle::idle(stage, &cluster, sizes, requests)).await,
            "roll" => part(table, stage, what, roll::roll(&cluster)).await,
            "faults" => {
                part(table, stage, "primary killed", faults::killed(stage, &cluster, sizes)).await;
                part(table, stage, "killed, long timeout", faults::patient(stage, &cluster)).await;
                part(table, stage, "frozen", faults::frozen(stage, &cluster)).await;
                part(table, stage, "killed, no operator", faults::alone(stage, &cluster)).await;
            }
            "scale" => part(table, stage, what, scale::scale(&cluster, sizes)).await,
            _ => {}
        }
    }
    if let Err(error) = cluster.delete().await {
        table.add("delete 3x1", Err(error));
    }
}

async fn part(
    table: &mut Table,
    stage: &Stage,
    what: &str,
    rows: impl Future<Output = Result<Vec<crate::table::Row>>>,
) {
    say(what);
    let rows = rows.await;
    if rows.is_err() {
        eprintln!("the end of the operator's log:\n{}", stage.log_tail());
    }
    table.add(what, rows);
}

fn say(what: &str) {
    eprintln!("{} {what} ...", jiff::Zoned::now().strftime("%T"));
}

async fn facts(table: &mut Table) {
    table.fact(jiff::Zoned::now().strftime("%Y-%m-%d").to_string());
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let models = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = models
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("an unnamed processor", |(_, name)| name.trim());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?");
    table.fact(format!("{processors} cores of {model}; load at the start {load}"));
    for generation in [Generation::Newest, Generation::Eight, Generation::Redis] {
        let Ok(program) = generation.server() else {
            continue;
        };
        let mut command = tokio::process::Command::new(program);
        command.arg("--version");
        if let Ok(version) = run(command, None, Duration::from_secs(5)).await {
            let words: Vec<&str> = version.split_whitespace().take(3).collect();
            table.fact(words.join(" "));
        }
    }
}
