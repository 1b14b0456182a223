//! The sandbox's figures, beside those of a real kube-apiserver with etcd when `CANDOR_REAL_KUBECONFIG` names one.
//!
//! The sandbox runs as a separate process (this program with the word `serve`), so that its memory and its processor
//! time are its alone.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, ResourceExt};
use serde_json::json;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Creates in the test of throughput, and who makes them.
const CREATES: u64 = 5_000;
const WRITERS: u64 = 16;
const WATCHERS: u64 = 10;
/// Writes in the test of memory.
const WRITES: u64 = 200_000;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    if std::env::args().any(|word| word == "serve") {
        return serve().await;
    }
    let mut sandbox = Process::start()?;
    let ours = Figures::of(&sandbox.kubeconfig, "sandbox").await?;
    let real = match std::env::var_os("CANDOR_REAL_KUBECONFIG") {
        Some(path) => Some(Figures::of(&PathBuf::from(path), "real").await?),
        None => None,
    };
    let beside = |text: Option<String>| text.unwrap_or_else(|| "not measured".into());
    let line =
        |what: &str, ours: String, real: String, bound: &str| println!("{what:<52} {ours:>16} {real:>16} {bound:>14}");
    line("", "sandbox".into(), "kube-apiserver".into(), "must reach");
    line(
        "start to ready",
        format!("{} ms", sandbox.ready.as_millis()),
        "-".into(),
        "500 ms",
    );
    line(
        "write to watch event, p50 / p99",
        ours.latency(),
        beside(real.as_ref().map(Figures::latency)),
        "p99 5 ms",
    );
    line(
        "creates a second, 16 writers, 10 watchers",
        format!("{:.0}", ours.creates),
        beside(real.as_ref().map(|real| format!("{:.0}", real.creates))),
        "1000",
    );
    sandbox.stop();
    let idle = Process::start()?;
    let (memory, processor) = idle.idle(Duration::from_secs(10)).await?;
    line("idle: memory", format!("{memory:.1} MB"), "-".into(), "40 MB");
    line("idle: processor", format!("{processor:.2} %"), "-".into(), "0.5 %");
    let (half, whole, seconds) = idle.memory_over_writes().await?;
    line(
        "memory after 100,000 / 200,000 writes",
        format!("{half:.0} / {whole:.0} MB"),
        "-".into(),
        "flat",
    );
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let rate = WRITES as f64 / seconds;
    line("updates a second, 16 writers", format!("{rate:.0}"), "-".into(), "");
    Ok(())
}

/// The sandbox alone in its process, until its standard input ends.
async fn serve() -> Result<(), Failure> {
    let started = Instant::now();
    let file = tempfile::NamedTempFile::new()?;
    let sandbox = kube_sandbox::Sandbox::builder().kubeconfig(file.path()).start().await?;
    sandbox.client().apiserver_version().await?;
    println!("{} {}", started.elapsed().as_micros(), file.path().display());
    std::io::stdout().flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().lines().count()).await?;
    drop(sandbox);
    Ok(())
}

/// A sandbox in another process.
struct Process {
    child: Child,
    ready: Duration,
    kubeconfig: PathBuf,
}

impl Process {
    fn start() -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let (micros, path) = line.trim().split_once(' ').ok_or("the sandbox did not start")?;
        Ok(Self {
            child,
            ready: Duration::from_micros(micros.parse()?),
            kubeconfig: path.into(),
        })
    }

    fn stop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }

    /// Megabytes in memory.
    fn memory(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .ok_or("no VmRSS")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Hundredths of a second of processor time.
    fn processor(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        Ok(ticks)
    }

    async fn idle(&self, over: Duration) -> Result<(f64, f64), Failure> {
        // What the start left behind is done first.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = self.processor()?;
        tokio::time::sleep(over).await;
        let used = self.processor()? - before;
        Ok((self.memory()?, used / over.as_secs_f64()))
    }

    async fn memory_over_writes(&self) -> Result<(f64, f64, f64), Failure> {
        let maps = maps(&self.kubeconfig, "memory").await?;
        let started = Instant::now();
        let mut measured = Vec::new();
        for half in 0..2 {
            let writers = (0..WRITERS).map(|writer| {
                let maps = maps.clone();
                async move {
                    for number in 0..WRITES / 2 / WRITERS {
                        let patch = json!({"data": {"v": format!("{half}-{writer}-{number}-{}", "x".repeat(200))}});
                        let name = format!("m{}", (number + writer) % 100);
                        if number < 100 && half == 0 {
                            let map = serde_json::from_value(json!({"metadata": {"name": name}}))?;
                            let _ = maps.create(&PostParams::default(), &map).await;
                        }
                        maps.patch(&name, &PatchParams::default(), &Patch::Merge(&patch))
                            .await?;
                    }
                    Ok::<_, Failure>(())
                }
            });
            futures::future::try_join_all(writers).await?;
            measured.push(self.memory()?);
        }
        Ok((measured[0], measured[1], started.elapsed().as_secs_f64()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn maps(kubeconfig: &PathBuf, namespace: &str) -> Result<Api<ConfigMap>, Failure> {
    let config =
        kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let name = format!("bench-{namespace}-{}", std::process::id());
    let made = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    namespaces.create(&PostParams::default(), &made).await?;
    Ok(Api::namespaced(client, &name))
}

/// What one server does.
struct Figures {
    p50: Duration,
    p99: Duration,
    creates: f64,
}

impl Figures {
    async fn of(kubeconfig: &PathBuf, name: &str) -> Result<Self, Failure> {
        let (p50, p99) = latency(&maps(kubeconfig, &format!("{name}-latency")).await?).await?;
        let creates = throughput(&maps(kubeconfig, &format!("{name}-creates")).await?).await?;
        Ok(Self { p50, p99, creates })
    }

    fn latency(&self) -> String {
        format!(
            "{:.1} / {:.1} ms",
            self.p50.as_secs_f64() * 1e3,
            self.p99.as_secs_f64() * 1e3
        )
    }
}

/// From the moment a write is sent to the moment its event is there.
async fn latency(maps: &Api<ConfigMap>) -> Result<(Duration, Duration), Failure> {
    let mut times = Vec::new();
    let from = maps
        .list(&ListParams::default())
        .await?
        .metadata
        .resource_version
        .unwrap_or_default();
    let mut events = maps.watch(&WatchParams::default(), &from).await?.boxed();
    for number in 0..1000 {
        let name = format!("l{number}");
        let map = serde_json::from_value(json!({"metadata": {"name": name}, "data": {"v": "x".repeat(100)}}))?;
        let sent = Instant::now();
        let post = PostParams::default();
        let seen = async {
            while let Some(event) = events.try_next().await? {
                if matches!(&event, WatchEvent::Added(map) if map.name_any() == name) {
                    return Ok(sent.elapsed());
                }
            }
            Err(Failure::from("the watch ended"))
        };
        let (made, seen) = tokio::join!(maps.create(&post, &map), seen);
        made?;
        times.push(seen?);
    }
    times.sort();
    Ok((times[500], times[990]))
}

/// Creates a second, with watchers that see every one of them.
async fn throughput(maps: &Api<ConfigMap>) -> Result<f64, Failure> {
    let from = maps
        .list(&ListParams::default())
        .await?
        .metadata
        .resource_version
        .unwrap_or_default();
    let seen = Arc::new(AtomicU64::new(0));
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut events = maps.watch(&WatchParams::default(), &from).await?.boxed();
        let seen = seen.clone();
        watchers.push(tokio::spawn(async move {
            let mut mine = 0;
            while mine < CREATES {
                match events.try_next().await {
                    Ok(Some(WatchEvent::Added(_))) => {
                        mine += 1;
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Some(_)) => {}
                    _ => return,
                }
            }
        }));
    }
    let started = Instant::now();
    let writers = (0..WRITERS).map(|writer| async move {
        for number in 0..=(CREATES / WRITERS) {
            let map = serde_json::from_value(
                json!({"metadata": {"name": format!("c{writer}-{number}")}, "data": {"v": "x".repeat(100)}}),
            )?;
            maps.create(&PostParams::default(), &map).await?;
        }
        Ok::<_, Failure>(())
    });
    futures::future::try_join_all(writers).await?;
    tokio::time::timeout(Duration::from_secs(30), futures::future::join_all(watchers)).await?;
    if seen.load(Ordering::Relaxed) < CREATES * WATCHERS {
        return Err("a watcher missed events".into());
    }
    #[allow(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let made = ((CREATES / WRITERS + 1) * WRITERS) as f64;
    Ok(made / started.elapsed().as_secs_f64())
}
