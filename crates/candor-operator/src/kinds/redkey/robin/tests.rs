//! The API over a real socket: every path, status code and body of the contract, and requests that must change
//! nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::api::{Check, Move, Node, Operation, Replicas, RobinStatus};
use super::metrics::{self, Measurement};
use super::server::{BODY_LIMIT, router, serve};
use super::{Change, Rejection, RobinState, Tokens, Work};

/// Records the requested changes, and returns prepared replies.
struct Fake {
    status: Mutex<RobinStatus>,
    replicas: Mutex<Replicas>,
    work: Mutex<Result<Work, Rejection>>,
    changes: Mutex<Vec<String>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            status: Mutex::new(RobinStatus::Ready),
            replicas: Mutex::new(Replicas {
                primaries: 3,
                replicas_per_primary: 1,
            }),
            work: Mutex::new(Ok(Work::Started)),
            changes: Mutex::default(),
        }
    }
}

impl Fake {
    fn note(&self, change: String) -> Result<Work, Rejection> {
        self.changes.lock().unwrap().push(change);
        self.work.lock().unwrap().clone()
    }
}

impl RobinState for Fake {
    fn tokens(&self) -> Tokens {
        Tokens::new(["current", "previous", ""])
    }

    fn status(&self) -> RobinStatus {
        *self.status.lock().unwrap()
    }

    async fn set_status(&self, status: RobinStatus) -> Result<(), Rejection> {
        self.note(format!("status {status}"))?;
        *self.status.lock().unwrap() = status;
        Ok(())
    }

    fn replicas(&self) -> Replicas {
        *self.replicas.lock().unwrap()
    }

    async fn set_replicas(&self, desired: Replicas) -> Result<Change, Rejection> {
        if desired == self.replicas() {
            return Ok(Change::Unchanged);
        }
        self.note(format!("replicas {desired:?}"))?;
        *self.replicas.lock().unwrap() = desired;
        Ok(Change::Started)
    }

    fn operation(&self) -> Operation {
        Operation::ReshardingError
    }

    async fn check(&self) -> Result<Check, Rejection> {
        Ok(Check {
            errors: vec!["slot 7 has no owner".to_owned()],
            warnings: Vec::new(),
        })
    }

    fn nodes(&self) -> Vec<Node> {
        vec![Node {
            name: "c-0".to_owned(),
            id: "a1".to_owned(),
            ip: "10.0.0.1".to_owned(),
            role: "primary".to_owned(),
            link_status: "connected".to_owned(),
            ..Node::default()
        }]
    }

    async fn fix(&self) -> Result<Work, Rejection> {
        self.note("fix".to_owned())
    }

    async fn recreate(&self) -> Result<Work, Rejection> {
        self.note("recreate".to_owned())
    }

    async fn move_slots(&self, what: Move) -> Result<Work, Rejection> {
        self.note(format!("move {} from {} to {}", what.slots, what.from, what.to))
    }

    async fn reset(&self, node: String) -> Result<Work, Rejection> {
        self.note(format!("reset {node}"))
    }

    async fn metrics(&self) -> String {
        metrics::text(&Measurement::default(), &[])
    }
}

/// A served API. It is shut down with the test.
struct Served {
    state: Arc<Fake>,
    port: u16,
    server: JoinHandle<std::io::Result<()>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Served {
    async fn new() -> Self {
        let state = Arc::new(Fake::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(serve(listener, router(Arc::clone(&state))));
        Self { state, port, server }
    }

    /// Sends bytes and reads until the server closes the connection.
    async fn raw(&self, request: &[u8]) -> String {
        let talk = async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
            let (mut read, mut write) = stream.split();
            // The server may close the connection before it has read everything.
            let _ = write.write_all(request).await;
            let mut said = Vec::new();
            let _ = read.read_to_end(&mut said).await;
            String::from_utf8_lossy(&said).into_owned()
        };
        tokio::time::timeout(Duration::from_secs(20), talk)
            .await
            .expect("an answer in time")
    }

    async fn call(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> (u16, String) {
        let token = token
            .map(|token| format!("authorization: Bearer {token}\r\n"))
            .unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n{token}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let said = self.raw(request.as_bytes()).await;
        assert!(said.to_lowercase().contains("candor-protocol: 1\r\n"), "{said}");
        parsed(&said)
    }

    async fn get(&self, path: &str) -> (u16, String) {
        self.call("GET", path, None, "").await
    }

    async fn put(&self, path: &str, body: &str) -> (u16, String) {
        self.call("PUT", path, Some("current"), body).await
    }

    fn changes(&self) -> Vec<String> {
        self.state.changes.lock().unwrap().clone()
    }
}

/// Status code and body of a response.
fn parsed(said: &str) -> (u16, String) {
    let code = said.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = said.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (code, body.to_owned())
}

fn error_of(answer: &(u16, String)) -> String {
    let value: serde_json::Value =
        serde_json::from_str(&answer.1).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    let fields: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["error"]);
    value["error"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn reading_needs_no_token_and_has_the_bodies_of_the_contract() {
    let served = Served::new().await;
    for (path, body) in [
        ("/health", r#"{"status":"OK"}"#),
        ("/v1/redkeycluster/status", r#"{"status":"Ready"}"#),
        (
            "/v1/redkeycluster/replicas",
            r#"{"primaries":3,"replicas_per_primary":1}"#,
        ),
        ("/v1/cluster/status", r#"{"status":"ReshardingError"}"#),
        (
            "/v1/cluster/check",
            r#"{"errors":["slot 7 has no owner"],"warnings":[]}"#,
        ),
        (
            "/v1/cluster/nodes",
            r#"{"nodes":[{"name":"c-0","id":"a1","ip":"10.0.0.1","role":"primary","primaryId":"","failures":0,"sent":0,"recv":0,"linkStatus":"connected"}]}"#,
        ),
        ("/metrics", ""),
    ] {
        assert_eq!(served.get(path).await, (200, body.to_owned()), "{path}");
    }
    assert_eq!(served.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_status_is_set_also_no_reconciling() {
    let served = Served::new().await;
    for status in RobinStatus::ALL {
        let body = format!(r#"{{"status":"{status}"}}"#);
        assert_eq!(served.put("/v1/redkeycluster/status", &body).await, (200, body));
    }
    let rejected = served.put("/v1/redkeycluster/status", r#"{"status":"Fine"}"#).await;
    assert_eq!(rejected.0, 400);
    assert!(error_of(&rejected).contains("NoReconciling"), "{rejected:?}");
    assert_eq!(served.changes().len(), RobinStatus::ALL.len());
}

#[tokio::test]
async fn a_topology_is_unchanged_or_started() {
    let served = Served::new().await;
    let path = "/v1/redkeycluster/replicas";
    let same = r#"{"primaries":3,"replicas_per_primary":1}"#;
    assert_eq!(served.put(path, same).await, (200, same.to_owned()));
    let other = r#"{"primaries":5,"replicas_per_primary":1}"#;
    assert_eq!(served.put(path, r#"{"primaries":5}"#).await, (201, other.to_owned()));
    for wrong in [
        "",
        "{}",
        "[]",
        "{",
        r#"{"primaries":-1}"#,
        r#"{"primaries":"3"}"#,
        r#"{"primaries":3,"replicas":1}"#,
        r#"{"primaries":1.5}"#,
    ] {
        let rejected = served.put(path, wrong).await;
        assert_eq!(rejected.0, 400, "{wrong}");
        error_of(&rejected);
    }
    assert_eq!(served.changes().len(), 1);
}

#[tokio::test]
async fn work_is_started_running_or_completed() {
    let served = Served::new().await;
    let calls = [
        ("/v1/cluster/fix", ""),
        ("/v1/cluster/recreate", ""),
        ("/v1/cluster/move", r#"{"from":"3","to":"c-4","slots":0}"#),
        ("/v1/cluster/reset/2", ""),
    ];
    for (work, codes, word) in [
        (Work::Started, [201, 201, 201, 202], "In progress"),
        (Work::Running, [202, 202, 202, 202], "In progress"),
        (Work::Completed, [200, 200, 200, 200], "Completed"),
    ] {
        *served.state.work.lock().unwrap() = Ok(work);
        for ((path, body), code) in calls.iter().zip(codes) {
            let expected = format!(r#"{{"status":"{word}"}}"#);
            assert_eq!(served.put(path, body).await, (code, expected), "{path} {work:?}");
        }
    }
    assert_eq!(
        served.changes()[..4],
        ["fix", "recreate", "move 0 from 3 to c-4", "reset 2"].map(str::to_owned)
    );
}

#[tokio::test]
async fn a_rejection_has_its_code_and_its_reason() {
    let served = Served::new().await;
    for (rejection, code) in [
        (Rejection::UnknownNode("9".to_owned()), 400),
        (
            Rejection::Conflict("slots are moving: call again when they have moved".to_owned()),
            409,
        ),
        (Rejection::Failed("c-1 does not respond".to_owned()), 500),
    ] {
        *served.state.work.lock().unwrap() = Err(rejection.clone());
        let rejected = served.put("/v1/cluster/move", r#"{"from":"9","to":"1"}"#).await;
        assert_eq!((rejected.0, error_of(&rejected)), (code, rejection.to_string()));
    }
}

#[tokio::test]
async fn a_move_between_servers_that_cannot_be_is_rejected() {
    let served = Served::new().await;
    for wrong in [
        r#"{"from":"1","to":"1"}"#,
        r#"{"from":"","to":"1"}"#,
        r#"{"from":"1"}"#,
        r#"{"from":"1","to":"2","slots":16385}"#,
        r#"{"from":"1","to":"2","slots":-1}"#,
        r#"{"from":"1","to":"2","slots":70000}"#,
        r#"{"from":1,"to":2}"#,
    ] {
        let rejected = served.put("/v1/cluster/move", wrong).await;
        assert_eq!(rejected.0, 400, "{wrong}");
        error_of(&rejected);
    }
    assert_eq!(served.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_call_without_the_token_changes_nothing_on_any_path() {
    let served = Served::new().await;
    for (path, body) in [
        ("/v1/redkeycluster/status", r#"{"status":"Maintenance"}"#),
        ("/v1/redkeycluster/replicas", r#"{"primaries":0}"#),
        ("/v1/cluster/fix", ""),
        ("/v1/cluster/recreate", ""),
        ("/v1/cluster/move", r#"{"from":"0","to":"1"}"#),
        ("/v1/cluster/reset/0", ""),
    ] {
        for token in [
            None,
            Some(""),
            Some("currentx"),
            Some("curren"),
            Some("Current"),
            Some("other"),
        ] {
            let rejected = served.call("PUT", path, token, body).await;
            assert_eq!(rejected.0, 401, "{path} {token:?}");
            assert!(error_of(&rejected).contains("Secret"));
        }
        // Other authorization headers are rejected too.
        for head in [
            "authorization: Basic current",
            "authorization: current",
            "x-token: current",
            "authorization: Bearer current\r\nauthorization: Bearer other",
        ] {
            let request =
                format!("PUT {path} HTTP/1.1\r\nhost: r\r\nconnection: close\r\n{head}\r\ncontent-length: 0\r\n\r\n");
            assert_eq!(parsed(&served.raw(request.as_bytes()).await).0, 401, "{path} {head}");
        }
    }
    assert_eq!(served.changes(), Vec::<String>::new());
    let accepted = served.call("PUT", "/v1/cluster/fix", Some("previous"), "").await;
    assert_eq!(accepted.0, 201, "the token before a rotation is still valid");
}

#[tokio::test]
async fn a_body_above_the_limit_changes_nothing() {
    let served = Served::new().await;
    let long = format!(r#"{{"status":"Ready","x":"{}"}}"#, "x".repeat(BODY_LIMIT));
    for path in ["/v1/redkeycluster/status", "/v1/cluster/fix", "/v1/cluster/recreate"] {
        let rejected = served.put(path, &long).await;
        assert_eq!(rejected.0, 400, "{path}");
        assert!(error_of(&rejected).contains("4096"), "{rejected:?}");
    }
    // A false content length, and a request without one.
    let claimed = "PUT /v1/cluster/fix HTTP/1.1\r\nhost: r\r\nconnection: close\r\nauthorization: Bearer other\r\n\
                   content-length: 9999999999\r\n\r\n";
    assert_eq!(
        parsed(&served.raw(claimed.as_bytes()).await).0,
        401,
        "the body of a stranger is not waited for"
    );
    let mut chunked = String::from(
        "PUT /v1/cluster/fix HTTP/1.1\r\nhost: r\r\nconnection: close\r\nauthorization: Bearer current\r\n\
         transfer-encoding: chunked\r\n\r\n",
    );
    for _ in 0..6 {
        chunked += &["400\r\n", &"x".repeat(1024), "\r\n"].concat();
    }
    chunked.push_str("0\r\n\r\n");
    assert_eq!(parsed(&served.raw(chunked.as_bytes()).await).0, 400);
    assert_eq!(served.changes(), Vec::<String>::new());
}

#[tokio::test]
async fn malformed_calls_change_nothing() {
    let served = Served::new().await;
    for (method, path, code) in [
        ("POST", "/v1/cluster/fix", 405),
        ("DELETE", "/v1/redkeycluster/status", 405),
        ("PUT", "/v1/cluster/check", 405),
        ("PUT", "/v1/cluster", 404),
        ("PUT", "/v1/cluster/reset", 404),
        ("PUT", "/v1/cluster/reset/", 404),
        ("PUT", "/v1/cluster/reset/1/2", 404),
        ("GET", "/", 404),
    ] {
        let rejected = served.call(method, path, Some("current"), "").await;
        assert_eq!(rejected.0, code, "{method} {path}");
        error_of(&rejected);
    }
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"PUT /v1/cluster/fix\r\n\r\n",
        b"PUT /v1/cluster/fix HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",
    ] {
        let said = served.raw(garbage).await;
        assert!(said.is_empty() || parsed(&said).0 == 400, "{said}");
    }
    assert_eq!(served.changes(), Vec::<String>::new());
    assert_eq!(served.get("/health").await.0, 200, "it still answers");
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_let_go_and_holds_up_no_other() {
    let served = Served::new().await;
    let mut silent = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    silent.write_all(b"PUT /v1/cluster/fix HTTP/1.1\r\nhost").await.unwrap();
    assert_eq!(served.get("/health").await.0, 200);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(15), silent.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection stays open");
    assert_eq!(served.changes(), Vec::<String>::new());
}

const INFO: &str = "# Server\r\nredis_version:8.0.6\r\nuptime_in_seconds:7\r\n# Memory\r\nused_memory:1048576\r\n\
    mem_fragmentation_ratio:1.25\r\n# Clients\r\nconnected_clients:2\r\n# Stats\r\ntotal_commands_processed:10\r\n\
    instantaneous_ops_per_sec:0\r\n# Commandstats\r\ncmdstat_get:calls=3,usec=9,usec_per_call=3.00\r\n\
    # Keyspace\r\ndb0:keys=5,expires=1,avg_ttl=0,subexpiry=0\r\n";

fn measured() -> Measurement {
    Measurement {
        cluster: "c".to_owned(),
        namespace: "ns".to_owned(),
        time: 1_700_000_000.0,
        info: [("c-0".to_owned(), INFO.to_owned())].into(),
        cluster_info: Some(
            "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:3\r\n".to_owned(),
        ),
        nodes: vec![(
            Node {
                id: "a1".to_owned(),
                ip: "10.0.0.1".to_owned(),
                role: "primary".to_owned(),
                ..Node::default()
            },
            "0-16383".to_owned(),
        )],
        check: Some(Check {
            errors: vec!["e".to_owned()],
            warnings: Vec::new(),
        }),
    }
}

#[test]
fn metrics_have_the_names_and_labels_of_the_contract() {
    let text = metrics::text(&measured(), &[]);
    assert_eq!(
        text,
        r#"# TYPE redis_cluster_check_command_output_code gauge
redis_cluster_check_command_output_code{cluster="c",namespace="ns"} 1
# TYPE redis_cluster_check_errors gauge
redis_cluster_check_errors{cluster="c",namespace="ns"} 1
# TYPE redis_cluster_check_warnings gauge
redis_cluster_check_warnings{cluster="c",namespace="ns"} 0
# TYPE redis_cluster_metrics gauge
redis_cluster_metrics{cluster="c",cluster_slots_assigned="16384",cluster_state="ok",namespace="ns"} 1700000000
# TYPE redis_connected_clients gauge
redis_connected_clients{cluster="c",instanceId="c-0",namespace="ns"} 2
# TYPE redis_instantaneous_ops_per_sec gauge
redis_instantaneous_ops_per_sec{cluster="c",instanceId="c-0",namespace="ns"} 0
# TYPE redis_keyspace_avg_ttl gauge
redis_keyspace_avg_ttl{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 0
# TYPE redis_keyspace_expires gauge
redis_keyspace_expires{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 1
# TYPE redis_keyspace_keys gauge
redis_keyspace_keys{cluster="c",database="db0",instanceId="c-0",namespace="ns"} 5
# TYPE redis_nodes_metrics gauge
redis_nodes_metrics{cluster="c",namespace="ns",nodeFailures="0",nodeId="a1",nodeIp="10.0.0.1",primaryId="",role="primary",slots="0-16383"} 1700000000
# TYPE redis_total_commands_processed gauge
redis_total_commands_processed{cluster="c",instanceId="c-0",namespace="ns"} 10
# TYPE redis_used_memory gauge
redis_used_memory{cluster="c",instanceId="c-0",namespace="ns"} 1048576
"#
    );
}

#[test]
fn keys_of_the_spec_decide_what_is_measured_and_a_text_is_a_label() {
    let keys = ["redis_version", "mem_fragmentation_ratio", "cmdstat_get"].map(str::to_owned);
    let text = metrics::text(&measured(), &keys);
    assert!(!text.contains("redis_used_memory"));
    for line in [
        r#"redis_redis_version{cluster="c",instanceId="c-0",namespace="ns",redis_version="8.0.6"} -1"#,
        r#"redis_mem_fragmentation_ratio{cluster="c",instanceId="c-0",namespace="ns"} 1.25"#,
        r#"redis_cmdstat_get_usec_per_call{cluster="c",instanceId="c-0",namespace="ns"} 3"#,
    ] {
        assert!(text.lines().any(|one| one == line), "{line}\n{text}");
    }
}

#[test]
fn no_answer_of_a_server_breaks_the_page() {
    let mut odd = measured();
    let info = "evil key:1\nused_memory:1\"}\nconnected_clients:NaN\ndb0:keys=x\ndbx:keys=1\n=:=\n:\nused_memory\n";
    odd.info.insert("c-1".to_owned(), info.to_owned());
    for line in metrics::text(&odd, &[]).lines().filter(|line| !line.starts_with('#')) {
        let (head, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok_and(f64::is_finite), "{line}");
        assert!(head.ends_with('}') && head.starts_with("redis_"), "{line}");
    }
}
