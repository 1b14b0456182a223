//! A sandbox with a cluster of three real servers, and a `ValkeyCluster` or `RedkeyCluster` with a status that the tests
//! write.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use candor_audit::{Auditor, ClusterRef, Kind, Now, Options};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube_sandbox::Sandbox;
use kube_sandbox::kubelet::cached;
use redis::aio::MultiplexedConnection;
use serde_json::json;

/// Longer than any step here takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);
const SERVERS: usize = 3;

pub struct Bench {
    kind: Kind,
    name: String,
    sandbox: Sandbox,
    addresses: Vec<SocketAddr>,
}

impl Bench {
    /// Three primaries without replicas that have formed a cluster and serve.
    pub async fn start(name: &str) -> Self {
        Self::start_of(Kind::ValkeyCluster, name).await
    }

    /// The same, described by an object of a kind.
    pub async fn start_of(kind: Kind, name: &str) -> Self {
        let images = cached("images.yaml").expect("run `make setup` once");
        let sandbox = Sandbox::builder().images(images).start().await.unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(sandbox.client());
        let text = match kind {
            Kind::ValkeyCluster => include_str!("../../../../deploy/crds/valkey.io_valkeyclusters.yaml"),
            Kind::RedkeyCluster => include_str!("../../../../deploy/crds/redkey.inditex.dev_redkeyclusters.yaml"),
        };
        let definition = serde_saphyr::from_str(text).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let mut bench = Self {
            kind,
            name: name.to_owned(),
            sandbox,
            addresses: Vec::new(),
        };
        bench.create_cluster().await;
        bench.create_servers().await;
        bench.form().await;
        bench
    }

    fn resource(&self) -> ApiResource {
        let (group, version) = match self.kind {
            Kind::ValkeyCluster => ("valkey.io", "v1alpha1"),
            Kind::RedkeyCluster => ("redkey.inditex.dev", "v1"),
        };
        ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &self.kind.to_string()))
    }

    fn clusters(&self) -> Api<DynamicObject> {
        Api::default_namespaced_with(self.sandbox.client(), &self.resource())
    }

    async fn create_cluster(&self) {
        let spec = match self.kind {
            Kind::ValkeyCluster => json!({"shards": SERVERS}),
            Kind::RedkeyCluster => json!({"primaries": SERVERS, "auth": {"secret": "password"}}),
        };
        let cluster = DynamicObject::new(&self.name, &self.resource()).data(json!({"spec": spec}));
        let begun = Instant::now();
        // The API server serves a CRD a moment after its creation.
        while let Err(error) = self.clusters().create(&PostParams::default(), &cluster).await {
            assert!(begun.elapsed() < PATIENCE, "{error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn create_servers(&mut self) {
        let sets: Api<StatefulSet> = Api::default_namespaced(self.sandbox.client());
        let labels = match self.kind {
            Kind::ValkeyCluster => json!({"valkey.io/cluster": self.name, "valkey.io/node-index": "0"}),
            Kind::RedkeyCluster => {
                json!({"redkey-cluster-name": self.name, "redis.redkeycluster.operator/component": "redis"})
            }
        };
        let arguments = [
            "--port",
            "6379",
            "--save",
            "",
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "2000",
        ];
        let set = json!({
            "metadata": {"name": self.name},
            "spec": {
                "replicas": SERVERS, "serviceName": self.name, "podManagementPolicy": "Parallel",
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "server", "image": "valkey/valkey:9.1", "args": arguments}],
                }},
            },
        });
        sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap())
            .await
            .unwrap();
        let pods: Api<Pod> = Api::default_namespaced(self.sandbox.client());
        let begun = Instant::now();
        while self.addresses.len() < SERVERS {
            assert!(
                begun.elapsed() < PATIENCE,
                "only {} pods have an address",
                self.addresses.len()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
            let mut pods = pods.list(&ListParams::default()).await.unwrap().items;
            pods.sort_by_key(|pod| pod.metadata.name.clone());
            let address = |pod: &Pod| {
                Some(SocketAddr::new(
                    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()?,
                    6379,
                ))
            };
            self.addresses = pods.iter().filter_map(address).collect();
        }
    }

    async fn form(&self) {
        let first = self.connection(0).await;
        for (index, address) in self.addresses.iter().enumerate() {
            let from = index * 16384 / SERVERS;
            let to = (index + 1) * 16384 / SERVERS - 1;
            let mut connection = self.connection(index).await;
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("ADDSLOTSRANGE").arg(from).arg(to);
            slots.exec_async(&mut connection).await.unwrap();
            let mut epoch = redis::cmd("CLUSTER");
            epoch.arg("SET-CONFIG-EPOCH").arg(index + 1);
            epoch.exec_async(&mut connection).await.unwrap();
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg(address.ip().to_string()).arg(address.port());
            meet.exec_async(&mut first.clone()).await.unwrap();
        }
        let begun = Instant::now();
        for index in 0..SERVERS {
            loop {
                let mut connection = self.connection(index).await;
                let info: String = redis::cmd("CLUSTER")
                    .arg("INFO")
                    .query_async(&mut connection)
                    .await
                    .unwrap();
                if info.contains("cluster_state:ok") {
                    break;
                }
                assert!(begun.elapsed() < PATIENCE, "server {index} says {info}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// A connection, as soon as the server responds.
    async fn connection(&self, index: usize) -> MultiplexedConnection {
        let client = redis::Client::open(format!("redis://{}", self.addresses[index])).unwrap();
        let begun = Instant::now();
        loop {
            match client.get_multiplexed_async_connection().await {
                Ok(connection) => return connection,
                Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Writes the status that an operator would write, true or not.
    pub async fn set_ready(&self, ready: bool) {
        let (status, state, reason) = if ready {
            ("True", "Ready", "ClusterHealthy")
        } else {
            ("False", "Reconciling", "Reconciling")
        };
        let condition = json!({
            "type": "Ready", "status": status, "reason": reason, "message": "as the test says",
            "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let patch = match self.kind {
            Kind::ValkeyCluster => json!({"status": {"state": state, "reason": reason, "conditions": [condition]}}),
            Kind::RedkeyCluster => json!({"status": {"status": state, "conditions": [condition]}}),
        };
        let patched = self
            .clusters()
            .patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        patched.unwrap();
    }

    /// The Secret that a `RedkeyCluster` names, and the same password on every server.
    pub async fn protect(&self, password: &str) {
        let secrets: Api<Secret> = Api::default_namespaced(self.sandbox.client());
        let secret = json!({"metadata": {"name": "password"}, "stringData": {"requirepass": password}});
        let secret = serde_json::from_value(secret).unwrap();
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        self.send_to_all(&["CONFIG", "SET", "masterauth", password, "requirepass", password])
            .await;
    }

    pub async fn audit(&self, rate: u32) -> Auditor {
        self.audit_as(rate, None, None).await
    }

    pub async fn audit_as(&self, rate: u32, user: Option<&str>, password: Option<&str>) -> Auditor {
        let cluster = ClusterRef {
            kind: self.kind,
            namespace: "default".into(),
            name: self.name.clone(),
        };
        let options = Options {
            rate,
            user: user.map(str::to_owned),
            password: password.map(str::to_owned),
        };
        Auditor::start(self.sandbox.client(), cluster, options).await.unwrap()
    }

    pub async fn until(&self, auditor: &Auditor, what: &str, desired: impl Fn(&Now) -> bool) {
        let begun = Instant::now();
        while !desired(&auditor.now()) {
            assert!(begun.elapsed() < PATIENCE, "never {what}: {:?}", auditor.now());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub async fn until_written(&self, auditor: &Auditor, writes: u64) {
        let begun = Instant::now();
        while auditor.acknowledged() < writes {
            assert!(
                begun.elapsed() < PATIENCE,
                "{} of {writes} writes",
                auditor.acknowledged()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub fn kill(&self, pod: &str) {
        self.sandbox.kubelet().unwrap().kill("default", pod, None).unwrap();
    }

    pub fn freeze(&self, pod: &str) {
        self.sandbox.kubelet().unwrap().freeze("default", pod).unwrap();
    }

    pub fn thaw(&self, pod: &str) {
        self.sandbox.kubelet().unwrap().thaw("default", pod).unwrap();
    }

    /// Sends a command to every server.
    pub async fn send_to_all(&self, arguments: &[&str]) {
        for index in 0..SERVERS {
            let mut command = redis::cmd(arguments[0]);
            command.arg(&arguments[1..]);
            command.exec_async(&mut self.connection(index).await).await.unwrap();
        }
    }

    pub fn freeze_all(&self) {
        for index in 0..SERVERS {
            self.freeze(&format!("{}-{index}", self.name));
        }
    }

    /// Migrates slots with all their keys.
    pub async fn migrate(&self, from: usize, to: usize, range: &str) {
        let (first, last) = range.split_once('-').unwrap();
        let id: String = redis::cmd("CLUSTER")
            .arg("MYID")
            .query_async(&mut self.connection(to).await)
            .await
            .unwrap();
        let mut source = self.connection(from).await;
        let mut migrate = redis::cmd("CLUSTER");
        migrate
            .arg("MIGRATESLOTS")
            .arg("SLOTSRANGE")
            .arg(first)
            .arg(last)
            .arg("NODE")
            .arg(&id);
        migrate.exec_async(&mut source).await.unwrap();
        let begun = Instant::now();
        loop {
            let nodes: String = redis::cmd("CLUSTER")
                .arg("NODES")
                .query_async(&mut source)
                .await
                .unwrap();
            let owner = nodes.lines().find(|line| line.starts_with(&id)).unwrap();
            if owner.split(' ').any(|word| word == range) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{nodes}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Deletes canaries without the auditor's knowledge, each with at least one acknowledged write.
    pub async fn remove_some_keys(&self, index: usize) -> u64 {
        let mut connection = self.connection(index).await;
        let keys: Vec<String> = redis::cmd("KEYS")
            .arg("candor-audit-*1}")
            .query_async(&mut connection)
            .await
            .unwrap();
        let mut removed = 0;
        for key in keys {
            removed += redis::cmd("DEL")
                .arg(&key)
                .query_async::<u64>(&mut connection)
                .await
                .unwrap();
        }
        removed
    }

    /// The number of keys in all servers.
    pub async fn keys(&self) -> u64 {
        let mut sum = 0;
        for index in 0..SERVERS {
            let mut connection = self.connection(index).await;
            sum += redis::cmd("DBSIZE").query_async::<u64>(&mut connection).await.unwrap();
        }
        sum
    }
}
