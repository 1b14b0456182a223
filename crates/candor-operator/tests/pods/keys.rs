//! Compares the tables of configuration keys with real servers.

use std::process::{Child, Command, Stdio};

use candor_operator::objects::server_keys;
use redis::cmd;
use valkey_admin::client::{Deadlines, Endpoint, Node};
use valkey_admin::{Reply, Version};

use crate::servers::{GENERATIONS, programs};
use crate::world::eventually;

/// A server with default settings, except for its listen address.
struct Plain {
    process: Child,
    node: Node,
    _folder: tempfile::TempDir,
}

impl Plain {
    async fn start(generation: (&str, &str), ip: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Command::new(programs(generation).join(format!("{}-server", generation.1)))
            .args(["--bind", ip, "--port", "6399"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let node = Node::new(Endpoint::plain(ip.parse().unwrap(), 6399), Deadlines::default());
        eventually("the server answers", 20, async || node.ping().await.is_ok()).await;
        Self {
            process,
            node,
            _folder: folder,
        }
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Keys that this test sets itself, or that users never set.
fn ours(key: &str) -> bool {
    matches!(key, "bind" | "port") || key.starts_with("tls-") || key.starts_with("cluster-announce-")
}

fn secret(key: &str) -> bool {
    ["auth", "user", "pass"].iter().any(|word| key.ends_with(word))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_configuration_key_is_live_and_has_the_default_of_the_table_in_every_version() {
    for (index, generation) in GENERATIONS.into_iter().enumerate() {
        let ip = format!("127.{}.200.{}", 32 + std::process::id() % 32, index + 1);
        let server = Plain::start(generation, &ip).await;
        let version: Option<Version> = server.node.info(&["server"]).await.unwrap().version;
        let reply = server.node.ask(cmd("CONFIG").arg("GET").arg("*")).await.unwrap();
        let all: Vec<(String, String)> = reply
            .pairs("CONFIG GET")
            .unwrap()
            .into_iter()
            .map(|(key, value): (String, &Reply)| (key, value.text("CONFIG GET").unwrap()))
            .collect();
        assert!(all.len() > 150, "{generation:?} told only {}", all.len());
        for (key, value) in all.into_iter().filter(|(key, _)| !ours(key)) {
            let said = server.node.config_set(&[(&key, &value)]).await;
            let message = said.err().map(|error| error.to_string()).unwrap_or_default();
            let takes =
                !message.contains("immutable") && !message.contains("protected") && !message.contains("No RDMA");
            // If one version accepts a key at run time and another does not, the operator restarts both.
            assert!(
                takes || !server_keys::live(&key),
                "{generation:?}: {key} is not live: {message}"
            );
            if server_keys::live(&key) && !secret(&key) {
                let default = server_keys::default_of(&key, version);
                assert_eq!(default, Some(value.as_str()), "{generation:?}: the default of {key}");
            }
        }
    }
}
