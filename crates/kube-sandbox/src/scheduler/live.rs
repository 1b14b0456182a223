//! The running scheduler: caches, the queue, bindings.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{
    Binding, Namespace, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod, PodCondition,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::decide::{Decision, decide};
use super::queue::SchedulingQueue;
use super::volumes::SELECTED_NODE;
use crate::controllers::runtime::{Cache, Error, Listener, ObjectKey, Recorder, Resources, Sink, follow_all, now};

const NAME: &str = "default-scheduler";

#[derive(Default)]
struct Caches {
    pods: Arc<Cache<Pod>>,
    nodes: Arc<Cache<Node>>,
    namespaces: Arc<Cache<Namespace>>,
    claims: Arc<Cache<PersistentVolumeClaim>>,
    volumes: Arc<Cache<PersistentVolume>>,
    classes: Arc<Cache<StorageClass>>,
}

impl Caches {
    fn sink(&self, group: &str, plural: &str) -> Option<Arc<dyn Sink>> {
        Some(match (group, plural) {
            ("", "pods") => self.pods.clone(),
            ("", "nodes") => self.nodes.clone(),
            ("", "namespaces") => self.namespaces.clone(),
            ("", "persistentvolumeclaims") => self.claims.clone(),
            ("", "persistentvolumes") => self.volumes.clone(),
            ("storage.k8s.io", "storageclasses") => self.classes.clone(),
            _ => return None,
        })
    }

    async fn synced(&self) {
        self.nodes.synced().await;
        self.namespaces.synced().await;
        self.claims.synced().await;
        self.volumes.synced().await;
        self.classes.synced().await;
        self.pods.synced().await;
    }
}

/// The nodes of pods that are decided but not yet written, by the pod's uid.
type Assigned = Arc<Mutex<HashMap<String, String>>>;

struct Scheduler {
    client: Client,
    caches: Arc<Caches>,
    queue: Arc<SchedulingQueue>,
    assigned: Assigned,
    recorder: Recorder,
}

/// Schedules until dropped.
pub async fn run(client: Client) {
    let (recorder, events) = Recorder::new(client.clone(), NAME);
    let scheduler = Scheduler {
        client: client.clone(),
        caches: Arc::default(),
        queue: Arc::default(),
        assigned: Assigned::default(),
        recorder,
    };
    scheduler.listen();
    let caches = scheduler.caches.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(events);
    tasks.spawn(async move { scheduler.work().await });
    follow_all(
        client,
        Arc::new(Resources::default()),
        |served| {
            caches
                .sink(&served.resource.group, &served.resource.plural)
                .into_iter()
                .collect()
        },
        |_| {},
        |_, _| {},
    )
    .await;
}

fn node_of(pod: &Pod) -> Option<&str> {
    let name = pod.spec.as_ref()?.node_name.as_deref()?;
    (!name.is_empty()).then_some(name)
}

/// Whether this scheduler has to find a node for the pod.
fn is_ours(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let named = spec.and_then(|spec| spec.scheduler_name.as_deref()).unwrap_or(NAME) == NAME;
    let gated = spec
        .and_then(|spec| spec.scheduling_gates.as_ref())
        .is_some_and(|gates| !gates.is_empty());
    named && !gated && node_of(pod).is_none() && pod.metadata.deletion_timestamp.is_none()
}

/// What of a node matters to the scheduler: a heartbeat does not.
fn relevant(node: &Node) -> impl PartialEq + use<> {
    let status = node.status.clone().unwrap_or_default();
    (node.spec.clone(), node.metadata.labels.clone(), status.allocatable)
}

impl Scheduler {
    fn listen(&self) {
        let (queue, assigned) = (self.queue.clone(), self.assigned.clone());
        self.caches
            .pods
            .listen(vec![Box::new(move |old, new| pod_changed(&queue, &assigned, old, new))]);
        let queue = self.queue.clone();
        self.caches.nodes.listen(vec![Box::new(move |old, new| {
            if old.map(|node| relevant(node)) != new.map(|node| relevant(node)) {
                queue.retry_all();
            }
        })]);
        self.caches.namespaces.listen(Vec::new());
        self.caches.claims.listen(vec![retry_all(&self.queue)]);
        self.caches.volumes.listen(vec![retry_all(&self.queue)]);
        self.caches.classes.listen(vec![retry_all(&self.queue)]);
    }

    async fn work(&self) {
        self.caches.synced().await;
        loop {
            let key = self.queue.next().await;
            let Some(pod) = self.caches.pods.get(&key).filter(|pod| is_ours(pod)) else {
                continue;
            };
            if let Err(error) = self.schedule(&key, &pod).await {
                tracing::debug!(%key, %error, "binding the pod failed; it is retried with the next change");
                self.unassign(&pod);
                self.queue.unschedulable(&key);
            }
        }
    }

    fn cluster(&self, assigned: &HashMap<String, String>) -> Cluster {
        let caches = &self.caches;
        let mut cluster = Cluster::default();
        cluster.place(caches.nodes.all(), caches.pods.all(), assigned);
        cluster.namespaces = caches
            .namespaces
            .all()
            .iter()
            .map(|space| (space.name_any(), space.labels().clone()))
            .collect();
        let key = |claim: &PersistentVolumeClaim| (claim.namespace().unwrap_or_default(), claim.name_any());
        cluster.claims = caches
            .claims
            .all()
            .into_iter()
            .map(|claim| (key(&claim), claim))
            .collect();
        cluster.volumes = caches
            .volumes
            .all()
            .into_iter()
            .map(|volume| (volume.name_any(), volume))
            .collect();
        cluster.classes = caches
            .classes
            .all()
            .into_iter()
            .map(|class| (class.name_any(), class))
            .collect();
        cluster
    }

    async fn schedule(&self, key: &ObjectKey, pod: &Pod) -> Result<(), Error> {
        let uid = pod.uid().unwrap_or_default();
        let mut assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let reserved = assigned.remove(&uid);
        let cluster = self.cluster(&assigned);
        let mut decision = decide(&cluster, pod, reserved.as_deref());
        if reserved.is_some() && matches!(decision, Decision::Unschedulable { .. }) {
            // The reserved node does not fit any more: consider all nodes.
            self.unassign(pod);
            decision = decide(&cluster, pod, None);
        }
        match decision {
            Decision::Bind { node, claims } if claims.is_empty() => self.bind(pod, &node).await,
            Decision::Bind { node, claims } => {
                self.assign(pod, &node);
                self.choose(&key.namespace, &claims, &node).await?;
                self.queue.unschedulable(key);
                Ok(())
            }
            Decision::Wait => {
                self.queue.unschedulable(key);
                Ok(())
            }
            Decision::Unschedulable { message } => {
                self.queue.unschedulable(key);
                self.reject(pod, message).await
            }
        }
    }

    fn assign(&self, pod: &Pod, node: &str) {
        let mut assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner);
        assigned.insert(pod.uid().unwrap_or_default(), node.to_owned());
    }

    fn unassign(&self, pod: &Pod) {
        let mut assigned = self.assigned.lock().unwrap_or_else(PoisonError::into_inner);
        assigned.remove(&pod.uid().unwrap_or_default());
    }

    /// Annotates claims that wait for their first consumer with its node.
    async fn choose(&self, namespace: &str, claims: &[String], node: &str) -> Result<(), Error> {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), namespace);
        for name in claims {
            let known = self.caches.claims.find(namespace, name);
            if known.is_some_and(|claim| claim.annotations().get(SELECTED_NODE).map(String::as_str) == Some(node)) {
                continue;
            }
            let patch = json!({"metadata": {"annotations": {SELECTED_NODE: node}}});
            let answer = api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            self.caches.claims.wrote(answer);
        }
        Ok(())
    }

    async fn bind(&self, pod: &Pod, node: &str) -> Result<(), Error> {
        self.assign(pod, node);
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let mut binding = Binding {
            target: ObjectReference {
                kind: Some("Node".into()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
            ..Binding::default()
        };
        binding.metadata.name = Some(name.clone());
        binding.metadata.namespace = Some(namespace.clone());
        binding.metadata.uid = pod.uid();
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let _: Status = api
            .create_subresource("binding", &name, &PostParams::default(), &binding)
            .await?;
        let message = format!("Successfully assigned {namespace}/{name} to {node}");
        self.recorder.normal(pod, "Scheduled", message);
        Ok(())
    }

    async fn reject(&self, pod: &Pod, message: String) -> Result<(), Error> {
        let known = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let known = known
            .into_iter()
            .flatten()
            .find(|condition| condition.type_ == "PodScheduled");
        if known.is_some_and(|known| known.status == "False" && known.message.as_ref() == Some(&message)) {
            return Ok(());
        }
        self.recorder.warning(pod, "FailedScheduling", message.clone());
        let since = known
            .filter(|known| known.status == "False")
            .and_then(|known| known.last_transition_time.clone());
        let condition = PodCondition {
            type_: "PodScheduled".into(),
            status: "False".into(),
            reason: Some("Unschedulable".into()),
            message: Some(message),
            last_transition_time: Some(since.unwrap_or_else(now)),
            observed_generation: pod.metadata.generation,
            ..PodCondition::default()
        };
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let patch = json!({"metadata": {"uid": pod.uid()}, "status": {"conditions": [condition]}});
        let answer = api
            .patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Strategic(patch))
            .await?;
        self.caches.pods.wrote(answer);
        Ok(())
    }
}

fn retry_all<K: 'static>(queue: &Arc<SchedulingQueue>) -> Listener<K> {
    let queue = queue.clone();
    Box::new(move |_, _| queue.retry_all())
}

fn pod_changed(
    queue: &SchedulingQueue,
    assigned: &Mutex<HashMap<String, String>>,
    old: Option<&Arc<Pod>>,
    new: Option<&Arc<Pod>>,
) {
    let settled = new.is_none_or(|pod| node_of(pod).is_some());
    if settled && let Some(uid) = new.or(old).and_then(|pod| pod.uid()) {
        assigned.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
    }
    match new {
        Some(pod) if is_ours(pod) => {
            // A status that only we write is no reason to try again.
            if old.is_none_or(|old| old.spec != pod.spec || old.metadata.labels != pod.metadata.labels || !is_ours(old))
            {
                queue.add(pod);
            }
        }
        Some(pod) => queue.remove(&ObjectKey::of(&**pod)),
        None => {
            if let Some(pod) = old {
                queue.remove(&ObjectKey::of(&**pod));
            }
        }
    }
    if makes_room(old, new) {
        queue.retry_all();
    }
}

/// Whether a pod's change can help others: it went, ended, moved in (company), or changed its labels.
fn makes_room(old: Option<&Arc<Pod>>, new: Option<&Arc<Pod>>) -> bool {
    let ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    match (old, new) {
        (Some(old), None) => node_of(old).is_some(),
        (Some(old), Some(new)) => {
            node_of(new).is_some()
                && (node_of(old).is_none()
                    || ended(old) != ended(new)
                    || old.metadata.labels != new.metadata.labels
                    || old.metadata.deletion_timestamp.is_some() != new.metadata.deletion_timestamp.is_some())
        }
        (None, Some(new)) => node_of(new).is_some(),
        (None, None) => false,
    }
}
