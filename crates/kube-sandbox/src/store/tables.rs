//! The tables: reads, compare-and-swap writes, past states, watches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch as signal;

use super::history::{Change, Event, History};
use super::object::{Object, ObjectKey};
use super::watch::Watch;

/// The requested revision is older than the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {asked} is compacted")]
pub struct Compacted {
    /// What was asked for.
    pub asked: u64,
}

/// Why a write did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A create found the name taken.
    #[error("the object exists already")]
    Exists,
    /// An update or delete found nothing.
    #[error("there is no such object")]
    Missing,
    /// The object changed since it was read.
    #[error("the object changed since it was read")]
    Changed,
    /// The condition of a create does not hold.
    #[error("the condition of the write does not hold")]
    Unmet,
}

/// All objects of one API server.
#[derive(Debug)]
pub struct Store {
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    tables: HashMap<String, Table>,
}

#[derive(Debug)]
struct Table {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    history: History,
    written: signal::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            history: History::default(),
            written: signal::Sender::new(0),
        }
    }
}

impl Default for Store {
    fn default() -> Self {
        Self {
            state: RwLock::new(State {
                revision: 1,
                tables: HashMap::new(),
            }),
        }
    }
}

impl Store {
    /// An empty store at revision 1: 0 means "any" to clients and is never a state.
    pub fn new() -> Self {
        Self::default()
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    /// One object.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<Arc<Object>> {
        self.read().get(resource, key).cloned()
    }

    /// All objects of a resource (of one namespace, if given) and the revision they were read at.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> (Vec<Arc<Object>>, u64) {
        let state = self.read();
        let objects = state
            .tables
            .get(resource)
            .map(|t| in_namespace(&t.objects, namespace).map(|(_, o)| o.clone()).collect())
            .unwrap_or_default();
        (objects, state.revision)
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: &str) -> usize {
        self.read().tables.get(resource).map_or(0, |t| t.objects.len())
    }

    /// The list as it was at a past revision: the present one with the later events undone.
    pub fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<Arc<Object>>, Compacted> {
        let state = self.read();
        let Some(table) = state.tables.get(resource) else {
            return Ok(Vec::new());
        };
        let later = table.history.after(revision).ok_or(Compacted { asked: revision })?;
        let mut objects: BTreeMap<&ObjectKey, &Arc<Object>> = in_namespace(&table.objects, namespace).collect();
        for event in later.rev().filter(|e| namespace.is_none_or(|n| n == e.key.namespace)) {
            match &event.previous {
                Some(before) => objects.insert(&event.key, before),
                None => objects.remove(&event.key),
            };
        }
        Ok(objects.into_values().cloned().collect())
    }

    /// Adds an object under a free name.
    pub fn create(&self, resource: &str, key: ObjectKey, value: Value) -> Result<Arc<Object>, WriteError> {
        self.create_if(resource, key, value, |_| true)
    }

    /// Adds an object under a free name if `holds` is true of the stored objects at the moment of the write. A check
    /// before the call could be outdated by a concurrent write.
    pub fn create_if(
        &self,
        resource: &str,
        key: ObjectKey,
        value: Value,
        holds: impl FnOnce(&Stored<'_>) -> bool,
    ) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        if state.get(resource, &key).is_some() {
            return Err(WriteError::Exists);
        }
        if !holds(&Stored { state: &state }) {
            return Err(WriteError::Unmet);
        }
        Ok(state.commit(resource, key, Change::Added, value))
    }

    /// Replaces the object if it is still at the revision `expected`.
    pub fn replace(
        &self,
        resource: &str,
        key: ObjectKey,
        expected: u64,
        value: Value,
    ) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        state.check(resource, &key, expected)?;
        Ok(state.commit(resource, key, Change::Modified, value))
    }

    /// Removes the object if it is still at the revision `expected`. Returns its last state with the revision of the
    /// deletion, which watchers receive too.
    pub fn delete(&self, resource: &str, key: ObjectKey, expected: u64) -> Result<Arc<Object>, WriteError> {
        let mut state = self.write();
        let last = state.check(resource, &key, expected)?.value().clone();
        Ok(state.commit(resource, key, Change::Deleted, last))
    }

    /// Forgets the history of every resource up to now: watches and continued lists from before get 410.
    pub fn compact(&self) {
        let mut state = self.write();
        let revision = state.revision;
        for table in state.tables.values_mut() {
            table.history.compact(revision);
        }
    }

    /// The events of a resource after a revision.
    pub fn watch(&self, resource: &str, after: u64) -> Result<Watch, Compacted> {
        let mut state = self.write();
        let table = state.tables.entry(resource.to_owned()).or_default();
        if table.history.after(after).is_none() {
            return Err(Compacted { asked: after });
        }
        Ok(Watch::new(resource.to_owned(), after, table.written.subscribe()))
    }

    /// The events after a revision, at most `limit`, and the revision up to which the answer is complete.
    pub(crate) fn events_after(
        &self,
        resource: &str,
        revision: u64,
        limit: usize,
    ) -> Result<(Vec<Event>, u64), Compacted> {
        let state = self.read();
        let Some(table) = state.tables.get(resource) else {
            return Ok((Vec::new(), state.revision));
        };
        let later = table.history.after(revision).ok_or(Compacted { asked: revision })?;
        let events: Vec<Event> = later.take(limit).cloned().collect();
        let complete = if events.len() == limit {
            events.last().map_or(revision, |e| e.revision)
        } else {
            state.revision
        };
        Ok((events, complete))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic while the lock was held leaves the tables as the last completed step left them.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stored objects while a write holds the lock.
pub struct Stored<'a> {
    state: &'a State,
}

impl Stored<'_> {
    /// One object.
    pub fn get(&self, resource: &str, key: &ObjectKey) -> Option<&Object> {
        self.state.get(resource, key).map(Arc::as_ref)
    }
}

impl State {
    fn get(&self, resource: &str, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.tables.get(resource)?.objects.get(key)
    }

    /// The stored object, if it is at the revision `expected`.
    fn check(&self, resource: &str, key: &ObjectKey, expected: u64) -> Result<&Arc<Object>, WriteError> {
        let stored = self.get(resource, key).ok_or(WriteError::Missing)?;
        if stored.revision() == expected {
            Ok(stored)
        } else {
            Err(WriteError::Changed)
        }
    }

    fn commit(&mut self, resource: &str, key: ObjectKey, change: Change, value: Value) -> Arc<Object> {
        self.revision += 1;
        let object = Arc::new(Object::new(value, self.revision));
        if !self.tables.contains_key(resource) {
            self.tables.insert(resource.to_owned(), Table::default());
        }
        let table = self.tables.entry(resource.to_owned()).or_default();
        let previous = match change {
            Change::Deleted => table.objects.remove(&key),
            Change::Added | Change::Modified => table.objects.insert(key.clone(), object.clone()),
        };
        table.history.push(Event {
            revision: self.revision,
            change,
            key,
            object: object.clone(),
            previous,
        });
        table.written.send_replace(self.revision);
        object
    }
}

fn in_namespace<'a>(
    objects: &'a BTreeMap<ObjectKey, Arc<Object>>,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<Object>)> {
    let start = ObjectKey::new(namespace.unwrap_or_default(), "");
    objects
        .range(start..)
        .take_while(move |(key, _)| namespace.is_none_or(|n| n == key.namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(name: &str) -> Value {
        json!({"metadata": {"name": name}})
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn an_object_is_created_only_if_the_condition_holds_at_the_moment_of_the_write() {
        let store = Store::default();
        let home = |stored: &Stored<'_>| stored.get("namespaces", &key("home")).is_some();
        let refused = store.create_if("pods", key("a"), named("a"), home);
        assert!(matches!(refused, Err(WriteError::Unmet)));
        assert!(store.get("pods", &key("a")).is_none());
        store.create("namespaces", key("home"), named("home")).unwrap();
        assert!(store.create_if("pods", key("a"), named("a"), home).is_ok());
    }

    fn names(objects: &[Arc<Object>]) -> Vec<&str> {
        objects
            .iter()
            .filter_map(|o| o.value()["metadata"]["name"].as_str())
            .collect()
    }

    #[test]
    fn a_write_against_an_old_revision_is_rejected() {
        let store = Store::new();
        let first = store.create("pods", key("a"), named("a")).unwrap();
        let second = store.replace("pods", key("a"), first.revision(), named("a")).unwrap();
        assert_eq!(
            store
                .replace("pods", key("a"), first.revision(), named("a"))
                .unwrap_err(),
            WriteError::Changed
        );
        assert!(second.revision() > first.revision());
        assert_eq!(
            store.create("pods", key("a"), named("a")).unwrap_err(),
            WriteError::Exists
        );
        assert_eq!(store.delete("pods", key("b"), 1).unwrap_err(), WriteError::Missing);
    }

    #[test]
    fn a_past_list_is_the_present_one_with_later_writes_undone() {
        let store = Store::new();
        store.create("pods", key("a"), named("a")).unwrap();
        let b = store.create("pods", key("b"), named("b")).unwrap();
        let then = store.revision();
        store.create("pods", key("c"), named("c")).unwrap();
        store.delete("pods", key("b"), b.revision()).unwrap();
        store.create("pods", ObjectKey::new("other", "d"), named("d")).unwrap();
        assert_eq!(names(&store.list("pods", Some("ns")).0), ["a", "c"]);
        assert_eq!(names(&store.list_at("pods", None, then).unwrap()), ["a", "b"]);
        store.compact();
        assert_eq!(
            store.list_at("pods", None, then).unwrap_err(),
            Compacted { asked: then }
        );
    }

    #[tokio::test]
    async fn a_watch_that_falls_behind_the_history_fails() {
        let store = Store::new();
        let mut object = store.create("pods", key("a"), named("a")).unwrap();
        let mut behind = store.watch("pods", object.revision()).unwrap();
        for _ in 0..5000 {
            object = store.replace("pods", key("a"), object.revision(), named("a")).unwrap();
        }
        assert!(behind.next(&store).await.is_err());
        let mut fresh = store.watch("pods", object.revision() - 3).unwrap();
        assert_eq!(fresh.next(&store).await.unwrap().len(), 3);
    }

    #[test]
    fn large_objects_are_forgotten_sooner() {
        let store = Store::new();
        let large = |name: &str| json!({"metadata": {"name": name}, "data": "x".repeat(1 << 20)});
        let first = store.create("maps", key("a"), large("a")).unwrap().revision();
        let mut last = first;
        for _ in 0..100 {
            last = store.replace("maps", key("a"), last, large("a")).unwrap().revision();
        }
        assert!(store.watch("maps", first).is_err(), "100 MB of history are kept");
        assert!(store.watch("maps", last - 50).is_ok());
    }
}
