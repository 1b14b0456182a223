//! `GET /metrics`: `INFO` of every server. It is measured when the page is read, at most once per interval, so that a
//! page that is never read costs nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use candor_engine::observation::Server;
use futures::future::join_all;
use redis::cmd;
use tokio::time::Instant;
use valkey_admin::client::Node;

use super::super::metrics::Measurement;
use super::check;
use super::observer::{Observer, member};
use crate::kinds::redkey::objects::names;

/// A measurement and when it was made.
pub(super) struct Measured {
    pub(super) at: Instant,
    pub(super) measurement: Measurement,
}

/// Measures all servers now. A server that does not respond is left out.
pub(super) async fn measure(observer: &Observer) -> Measured {
    let key = &observer.key;
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut measurement = Measurement {
        cluster: key.name.clone(),
        namespace: key.namespace.clone(),
        time: since_epoch.as_secs_f64().floor(),
        ..Measurement::default()
    };
    if let Some(snapshot) = observer.observe().await {
        let up = snapshot
            .servers
            .iter()
            .filter(|(_, one)| matches!(one.server, Server::Up(_)));
        let up = up.filter_map(|(ordinal, _)| Some((*ordinal, observer.monitor.node(key, member(*ordinal))?)));
        let asked = up.map(|(ordinal, node)| async move {
            let info = ask(&node, cmd("INFO").arg("all"), "INFO").await?;
            Some((ordinal, node, info))
        });
        let answers: Vec<(u32, Node, String)> = join_all(asked).await.into_iter().flatten().collect();
        if let Some((_, first, _)) = answers.first() {
            measurement.cluster_info = ask(first, cmd("CLUSTER").arg("INFO"), "CLUSTER INFO").await;
        }
        let named = answers
            .into_iter()
            .map(|(ordinal, _, info)| (names::pod(&key.name, ordinal), info));
        measurement.info = named.collect();
        measurement.nodes = check::nodes(&key.name, &snapshot.servers);
        measurement.check = Some(check::check(&key.name, &snapshot.servers));
    }
    Measured {
        at: Instant::now(),
        measurement,
    }
}

async fn ask(node: &Node, command: &redis::Cmd, name: &'static str) -> Option<String> {
    node.ask(command).await.ok()?.text(name).ok()
}
