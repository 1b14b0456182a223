//! A Kubernetes with the operator in it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use candor_audit::Kind;
use candor_operator::manifests::Options;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use kube_sandbox::Sandbox;
use kube_sandbox::faults::Faults;
use kube_sandbox::kubelet::{Image, ImageBind, Program, cached};
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::operator::{self, OperatorOptions, Running};
use crate::request_log::RequestLog;
use crate::{cluster, until};

/// The variable with the kubeconfig of a real cluster; without it, every scenario has its own sandbox.
const REAL: &str = "CANDOR_TEST_KUBECONFIG";

/// The label of every scenario's namespace.
const MARK: &str = "candor-tests";

/// Two scenarios run concurrently: on a small host, more would slow each other down and worsen the figures. On a real
/// cluster, which itself takes most of the host, one scenario runs at a time.
static TURNS: Semaphore = Semaphore::const_new(2);

const DEFINITIONS: [&str; 3] = [
    include_str!("../../deploy/crds/valkey.io_valkeyclusters.yaml"),
    include_str!("../../deploy/crds/valkey.io_valkeynodes.yaml"),
    include_str!("../../deploy/crds/redkey.inditex.dev_redkeyclusters.yaml"),
];

/// A Kubernetes with the operator in it, and a namespace in it for one scenario.
pub struct World {
    client: Client,
    sandbox: Option<Sandbox>,
    namespace: String,
    options: Options,
    /// The configuration to connect as the operator's own account.
    account: Config,
    request_log: RequestLog,
    /// The oldest first.
    operators: Arc<Mutex<Vec<Running>>>,
    _turn: SemaphorePermit<'static>,
}

impl World {
    /// Starts a sandbox, or a namespace on the real cluster, with the operator running.
    pub async fn start(scenario: &str) -> Self {
        let world = Self::prepare(scenario).await;
        world.start_operator();
        world
    }

    /// The same with an operator that watches only the scenario's namespace: it has no permissions beyond it, not even
    /// to read nodes. On a real cluster this applies to every scenario.
    pub async fn start_in_one_namespace(scenario: &str) -> Self {
        let world = Self::build(scenario, true).await;
        world.start_operator();
        world
    }

    /// The same without an operator; its account and its permissions exist.
    pub async fn prepare(scenario: &str) -> Self {
        Self::build(scenario, false).await
    }

    async fn build(scenario: &str, one_namespace: bool) -> Self {
        log_when_asked();
        let real = std::env::var_os(REAL).filter(|path| !path.is_empty());
        let turns = if real.is_some() { 2 } else { 1 };
        let turn = TURNS.acquire_many(turns).await.expect("the semaphore is never closed");
        let (kubeconfig, sandbox) = if let Some(path) = real {
            let path = PathBuf::from(path);
            let read = Kubeconfig::read_from(&path);
            (read.unwrap_or_else(|error| panic!("{}: {error}", path.display())), None)
        } else {
            let sandbox = Sandbox::builder()
                .nodes(3)
                .images(cached("images.yaml").expect("run `make setup` once"))
                .image(own_image())
                .start()
                .await;
            let sandbox = sandbox.unwrap_or_else(|error| panic!("the sandbox does not start: {error}"));
            let kubeconfig = Kubeconfig::from_yaml(sandbox.kubeconfig()).expect("the sandbox's own kubeconfig");
            (kubeconfig, Some(sandbox))
        };
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let config = config.unwrap_or_else(|error| panic!("the kubeconfig cannot be used: {error}"));
        let client = Client::try_from(config.clone()).expect("a client of the kubeconfig");
        let namespace = format!("test-{scenario}");
        // A sandbox has one operator for the whole cluster; a real cluster has one per scenario.
        let options = if sandbox.is_some() && !one_namespace {
            Options::default()
        } else {
            Options {
                namespace: namespace.clone(),
                watch_namespaces: vec![namespace.clone()],
                ..Options::default()
            }
        };
        let mut world = Self {
            client,
            sandbox,
            namespace,
            options,
            account: config,
            request_log: RequestLog::default(),
            operators: Arc::default(),
            _turn: turn,
        };
        world.install().await;
        world.account = operator::install_account(&world.client, &world.account, &world.options).await;
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

    /// Deletes what a failed scenario left on a real cluster. Its operator no longer runs to remove the finalizers of
    /// its clusters, so this removes them first.
    async fn clear(&self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let left = namespaces.list(&ListParams::default().labels(MARK)).await;
        for namespace in left.unwrap_or_else(|error| panic!("namespaces: {error}")) {
            let name = namespace.metadata.name.unwrap_or_default();
            for clusters in self.clusters(&name) {
                let held = clusters.list(&ListParams::default()).await;
                for cluster in held.unwrap_or_else(|error| panic!("clusters: {error}")) {
                    let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                    let cluster = cluster.metadata.name.unwrap_or_default();
                    let _ = clusters.patch(&cluster, &PatchParams::default(), &let_go).await;
                }
            }
            let _ = namespaces.delete(&name, &DeleteParams::default()).await;
            until("the namespace of an earlier scenario is gone", async || {
                namespaces.get_opt(&name).await.ok()?.is_none().then_some(())
            })
            .await;
        }
    }

    /// The clusters of both kinds in a namespace.
    fn clusters(&self, namespace: &str) -> [Api<DynamicObject>; 2] {
        [Kind::ValkeyCluster, Kind::RedkeyCluster]
            .map(|kind| Api::namespaced_with(self.client(), namespace, &cluster::resource(kind)))
    }

    fn operators(&self) -> MutexGuard<'_, Vec<Running>> {
        locked(&self.operators)
    }

    /// Starts the operator in this process.
    pub fn start_operator(&self) {
        self.start_operator_with(OperatorOptions::default());
    }

    /// Starts it with faults between it and the API server.
    pub fn start_operator_behind(&self, faults: &Faults) {
        self.start_operator_with(OperatorOptions {
            faults: Some(faults.clone()),
            ..OperatorOptions::default()
        });
    }

    /// Starts one more operator, with other options.
    pub fn start_operator_with(&self, options: OperatorOptions) {
        let running = Running::start(self.account.clone(), &self.options, options, self.request_log.clone());
        self.operators().push(running);
    }

    /// Stops the oldest operator as SIGTERM does.
    pub async fn stop_operator(&self) {
        let oldest = {
            let mut operators = self.operators();
            (!operators.is_empty()).then(|| operators.remove(0))
        };
        if let Some(oldest) = oldest {
            oldest.stop().await;
        }
    }

    /// Kills every operator in the middle of whatever it does.
    pub fn kill_operator(&self) {
        self.killer()();
    }

    /// Returns a function that kills them, for callers that decide when.
    pub fn killer(&self) -> impl Fn() + Send + Sync + use<> {
        let operators = self.operators.clone();
        move || {
            for running in locked(&operators).drain(..) {
                running.kill();
            }
        }
    }

    /// The options that the operator was installed with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The operator's recorded requests.
    pub fn request_log(&self) -> &RequestLog {
        &self.request_log
    }

    /// A client with administrator permissions.
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

    /// Ends a successful scenario. On a real cluster this deletes its namespace; a sandbox is dropped as a whole.
    pub async fn end(self) {
        let forbidden = self.request_log.forbidden();
        assert!(
            forbidden.is_empty(),
            "the installation's rights do not suffice: {forbidden:?}"
        );
        if self.sandbox.is_none() {
            for clusters in self.clusters(&self.namespace) {
                // Before the namespace: it contains the operator's account and permissions, which may be deleted
                // before the clusters are.
                let all = (DeleteParams::default(), ListParams::default());
                let _ = clusters.delete_collection(&all.0, &all.1).await;
                until("the scenario's clusters are gone", async || {
                    let left = clusters.list(&ListParams::default()).await.ok()?;
                    left.items.is_empty().then_some(())
                })
                .await;
            }
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
            until("the scenario's namespace is gone", async || {
                namespaces.get_opt(&self.namespace).await.ok()?.is_none().then_some(())
            })
            .await;
            operator::remove_permissions_elsewhere(&self.client, &self.options).await;
        }
        while !self.operators().is_empty() {
            let stopped = tokio::time::timeout(Duration::from_secs(10), self.stop_operator()).await;
            stopped.expect("the operator ends within 10 s of being told");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_operator();
    }
}

fn locked(operators: &Mutex<Vec<Running>>) -> MutexGuard<'_, Vec<Running>> {
    operators.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The image of any version of the operator: `robin/main.rs`, which cargo builds beside the scenarios.
fn own_image() -> Image {
    let here = std::env::current_exe().expect("a test is a program");
    let mut folders = here.ancestors().skip(1).map(|folder| folder.join("robin"));
    let program = folders.find(|path| path.is_file()).expect("cargo builds the bin robin");
    let inside = PathBuf::from("/opt/candor/robin");
    Image {
        r#match: "candor:*".to_owned(),
        binds: vec![ImageBind {
            source: program.to_str().expect("a path of text").to_owned(),
            target: inside.clone(),
        }],
        entrypoint: vec!["candor".to_owned()],
        programs: vec![Program {
            name: "candor".to_owned(),
            path: inside,
            ..Program::default()
        }],
        ..Image::default()
    }
}

/// `CANDOR_LOG=info` shows the operator's decisions beside the scenario's output.
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
