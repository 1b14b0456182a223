//! Queries the server and serves HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use candor_operator::runtime::http::{self, HttpLimits};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use valkey_admin::client::{Credentials, Deadlines, Endpoint, Fingerprint, Node, NodeError, Tls, TlsError};

use super::figures::{InfoFields, Page};
use super::readiness::Readiness;

/// How many previous certificates of the file the server may still present.
const MOST_PRESENTED: usize = 4;

/// Why the exporter cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is in use or not local.
    #[error("listening on {0}: choose another address with --listen")]
    Listen(SocketAddr, #[source] std::io::Error),
}

/// Why a scrape failed.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// The server does not respond, or rejects the exporter.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// A password or a certificate file cannot be read.
    #[error("reading {}", .0.display())]
    File(PathBuf, #[source] std::io::Error),
    /// A certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The server that is scraped.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its address.
    pub address: SocketAddr,
    /// The ACL user; absent: no login.
    pub user: Option<String>,
    /// Its password.
    pub password: Option<String>,
    /// A file with its password, read for every new connection.
    pub password_file: Option<PathBuf>,
    /// CA, certificate and key; absent: plain text.
    pub tls: Option<[PathBuf; 3]>,
}

impl Server {
    /// Reads the files again for every connection, because certificates and passwords are renewed while the exporter
    /// runs. The server may still present a certificate that was in the file before.
    pub fn node(&self, deadlines: Deadlines, presented: &mut Vec<Fingerprint>) -> Result<Node, ScrapeError> {
        let tls = match &self.tls {
            Some([authority, certificate, key]) => {
                let certificate = read(certificate)?;
                let tls = Tls::new(&read(authority)?, &certificate, &read(key)?, presented)?;
                let current = Fingerprint::of_pem(&certificate)?;
                presented.retain(|one| *one != current);
                presented.push(current);
                presented.drain(..presented.len().saturating_sub(MOST_PRESENTED));
                Some(tls)
            }
            None => None,
        };
        self.connect(deadlines, tls)
    }

    /// The same, accepting any certificate, for a server with the exporter's own address.
    pub fn own(&self, deadlines: Deadlines) -> Result<Node, ScrapeError> {
        let tls = self.tls.as_ref().map(|_| Tls::unverified()).transpose()?;
        self.connect(deadlines, tls)
    }

    fn connect(&self, deadlines: Deadlines, tls: Option<Tls>) -> Result<Node, ScrapeError> {
        let password = match &self.password_file {
            Some(path) => Some(String::from_utf8_lossy(&read(path)?).trim_end().to_owned()),
            None => self.password.clone(),
        };
        let credentials = password.map(|password| Credentials {
            user: self.user.clone().unwrap_or_else(|| "default".to_owned()),
            password,
        });
        let endpoint = Endpoint {
            address: self.address,
            credentials,
            tls,
        };
        Ok(Node::new(endpoint, deadlines))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ScrapeError> {
    std::fs::read(path).map_err(|error| ScrapeError::File(path.to_owned(), error))
}

struct Exporter {
    server: Server,
    /// The connection, while it works.
    node: Mutex<Option<Node>>,
    /// The certificates from the file, the newest last.
    presented: Mutex<Vec<Fingerprint>>,
    scrapes: AtomicU64,
    readiness: Readiness,
}

/// Serves `/metrics`, `/readyz` (of the server) and `/healthz` (of the exporter) until dropped.
pub async fn serve(listen: SocketAddr, server: Server) -> Result<(), ServeError> {
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| ServeError::Listen(listen, error))?;
    let exporter = Arc::new(Exporter {
        readiness: Readiness::of(server.clone(), listen.ip()),
        server,
        node: Mutex::default(),
        presented: Mutex::default(),
        scrapes: AtomicU64::new(0),
    });
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/readyz", get(readiness))
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(exporter);
    http::serve(listener, router, HttpLimits::default()).await;
    Ok(())
}

async fn metrics(State(exporter): State<Arc<Exporter>>) -> impl IntoResponse {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], exporter.page().await)
}

async fn readiness(State(exporter): State<Arc<Exporter>>) -> impl IntoResponse {
    exporter.readiness.answer().await
}

impl Exporter {
    async fn page(&self) -> String {
        let begun = Instant::now();
        let answers = self.ask().await;
        let mut page = match &answers {
            Ok(answers) => {
                let texts: Vec<&str> = answers.iter().map(String::as_str).collect();
                Page::of(&InfoFields::read(&texts))
            }
            Err(error) => {
                tracing::warn!(%error, "the server did not answer");
                Page::default()
            }
        };
        let up = if answers.is_ok() { 1.0 } else { 0.0 };
        page.one("up", "gauge", "1 if the server answers.", up);
        page.one(
            "exporter_last_scrape_error",
            "gauge",
            "1 if the server did not answer the last scrape.",
            1.0 - up,
        );
        page.one(
            "exporter_last_scrape_duration_seconds",
            "gauge",
            "How long the server took to answer the last scrape.",
            begun.elapsed().as_secs_f64(),
        );
        let scrapes = self.scrapes.fetch_add(1, Ordering::Relaxed) + 1;
        // Far below the 2^53 that a float holds exactly.
        #[allow(clippy::cast_precision_loss)]
        page.one(
            "exporter_scrapes_total",
            "counter",
            "Scrapes since the exporter started.",
            scrapes as f64,
        );
        page.text()
    }

    /// `INFO`, `CLUSTER INFO` and the length of the slow log. A server that is still loading replies to the first
    /// only.
    async fn ask(&self) -> Result<Vec<String>, ScrapeError> {
        let mut held = self.node.lock().await;
        let node = match held.take() {
            Some(node) => node,
            None => self
                .server
                .node(Deadlines::default(), &mut *self.presented.lock().await)?,
        };
        let deadline = Duration::from_secs(2);
        let ask = async |words: &[&str]| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            node.ask_within(&command, deadline).await
        };
        let reply = ask(&["INFO", "all"]).await?;
        let mut answers = vec![reply.text("INFO").unwrap_or_default()];
        if let Ok(reply) = ask(&["CLUSTER", "INFO"]).await {
            answers.push(reply.text("CLUSTER INFO").unwrap_or_default());
        }
        if let Ok(reply) = ask(&["SLOWLOG", "LEN"]).await {
            answers.push(format!(
                "slowlog_length:{}\n",
                reply.int("SLOWLOG LEN").unwrap_or_default()
            ));
        }
        *held = Some(node);
        Ok(answers)
    }
}
