//! The resources of the server, and a watch for each of them; custom ones are added and removed with their CRDs.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};

use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Client, ResourceExt};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::informer::{Sink, follow};

/// A resource that can be listed, watched and deleted.
#[derive(Clone, Debug)]
pub struct Served {
    /// Its names.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// The resources known now, by group and plural.
#[derive(Default)]
pub struct Resources {
    known: RwLock<HashMap<(String, String), Arc<Served>>>,
}

impl Resources {
    fn key(resource: &ApiResource) -> (String, String) {
        (resource.group.clone(), resource.plural.clone())
    }

    fn insert(&self, served: Served) -> Option<Arc<Served>> {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = Self::key(&served.resource);
        if known.contains_key(&key) {
            return None;
        }
        let served = Arc::new(served);
        known.insert(key, served.clone());
        Some(served)
    }

    fn remove(&self, group: &str, plural: &str) {
        let mut known = self.known.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.remove(&(group.to_owned(), plural.to_owned()));
    }

    /// Every resource.
    pub fn all(&self) -> Vec<Arc<Served>> {
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.values().cloned().collect()
    }

    /// The resource of a kind, whatever its version.
    pub fn of_kind(&self, group: &str, kind: &str) -> Option<Arc<Served>> {
        let known = self.known.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let found = known
            .values()
            .find(|served| served.resource.group == group && served.resource.kind == kind);
        found.cloned()
    }
}

/// A CRD that was established or deleted.
enum Custom {
    Came(Box<Served>),
    Went(String, String),
}

/// Follows CRDs.
struct Customs {
    line: mpsc::UnboundedSender<Custom>,
}

impl Customs {
    fn came(&self, crd: &DynamicObject) {
        if let Some(served) = served_by(crd) {
            // The receiver lives as long as the watch that calls this.
            let _ = self.line.send(Custom::Came(Box::new(served)));
        }
    }
}

impl Sink for Customs {
    fn list_begins(&self) {}
    fn list_ends(&self) {}

    fn listed(&self, crd: &DynamicObject) {
        self.came(crd);
    }

    fn applied(&self, crd: &DynamicObject) {
        self.came(crd);
    }

    fn deleted(&self, crd: &DynamicObject) {
        if let Some((plural, group)) = crd.name_any().split_once('.') {
            let _ = self.line.send(Custom::Went(group.to_owned(), plural.to_owned()));
        }
    }
}

/// What an established CRD serves, by its storage version.
fn served_by(crd: &DynamicObject) -> Option<Served> {
    let text = |path: &str| crd.data.pointer(path)?.as_str().map(str::to_owned);
    let conditions = crd.data.pointer("/status/conditions")?.as_array()?;
    let established = conditions
        .iter()
        .any(|one| one["type"] == "Established" && one["status"] == "True");
    let versions = crd.data.pointer("/spec/versions")?.as_array()?;
    let served = || versions.iter().filter(|version| version["served"] == true);
    let version = served()
        .find(|version| version["storage"] == true)
        .or_else(|| served().next())?;
    let (group, version) = (text("/spec/group")?, version["name"].as_str()?.to_owned());
    let resource = ApiResource {
        api_version: format!("{group}/{version}"),
        kind: text("/spec/names/kind")?,
        plural: text("/spec/names/plural")?,
        group,
        version,
    };
    established.then(|| Served {
        resource,
        namespaced: text("/spec/scope").as_deref() == Some("Namespaced"),
    })
}

async fn built_in(client: &Client) -> Vec<Served> {
    let discovery = match Discovery::new(client.clone()).run().await {
        Ok(discovery) => discovery,
        Err(error) => {
            tracing::error!(%error, "the API server's resources cannot be discovered; the controllers see nothing");
            return Vec::new();
        }
    };
    let mut served = Vec::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.resources_by_stability() {
            let can = |verb: &str| capabilities.supports_operation(verb);
            if can(verbs::LIST) && can(verbs::WATCH) && can(verbs::DELETE) {
                served.push(Served {
                    resource,
                    namespaced: capabilities.scope == Scope::Namespaced,
                });
            }
        }
    }
    served
}

/// The watches under way. Dropping this ends them.
struct Watches<S> {
    client: Client,
    sinks: S,
    line: mpsc::UnboundedSender<Custom>,
    tasks: JoinSet<()>,
    handles: HashMap<(String, String), AbortHandle>,
}

impl<S: Fn(&Arc<Served>) -> Vec<Arc<dyn Sink>>> Watches<S> {
    fn start(&mut self, served: &Arc<Served>) {
        let mut sinks = (self.sinks)(served);
        if served.resource.plural == "customresourcedefinitions" {
            let line = self.line.clone();
            sinks.push(Arc::new(Customs { line }));
        }
        if !sinks.is_empty() {
            let watch = follow(self.client.clone(), served.resource.clone(), sinks);
            let handle = self.tasks.spawn(watch);
            self.handles.insert(Resources::key(&served.resource), handle);
        }
    }

    fn stop(&mut self, key: &(String, String)) {
        if let Some(handle) = self.handles.remove(key) {
            handle.abort();
        }
    }
}

/// Follows every resource until dropped. `sinks` returns the followers of a resource; `ready` is called when the built-in
/// resources are known, `gone` when a custom one is no longer served.
pub async fn follow_all(
    client: Client,
    resources: Arc<Resources>,
    sinks: impl Fn(&Arc<Served>) -> Vec<Arc<dyn Sink>>,
    ready: impl FnOnce(&Resources),
    gone: impl Fn(&str, &str),
) {
    let (line, mut customs) = mpsc::unbounded_channel();
    let mut watches = Watches {
        client,
        sinks,
        line,
        tasks: JoinSet::new(),
        handles: HashMap::new(),
    };
    for served in built_in(&watches.client).await {
        if let Some(served) = resources.insert(served) {
            watches.start(&served);
        }
    }
    ready(&resources);
    while let Some(custom) = customs.recv().await {
        match custom {
            Custom::Came(served) => {
                if let Some(served) = resources.insert(*served) {
                    watches.start(&served);
                }
            }
            Custom::Went(group, plural) => {
                resources.remove(&group, &plural);
                gone(&group, &plural);
                watches.stop(&(group, plural));
            }
        }
    }
}
