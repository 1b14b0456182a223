//! Readiness of the server over HTTP: the kubelet starts no process in the container for it.
//!
//! The rules are those of `ready.sh`, which is used where this exporter does not run. The exporter never answers
//! liveness probes: a crash of the exporter must not restart a healthy server.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::StatusCode;
use redis::{Pipeline, cmd};
use tokio::sync::Mutex;
use tokio::time::timeout;
use valkey_admin::Reply;
use valkey_admin::client::{Deadlines, Fingerprint, Node, NodeError};

use super::figures::InfoFields;
use super::serve::{ScrapeError, Server};

/// Time limit for the server. The kubelet waits a second longer (`readinessProbe.timeoutSeconds`).
const LIMIT: Duration = Duration::from_secs(4);

/// The server, queried over a dedicated connection: a scrape that waits for a slow server must not delay a probe.
pub struct Readiness {
    server: Server,
    /// The server has the exporter's own address, in the same pod, so no third party is in between. A certificate that
    /// has expired, or that the server has not loaded yet, must not make the server look unready.
    own: bool,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// The connection, while it works.
    node: Option<Node>,
    /// The certificates from the file, if they are verified.
    presented: Vec<Fingerprint>,
}

impl Readiness {
    /// The readiness of a server, for an exporter that listens on this address.
    pub fn of(server: Server, listen: IpAddr) -> Self {
        Self {
            own: server.address.ip() == listen,
            server,
            held: Mutex::default(),
        }
    }

    /// 200 if clients should be sent to the server; otherwise 503 and the reason.
    pub async fn answer(&self) -> (StatusCode, String) {
        let reason = match timeout(LIMIT, self.ask()).await {
            Ok(Ok([info, cluster])) => unready(&info, &cluster).map(str::to_owned),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("does not respond within {} s", LIMIT.as_secs())),
        };
        match reason {
            None => (StatusCode::OK, "ready\n".to_owned()),
            Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
        }
    }

    /// `INFO` and `CLUSTER INFO` in one round trip.
    async fn ask(&self) -> Result<[String; 2], ScrapeError> {
        let mut held = self.held.lock().await;
        let deadlines = Deadlines {
            connect: LIMIT,
            answer: LIMIT,
        };
        // Taken out: after an error or a cancellation, the next probe opens a new connection and reads its files
        // again.
        let node = match held.node.take() {
            Some(node) => node,
            None if self.own => self.server.own(deadlines)?,
            None => self.server.node(deadlines, &mut held.presented)?,
        };
        let mut commands = Pipeline::new();
        commands.add_command(cmd("INFO").arg("replication").arg("persistence").to_owned());
        commands.add_command(cmd("CLUSTER").arg("INFO").to_owned());
        let mut answers = node.ask_all(&commands).await?.into_iter();
        let mut next = || answers.next().unwrap_or_else(|| Ok(Reply::from("")));
        let texts = [text(next())?, text(next())?];
        held.node = Some(node);
        Ok(texts)
    }
}

/// A server that is loading its data rejects some commands with `LOADING`: that counts as a reply.
fn text(answer: Result<Reply, NodeError>) -> Result<String, NodeError> {
    match answer {
        Ok(reply) => Ok(reply.text("INFO").unwrap_or_default()),
        Err(error) => match error.server_message() {
            Some(words) if words.starts_with("LOADING") => Ok("loading:1".to_owned()),
            _ => Err(error),
        },
    }
}

/// Why clients should not be sent to a server with these replies.
fn unready(info: &str, cluster: &str) -> Option<&'static str> {
    let reply = InfoFields::read(&[info, cluster]);
    let is = |name: &str, value: &str| reply.get(name) == Some(value);
    if is("loading", "1") || is("async_loading", "1") {
        return Some("is loading its data");
    }
    if reply.get("cluster_slots_assigned").is_none_or(|slots| slots == "0") {
        return Some("has not joined a cluster yet");
    }
    if is("role", "slave") && is("master_sync_in_progress", "1") {
        return Some("is copying its primary's data");
    }
    if is("role", "slave") && !is("master_link_status", "up") {
        return Some("has lost the link to its primary");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::unready;

    #[test]
    fn a_server_is_ready_when_it_has_joined_loaded_and_follows() {
        const JOINED: &str = "cluster_state:fail\r\ncluster_slots_assigned:16384\r\n";
        const UP: &str = "role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:0\r\nloading:0\r\n";
        let table = [
            ("role:master\r\nloading:0\r\n", JOINED, None),
            (UP, JOINED, None),
            (
                "role:master\r\n",
                "cluster_slots_assigned:0\r\n",
                Some("has not joined"),
            ),
            ("role:master\r\n", "", Some("has not joined")),
            ("role:master\r\nloading:1\r\n", JOINED, Some("is loading")),
            ("role:master\r\nasync_loading:1\r\n", JOINED, Some("is loading")),
            ("role:master\r\n", "loading:1", Some("is loading")),
            (
                "role:slave\r\nmaster_link_status:up\r\nmaster_sync_in_progress:1\r\n",
                JOINED,
                Some("is copying"),
            ),
            (
                "role:slave\r\nmaster_link_status:down\r\nmaster_sync_in_progress:1\r\n",
                JOINED,
                Some("is copying"),
            ),
            (
                "role:slave\r\nmaster_link_status:down\r\n",
                JOINED,
                Some("has lost the link"),
            ),
            ("role:slave\r\n", JOINED, Some("has lost the link")),
        ];
        for (info, cluster, expected) in table {
            let found = unready(info, cluster);
            match expected {
                None => assert_eq!(found, None, "{info:?} {cluster:?}"),
                Some(start) => assert!(found.is_some_and(|text| text.starts_with(start)), "{info:?}: {found:?}"),
            }
        }
    }
}
