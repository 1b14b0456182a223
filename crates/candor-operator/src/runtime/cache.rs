//! In-memory cache of one kind: objects from the watch and, until the watch has caught up, the responses to the
//! operator's own writes. A plain value behind a lock, fed by events.

mod key;
mod relist;
mod stored;
mod undecodable;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

pub use crate::monitor::{ClusterKey, ClusterKind};
use crate::runtime::guarded::Undecodable;
use relist::{differences, is_newer, keep_newer};
use stored::Stored;
use undecodable::Skipped;

/// Objects by name.
type Named<K> = BTreeMap<String, Stored<K>>;

/// Objects of one kind, grouped by the key that they are looked up with. Clones share the objects.
pub struct Cache<K> {
    held: Arc<Mutex<Held<K>>>,
    ready: Arc<watch::Sender<bool>>,
    group: fn(&ObjectMeta) -> ClusterKey,
    keep: fn(&Arc<K>) -> Stored<K>,
}

struct Held<K> {
    groups: HashMap<ClusterKey, Named<K>>,
    /// Lists in progress, by source.
    listing: HashMap<Source, HashMap<ClusterKey, Named<K>>>,
    /// Sources that have not completed their first list.
    awaited: BTreeSet<Source>,
    /// Why watches fail, by the kind of their clusters.
    trouble: BTreeMap<ClusterKind, String>,
    /// Objects that do not decode: those of lists in progress, by source, and the current ones.
    skipped: Skipped,
    /// Tombstones: the uids of the most recently deleted objects.
    tombstones: VecDeque<String>,
}

/// Number of tombstones: they must last longer than the response to a write takes to arrive.
const TOMBSTONES: usize = 256;

impl<K> Held<K> {
    fn bury(&mut self, uids: impl IntoIterator<Item = String>) {
        self.tombstones.extend(uids);
        let old = self.tombstones.len().saturating_sub(TOMBSTONES);
        self.tombstones.drain(..old);
    }
}

/// The scope of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// One namespace, or all of them.
    pub namespace: Option<String>,
    /// The kind of the clusters that its objects belong to.
    pub kind: ClusterKind,
}

impl Source {
    /// Whether the watch delivers the objects of this group.
    fn covers(&self, key: &ClusterKey) -> bool {
        let namespace = self.namespace.as_ref();
        self.kind == key.kind && namespace.is_none_or(|namespace| *namespace == key.namespace)
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            held: self.held.clone(),
            ready: self.ready.clone(),
            group: self.group,
            keep: self.keep,
        }
    }
}

/// The key of an object that belongs to no cluster.
fn key_of_namespace(meta: &ObjectMeta) -> ClusterKey {
    ClusterKey {
        namespace: meta.namespace.clone().unwrap_or_default(),
        ..ClusterKey::default()
    }
}

impl<K: Resource + Serialize + DeserializeOwned> Cache<K> {
    /// Objects that carry their cluster's label.
    pub fn of_clusters() -> Self {
        Self::grouped(|meta| ClusterKey::by_label(meta).unwrap_or_else(|| key_of_namespace(meta)))
    }

    /// Preflight pods, by the cluster that they belong to.
    pub fn of_preflights() -> Self {
        Self::grouped(|meta| ClusterKey::of_preflight(meta).unwrap_or_else(|| key_of_namespace(meta)))
    }

    /// Objects that belong to no cluster: looked up by namespace and name.
    pub fn of_namespaces() -> Self {
        Self::grouped(key_of_namespace)
    }

    fn grouped(group: fn(&ObjectMeta) -> ClusterKey) -> Self {
        Self {
            held: Arc::new(Mutex::new(Held {
                groups: HashMap::new(),
                listing: HashMap::new(),
                awaited: BTreeSet::new(),
                trouble: BTreeMap::new(),
                skipped: Skipped::default(),
                tombstones: VecDeque::new(),
            })),
            ready: Arc::new(watch::channel(false).0),
            group,
            keep: Stored::open,
        }
    }

    /// The same cache with packed objects: for large objects that are rarely read.
    #[must_use]
    pub fn packed(mut self) -> Self {
        self.keep = Stored::packed;
        self
    }

    /// Announces that a watch of this source feeds the cache: the cache is not ready before that source has been
    /// listed.
    pub fn expect(&self, source: &Source) {
        self.lock().awaited.insert(source.clone());
    }

    /// Whether the objects of clusters of this kind have been listed.
    pub fn has_listed(&self, kind: ClusterKind) -> bool {
        !self.lock().awaited.iter().any(|source| source.kind == kind)
    }

    /// One object of a cluster.
    pub fn get(&self, cluster: &ClusterKey, name: &str) -> Option<Arc<K>> {
        self.lock().groups.get(cluster)?.get(name).map(Stored::object)
    }

    /// One object of a namespace, of any cluster.
    pub fn find_in(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let held = self.lock();
        let mut groups = held.groups.iter().filter(|(key, _)| key.namespace == namespace);
        groups.find_map(|(_, group)| group.get(name)).map(Stored::object)
    }

    /// One object that belongs to no cluster.
    pub fn get_in(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        let key = ClusterKey {
            namespace: namespace.to_owned(),
            ..ClusterKey::default()
        };
        self.get(&key, name)
    }

    /// All objects of a cluster, by name.
    pub fn list(&self, cluster: &ClusterKey) -> Vec<Arc<K>> {
        let held = self.lock();
        held.groups
            .get(cluster)
            .map(|objects| objects.values().map(Stored::object).collect())
            .unwrap_or_default()
    }

    /// Applies an event from the watch of a source; returns the objects that it changed. An event that repeats one of
    /// the operator's own writes changes nothing.
    pub fn take(&self, source: &Source, event: Event<K>) -> Vec<Arc<K>> {
        let mut held = self.lock();
        held.trouble.remove(&source.kind);
        match event {
            Event::Init => {
                held.listing.insert(source.clone(), HashMap::new());
                held.skipped.begin(source);
                Vec::new()
            }
            Event::InitApply(object) => {
                let list = held.listing.entry(source.clone()).or_default();
                let group = list.entry((self.group)(object.meta())).or_default();
                group.insert(object.name_any(), (self.keep)(&light(object)));
                Vec::new()
            }
            Event::InitDone => {
                let mut fresh = held.listing.remove(source).unwrap_or_default();
                let before: HashMap<ClusterKey, Named<K>> =
                    held.groups.extract_if(|key, _| source.covers(key)).collect();
                keep_newer(&before, &mut fresh);
                let changed = differences(&before, &fresh);
                let stays: BTreeSet<&String> = fresh
                    .values()
                    .flat_map(BTreeMap::values)
                    .filter_map(|one| one.uid.as_ref())
                    .chain(held.skipped.listed(source))
                    .collect();
                let all = before
                    .values()
                    .flat_map(BTreeMap::values)
                    .filter_map(|one| one.uid.as_ref());
                let gone: Vec<String> = all.filter(|uid| !stays.contains(uid)).cloned().collect();
                held.bury(gone);
                held.groups.extend(fresh);
                held.skipped.end(source);
                held.awaited.remove(source);
                let whole = held.awaited.iter().all(|source| source.kind == ClusterKind::Redkey);
                drop(held);
                self.ready.send_replace(whole);
                changed
            }
            Event::Apply(object) => self.insert(&mut held, object).into_iter().collect(),
            Event::Delete(object) => {
                self.remove(&mut held, &object);
                vec![Arc::new(object)]
            }
        }
    }

    /// Records that an object does not decode. The cached version is outdated and is removed. Returns whether this was
    /// not known before.
    pub fn skip(&self, source: &Source, event: &Event<()>, object: &Undecodable) -> bool {
        let mut held = self.lock();
        held.trouble.remove(&source.kind);
        let key = (self.group)(&object.meta);
        let name = object.meta.name.clone().unwrap_or_default();
        match event {
            Event::InitApply(()) => held.skipped.list(source, key, name, object),
            Event::Delete(()) => {
                held.skipped.remove(&key, &name);
                true
            }
            _ => {
                if let Some(group) = held.groups.get_mut(&key) {
                    group.remove(&name);
                }
                held.skipped.put(key, name, object)
            }
        }
    }

    /// The decode error of the cluster's first undecodable object, by name, if there is one.
    pub fn undecodable(&self, cluster: &ClusterKey) -> Option<String> {
        self.lock().skipped.first(cluster)
    }

    /// How many objects do not decode.
    pub fn undecodable_count(&self) -> usize {
        self.lock().skipped.len()
    }

    /// Records that the operator itself deleted an object.
    pub fn gone(&self, object: &K) {
        self.remove(&mut self.lock(), object);
    }

    /// Removes an object by uid: a new object of the same name, created by the operator, stays.
    fn remove(&self, held: &mut Held<K>, object: &K) {
        let name = object.name_any();
        let key = (self.group)(object.meta());
        held.skipped.remove(&key, &name);
        let group = held.groups.entry(key).or_default();
        if group.get(&name).is_some_and(|known| known.uid == object.uid()) {
            group.remove(&name);
        }
        held.bury(object.uid());
    }

    /// Stores the response to one of the operator's own writes. If the watch has already reported the deletion of the
    /// object, it stays deleted: the watch would not report the deletion a second time.
    pub fn put(&self, object: K) -> Arc<K> {
        let name = object.name_any();
        let key = (self.group)(object.meta());
        let mut held = self.lock();
        if object.uid().is_some_and(|uid| held.tombstones.contains(&uid)) {
            return light(object);
        }
        match self.insert(&mut held, object) {
            Some(put) => put,
            // The watch has already delivered a newer version, which stays.
            None => held.groups[&key][&name].object(),
        }
    }

    /// Stores an object if it is newer; returns `None` if this version is already known.
    fn insert(&self, held: &mut Held<K>, object: K) -> Option<Arc<K>> {
        let key = (self.group)(object.meta());
        held.skipped.remove(&key, &object.name_any());
        let group = held.groups.entry(key).or_default();
        if group
            .get(&object.name_any())
            .is_some_and(|known| !is_newer(object.resource_version().as_deref(), known.version.as_deref()))
        {
            return None;
        }
        let name = object.name_any();
        let object = light(object);
        group.insert(name, (self.keep)(&object));
        Some(object)
    }

    /// Records that the watch failed, with its error message.
    pub fn fail(&self, kind: ClusterKind, message: String) {
        self.lock().trouble.insert(kind, message);
    }

    /// The error of the failed watch: the cached objects may be outdated.
    pub fn trouble(&self, kind: ClusterKind) -> Option<String> {
        self.lock().trouble.get(&kind).cloned()
    }

    /// The clusters that have cached objects.
    pub fn clusters(&self) -> Vec<ClusterKey> {
        self.lock().groups.keys().cloned().collect()
    }

    /// Records that the watch has recovered.
    pub fn recover(&self, kind: ClusterKind) {
        self.lock().trouble.remove(&kind);
    }

    /// Waits until every source has been listed once.
    pub async fn ready(&self) {
        // The sender lives as long as this handle.
        let _ = self.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// Whether every source has been listed once.
    pub fn is_ready(&self) -> bool {
        *self.ready.borrow()
    }

    fn lock(&self) -> MutexGuard<'_, Held<K>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the managed fields: they are not used here, and they are most of an object's size.
fn light<K: Resource>(mut object: K) -> Arc<K> {
    object.meta_mut().managed_fields = None;
    Arc::new(object)
}

#[cfg(test)]
mod tests;
