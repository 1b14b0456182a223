//! The pods of a `RedkeyCluster` with real servers. They start from the built objects, take their password from the
//! Secret, become ready, and recover when their process ends.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use candor_api::redkey::status::ClusterStatus;
use candor_api::{RedkeyCluster, RedkeyClusterSpec};
use candor_operator::kinds::redkey::config::{Merged, Password, Storage, merge};
use candor_operator::kinds::redkey::objects::{Inputs, Objects, RobinCredentials, build};
use kube::api::AttachParams;
use kube_sandbox::Sandbox;
use redis::cmd;
use serde_json::{Value, json};
use valkey_admin::client::Node;

use crate::servers::{GENERATIONS, free_address, programs};
use crate::world::{NAMESPACE, client, eventually, make, pods, sandbox, user};

/// The objects of a cluster `c`, with these fields and this password.
fn objects(mut spec: Value, password: Option<&str>) -> (Objects, Merged) {
    spec["primaries"] = json!(1);
    let spec: RedkeyClusterSpec = serde_json::from_value(spec).unwrap();
    let password = password.and_then(Password::new);
    let config = merge(
        spec.config.as_deref().unwrap_or_default(),
        Storage::Ephemeral,
        password.as_ref(),
    )
    .unwrap();
    let mut cluster = RedkeyCluster::new("c", spec);
    cluster.metadata.namespace = Some(NAMESPACE.to_owned());
    let credentials = RobinCredentials::generate("c", &ring::rand::SystemRandom::new()).unwrap();
    let inputs = Inputs {
        kept: None,
        cluster: &cluster,
        config: &config,
        credentials: &credentials,
        robin_image: "candor:1",
        replicas: 1,
        status: ClusterStatus::Ready,
    };
    (build(&inputs).unwrap(), config)
}

fn server(ip: IpAddr, password: &str) -> Node {
    user(ip, "default", password)
}

async fn address(sandbox: &Sandbox) -> Option<IpAddr> {
    let pod = pods(sandbox).get_opt("c-0").await.ok()??;
    pod.status?.pod_ip?.parse().ok()
}

async fn ready(sandbox: &Sandbox) -> bool {
    let pod = pods(sandbox).get("c-0").await.unwrap();
    let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions
        .iter()
        .any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Runs a script in the pod as a probe does.
async fn probe(sandbox: &Sandbox, script: &str) -> String {
    let how = AttachParams::default();
    let mut process = pods(sandbox).exec("c-0", ["sh", script], &how).await.unwrap();
    let status = process.take_status().unwrap().await.unwrap();
    status.status.unwrap_or_default()
}

async fn key(node: &Node) -> Option<String> {
    node.ask(cmd("GET").arg("key")).await.ok()?.text("GET").ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_starts_with_its_password_becomes_ready_and_keeps_its_data_when_its_container_restarts() {
    let sandbox = sandbox().await;
    let password = "a \"quoted\" \\ password";
    let spec = json!({
        "image": "redis:7.0",
        "config": "maxmemory 90mb\nport 7000",
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
    });
    let (made, _) = objects(spec, Some(password));
    make(&sandbox, made.config_map).await;
    make(&sandbox, made.robin.secret).await;
    make(&sandbox, made.service).await;
    make(&sandbox, made.stateful_set).await;
    let mut ip = None;
    eventually("the server answers", 60, async || {
        ip = address(&sandbox).await;
        match ip {
            Some(ip) => server(ip, password).ping().await.is_ok(),
            None => false,
        }
    })
    .await;
    let ip = ip.unwrap();
    let node = server(ip, password);
    let rejected = client(ip).order(cmd("GET").arg("key")).await.unwrap_err().to_string();
    assert!(rejected.contains("NOAUTH"), "{rejected}");
    for (name, value) in [
        ("maxmemory", "94371840"),
        ("port", "6379"),
        ("appendonly", "yes"),
        ("appendfsync", "no"),
        ("cluster-node-timeout", "15000"),
        ("masterauth", password),
    ] {
        assert_eq!(node.config_get(name).await.unwrap().as_deref(), Some(value), "{name}");
    }
    assert!(!ready(&sandbox).await, "it has joined no cluster");
    node.order(cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16383))
        .await
        .unwrap();
    eventually("a server with slots becomes ready", 30, async || ready(&sandbox).await).await;
    eventually("it serves its slots", 20, async || {
        node.order(cmd("SET").arg("key").arg("value")).await.is_ok()
    })
    .await;
    let id = node.my_id().await.unwrap();

    // A new password reaches the server before the files of its pod.
    node.config_set(&[("requirepass", "new")]).await.unwrap();
    assert_eq!(probe(&sandbox, "/scripts/ready.sh").await, "Success");
    assert_eq!(probe(&sandbox, "/scripts/alive.sh").await, "Success");
    let node = server(ip, "new");

    // The server closes the connection instead of replying to SHUTDOWN.
    let _ = node.order(cmd("SHUTDOWN").arg("NOSAVE")).await;
    eventually("the container is restarted", 60, async || {
        let pod = pods(&sandbox).get("c-0").await.unwrap();
        let containers = pod
            .status
            .and_then(|status| status.container_statuses)
            .unwrap_or_default();
        containers.iter().any(|one| one.restart_count > 0 && one.ready)
    })
    .await;
    let node = server(ip, password);
    eventually("it serves its data", 20, async || {
        key(&node).await.as_deref() == Some("value")
    })
    .await;
    assert_eq!(node.my_id().await.unwrap(), id, "it is the server that it was");
}

/// A server started by the scripts without a pod, so that it can be killed at any moment.
struct Place {
    ip: IpAddr,
    folder: tempfile::TempDir,
    generation: (&'static str, &'static str),
    kept: bool,
    process: Option<Child>,
}

impl Place {
    fn new(generation: (&'static str, &'static str), config: &str) -> Self {
        let (made, merged) = objects(json!({"config": config}), Some("p"));
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["data", "scripts", "credentials"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        for (name, text) in made.config_map.data.unwrap() {
            let text = text.replace("dir /data", &format!("dir {}", at("data").display()));
            std::fs::write(at("scripts").join(name), text).unwrap();
        }
        for (name, value) in made.robin.secret.data.unwrap() {
            std::fs::write(at("credentials").join(name), value.0).unwrap();
        }
        Self {
            ip: free_address(),
            folder,
            generation,
            kept: merged.keeps_data,
            process: None,
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&mut self) {
        let ip = self.ip.to_string();
        let path = format!(
            "{}:{}",
            programs(self.generation).display(),
            std::env::var("PATH").unwrap()
        );
        let process = Command::new("sh")
            .arg(self.at("scripts/start.sh"))
            .arg(self.at("scripts/redis.conf"))
            .arg("--include")
            .arg(self.at("credentials/auth.conf"))
            .args(["--bind", &ip, "--bind-source-addr", &ip])
            .env("PATH", path)
            .env("POD_IP", &ip)
            .env("VALKEY_DATA", if self.kept { "kept" } else { "lost" })
            .env("credentials", self.at("credentials"))
            .current_dir(self.at("data"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    async fn answers(&self) -> Node {
        let node = server(self.ip, "p");
        eventually("the server answers", 20, async || node.ping().await.is_ok()).await;
        node
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ephemeral_server_that_is_killed_loses_no_acknowledged_write_unless_configured_so() {
    for generation in GENERATIONS {
        for (config, survives) in [("", true), ("appendonly no", false)] {
            let mut place = Place::new(generation, config);
            place.start();
            let node = place.answers().await;
            node.order(cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(0).arg(16383))
                .await
                .unwrap();
            eventually("it serves its slots", 20, async || {
                node.order(cmd("SET").arg("key").arg("0")).await.is_ok()
            })
            .await;
            let id = node.my_id().await.unwrap();
            for number in 1..=500 {
                node.order(cmd("SET").arg("key").arg(number)).await.unwrap();
            }
            place.kill();
            place.start();
            let node = place.answers().await;
            let same = node.my_id().await.unwrap() == id;
            if survives {
                assert!(same, "{generation:?}");
                eventually("it serves its data", 20, async || {
                    key(&node).await.as_deref() == Some("500")
                })
                .await;
            } else {
                // A node without its data must not return as primary.
                assert!(!same, "{generation:?}");
            }
        }
    }
}
