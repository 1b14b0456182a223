//! One cluster under test: its object, its events, its pods.

use std::collections::BTreeMap;

use candor_audit::{Auditor, ClusterRef, Kind, Now, Options};
use k8s_openapi::api::core::v1::{self, Pod};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};

use crate::rows::Rows;
use crate::servers::Server;
use crate::{World, until};

/// Canaries per second: enough to detect a short outage, and not too many for two scenarios on two cores.
const RATE: u32 = 300;

/// One cluster under test.
pub struct Cluster<'a> {
    world: &'a World,
    kind: Kind,
    name: String,
}

/// A condition, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

/// An event about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `Normal` or `Warning`.
    pub kind: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
}

pub(crate) fn resource(kind: Kind) -> ApiResource {
    let (group, version) = match kind {
        Kind::ValkeyCluster => ("valkey.io", "v1alpha1"),
        Kind::RedkeyCluster => ("redkey.inditex.dev", "v1"),
    };
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind.to_string()))
}

/// Whether a server runs in a pod, and not Robin.
fn has_server(pod: &Pod) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .into_iter()
        .any(|one| one.name == "server" || one.name == "redis")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl<'a> Cluster<'a> {
    /// A `ValkeyCluster`. It has a name and is not created yet: an audit can start before the cluster exists.
    pub fn new(world: &'a World, name: &str) -> Self {
        Self::of(Kind::ValkeyCluster, world, name)
    }

    /// A cluster of a kind.
    pub fn of(kind: Kind, world: &'a World, name: &str) -> Self {
        let name = name.to_owned();
        Self { world, kind, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its world.
    pub fn world(&self) -> &World {
        self.world
    }

    fn api(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.world.client(), self.world.namespace(), &resource(self.kind))
    }

    /// Creates it. The exporter is disabled: its image is not what these scenarios test.
    pub async fn create(&self, mut spec: Value) {
        if self.kind == Kind::ValkeyCluster && spec.get("exporter").is_none() {
            spec["exporter"] = json!({"enabled": false});
        }
        let object = DynamicObject::new(&self.name, &resource(self.kind)).data(json!({"spec": spec}));
        let created = self.api().create(&PostParams::default(), &object).await;
        created.unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Changes its spec by a merge patch.
    pub async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self.api().patch(&self.name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Deletes it and waits until it is gone.
    pub async fn delete(&self) {
        let deleted = self.api().delete(&self.name, &DeleteParams::default()).await;
        deleted.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        until(&format!("{} is gone", self.name), async || {
            self.api().get_opt(&self.name).await.ok()?.is_none().then_some(())
        })
        .await;
    }

    /// The object as JSON.
    pub async fn object(&self) -> Value {
        let object = self.api().get(&self.name).await;
        let object = object.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        serde_json::to_value(object).expect("an object is JSON")
    }

    /// Its conditions, in their order.
    pub async fn conditions(&self) -> Vec<Condition> {
        let object = self.object().await;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let read = |condition: &Value| Condition {
            kind: text(&condition["type"]),
            status: text(&condition["status"]),
            reason: text(&condition["reason"]),
            message: text(&condition["message"]),
        };
        conditions.iter().map(read).collect()
    }

    /// One condition.
    pub async fn condition(&self, kind: &str) -> Option<Condition> {
        self.conditions()
            .await
            .into_iter()
            .find(|condition| condition.kind == kind)
    }

    /// Waits until its status meets a predicate and returns the object.
    pub async fn until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let begun = tokio::time::Instant::now();
        loop {
            if let Ok(object) = self.api().get(&self.name).await {
                last = serde_json::to_value(object).expect("an object is JSON");
                if wanted(&last) {
                    return last;
                }
            }
            if begun.elapsed() > crate::PATIENCE {
                let status = serde_json::to_string_pretty(&last["status"]).unwrap_or_default();
                panic!("{} never was {what}: {status}\n{}", self.name, self.lately().await);
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Waits until status reports Ready for the newest spec.
    pub async fn ready(&self) -> Value {
        self.until("Ready", |object| {
            let conditions = object["status"]["conditions"].as_array();
            let ready = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == "Ready"));
            ready.is_some_and(|ready| {
                ready["status"] == "True" && ready["observedGeneration"] == object["metadata"]["generation"]
            })
        })
        .await
    }

    /// Waits until status reports Ready and the servers, queried by the auditor, agree.
    pub async fn whole(&self, auditor: &Auditor) {
        self.ready().await;
        self.sees(auditor, "Ready and whole", |now| now.ready && now.whole)
            .await;
    }

    /// Waits until the auditor's state meets a predicate.
    pub async fn sees(&self, auditor: &Auditor, what: &str, wanted: impl Fn(&Now) -> bool) {
        let begun = tokio::time::Instant::now();
        while !wanted(&auditor.now()) {
            let late = begun.elapsed() > crate::PATIENCE;
            let text = if late { self.lately().await } else { String::new() };
            assert!(
                !late,
                "the auditor never saw {} {what}: {:?}\n{text}",
                self.name,
                auditor.now()
            );
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }

    /// Waits until this many further canaries were acknowledged.
    pub async fn written(&self, auditor: &Auditor, more: u64) {
        let wanted = auditor.acknowledged() + more;
        until(&format!("{wanted} canaries acknowledged"), async || {
            (auditor.acknowledged() >= wanted).then_some(())
        })
        .await;
    }

    /// Starts to record the rows that `kubectl get vkc --watch` would show.
    pub fn rows(&self) -> Rows {
        Rows::start(self.api(), &self.name, self.kind)
    }

    /// Starts an audit.
    pub async fn audit(&self) -> Auditor {
        self.audit_at(RATE).await
    }

    /// Starts an audit with this many canaries per second.
    pub async fn audit_at(&self, rate: u32) -> Auditor {
        let cluster = ClusterRef {
            kind: self.kind,
            namespace: self.world.namespace().to_owned(),
            name: self.name.clone(),
        };
        let options = Options {
            rate,
            ..Options::default()
        };
        let auditor = Auditor::start(self.world.client(), cluster, options).await;
        auditor.unwrap_or_else(|error| panic!("no audit of {}: {error}", self.name))
    }

    /// Events about it, oldest first.
    pub async fn events(&self) -> Vec<Event> {
        let events: Api<v1::Event> = Api::namespaced(self.world.client(), self.world.namespace());
        let about = format!("involvedObject.kind={},involvedObject.name={}", self.kind, self.name);
        let list = events.list(&ListParams::default().fields(&about)).await;
        let mut list = list.unwrap_or_else(|error| panic!("events: {error}")).items;
        list.sort_by_key(|event| (event.event_time.clone().map(|time| time.0), event.metadata.name.clone()));
        let read = |event: v1::Event| Event {
            kind: event.type_.unwrap_or_default(),
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
        };
        list.into_iter().map(read).collect()
    }

    /// Waits for an event with this reason.
    pub async fn event(&self, reason: &str) -> Event {
        until(&format!("event {reason} about {}", self.name), async || {
            self.events().await.into_iter().find(|event| event.reason == reason)
        })
        .await
    }

    /// Its latest status and events, for a failed test.
    async fn lately(&self) -> String {
        let events = self.events().await;
        let text = |event: &Event| format!("{} {}: {}", event.kind, event.reason, event.message);
        let pods = self.pods().await;
        let state = |pod: &Pod| {
            let status = pod.status.as_ref();
            let containers = status.and_then(|status| status.container_statuses.as_ref());
            let state = containers.map(|all| serde_json::to_string(&all.iter().map(|c| &c.state).collect::<Vec<_>>()));
            format!(
                "{} {:?} {:?}",
                pod.metadata.name.as_deref().unwrap_or_default(),
                status.and_then(|s| s.pod_ip.as_ref()),
                state
            )
        };
        let mut lines: Vec<String> = events.iter().map(text).collect();
        lines.extend(pods.iter().map(state));
        lines.join("\n")
    }

    /// Its pods that are not terminating.
    pub async fn pods(&self) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.world.client(), self.world.namespace());
        let labels = match self.kind {
            Kind::ValkeyCluster => format!("valkey.io/cluster={}", self.name),
            // The older selector of the existing operator has another key for the component.
            Kind::RedkeyCluster => format!("redkey-cluster-name={}", self.name),
        };
        let of_it = ListParams::default().labels(&labels);
        let list = pods.list(&of_it).await.unwrap_or_else(|error| panic!("pods: {error}"));
        list.items
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none() && has_server(pod))
            .collect()
    }

    /// Its servers that respond, by pod name.
    pub async fn servers(&self) -> BTreeMap<String, Server> {
        let mut servers = BTreeMap::new();
        for pod in self.pods().await {
            if let Some(server) = Server::of(&pod).await {
                servers.insert(server.pod.clone(), server);
            }
        }
        servers
    }

    /// The primary of a shard, as the servers report it.
    pub async fn primary(&self, shard: u32) -> Server {
        self.member(shard, true).await
    }

    /// A replica of a shard.
    pub async fn replica(&self, shard: u32) -> Server {
        self.member(shard, false).await
    }

    async fn member(&self, shard: u32, primary: bool) -> Server {
        until("a member of this role in the shard", async || {
            let servers = self.servers().await;
            servers
                .into_values()
                .find(|server| server.shard == shard && server.primary == primary)
        })
        .await
    }
}
