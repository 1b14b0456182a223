//! Garbage collection: deletes objects of every kind that have lost their owners.

mod graph;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions, PropagationPolicy};
use serde_json::{Value, json};

use self::graph::{Action, FOREGROUND, Graph, Item, ORPHAN, Owner, decide};
use super::plane::Plane;
use super::runtime::{Controller, Error, ObjectKey, Queue, Served, Sink};

/// The graph, shared with the controller of namespaces.
pub struct Known {
    graph: Mutex<Graph>,
    queue: Arc<Queue<ObjectKey>>,
    /// Called with the namespace of every object that was deleted.
    gone: Box<dyn Fn(&str) + Send + Sync>,
}

/// An object is named by its uid alone.
fn key(uid: &str) -> ObjectKey {
    ObjectKey::new("", uid)
}

impl Known {
    /// An empty graph that adds uids to a queue.
    pub fn new(queue: &Arc<Queue<ObjectKey>>, gone: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            graph: Mutex::default(),
            queue: queue.clone(),
            gone: Box::new(gone),
        })
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, item: Item) {
        let affected = self.graph().put(item);
        for uid in affected {
            self.queue.add(key(&uid));
        }
    }

    fn remove(&self, uid: &str) {
        let (namespace, affected) = {
            let mut graph = self.graph();
            let namespace = graph.get(uid).map(|item| item.namespace.clone()).unwrap_or_default();
            (namespace, graph.remove(uid))
        };
        for uid in affected {
            self.queue.add(key(&uid));
        }
        if !namespace.is_empty() {
            (self.gone)(&namespace);
        }
    }

    /// A resource was taken away with all its objects.
    pub fn forget(&self, group: &str, plural: &str) {
        let all = self.graph().not_among(group, plural, &HashSet::new());
        for uid in all {
            self.remove(&uid);
        }
    }

    /// Receives the changes of a resource. Events own nothing and are owned by nothing.
    pub fn sink(self: &Arc<Self>, served: &Arc<Served>) -> Option<Arc<dyn Sink>> {
        (served.resource.plural != "events").then(|| {
            let follower: Arc<dyn Sink> = Arc::new(Follower {
                known: self.clone(),
                served: served.clone(),
                listed: Mutex::default(),
            });
            follower
        })
    }
}

struct Follower {
    known: Arc<Known>,
    served: Arc<Served>,
    listed: Mutex<HashSet<String>>,
}

impl Follower {
    fn listed_now(&self) -> MutexGuard<'_, HashSet<String>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Follower {
    fn list_begins(&self) {
        self.listed_now().clear();
    }

    fn listed(&self, object: &DynamicObject) {
        self.listed_now().extend(object.uid());
        self.applied(object);
    }

    fn list_ends(&self) {
        let listed = std::mem::take(&mut *self.listed_now());
        let resource = &self.served.resource;
        let gone = self.known.graph().not_among(&resource.group, &resource.plural, &listed);
        for uid in gone {
            self.known.remove(&uid);
        }
    }

    fn applied(&self, object: &DynamicObject) {
        if let Some(item) = Item::new(&self.served, &object.metadata) {
            self.known.put(item);
        }
    }

    fn deleted(&self, object: &DynamicObject) {
        if let Some(uid) = object.uid() {
            self.known.remove(&uid);
        }
    }
}

/// The collector.
pub struct Collector {
    plane: Plane,
    known: Arc<Known>,
}

impl Collector {
    /// A collector over a graph.
    pub fn new(plane: &Plane, known: &Arc<Known>) -> Self {
        Self {
            plane: plane.clone(),
            known: known.clone(),
        }
    }

    fn api(&self, served: &Served, namespace: &str) -> Api<DynamicObject> {
        if served.namespaced {
            Api::namespaced_with(self.plane.client.clone(), namespace, &served.resource)
        } else {
            Api::all_with(self.plane.client.clone(), &served.resource)
        }
    }

    /// The object as it is now; `None` when it is gone or its name belongs to another object.
    async fn live(&self, item: &Item) -> Result<Option<Item>, Error> {
        let found = self
            .api(&item.served, &item.namespace)
            .get_metadata_opt(&item.name)
            .await?;
        let found = found.filter(|found| found.metadata.uid.as_deref() == Some(item.uid.as_str()));
        Ok(found.and_then(|found| Item::new(&item.served, &found.metadata)))
    }

    /// What is known of an owner. An owner of a namespaced kind lives in its dependent's namespace or nowhere.
    async fn owner(&self, item: &Item, owner: &OwnerReference) -> Result<Owner, Error> {
        {
            let graph = self.known.graph();
            if let Some(known) = graph.get(&owner.uid)
                && known.name == owner.name
                && known.served.resource.kind == owner.kind
                && (!known.served.namespaced || known.namespace == item.namespace)
            {
                return Ok(if known.waits_for_dependents() {
                    Owner::Waiting
                } else {
                    Owner::Solid
                });
            }
        }
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let Some(served) = self.plane.resources.of_kind(group, &owner.kind) else {
            // The kind is not served (yet), so it is unknown whether the owner exists: keep the object.
            return Ok(Owner::Solid);
        };
        if served.namespaced && item.namespace.is_empty() {
            return Ok(Owner::Solid);
        }
        let found = self.api(&served, &item.namespace).get_metadata_opt(&owner.name).await?;
        let found = found.filter(|found| found.metadata.uid.as_deref() == Some(owner.uid.as_str()));
        Ok(match found.and_then(|found| Item::new(&served, &found.metadata)) {
            None => Owner::Absent,
            Some(live) if live.waits_for_dependents() => Owner::Waiting,
            Some(_) => Owner::Solid,
        })
    }

    async fn patch(&self, item: &Item, patch: Value) -> Result<(), Error> {
        let api = self.api(&item.served, &item.namespace);
        match api
            .patch(&item.name, &PatchParams::default(), &Patch::Merge(patch))
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn drop_finalizer(&self, item: &Item, finalizer: &str) -> Result<(), Error> {
        let api = self.api(&item.served, &item.namespace);
        let Some(live) = api.get_metadata_opt(&item.name).await? else {
            return Ok(());
        };
        let left: Vec<_> = live.finalizers().iter().filter(|name| *name != finalizer).collect();
        let finalizers = if left.is_empty() { Value::Null } else { json!(left) };
        let meta = json!({"finalizers": finalizers, "uid": item.uid, "resourceVersion": live.resource_version()});
        self.patch(item, json!({"metadata": meta})).await
    }

    async fn release(&self, item: &Item, uids: &[String]) -> Result<(), Error> {
        let api = self.api(&item.served, &item.namespace);
        let Some(live) = api.get_metadata_opt(&item.name).await? else {
            return Ok(());
        };
        let left: Vec<_> = live
            .owner_references()
            .iter()
            .filter(|owner| !uids.contains(&owner.uid))
            .collect();
        if left.len() == live.owner_references().len() {
            return Ok(());
        }
        let owners = if left.is_empty() { Value::Null } else { json!(left) };
        let meta = json!({"ownerReferences": owners, "uid": item.uid, "resourceVersion": live.resource_version()});
        self.patch(item, json!({"metadata": meta})).await
    }

    /// Deletes the object if it did not change since the decision: a concurrent write may have removed the owner reference.
    async fn delete(&self, item: &Item, policy: PropagationPolicy) -> Result<(), Error> {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(Preconditions {
                uid: Some(item.uid.clone()),
                resource_version: item.version.clone(),
            }),
            ..DeleteParams::default()
        };
        match self
            .api(&item.served, &item.namespace)
            .delete(&item.name, &params)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            // After a conflict the object is reconciled again.
            Err(error) => Err(error.into()),
        }
    }

    async fn orphan(&self, item: &Item) -> Result<(), Error> {
        let dependents: Vec<Item> = self.known.graph().dependents(&item.uid).into_iter().cloned().collect();
        for dependent in dependents {
            self.release(&dependent, std::slice::from_ref(&item.uid)).await?;
        }
        self.drop_finalizer(item, ORPHAN).await
    }

    /// Lets a foreground owner go when nothing that blocks it is left; else sees to its dependents.
    async fn finish_foreground(&self, item: &Item) -> Result<(), Error> {
        let dependents: Vec<Item> = self.known.graph().dependents(&item.uid).into_iter().cloned().collect();
        let blocks = |dependent: &&Item| {
            let ours = dependent.owners.iter().find(|owner| owner.uid == item.uid);
            ours.is_some_and(|owner| owner.block_owner_deletion == Some(true))
        };
        if dependents.iter().filter(blocks).count() == 0 {
            return self.drop_finalizer(item, FOREGROUND).await;
        }
        for dependent in dependents.iter().filter(|dependent| !dependent.leaving) {
            self.known.queue.add(key(&dependent.uid));
        }
        Ok(())
    }
}

impl Controller for Collector {
    const NAME: &'static str = "garbage-collector";
    const WORKERS: usize = 8;

    async fn reconcile(&self, key: &ObjectKey) -> Result<Option<Duration>, Error> {
        let Some(item) = self.known.graph().get(&key.name).cloned() else {
            return Ok(None);
        };
        let Some(item) = self.live(&item).await? else {
            return Ok(None);
        };
        if item.orphans() {
            self.orphan(&item).await?;
            return Ok(None);
        }
        if item.waits_for_dependents() {
            self.finish_foreground(&item).await?;
        }
        let mut owners = Vec::new();
        for owner in &item.owners {
            owners.push(self.owner(&item, owner).await?);
        }
        let parent = !self.known.graph().dependents(&item.uid).is_empty();
        match decide(&item, &owners, parent) {
            Action::Keep => {}
            Action::Release(uids) => self.release(&item, &uids).await?,
            Action::DeleteForeground => self.delete(&item, PropagationPolicy::Foreground).await?,
            Action::DeleteBackground => self.delete(&item, PropagationPolicy::Background).await?,
            Action::DeleteOrphaning => self.delete(&item, PropagationPolicy::Orphan).await?,
        }
        Ok(None)
    }
}
