//! A sandbox with a kubelet and without controllers: what is created here is bound to a node by hand.

use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Event, Pod, ServiceAccount};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use kube_sandbox::Sandbox;
use kube_sandbox::kubelet::{BackoffConfig, ContainerRef, Kubelet, KubeletConfig, LogOptions, PodAccess};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Longer than anything here takes on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bench {
    pub sandbox: Sandbox,
    pub kubelet: Kubelet,
    pub client: Client,
}

impl Bench {
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// A bench on which restarts wait 50 ms instead of 10 s.
    pub async fn with(change: impl FnOnce(&mut KubeletConfig)) -> Self {
        let sandbox = Sandbox::bare().await.unwrap();
        let short = BackoffConfig {
            base: Duration::from_millis(50),
            max: Duration::from_millis(400),
        };
        let mut config = KubeletConfig {
            restart_backoff: short,
            pull_backoff: short,
            volume_refresh: Duration::from_millis(100),
            api_address: Some(sandbox.address()),
            ..KubeletConfig::default()
        };
        change(&mut config);
        let client = sandbox.client_as("kubelet", &["system:masters"]);
        // There is no controller that makes it.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
        let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
        let account = serde_json::from_value(account).unwrap();
        accounts.create(&PostParams::default(), &account).await.unwrap();
        let kubelet = Kubelet::start(client.clone(), config).await.unwrap();
        Self {
            sandbox,
            kubelet,
            client,
        }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "default")
    }

    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Serialize
            + DeserializeOwned
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    /// A pod on the only node, from its spec.
    pub async fn pod(&self, name: &str, mut spec: Value) -> Pod {
        spec["nodeName"] = json!("sandbox-0");
        if spec.get("terminationGracePeriodSeconds").is_none() {
            spec["terminationGracePeriodSeconds"] = json!(1);
        }
        self.create(json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}))
            .await
    }

    /// A pod of one busybox container that runs a shell script.
    pub async fn script(&self, name: &str, script: &str) -> Pod {
        self.pod(name, json!({"containers": [shell(script)], "restartPolicy": "Never"}))
            .await
    }

    /// Waits until the pod is as wanted.
    pub async fn until(&self, name: &str, what: &str, expected: impl Fn(&Pod) -> bool) -> Pod {
        let begun = std::time::Instant::now();
        loop {
            let pod = self.api::<Pod>().get_opt(name).await.unwrap();
            if let Some(pod) = pod.as_ref().filter(|pod| expected(pod)) {
                return pod.clone();
            }
            if begun.elapsed() > PATIENCE {
                let events = self.events(name).await.join("\n");
                panic!(
                    "{name} never was {what}: {}\n{events}",
                    serde_json::to_string_pretty(&pod).unwrap()
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn until_deleted(&self, name: &str) {
        let begun = std::time::Instant::now();
        while self.api::<Pod>().get_opt(name).await.unwrap().is_some() {
            assert!(begun.elapsed() < PATIENCE, "{name} is still there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn until_phase(&self, name: &str, phase: &str) -> Pod {
        self.until(name, phase, |pod| self::phase(pod) == phase).await
    }

    pub async fn until_ready(&self, name: &str) -> Pod {
        self.until(name, "Ready", |pod| condition(pod, "Ready") == "True").await
    }

    pub async fn delete(&self, name: &str) {
        self.api::<Pod>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// `Reason: message` of the events about a pod, in order of their first time.
    pub async fn events(&self, name: &str) -> Vec<String> {
        let list = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let mut events: Vec<Event> = list
            .items
            .into_iter()
            .filter(|e| e.involved_object.name.as_deref() == Some(name))
            .collect();
        events.sort_by_key(ResourceExt::name_any);
        let line = |event: Event| {
            format!(
                "{}: {}",
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default()
            )
        };
        events.into_iter().map(line).collect()
    }

    /// Waits until an event with this beginning is there.
    pub async fn until_event(&self, name: &str, beginning: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            let events = self.events(name).await;
            if let Some(event) = events.iter().find(|event| event.starts_with(beginning)) {
                return event.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "no `{beginning}` among {events:#?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn logs(&self, pod: &str, options: LogOptions) -> Result<String, String> {
        use futures::StreamExt;
        let stream = self
            .kubelet
            .logs(container(pod), options)
            .await
            .map_err(|error| error.to_string())?;
        let parts: Vec<_> = stream.map(Result::unwrap).collect().await;
        Ok(String::from_utf8(parts.concat()).unwrap())
    }

    /// What a finished script wrote.
    pub async fn output(&self, name: &str) -> String {
        self.until(name, "over", |pod| matches!(phase(pod), "Succeeded" | "Failed"))
            .await;
        self.logs(name, LogOptions::default()).await.unwrap()
    }
}

pub fn container(pod: &str) -> ContainerRef {
    ContainerRef {
        namespace: "default".into(),
        pod: pod.into(),
        container: None,
    }
}

pub fn shell(script: &str) -> Value {
    json!({"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]})
}

pub fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

pub fn condition<'a>(pod: &'a Pod, kind: &str) -> &'a str {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .find(|c| c.type_ == kind)
        .map_or("", |c| &c.status)
}

/// The status of the first container, as JSON.
pub fn first(pod: &Pod) -> Value {
    let status = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref()?.first().cloned());
    serde_json::to_value(status).unwrap()
}
