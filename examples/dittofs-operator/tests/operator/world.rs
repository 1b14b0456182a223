//! A sandbox with the operator's manifests in it, and a test that plays the kubelet and Percona's operator.
#![allow(dead_code)] // each file of the tests uses its part

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dittofs_operator::api::{DittoServer, DittoServerStatus};
use dittofs_operator::conditions::{CONTROLLER, ServerCondition};
use dittofs_operator::controller::{Context, reconcile};
use dittofs_operator::objects::percona;
use dittofs_operator::watches;
use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::core::gvk::GroupVersionKind;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use kube_sandbox::Sandbox;
use kube_sandbox::faults::Faults;
use kube_status::events::{EventPublisher, RecordedEvents};
use kube_status::{Condition, find};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::Layer;

/// Longer than anything here takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(90);

/// The identity that the manifests give the operator, so that its rights are tried with it.
const OPERATOR: &str = "system:serviceaccount:dittofs-system:dittofs-operator";

pub struct World {
    pub sandbox: Sandbox,
    pub admin: Client,
    /// Whether pods pass their readiness probes.
    pub pods_ready: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl World {
    /// With Percona's definition installed.
    pub async fn start() -> Self {
        let world = Self::without_percona().await;
        world.install_percona().await;
        world
    }

    pub async fn without_percona() -> Self {
        let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
        let mut world = Self::around(sandbox).await;
        world.keep_pods();
        world
    }

    /// The operator's manifests on a sandbox, without its Deployment: tests run it themselves.
    pub async fn around(sandbox: Sandbox) -> Self {
        let admin = sandbox.client_as("tester", &["system:masters"]);
        let world = Self {
            sandbox,
            admin,
            pods_ready: Arc::new(AtomicBool::new(true)),
            tasks: Vec::new(),
        };
        world.apply(include_str!("../../deploy/crd.yaml")).await;
        world.apply(include_str!("../../deploy/operator.yaml")).await;
        world.served("/apis/dittofs.dittofs.com/v1alpha1/dittoservers").await;
        world
    }

    pub async fn install_percona(&self) {
        self.apply(include_str!("../../demo/perconapgclusters.yaml")).await;
        self.served("/apis/pgv2.percona.com/v2/perconapgclusters").await;
    }

    async fn served(&self, path: &str) {
        self.eventually(path, async || {
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            self.admin.request::<Value>(request).await.ok()
        })
        .await;
    }

    /// `kubectl apply`, server side, of everything but Deployments.
    pub async fn apply(&self, manifests: &str) {
        for text in manifests.split("\n---") {
            let object: Value = serde_saphyr::from_str(text).unwrap();
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            if text("/kind") == "Deployment" {
                continue;
            }
            let (group, version) = text("/apiVersion")
                .rsplit_once('/')
                .unwrap_or(("", text("/apiVersion")));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
            let api: Api<DynamicObject> = match text("/metadata/namespace") {
                "" => Api::all_with(self.admin.clone(), &resource),
                namespace => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            };
            let params = PatchParams::apply("tester").force();
            api.patch(text("/metadata/name"), &params, &Patch::Apply(&object))
                .await
                .unwrap();
        }
    }

    /// Asks again and again, with a deadline that names what was waited for.
    pub async fn eventually<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(Instant::now() < deadline, "waited {PATIENCE:?} for {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// A namespace to work in.
    pub async fn desk(&self, namespace: &str) -> Desk<'_> {
        let object = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let namespaces: Api<Namespace> = Api::all(self.admin.clone());
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        Desk {
            world: self,
            namespace: namespace.to_owned(),
            faults: Faults::seeded(7),
            recorded: RecordedEvents::default(),
            clock: Arc::new(Mutex::new(SignedDuration::ZERO)),
        }
    }

    /// Plays the kubelet: pods become ready while `pods_ready` says so, and those that are deleted go.
    fn keep_pods(&mut self) {
        let (client, ready) = (self.admin.clone(), self.pods_ready.clone());
        self.tasks.push(tokio::spawn(async move {
            let mut pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default())
                .default_backoff()
                .applied_objects()
                .boxed();
            while let Some(pod) = pods.next().await {
                let Ok(pod) = pod else { continue };
                let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
                if pod.metadata.deletion_timestamp.is_some() {
                    let now = DeleteParams {
                        grace_period_seconds: Some(0),
                        ..DeleteParams::default()
                    };
                    let _ = api.delete(&pod.name_any(), &now).await;
                } else if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Running") {
                    set_pod_ready(&api, &pod.name_any(), ready.load(Ordering::Relaxed)).await;
                }
            }
        }));
    }
}

/// What the kubelet writes after a probe.
pub async fn set_pod_ready(api: &Api<Pod>, name: &str, ready: bool) {
    let text = if ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": text, "lastTransitionTime": Timestamp::now().to_string()}]}});
    let _ = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await;
}

/// One namespace with its own operator, faults, clock and events.
pub struct Desk<'w> {
    pub world: &'w World,
    pub namespace: String,
    pub faults: Faults,
    /// Events of the reconciles that a test drives by itself.
    pub recorded: RecordedEvents,
    clock: Arc<Mutex<SignedDuration>>,
}

/// The operator as a running program; dropping it kills it.
pub struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Desk<'_> {
    fn operator_client(&self) -> Client {
        let groups = [
            "system:serviceaccounts",
            "system:serviceaccounts:dittofs-system",
            "system:authenticated",
        ];
        let inner = self.world.sandbox.client_as(OPERATOR, &groups);
        let server = tower::service_fn(move |request| {
            let inner = inner.clone();
            async move { inner.send(request).await }
        });
        Client::new(self.faults.layer().layer(server), "default")
    }

    /// Turns the operator's clock on.
    pub fn wait(&self, seconds: i64) {
        *self.clock.lock().unwrap() += SignedDuration::from_secs(seconds);
    }

    /// A context with recorded events and a clock that can be moved.
    pub fn context(&self) -> Arc<Context> {
        let clock = self.clock.clone();
        let now = Arc::new(move || Timestamp::now() + *clock.lock().unwrap());
        Arc::new(Context::new(
            self.operator_client(),
            Arc::new(self.recorded.clone()),
            now,
        ))
    }

    /// One reconcile, driven by the test.
    pub async fn reconcile(&self, name: &str) {
        let Some(server) = self.servers().get_opt(name).await.unwrap() else {
            return;
        };
        let _ = Box::pin(reconcile(Arc::new(server), self.context())).await;
    }

    /// Reconciles until the server says what is wanted.
    pub async fn reconcile_until(
        &self,
        name: &str,
        what: &str,
        expected: impl Fn(&DittoServer) -> bool,
    ) -> DittoServer {
        self.world
            .eventually(what, async || {
                self.reconcile(name).await;
                self.servers().get_opt(name).await.unwrap().filter(&expected)
            })
            .await
    }

    /// The operator itself, restarted whenever a fault crashed it.
    pub fn run(&self) -> Running {
        let (faults, namespace, client) = (self.faults.clone(), self.namespace.clone(), self.operator_client());
        Running(tokio::spawn(async move {
            loop {
                let events = EventPublisher::builder(CONTROLLER).start(client.clone());
                let context = Context::new(client.clone(), Arc::new(events), Arc::new(Timestamp::now));
                tokio::select! {
                    () = watches::run(context, Some(&namespace)) => {}
                    () = faults.crashed() => {}
                }
                faults.calm();
                faults.revive();
            }
        }))
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.world.admin.clone(), &self.namespace)
    }

    pub fn servers(&self) -> Api<DittoServer> {
        self.api()
    }

    pub fn databases(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.world.admin.clone(), &self.namespace, &percona())
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn serve(&self, name: &str, change: impl FnOnce(&mut DittoServer)) -> DittoServer {
        let mut server = server(name);
        change(&mut server);
        self.servers().create(&PostParams::default(), &server).await.unwrap()
    }

    pub async fn change(&self, name: &str, patch: Value) -> DittoServer {
        let params = PatchParams::default();
        self.servers().patch(name, &params, &Patch::Merge(patch)).await.unwrap()
    }

    pub async fn until(&self, name: &str, what: &str, expected: impl Fn(&DittoServer) -> bool) -> DittoServer {
        self.world
            .eventually(&format!("{}/{name} {what}", self.namespace), async || {
                self.servers().get_opt(name).await.unwrap().filter(&expected)
            })
            .await
    }

    pub async fn until_deleted(&self, name: &str) {
        self.world
            .eventually(&format!("{}/{name} gone", self.namespace), async || {
                self.servers().get_opt(name).await.unwrap().is_none().then_some(())
            })
            .await;
    }

    /// Plays Percona's operator once: says how a database is.
    pub async fn database_is(&self, name: &str, state: &str) {
        self.world
            .eventually(&format!("database {name}"), async || {
                let status = Patch::Merge(json!({"status": {"state": state}}));
                let written = self
                    .databases()
                    .patch_status(name, &PatchParams::default(), &status)
                    .await;
                written.ok().map(drop)
            })
            .await;
    }

    /// `reason: message` of the events in the cluster, with their counts.
    pub async fn events(&self) -> Vec<(String, i32)> {
        let list = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let ours = list
            .items
            .into_iter()
            .filter(|event| event.source.as_ref().and_then(|source| source.component.as_deref()) == Some(CONTROLLER));
        ours.map(|event| {
            let text = format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default()
            );
            (text, event.count.unwrap_or(1))
        })
        .collect()
    }

    pub async fn until_event(&self, beginning: &str) {
        self.world
            .eventually(beginning, async || {
                let events = self.events().await;
                events.iter().any(|(text, _)| text.starts_with(beginning)).then_some(())
            })
            .await;
    }
}

/// A server with the least that it needs.
pub fn server(name: &str) -> DittoServer {
    serde_json::from_value(json!({
        "apiVersion": "dittofs.dittofs.com/v1alpha1", "kind": "DittoServer", "metadata": {"name": name},
        "spec": {"image": "dittofs/dittofs:0.9.0", "config": "logging: {level: INFO}\n", "storage": {"size": "1Gi"}},
    }))
    .unwrap()
}

pub fn status(server: &DittoServer) -> DittoServerStatus {
    server.status.clone().unwrap_or_default()
}

pub fn condition(server: &DittoServer, type_: ServerCondition) -> Option<Condition> {
    find(&status(server).conditions, type_).cloned()
}

/// `True AllSystemsGo`, or nothing where the condition is missing.
pub fn condition_text(server: &DittoServer, type_: ServerCondition) -> String {
    condition(server, type_).map_or_else(String::new, |one| format!("{} {}", one.status, one.reason))
}

/// Ready, and said of the newest generation.
pub fn is_ready(server: &DittoServer) -> bool {
    condition_text(server, ServerCondition::Ready) == "True AllSystemsGo"
        && condition(server, ServerCondition::Ready).unwrap().observed_generation == server.metadata.generation
}
