//! The API over a real socket.

mod malformed;
mod measured;
mod replies;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::api::{Check, Move, Node, Operation, Replicas, RobinStatus};
use super::metrics::{self, Measurement};
use super::server::{router, serve};
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
