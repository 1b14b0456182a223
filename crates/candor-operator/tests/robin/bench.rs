//! A cluster of real servers, its objects in an API server, a Robin, and an operator that follows it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use candor_api::redkey::status::ClusterStatus;
use candor_api::{RedkeyCluster, crds};
use candor_engine::observation::Server as Seen;
use candor_operator::kinds::redkey::config::{Password, Storage, merge};
use candor_operator::kinds::redkey::objects::{
    Inputs, ROBIN_PORT, RobinCredentials, RobinObjects, build, names, robin_config,
};
use candor_operator::kinds::redkey::robin::agent::requests::Request;
use candor_operator::kinds::redkey::robin::agent::{Driven, Driver, Observing, RobinError, RobinSettings, Round, run};
use candor_operator::kinds::redkey::robin::link::{Frame, RobinEndpoint, RobinLinks, RobinView};
use candor_operator::monitor::ClusterKey;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::servers::{Generation, Server, cluster, free_address};

pub const NAMESPACE: &str = "default";
pub const NAME: &str = "c";
const PATIENCE: Duration = Duration::from_secs(60);

pub fn key() -> ClusterKey {
    ClusterKey {
        kind: candor_operator::monitor::ClusterKind::Redkey,
        namespace: NAMESPACE.to_owned(),
        name: NAME.to_owned(),
    }
}

/// A driver that counts its rounds, checks that they never overlap, and finishes a request in its third round.
#[derive(Clone, Default)]
pub struct Counting {
    pub rounds: Arc<AtomicUsize>,
    pub busy: Arc<AtomicUsize>,
    pub requested: Arc<AtomicUsize>,
    /// A round takes this many milliseconds.
    pub lasting: Arc<AtomicUsize>,
    /// Moves fail with this message.
    pub failing: bool,
    pub outdated_passwords: Arc<AtomicUsize>,
}

impl Driver for Counting {
    async fn drive(&self, round: Round<'_>) -> Driven {
        assert_eq!(self.busy.fetch_add(1, Ordering::SeqCst), 0, "two rounds at once");
        let lasting = u64::try_from(self.lasting.load(Ordering::SeqCst)).unwrap();
        tokio::time::sleep(Duration::from_millis(lasting)).await;
        self.busy.fetch_sub(1, Ordering::SeqCst);
        self.rounds.fetch_add(1, Ordering::SeqCst);
        let outdated = round.passwords.outdated().count();
        self.outdated_passwords.store(outdated, Ordering::SeqCst);
        let mut finished = None;
        if let Some(request) = round.request {
            let turn = self.requested.fetch_add(1, Ordering::SeqCst);
            if turn >= 2 {
                self.requested.store(0, Ordering::SeqCst);
                let failed = self.failing && matches!(request, Request::Move { .. });
                finished = Some(if failed { Err("c-1 is full".to_owned()) } else { Ok(()) });
            }
        }
        Driven {
            generation: round.cluster.metadata.generation,
            plan_empty: true,
            again: round.request.map(|_| Duration::from_millis(300)),
            finished,
            ..Driven::default()
        }
    }
}

/// The objects of a cluster and the servers of its pods.
pub struct Bench {
    pub sandbox: Sandbox,
    pub servers: Vec<Server>,
    pub credentials: RobinCredentials,
    pub folder: tempfile::TempDir,
    pub address: IpAddr,
}

impl Bench {
    /// Three primaries and a replica of the first.
    pub async fn four() -> Self {
        let shares = [Some("0-5460"), Some("5461-10922"), Some("10923-16383"), None];
        let servers = cluster(Generation::Redis8, &shares).await;
        let primary = servers[0].node().my_id().await.unwrap();
        let replica = servers[3].node();
        until("it follows", async || replica.replicate(primary).await.is_ok()).await;
        until("it is in sync", async || replica.info(&[]).await.unwrap().in_sync()).await;
        Self::of(servers, json!({"primaries": 3})).await
    }

    pub async fn of(servers: Vec<Server>, spec: Value) -> Self {
        let sandbox = Sandbox::bare().await.unwrap();
        let crds: Api<CustomResourceDefinition> = Api::all(sandbox.client());
        let crd = crds::all()
            .into_iter()
            .find(|crd| crd.spec.names.kind == "RedkeyCluster");
        crds.create(&PostParams::default(), &crd.unwrap()).await.unwrap();
        let bench = Self {
            sandbox,
            servers,
            credentials: RobinCredentials::generate(NAME, &ring::rand::SystemRandom::new()).unwrap(),
            folder: tempfile::tempdir().unwrap(),
            address: free_address(),
        };
        std::fs::create_dir(bench.folder.path().join("credentials")).unwrap();
        let cluster = json!({"apiVersion": "redkey.inditex.dev/v1", "kind": "RedkeyCluster",
            "metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec});
        let cluster: RedkeyCluster = serde_json::from_value(cluster).unwrap();
        let cluster = bench.clusters().create(&PostParams::default(), &cluster).await.unwrap();
        bench.write(&bench.objects(&cluster, None));
        let objects = bench.objects(&cluster, None);
        let client = bench.sandbox.client();
        let roles = Api::namespaced(client.clone(), NAMESPACE);
        roles.create(&PostParams::default(), &objects.role).await.unwrap();
        let bindings = Api::namespaced(client, NAMESPACE);
        bindings
            .create(&PostParams::default(), &objects.role_binding)
            .await
            .unwrap();
        // Pods need one, and no controller runs that would create it.
        let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
        let accounts = Api::namespaced(bench.sandbox.client(), NAMESPACE);
        accounts.create(&PostParams::default(), &account).await.unwrap();
        for ordinal in 0..bench.servers.len() {
            bench.pod(ordinal).await;
        }
        bench
    }

    pub fn clusters(&self) -> Api<RedkeyCluster> {
        Api::namespaced(self.sandbox.client(), NAMESPACE)
    }

    pub fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.sandbox.client(), NAMESPACE)
    }

    /// Robin's objects, as the operator builds them.
    pub fn objects(&self, cluster: &RedkeyCluster, password: Option<&str>) -> RobinObjects {
        let password = password.and_then(Password::new);
        let config = merge("", Storage::Ephemeral, password.as_ref()).unwrap();
        let inputs = Inputs {
            kept: None,
            cluster,
            config: &config,
            credentials: &self.credentials,
            robin_image: "candor:1",
            replicas: i32::try_from(self.servers.len()).unwrap(),
            status: ClusterStatus::Configuring,
        };
        build(&inputs).unwrap().robin
    }

    /// Writes Robin's files, as a kubelet does.
    pub fn write(&self, objects: &RobinObjects) {
        let config = objects.config_map.data.as_ref().unwrap();
        std::fs::write(self.config(), &config[robin_config::KEY]).unwrap();
        for (name, value) in objects.secret.data.as_ref().unwrap() {
            std::fs::write(self.folder.path().join("credentials").join(name), &value.0).unwrap();
        }
    }

    pub fn config(&self) -> PathBuf {
        self.folder.path().join(robin_config::KEY)
    }

    /// Creates the pod of a server.
    pub async fn pod(&self, ordinal: usize) {
        let name = names::pod(NAME, u32::try_from(ordinal).unwrap());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": names::server_selector(NAME)},
            "spec": {"containers": [{"name": "redis", "image": "redis:8"}]},
        });
        let pod: Pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
        let ip = self.servers[ordinal].ip.to_string();
        let status = json!({"status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}]}});
        let patch = Patch::Merge(status);
        self.pods()
            .patch_status(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub async fn delete_pod(&self, ordinal: u32) {
        let how = DeleteParams::default().grace_period(0);
        self.pods().delete(&names::pod(NAME, ordinal), &how).await.unwrap();
    }

    /// Changes the cluster.
    pub async fn patch(&self, change: Value) -> RedkeyCluster {
        let patch = Patch::Merge(change);
        self.clusters()
            .patch(NAME, &PatchParams::default(), &patch)
            .await
            .unwrap()
    }

    /// Changes its status, as the operator does.
    pub async fn patch_status(&self, status: &str) {
        let patch = Patch::Merge(json!({"status": {"status": status, "substatus": {}, "nodes": {}}}));
        self.clusters()
            .patch_status(NAME, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// A client with the permissions of Robin's service account.
    fn client(&self) -> Client {
        let account = format!("system:serviceaccount:{NAMESPACE}:{NAME}-robin");
        self.sandbox
            .client_as(&account, &["system:serviceaccounts", "system:authenticated"])
    }

    pub fn settings(&self) -> RobinSettings {
        RobinSettings {
            config: self.config(),
            credentials: self.folder.path().join("credentials"),
            address: self.address,
        }
    }

    pub fn robin(&self) -> Robin {
        self.robin_with(Observing)
    }

    pub fn robin_with(&self, driver: impl Driver) -> Robin {
        let stop = CancellationToken::new();
        let task = tokio::spawn(run(self.client(), self.settings(), driver, stop.clone()));
        Robin { stop, task }
    }

    pub fn operator(&self) -> Operator {
        let (sender, triggers) = unbounded_channel();
        let links = RobinLinks::new(sender);
        links.follow(&key(), Some(self.endpoint()));
        Operator { links, triggers }
    }

    pub fn endpoint(&self) -> RobinEndpoint {
        RobinEndpoint::new(self.address, &self.credentials).unwrap()
    }

    /// Calls Robin's HTTP API, with its token.
    pub async fn call(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: r\r\nconnection: close\r\nauthorization: Bearer {}\r\n\
             content-length: {}\r\n\r\n{body}",
            self.credentials.token,
            body.len()
        );
        let address = SocketAddr::new(self.address, ROBIN_PORT);
        let talk = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            String::from_utf8(received).unwrap()
        };
        let text = timeout(PATIENCE, talk).await.expect("an answer in time");
        let code = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (code, body.to_owned())
    }

    pub async fn get(&self, path: &str) -> Value {
        let (code, body) = self.call("GET", path, "").await;
        assert_eq!(code, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub async fn put(&self, path: &str, body: &str) -> (u16, Value) {
        let (code, body) = self.call("PUT", path, body).await;
        (code, serde_json::from_str(&body).unwrap())
    }
}

/// A running Robin. Dropping it kills it.
pub struct Robin {
    pub stop: CancellationToken,
    task: JoinHandle<Result<(), RobinError>>,
}

impl Robin {
    /// Ends it gracefully.
    pub async fn end(mut self) -> Result<(), RobinError> {
        self.stop.cancel();
        timeout(PATIENCE, &mut self.task).await.expect("it ends").unwrap()
    }

    /// Waits until it ends by itself.
    pub async fn ended(mut self) -> RobinError {
        let end = timeout(PATIENCE, &mut self.task).await.expect("it ends").unwrap();
        end.expect_err("it ended without an error")
    }
}

impl Drop for Robin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An operator that follows Robin.
pub struct Operator {
    pub links: RobinLinks,
    pub triggers: UnboundedReceiver<ClusterKey>,
}

impl Operator {
    pub fn frame(&self) -> Option<Arc<Frame>> {
        match self.links.view(&key()) {
            RobinView::Live { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// Waits for a trigger after which the condition holds for the frame, and returns how long that took.
    pub async fn until(&mut self, what: &str, within: Duration, so: impl Fn(&Frame) -> bool) -> Duration {
        let begun = Instant::now();
        while !self.frame().is_some_and(|frame| so(&frame)) {
            let left = within.saturating_sub(begun.elapsed());
            let triggered = timeout(left, self.triggers.recv()).await;
            let view = self.links.view(&key());
            assert!(triggered.is_ok(), "not {what} within {within:?}: {view:#?}");
        }
        let took = begun.elapsed();
        println!("{what}: {took:?}");
        took
    }

    /// Reads triggers until none has arrived for a second.
    pub async fn calm(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while timeout(Duration::from_secs(1), self.triggers.recv()).await.is_ok() {
            assert!(Instant::now() < deadline, "a healthy cluster keeps triggering");
        }
    }

    /// Waits until every server is up and Robin confirms a generation.
    pub async fn settled(&mut self, servers: usize, generation: i64) {
        let so = |frame: &Frame| {
            let up = frame.servers.values().filter(|one| matches!(one.server, Seen::Up(_)));
            up.count() == servers && frame.confirms(generation)
        };
        self.until("settled", PATIENCE, so).await;
    }
}

/// Waits until a condition holds.
pub async fn until<F: AsyncFnMut() -> bool>(what: &str, mut so: F) {
    let deadline = Instant::now() + PATIENCE;
    while !so().await {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
