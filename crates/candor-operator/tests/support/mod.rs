//! A Kubernetes API without a kubelet, simulated members, and an operator that can be stopped at any moment.

pub mod redkey;
pub mod robin;

use std::time::{Duration, Instant};

use candor_api::valkey::status::{MemberRole, MemberTopology};
use candor_api::{RedkeyCluster, ValkeyCluster, crds};
use candor_operator::{Settings, run};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use kube_sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use valkey_sim::pods::Pods;
use valkey_sim::{Timing, World};

/// Everything except the operator.
pub struct Stage {
    pub sandbox: Sandbox,
    pub world: World,
    pub pods: Pods,
    /// What runs in the pods of Robin.
    pub robins: robin::Casting,
}

impl Stage {
    pub async fn set() -> Self {
        let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
        let client = sandbox.client_as("admin", &["system:masters"]);
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in crds::all() {
            api.create(&PostParams::default(), &crd).await.unwrap();
        }
        let world = World::new(Timing::default());
        let robins = robin::Casting::default();
        let program = robin::robins(client.clone(), robins.clone());
        let pods = Pods::run_with(client, world.clone(), 3, "9.1.2", program)
            .await
            .unwrap();
        Self {
            sandbox,
            world,
            pods,
            robins,
        }
    }

    pub fn client(&self) -> Client {
        self.sandbox.client_as("admin", &["system:masters"])
    }

    pub fn clusters(&self, namespace: &str) -> Api<ValkeyCluster> {
        Api::namespaced(self.client(), namespace)
    }

    pub fn redkey_clusters(&self) -> Api<RedkeyCluster> {
        Api::namespaced(self.client(), "default")
    }

    /// Creates a cluster in the default namespace.
    pub async fn create(&self, name: &str, spec: Value) -> ValkeyCluster {
        self.create_in("default", name, spec).await
    }

    pub async fn create_in(&self, namespace: &str, name: &str, spec: Value) -> ValkeyCluster {
        let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
            "metadata": {"name": name}, "spec": spec});
        let cluster = serde_json::from_value(cluster).unwrap();
        let api = self.clusters(namespace);
        api.create(&PostParams::default(), &cluster).await.unwrap()
    }

    pub async fn change(&self, name: &str, spec: Value) {
        let api = self.clusters("default");
        let patch = Patch::Merge(json!({ "spec": spec }));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Sets an annotation on a cluster, as kubectl does.
    pub async fn annotate(&self, name: &str, key: &str, value: &str) {
        let api = self.clusters("default");
        let patch = Patch::Merge(json!({"metadata": {"annotations": {(key): value}}}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// The primary of a shard according to status.
    pub async fn primary(&self, name: &str, shard: usize) -> Option<MemberTopology> {
        let status = self.clusters("default").get(name).await.unwrap().status?;
        let members = status.topology.into_iter().nth(shard)?.members;
        members.into_iter().find(|one| one.role == Some(MemberRole::Primary))
    }

    /// Waits until a condition holds for a cluster, and returns how long it took.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        within: Duration,
        so: impl Fn(&ValkeyCluster) -> bool,
    ) -> Duration {
        let start = Instant::now();
        let api = self.clusters("default");
        loop {
            let cluster = api.get(name).await.unwrap();
            if so(&cluster) {
                return start.elapsed();
            }
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(start.elapsed() < within, "{name} not {what} in {within:?}: {status}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub async fn ready(&self, name: &str) -> Duration {
        self.until(name, "Ready", Duration::from_secs(30), is_ready).await
    }

    /// The pods of a cluster, by member: `0-1`.
    pub async fn pods_of(&self, name: &str) -> std::collections::BTreeMap<String, String> {
        let api: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(self.client(), "default");
        let selector = ListParams::default().labels(&format!("valkey.io/cluster={name}"));
        let pods = api.list(&selector).await.unwrap();
        let label =
            |pod: &k8s_openapi::api::core::v1::Pod, key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        pods.iter()
            .map(|pod| {
                let at = format!(
                    "{}-{}",
                    label(pod, "valkey.io/shard-index"),
                    label(pod, "valkey.io/node-index")
                );
                (at, pod.name_any())
            })
            .collect()
    }
}

/// Whether the cluster has Ready=True for its latest generation.
pub fn is_ready(cluster: &ValkeyCluster) -> bool {
    let status = serde_json::to_value(&cluster.status).unwrap();
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| {
        condition["type"] == "Ready"
            && condition["status"] == "True"
            && condition["observedGeneration"].as_i64() == cluster.metadata.generation
    })
}

/// A running operator.
pub struct Operator {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Operator {
    pub fn start(client: Client) -> Self {
        Self::start_with(client, Settings::default())
    }

    pub fn start_with(client: Client, settings: Settings) -> Self {
        let stop = CancellationToken::new();
        let ended = stop.clone();
        let task = tokio::spawn(async move {
            run(client, settings, ended).await.unwrap();
        });
        Self { stop, task }
    }

    /// Shuts it down gracefully.
    pub async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}
