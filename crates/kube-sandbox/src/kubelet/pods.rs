//! Which pods there are: watches, and a worker for each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::events::Reason;
use super::pod::{Context, PodShared};
use super::volumes::Shown;
use super::worker::{Update, Worker};

/// A pod with a worker.
#[derive(Debug)]
struct Entry {
    shared: Arc<PodShared>,
    updates: mpsc::UnboundedSender<Update>,
}

/// All pods of this kubelet, by uid.
#[derive(Debug, Default)]
pub(super) struct Pods {
    entries: Mutex<HashMap<String, Entry>>,
}

impl Pods {
    /// The pod with this name that was met last.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<PodShared>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let named = entries
            .values()
            .filter(|entry| entry.shared.namespace == namespace && entry.shared.name == name);
        // A namesake that is on its way out stands back, however old it is: times have whole seconds only.
        let newest = named.max_by_key(|entry| {
            let pod = entry.shared.pod();
            (
                pod.metadata.deletion_timestamp.is_none(),
                pod.metadata.creation_timestamp.clone(),
            )
        });
        newest.map(|entry| entry.shared.clone())
    }

    /// All pods.
    pub fn all(&self) -> Vec<Arc<PodShared>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.values().map(|entry| entry.shared.clone()).collect()
    }

    fn notify_namespace(&self, namespace: Option<&str>, object: Option<&Shown>) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let interested = entries
            .values()
            .filter(|entry| namespace.is_none_or(|namespace| entry.shared.namespace == namespace));
        for entry in interested {
            let _ = entry.updates.send(Update::Object(object.cloned()));
        }
    }

    fn saw(self: &Arc<Self>, context: &Arc<Context>, pod: Pod) {
        let name = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let node = name.and_then(|name| context.config.nodes.iter().position(|known| known.name == name));
        let (Some(uid), Some(node)) = (pod.uid(), node) else {
            return;
        };
        let pod = Arc::new(pod);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = entries.get(&uid) {
            let _ = entry.updates.send(Update::Pod(pod));
            return;
        }
        let ip = match context.subnet.take() {
            Ok(ip) => ip,
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {error}");
                context.recorder.pod(&pod, Reason::FailedCreatePodSandBox, message);
                return;
            }
        };
        let folder = context.folder.join("pods").join(&uid);
        let shared = Arc::new(PodShared::new(pod, ip, context.host_address(node), folder));
        let (updates, inbox) = mpsc::unbounded_channel();
        entries.insert(
            uid.clone(),
            Entry {
                shared: shared.clone(),
                updates,
            },
        );
        drop(entries);
        let (pods, context) = (self.clone(), context.clone());
        tokio::spawn(async move {
            let stopped = context.stopped.clone();
            let work = Worker::new(context, shared, inbox).run();
            tokio::select! {
                () = work => {}
                () = stopped.cancelled() => {}
            }
            pods.entries.lock().unwrap_or_else(PoisonError::into_inner).remove(&uid);
        });
    }

    fn lost(&self, pod: Pod) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = pod.uid().and_then(|uid| entries.get(&uid)) {
            let _ = entry.updates.send(Update::Deleted(Arc::new(pod)));
        }
    }

    /// After a new list: what is not in it is gone.
    fn keep_only(&self, uids: &[String]) {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, entry) in entries.iter().filter(|(uid, _)| !uids.contains(uid)) {
            let _ = entry.updates.send(Update::Deleted(entry.shared.pod()));
        }
    }
}

/// Follows the pods of all namespaces until dropped.
pub(super) async fn follow_pods(context: Arc<Context>, pods: Arc<Pods>) {
    let api: Api<Pod> = Api::all(context.client.clone());
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    let mut listed = Vec::new();
    let each = |event| match event {
        Event::Init => listed.clear(),
        Event::InitApply(pod) => {
            listed.extend(ResourceExt::uid(&pod));
            pods.saw(&context, pod);
        }
        Event::InitDone => pods.keep_only(&listed),
        Event::Apply(pod) => pods.saw(&context, pod),
        Event::Delete(pod) => pods.lost(pod),
    };
    forever("pods", stream, &context, each).await;
}

/// Follows `ConfigMaps` and `Secrets`; their content is read only when a volume shows it.
pub(super) async fn follow_objects(context: Arc<Context>, pods: Arc<Pods>) {
    let maps = follow::<ConfigMap>("configmap", &context, &pods);
    let secrets = follow::<Secret>("secret", &context, &pods);
    tokio::join!(maps, secrets);
}

async fn follow<K>(kind: &'static str, context: &Arc<Context>, pods: &Arc<Pods>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let api: Api<K> = Api::all(context.client.clone());
    let stream = watcher(api, watcher::Config::default()).default_backoff();
    let each = |event: Event<K>| match event {
        Event::Apply(object) | Event::Delete(object) => {
            pods.notify_namespace(object.namespace().as_deref(), Some(&(kind, object.name_any())));
        }
        Event::InitDone => pods.notify_namespace(None, None),
        Event::Init | Event::InitApply(_) => {}
    };
    forever(kind, stream, context, each).await;
}

/// A watcher with back-off tells its errors and goes on; it only ends with the kubelet.
async fn forever<K>(
    what: &str,
    events: impl Stream<Item = Result<Event<K>, watcher::Error>>,
    context: &Context,
    mut each: impl FnMut(Event<K>),
) {
    let followed = events.for_each(|event| {
        match event {
            Ok(event) => each(event),
            Err(error) => tracing::debug!(what, %error, "a watch of the kubelet failed; trying again"),
        }
        std::future::ready(())
    });
    tokio::select! {
        () = followed => {}
        () = context.stopped.cancelled() => {}
    }
}
