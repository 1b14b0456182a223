//! What the operator exposes: health, metrics and its log after a known sequence of events, and which namespaces it
//! watches.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use candor_api::valkey::FAILOVER;
use candor_operator::Settings;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tracing_subscriber::fmt::MakeWriter;
use valkey_admin::Slot;
use valkey_sim::node::Node;

use crate::support::{Operator, Stage, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);

/// The log lines about one cluster. Its name is unique among the tests, because all tests share the log.
pub struct Log {
    lines: Lines,
    cluster: String,
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Log {
    pub fn of(cluster: &str) -> Self {
        static EVERYBODY: OnceLock<Lines> = OnceLock::new();
        let lines = EVERYBODY.get_or_init(|| {
            let lines = Lines::default();
            tracing_subscriber::fmt()
                .with_max_level(tracing::Level::INFO)
                .with_ansi(false)
                .with_writer(lines.clone())
                .init();
            lines
        });
        Self {
            lines: lines.clone(),
            cluster: format!("cluster=default/{cluster} "),
        }
    }

    fn lines(&self) -> Vec<String> {
        let bytes = self.lines.0.lock().unwrap().clone();
        let text = String::from_utf8_lossy(&bytes);
        let ours = text.lines().filter(|line| line.contains(&self.cluster));
        ours.map(str::to_owned).collect()
    }

    /// Waits for a line that contains all these words.
    pub async fn until(&self, message: &[&str]) {
        let begun = Instant::now();
        while !self
            .lines()
            .iter()
            .any(|line| message.iter().all(|word| line.contains(word)))
        {
            assert!(
                begun.elapsed() < PATIENCE,
                "nobody logged {message:?}: {:#?}",
                self.lines()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// The response to a GET: its first line and its body.
async fn get(address: SocketAddr, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: operator\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.lines().next()?.to_owned(), body.to_owned()))
}

/// Every metric by its name and labels.
pub async fn figures(address: SocketAddr) -> BTreeMap<String, f64> {
    let (line, body) = get(address, "/metrics").await.unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK");
    let figure = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    let lines = body.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(figure).collect()
}

fn of(name: &str, kind: &str) -> String {
    let kind = if kind.is_empty() {
        String::new()
    } else {
        format!(",kind=\"{kind}\"")
    };
    format!("candor_{name}{{namespace=\"default\",name=\"story\"{kind},resource=\"ValkeyCluster\"}}")
}

/// Writes keys at a primary and waits until its replica has them: an empty replica is not a failover candidate.
async fn write(stage: &Stage, pod: &str) {
    let slot = Slot::new(7).unwrap();
    let ip = stage.pods.address("default", pod).unwrap();
    assert!(stage.world.write(ip, slot, 10));
    let copied = |ip| {
        let copy = |node: &Node| node.map.primary.is_some() && node.keys.get(&slot.get()) == Some(&10);
        stage.world.inspect(ip, copy).unwrap_or(false)
    };
    while !stage.world.members().into_iter().any(copied) {
        tokio::task::yield_now().await;
    }
}

pub fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[allow(clippy::float_cmp)] // these are whole numbers
#[tokio::test]
async fn health_metrics_and_log_show_known_transitions_and_a_deleted_cluster_has_no_metrics() {
    let log = Log::of("story");
    let stage = Stage::set().await;
    let address = free_address();
    let settings = Settings {
        health: Some(address),
        ..Settings::default()
    };
    let operator = Operator::start_with(stage.client(), settings);
    stage.create("story", json!({"shards": 3, "replicas": 1})).await;
    stage.ready("story").await;
    for path in ["/healthz", "/readyz"] {
        let answer = get(address, path).await.unwrap();
        assert_eq!(answer, ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()), "{path}");
    }
    assert_eq!(get(address, "/other").await.unwrap().0, "HTTP/1.1 404 Not Found");
    let begun = figures(address).await;
    assert_eq!(begun["candor_leading"], 1.0);
    assert_eq!(begun[&of("cluster_ready", "")], 1.0);
    assert_eq!(begun[&of("cluster_state", "Ready")], 1.0);
    assert!(!begun.contains_key(&of("failovers_total", "agreement")), "{begun:#?}");
    assert!(
        !begun.contains_key(&of("slots_moved_total", "")),
        "creation moves nothing: {begun:#?}"
    );

    // A requested failover, a primary that terminates, an additional shard.
    let first = stage.primary("story", 1).await.unwrap();
    stage.annotate("story", FAILOVER, &format!("1/{}", first.node_id)).await;
    let answered =
        |cluster: &candor_api::ValkeyCluster| !cluster.annotations().contains_key(FAILOVER) && is_ready(cluster);
    stage.until("story", "answered", PATIENCE, answered).await;
    let pods = stage.pods_of("story").await;
    let head = stage.primary("story", 0).await.unwrap();
    let pod = &pods[&format!("0-{}", head.node)];
    write(&stage, pod).await;
    stage.pods.kill("default", pod, Duration::from_millis(300));
    stage
        .until("story", "not Ready", PATIENCE, |cluster| !is_ready(cluster))
        .await;
    stage.ready("story").await;
    stage.change("story", json!({"shards": 4})).await;
    let rebalances = of("cluster_operations", "ScaleOut");
    let mut observation = false;
    let waited = Instant::now();
    while !is_ready(&stage.clusters("default").get("story").await.unwrap()) || !observation {
        observation |= figures(address).await.get(&rebalances) == Some(&1.0);
        assert!(
            waited.elapsed() < PATIENCE,
            "an operation in progress was never seen: {observation}"
        );
    }
    let now = figures(address).await;
    let count = |name: &str, kind: &str| now.get(&of(name, kind)).copied().unwrap_or(0.0);
    assert_eq!(count("failovers_total", "agreement"), 1.0, "{now:#?}");
    let forced = ["vote", "takeover", "election"].map(|kind| count("failovers_total", kind));
    assert_eq!(forced.iter().sum::<f64>(), 1.0, "{:#?}\n{now:#?}", log.lines());
    assert_eq!(count("slots_moved_total", ""), 4096.0, "a fourth of all slots");
    assert!(
        !now.keys().any(|name| name.starts_with("candor_cluster_operations{")),
        "{now:#?}"
    );
    for state in ["Initializing", "Reconciling", "Degraded", "Ready"] {
        assert!(count("cluster_state_seconds_total", state) > 0.0, "{state}: {now:#?}");
    }
    let reconciles = now
        .iter()
        .filter(|(name, _)| name.starts_with("candor_reconciles_total{"));
    assert_eq!(
        reconciles.map(|(_, number)| number).sum::<f64>(),
        now["candor_reconcile_seconds_count"]
    );
    assert!(now["candor_reconcile_seconds_sum"] > 0.0);
    assert!(count("status_writes_total", "") > 3.0);

    let lines = log.lines();
    let decided: Vec<&String> = lines.iter().filter(|line| line.contains(" decided ")).collect();
    for why in [
        "members are missing or do not answer yet",
        "members do not know each other yet",
        "a person asked for a failover of shard 1",
        "primary lost in shard 0",
        "slots are not where an even share has them",
        "all is as wanted",
    ] {
        assert!(decided.iter().any(|line| line.contains(why)), "{why}: {decided:#?}");
    }
    let message = |line: &&&String| line.split_once(" decided ").map(|(_, message)| message.to_owned());
    let twice = decided
        .windows(2)
        .filter(|two| message(&&two[0]) == message(&&two[1]))
        .count();
    assert_eq!(twice, 0, "one line for each decision: {decided:#?}");

    stage
        .clusters("default")
        .delete("story", &DeleteParams::default())
        .await
        .unwrap();
    let waited = Instant::now();
    loop {
        let left: Vec<String> = figures(address)
            .await
            .into_keys()
            .filter(|name| name.contains("story"))
            .collect();
        if left.is_empty() {
            break;
        }
        assert!(waited.elapsed() < PATIENCE, "still there: {left:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    operator.end().await;
    assert!(get(address, "/healthz").await.is_none(), "it ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_for_two_namespaces_leaves_a_third_alone() {
    let stage = Stage::set().await;
    let namespaces: Api<Namespace> = Api::all(stage.client());
    for name in ["shop", "billing", "other"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        stage.create_in(name, "cart", json!({"shards": 1, "replicas": 0})).await;
    }
    let settings = Settings {
        namespaces: vec!["shop".to_owned(), "billing".to_owned()],
        ..Settings::default()
    };
    let operator = Operator::start_with(stage.client(), settings);
    let begun = Instant::now();
    for name in ["shop", "billing"] {
        while !is_ready(&stage.clusters(name).get("cart").await.unwrap()) {
            assert!(begun.elapsed() < PATIENCE, "{name} was never Ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let third = stage.clusters("other").get("cart").await.unwrap();
    assert!(third.status.is_none() && third.finalizers().is_empty(), "{third:?}");
    operator.end().await;
}
