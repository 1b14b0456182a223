//! Real servers, set up as a user would: `candor sandbox`, `candor install`, a manifest.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::process::Stdio;
use std::time::{Duration, Instant};

use candor_api::ValkeyCluster;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::process::Child;

use crate::runner::{Cli, end, lines, next};

/// Longer than a small cluster takes for anything on a busy host.
const PATIENCE: Duration = Duration::from_secs(90);

/// A sandbox with an operator installed in it.
pub struct Real {
    user: Cli,
    sandbox: Child,
    client: Client,
}

impl Deref for Real {
    type Target = Cli;
    fn deref(&self) -> &Cli {
        &self.user
    }
}

impl Real {
    /// Starts the sandbox and installs the operator.
    pub async fn start() -> Self {
        let user = Cli::with(None);
        let log = std::fs::File::create(user.folder.path().join("sandbox.log")).unwrap();
        let mut command = user.command("sandbox --nodes 3 --zones a,b,c --kubeconfig config");
        let mut sandbox = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut output = lines(sandbox.stdout.take());
        while !next(&mut output).await.contains("Ctrl-C ends it") {}
        let installed = user.run("install").await.well();
        assert!(
            installed.ends_with("The operator is up in namespace candor.\n"),
            "{installed}"
        );
        let file = Kubeconfig::read_from(user.kubeconfig()).unwrap();
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.unwrap()).unwrap();
        Self { user, sandbox, client }
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn clusters(&self) -> Api<ValkeyCluster> {
        Api::default_namespaced(self.client.clone())
    }

    /// Creates a cluster in the default namespace.
    pub async fn create(&self, name: &str, spec: Value) {
        let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
            "metadata": {"name": name}, "spec": spec});
        let cluster = serde_json::from_value(cluster).unwrap();
        self.clusters().create(&PostParams::default(), &cluster).await.unwrap();
    }

    /// Waits until a cluster meets a predicate.
    pub async fn until(&self, name: &str, what: &str, so: impl Fn(&ValkeyCluster) -> bool) {
        let begun = Instant::now();
        loop {
            let cluster = self.clusters().get(name).await.unwrap();
            if so(&cluster) {
                return;
            }
            let status = serde_json::to_string_pretty(&cluster.status).unwrap();
            assert!(
                begun.elapsed() < PATIENCE,
                "{name} not {what} in {PATIENCE:?}: {status}"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The pods of a cluster that are not terminating, by member: `0-1`.
    pub async fn pods_of(&self, name: &str) -> BTreeMap<String, String> {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        let selector = ListParams::default().labels(&format!("valkey.io/cluster={name}"));
        let pods = api.list(&selector).await.unwrap().items.into_iter();
        let label = |pod: &Pod, key: &str| pod.labels().get(key).cloned().unwrap_or_default();
        pods.filter(|pod| pod.metadata.deletion_timestamp.is_none())
            .map(|pod| {
                let at = format!(
                    "{}-{}",
                    label(&pod, "valkey.io/shard-index"),
                    label(&pod, "valkey.io/node-index")
                );
                (at, pod.name_any())
            })
            .collect()
    }

    /// The current state of a pod.
    pub async fn pod(&self, name: &str) -> Pod {
        let api: Api<Pod> = Api::default_namespaced(self.client.clone());
        api.get(name).await.unwrap()
    }

    /// Patches a cluster, as kubectl would.
    pub async fn write(&self, name: &str, what: Value) {
        let patch = Patch::Merge(what);
        let written = self.clusters().patch(name, &PatchParams::default(), &patch).await;
        written.unwrap();
    }

    /// Scales the operator to this many replicas.
    pub async fn operators(&self, number: i32) {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), "candor");
        let patch = Patch::Merge(json!({"spec": {"replicas": number}}));
        api.patch("candor-operator", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Shuts the sandbox down cleanly; the pods end with it.
    pub async fn end(self) {
        let output = end(self.sandbox, Signal::TERM).await;
        assert!(output.fine, "{output:?}");
    }
}
