//! A sandbox without a kubelet for the controllers' tests: pods change only when a test says so.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use kube_sandbox::Sandbox;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct World {
    /// Everything ends with it.
    _sandbox: Sandbox,
    pub client: Client,
}

pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}
impl<
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
> Kind for K
{
}

impl World {
    pub async fn start() -> Self {
        let sandbox = Sandbox::builder().kubelet(false).start().await.unwrap();
        let client = sandbox.client_as("tester", &["system:masters"]);
        Self {
            _sandbox: sandbox,
            client,
        }
    }

    /// The same without any node of the sandbox's own.
    pub async fn without_nodes() -> Self {
        let sandbox = Sandbox::builder().kubelet(false).nodes(0).start().await.unwrap();
        let client = sandbox.client_as("tester", &["system:masters"]);
        Self {
            _sandbox: sandbox,
            client,
        }
    }

    pub fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub async fn create<K: Kind>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub async fn create_cluster<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        Api::all(self.client.clone())
            .create(&PostParams::default(), &object)
            .await
            .unwrap()
    }

    pub async fn list<K: Kind>(&self, fields: &str) -> Vec<K> {
        let params = ListParams {
            field_selector: Some(fields.into()).filter(|_| !fields.is_empty()),
            ..ListParams::default()
        };
        self.api().list(&params).await.unwrap().items
    }

    /// Polls with a short pause until `ask` returns a value; a deadline fails the test and names what it waited for.
    pub async fn eventually<T>(&self, what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            assert!(
                Instant::now() < deadline,
                "waited {PATIENCE:?} for {what}\n{}",
                self.describe().await
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until an object satisfies a condition.
    pub async fn until<K: Kind>(&self, name: &str, what: &str, test: impl Fn(&K) -> bool) -> K {
        let last = std::cell::RefCell::new(None);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(object) = self.api::<K>().get_opt(name).await.unwrap() {
                if test(&object) {
                    return object;
                }
                *last.borrow_mut() = Some(object);
            }
            assert!(
                Instant::now() < deadline,
                "waited for {what}; {name} is {:#?}",
                last.borrow()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn describe(&self) -> String {
        let pods: Vec<String> = self
            .list::<Pod>("")
            .await
            .iter()
            .map(|pod| {
                format!(
                    "{} {:?}",
                    pod.name_any(),
                    pod.status.as_ref().and_then(|s| s.phase.clone())
                )
            })
            .collect();
        format!("pods: {pods:#?}")
    }

    /// Plays the kubelet: every pod becomes ready, and one that is being deleted goes.
    pub fn keep_pods_ready(&self) {
        let api: Api<Pod> = Api::all(self.client.clone());
        let client = self.client.clone();
        let mut pods = watcher(api, watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        tokio::spawn(async move {
            while let Some(pod) = pods.next().await {
                let Ok(pod) = pod else { continue };
                let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap());
                if pod.metadata.deletion_timestamp.is_some() {
                    let now = DeleteParams {
                        grace_period_seconds: Some(0),
                        ..DeleteParams::default()
                    };
                    let _ = api.delete(&pod.name_any(), &now).await;
                } else if pod.status.as_ref().and_then(|s| s.phase.as_deref()) != Some("Running") {
                    make_ready(&api, &pod.name_any()).await;
                }
            }
        });
    }
}

pub async fn make_ready(api: &Api<Pod>, name: &str) {
    set_ready(api, name, true).await;
}

pub async fn set_ready(api: &Api<Pod>, name: &str, ready: bool) {
    let now = k8s_openapi::jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let number = name.bytes().fold(1u32, |sum, byte| (sum * 31 + u32::from(byte)) % 250) + 1;
    let status = json!({"status": {"phase": "Running", "podIP": format!("10.0.0.{number}"),
        "podIPs": [{"ip": format!("10.0.0.{number}")}],
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }, "lastTransitionTime": now}]}});
    let _ = api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(status))
        .await;
}

pub fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

pub fn deployment(name: &str, replicas: i32, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "progressDeadlineSeconds": 600, "selector": {"matchLabels": {"app": name}},
            "template": template(name, image)}})
}

pub fn stateful_set(name: &str, replicas: i32, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": template(name, image),
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}})
}
