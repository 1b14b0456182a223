//! A Kubernetes with the operator in it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use candor_operator::Settings;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_sandbox::Sandbox;
use kube_sandbox::faults::Faults;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{cluster, until};

/// Names the kubeconfig of a real cluster; without it every scenario has a sandbox of its own.
const REAL: &str = "CANDOR_TEST_KUBECONFIG";

/// The label of every scenario's namespace.
const MARK: &str = "candor-tests";

/// Two scenarios at once: more of them only make each other slow on a small machine, and figures worse. On a real
/// cluster, whose own parts take most of one, a scenario is alone.
static TURNS: Semaphore = Semaphore::const_new(2);

const DEFINITIONS: [&str; 2] = [
    include_str!("../../deploy/crds/valkey.io_valkeyclusters.yaml"),
    include_str!("../../deploy/crds/valkey.io_valkeynodes.yaml"),
];

/// A Kubernetes with the operator in it, and a namespace in it for one scenario.
pub struct World {
    client: Client,
    kubeconfig: Kubeconfig,
    sandbox: Option<Sandbox>,
    namespace: String,
    operator: Arc<Mutex<Option<Running>>>,
    _turn: SemaphorePermit<'static>,
}

/// The operator has a runtime of its own, so that killing it ends every task it ever started.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    runtime: Runtime,
}

impl World {
    /// Its own sandbox, or its own namespace on the real cluster, with the operator running.
    pub async fn start(scenario: &str) -> Self {
        log_when_asked();
        let real = std::env::var_os(REAL).filter(|path| !path.is_empty());
        let turns = if real.is_some() { 2 } else { 1 };
        let turn = TURNS.acquire_many(turns).await.expect("the semaphore is never closed");
        let (kubeconfig, sandbox) = if let Some(path) = real {
            let path = PathBuf::from(path);
            let read = Kubeconfig::read_from(&path);
            (read.unwrap_or_else(|error| panic!("{}: {error}", path.display())), None)
        } else {
            let sandbox = Sandbox::builder().nodes(3).images(images()).start().await;
            let sandbox = sandbox.unwrap_or_else(|error| panic!("the sandbox does not start: {error}"));
            let kubeconfig = Kubeconfig::from_yaml(sandbox.kubeconfig()).expect("the sandbox's own kubeconfig");
            (kubeconfig, Some(sandbox))
        };
        let client = client_of(kubeconfig.clone()).await;
        let world = Self {
            client,
            kubeconfig,
            sandbox,
            namespace: format!("test-{scenario}"),
            operator: Arc::default(),
            _turn: turn,
        };
        world.install().await;
        world.start_operator();
        world
    }

    async fn install(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for text in DEFINITIONS {
            let definition: CustomResourceDefinition = serde_saphyr::from_str(text).expect("deploy/crds is YAML");
            let name = definition.metadata.name.clone().unwrap_or_default();
            let params = PatchParams::apply("candor-tests").force();
            let applied = definitions.patch(&name, &params, &Patch::Apply(&definition)).await;
            applied.unwrap_or_else(|error| panic!("{name} cannot be installed: {error}"));
            until(&format!("{name} is served"), async || {
                let found = definitions.get(&name).await.ok()?;
                let conditions = found.status?.conditions?;
                conditions
                    .iter()
                    .find(|c| c.type_ == "Established" && c.status == "True")
                    .map(|_| ())
            })
            .await;
        }
        self.clear().await;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let namespace = json!({"metadata": {"name": self.namespace, "labels": {MARK: "scenario"}}});
        let namespace = serde_json::from_value(namespace).expect("a namespace");
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        created.unwrap_or_else(|error| panic!("namespace {}: {error}", self.namespace));
    }

    /// Takes away what a scenario that failed left on a real cluster. No operator of its own lives to let go of its
    /// clusters, so their finalizers go first.
    async fn clear(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let left = namespaces.list(&ListParams::default().labels(MARK)).await;
        for namespace in left.unwrap_or_else(|error| panic!("namespaces: {error}")) {
            let name = namespace.metadata.name.unwrap_or_default();
            let clusters: Api<DynamicObject> = Api::namespaced_with(self.client(), &name, &cluster::kind());
            let held = clusters.list(&ListParams::default()).await;
            for cluster in held.unwrap_or_else(|error| panic!("clusters: {error}")) {
                let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                let cluster = cluster.metadata.name.unwrap_or_default();
                let _ = clusters.patch(&cluster, &PatchParams::default(), &let_go).await;
            }
            let _ = namespaces.delete(&name, &DeleteParams::default()).await;
            until("the namespace of an earlier scenario is gone", async || {
                namespaces.get_opt(&name).await.ok()?.is_none().then_some(())
            })
            .await;
        }
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        locked(&self.operator)
    }

    /// Starts the operator in this process.
    pub fn start_operator(&self) {
        self.start_operator_behind(&Faults::seeded(1));
    }

    /// Starts it with faults between it and the API server.
    pub fn start_operator_behind(&self, faults: &Faults) {
        let stop = CancellationToken::new();
        let settings = Settings {
            namespaces: vec![self.namespace.clone()],
            ..Settings::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("the machine has threads left");
        let (kubeconfig, stopped, faults) = (self.kubeconfig.clone(), stop.clone(), faults.clone());
        let task = runtime.spawn(async move {
            let client = ClientBuilder::try_from(config_of(kubeconfig).await).expect("a client of the kubeconfig");
            let client = client.with_layer(&faults.layer()).build();
            if let Err(error) = candor_operator::run(client, settings, stopped).await {
                panic!("the operator ended: {error}");
            }
        });
        *self.running() = Some(Running { stop, task, runtime });
    }

    /// Ends it as SIGTERM does.
    pub async fn stop_operator(&self) {
        let running = self.running().take();
        if let Some(Running { stop, task, runtime }) = running {
            stop.cancel();
            task.await.expect("the operator ends in order");
            runtime.shutdown_background();
        }
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill_operator(&self) {
        self.killer()();
    }

    /// Something that ends it so, for whoever knows when.
    pub fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let operator = self.operator.clone();
        move || {
            if let Some(running) = locked(&operator).take() {
                running.runtime.shutdown_background();
            }
        }
    }

    /// A client as administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The scenario's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The sandbox; absent on a real cluster.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The end of a scenario that went well. On a real cluster its namespace goes; a sandbox goes as a whole.
    pub async fn end(self) {
        if self.sandbox.is_none() {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            // The operator must live until its finalizers are gone.
            let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
            until("the scenario's namespace is gone", async || {
                namespaces.get_opt(&self.namespace).await.ok()?.is_none().then_some(())
            })
            .await;
        }
        let stopped = tokio::time::timeout(Duration::from_secs(10), self.stop_operator()).await;
        stopped.expect("the operator ends within 10 s of being told");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_operator();
    }
}

fn locked(operator: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    operator.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn config_of(kubeconfig: Kubeconfig) -> kube::Config {
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    config.unwrap_or_else(|error| panic!("the kubeconfig cannot be used: {error}"))
}

async fn client_of(kubeconfig: Kubeconfig) -> Client {
    Client::try_from(config_of(kubeconfig).await).expect("a client of the kubeconfig")
}

/// The image map that `make setup` writes.
fn images() -> PathBuf {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = folder("CANDOR_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("candor")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/candor")));
    let path = cache.expect("set HOME").join("images.yaml");
    assert!(path.is_file(), "{} is missing: run `make setup`", path.display());
    path
}

/// `CANDOR_LOG=info` shows the operator's decisions beside the scenario's words.
fn log_when_asked() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(filter) = tracing_subscriber::EnvFilter::try_from_env("CANDOR_LOG") {
            tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_test_writer()
                .init();
        }
    });
}
