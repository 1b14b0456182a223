//! The objects of one kind in memory, from the watch and from the answers to the controllers' own writes.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::informer::Sink;

/// A namespace (empty for cluster-wide kinds) and a name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for a cluster-wide object.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// A key from its parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        Self::new(
            meta.namespace.clone().unwrap_or_default(),
            meta.name.clone().unwrap_or_default(),
        )
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// What a cache can hold.
pub trait Cached: Resource<DynamicType = ()> + DeserializeOwned + Clone + Send + Sync + 'static {}
impl<K: Resource<DynamicType = ()> + DeserializeOwned + Clone + Send + Sync + 'static> Cached for K {}

/// Called with every change: the object before and the object after.
pub type Listener<K> = Box<dyn Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync>;

/// The objects of one kind.
///
/// A watch lags behind the answers to writes. A controller that reads the watch alone creates the same pod twice, so
/// every answer is stored here at once ([`Cache::wrote`], [`Cache::removed`]), and revisions decide
/// which of two versions is newer.
pub struct Cache<K> {
    held: RwLock<Held<K>>,
    listeners: OnceLock<Vec<Listener<K>>>,
    synced: watch::Sender<bool>,
}

struct Held<K> {
    objects: BTreeMap<ObjectKey, Arc<K>>,
    /// The newest revision that the watch has delivered. An answer at or below it is known already, or its object
    /// has been deleted since.
    delivered: u64,
    /// Objects that were deleted through this cache, until the watch delivers the deletion.
    removed: HashSet<String>,
    /// The list under way after a (re)start of the watch.
    listing: Option<BTreeMap<ObjectKey, Arc<K>>>,
}

impl<K: Cached> Default for Cache<K> {
    fn default() -> Self {
        Self {
            held: RwLock::new(Held {
                objects: BTreeMap::new(),
                delivered: 0,
                removed: HashSet::new(),
                listing: None,
            }),
            listeners: OnceLock::new(),
            synced: watch::channel(false).0,
        }
    }
}

fn revision<K: Resource>(object: &K) -> u64 {
    let version = object.meta().resource_version.as_deref().unwrap_or_default();
    version.parse().unwrap_or_default()
}

impl<K: Cached> Cache<K> {
    fn read(&self) -> RwLockReadGuard<'_, Held<K>> {
        self.held.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held<K>> {
        self.held.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Sets the listeners, once, before the watch starts.
    pub fn listen(&self, listeners: Vec<Listener<K>>) {
        assert!(
            self.listeners.set(listeners).is_ok(),
            "a cache gets its listeners exactly once"
        );
    }

    /// Declares the cache complete without a watch: the server does not have the kind.
    pub fn is_empty_for_good(&self) {
        self.synced.send_replace(true);
    }

    /// Ends when the first list is complete.
    pub async fn synced(&self) {
        // The sender lives as long as `self`, so this can only end with the value.
        let _ = self.synced.subscribe().wait_for(|done| *done).await;
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// One object by its parts.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.get(&ObjectKey::new(namespace, name))
    }

    /// Every object.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// Every object of one namespace.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        self.read()
            .objects
            .range(ObjectKey::new(namespace, "")..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Stores the answer to a write.
    pub fn wrote(&self, object: K) -> Arc<K> {
        let object = Arc::new(object);
        let key = ObjectKey::of(&*object);
        let old = {
            let mut held = self.write();
            if revision(&*object) <= held.delivered {
                return object;
            }
            match held.objects.get(&key) {
                Some(known) if revision(&**known) >= revision(&*object) => return object,
                _ => held.objects.insert(key, object.clone()),
            }
        };
        self.notify(old.as_ref(), Some(&object));
        object
    }

    /// Removes an object that a delete request removed at once.
    pub fn removed(&self, object: &K) {
        let key = ObjectKey::of(object);
        let old = {
            let mut held = self.write();
            if held.objects.get(&key).is_none_or(|known| known.uid() != object.uid()) {
                return;
            }
            held.removed.extend(object.uid());
            held.objects.remove(&key)
        };
        self.notify(old.as_ref(), None);
    }

    fn notify(&self, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        for listener in self.listeners.get().into_iter().flatten() {
            listener(old, new);
        }
    }

    fn applied(&self, object: K) {
        let key = ObjectKey::of(&object);
        let (old, object) = {
            let mut held = self.write();
            held.delivered = held.delivered.max(revision(&object));
            if object.meta().uid.as_ref().is_some_and(|uid| held.removed.contains(uid)) {
                return;
            }
            if held
                .objects
                .get(&key)
                .is_some_and(|known| revision(&**known) > revision(&object))
            {
                return;
            }
            let object = Arc::new(object);
            (held.objects.insert(key, object.clone()), object)
        };
        self.notify(old.as_ref(), Some(&object));
    }

    fn deleted(&self, object: &K) {
        let key = ObjectKey::of(object);
        let old = {
            let mut held = self.write();
            held.delivered = held.delivered.max(revision(object));
            if let Some(uid) = &object.meta().uid {
                held.removed.remove(uid);
            }
            match held.objects.get(&key) {
                Some(known) if known.uid() == object.uid() => held.objects.remove(&key),
                _ => return,
            }
        };
        self.notify(old.as_ref(), None);
    }

    fn relisted(&self) {
        let (before, after) = {
            let mut held = self.write();
            let fresh = held.listing.take().unwrap_or_default();
            let delivered = fresh.values().map(|object| revision(&**object)).max();
            held.delivered = held.delivered.max(delivered.unwrap_or_default());
            held.removed.clear();
            let before = std::mem::replace(&mut held.objects, fresh);
            (before, held.objects.clone())
        };
        for (key, object) in &after {
            let old = before.get(key);
            if old.is_none_or(|old| revision(&**old) != revision(&**object)) {
                self.notify(old, Some(object));
            }
        }
        for (key, object) in &before {
            if !after.contains_key(key) {
                self.notify(Some(object), None);
            }
        }
        self.synced.send_replace(true);
    }
}

impl<K: Cached> Sink for Cache<K> {
    fn list_begins(&self) {
        self.write().listing = Some(BTreeMap::new());
    }

    fn listed(&self, object: &DynamicObject) {
        if let Some(object) = typed::<K>(object) {
            let key = ObjectKey::of(&object);
            if let Some(listing) = &mut self.write().listing {
                listing.insert(key, Arc::new(object));
            }
        }
    }

    fn list_ends(&self) {
        self.relisted();
    }

    fn applied(&self, object: &DynamicObject) {
        if let Some(object) = typed::<K>(object) {
            Self::applied(self, object);
        }
    }

    fn deleted(&self, object: &DynamicObject) {
        if let Some(object) = typed::<K>(object) {
            Self::deleted(self, &object);
        }
    }
}

fn typed<K: Cached>(object: &DynamicObject) -> Option<K> {
    match object.clone().try_parse() {
        Ok(object) => Some(object),
        Err(error) => {
            let (kind, key) = (
                K::kind(&()),
                ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any()),
            );
            tracing::error!(%kind, %key, %error, "an object does not have its kind's shape; the controllers cannot see it");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(uid: &str, version: u64) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("a".into());
        map.metadata.namespace = Some("n".into());
        map.metadata.uid = Some(uid.into());
        map.metadata.resource_version = Some(version.to_string());
        map
    }

    fn held(cache: &Cache<ConfigMap>) -> Option<String> {
        cache
            .find("n", "a")
            .and_then(|map| map.metadata.resource_version.clone())
    }

    #[test]
    fn a_write_is_in_the_cache_before_the_watch_delivers_it() {
        let cache = Cache::default();
        cache.wrote(object("u", 5));
        assert_eq!(held(&cache).as_deref(), Some("5"));
    }

    #[test]
    fn a_late_watch_event_does_not_undo_a_newer_response() {
        let cache = Cache::default();
        cache.wrote(object("u", 7));
        cache.applied(object("u", 6));
        assert_eq!(held(&cache).as_deref(), Some("7"));
    }

    #[test]
    fn a_response_that_arrives_after_the_deletion_is_ignored() {
        let cache = Cache::default();
        cache.applied(object("u", 5));
        cache.deleted(&object("u", 9));
        cache.wrote(object("u", 6));
        assert_eq!(held(&cache), None);
    }

    #[test]
    fn a_late_event_of_a_deleted_object_does_not_bring_it_back() {
        let cache = Cache::default();
        cache.applied(object("u", 5));
        cache.removed(&object("u", 5));
        cache.applied(object("u", 6));
        assert_eq!(held(&cache), None);
        cache.deleted(&object("u", 7));
        cache.applied(object("v", 8));
        assert_eq!(held(&cache).as_deref(), Some("8"));
    }

    #[test]
    fn a_new_list_replaces_the_cache_and_notifies_of_the_difference() {
        let cache = Cache::default();
        let delivered = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = delivered.clone();
        cache.listen(vec![Box::new(move |old, new| {
            log.lock().unwrap().push((old.is_some(), new.is_some()));
        })]);
        cache.applied(object("u", 5));
        cache.list_begins();
        cache.list_ends();
        assert_eq!(*delivered.lock().unwrap(), [(false, true), (true, false)]);
        assert_eq!(held(&cache), None);
    }
}
