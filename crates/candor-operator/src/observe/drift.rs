//! Drift detection: whether a live object matches the desired one. The API server fills in defaults and normalizes
//! numbers, so a live object never equals what was sent. It matches if it contains everything that was sent. If a
//! comparison cannot show that (a quantity in another notation), one apply settles it: the response is cached, and the
//! apply is not repeated.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

/// Objects that were found to match: by uid, the hash of the desired object and the mark of the live one.
#[derive(Default)]
pub struct Shapes {
    right: Mutex<HashMap<String, (u64, Mark)>>,
}

/// A value that changes when the live object's desired fields change: the generation and a hash of the metadata that it
/// does not cover. For kinds without a generation, the resource version.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Generation(i64, u64),
    Version(String),
}

fn mark(object: &impl ResourceExt) -> Mark {
    match object.meta().generation {
        Some(generation) => {
            let mut hasher = DefaultHasher::new();
            (object.labels(), object.annotations()).hash(&mut hasher);
            for owner in object.owner_references() {
                (&owner.uid, owner.controller).hash(&mut hasher);
            }
            Mark::Generation(generation, hasher.finish())
        }
        None => Mark::Version(object.resource_version().unwrap_or_default()),
    }
}

impl Shapes {
    /// Whether a live object matches the desired one.
    pub fn fits<K: ResourceExt + Serialize>(&self, desired: &K, live: &K) -> bool {
        let Ok(shape) = serde_json::to_value(desired) else {
            return false;
        };
        let hash = hash(&shape);
        let uid = live.uid().unwrap_or_default();
        let known = self.lock().get(&uid) == Some(&(hash, mark(live)));
        if known {
            return true;
        }
        let fits = serde_json::to_value(live).is_ok_and(|live| holds(&live, &shape));
        if fits {
            self.lock().insert(uid, (hash, mark(live)));
        }
        fits
    }

    /// Whether an object that does not match now did match the same desired state before: it was edited since.
    pub fn was_right<K: ResourceExt + Serialize>(&self, desired: &K, live: &K) -> bool {
        let shape = serde_json::to_value(desired).map(|shape| hash(&shape));
        let known = self.lock().get(&live.uid().unwrap_or_default()).map(|(hash, _)| *hash);
        known.is_some() && known == shape.ok()
    }

    /// Records the response to an apply of the desired object: the API server has confirmed that it matches.
    pub fn applied<K: ResourceExt + Serialize>(&self, desired: &K, answer: &K) {
        if let (Ok(shape), Some(uid)) = (serde_json::to_value(desired), answer.uid()) {
            self.lock().insert(uid, (hash(&shape), mark(answer)));
        }
    }

    /// Removes a deleted object.
    pub fn forget(&self, object: &impl ResourceExt) {
        if let Some(uid) = object.uid() {
            self.lock().remove(&uid);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (u64, Mark)>> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(shape: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    shape.to_string().hash(&mut hasher);
    hasher.finish()
}

/// Maps that are compared as a whole: an additional key selects other pods or nodes.
const WHOLE: [&str; 3] = ["selector", "matchLabels", "nodeSelector"];

/// Whether `live` contains all of `desired`: every key, and every element at its position. An empty value may be absent.
fn holds(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired.iter().all(|(key, value)| match live.get(key) {
            Some(there) if WHOLE.contains(&key.as_str()) => there == value,
            Some(there) => holds(there, value),
            None => is_empty(value),
        }),
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len() && live.iter().zip(desired).all(|(live, desired)| holds(live, desired))
        }
        (live, desired) => live == desired,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::holds;

    #[test]
    fn defaults_of_the_server_do_not_matter_and_edits_do() {
        let desired = json!({"spec": {"ports": [{"name": "valkey", "port": 6379}], "extra": {}}});
        let live =
            json!({"spec": {"ports": [{"name": "valkey", "port": 6379, "protocol": "TCP"}], "type": "ClusterIP"}});
        assert!(holds(&live, &desired));
        let edited = json!({"spec": {"ports": [{"name": "valkey", "port": 6380, "protocol": "TCP"}]}});
        assert!(!holds(&edited, &desired));
        let added = json!({"spec": {"ports": [{"name": "valkey", "port": 6379}, {"port": 1}]}});
        assert!(!holds(&added, &desired), "an element more is an edit");
        let desired = json!({"spec": {"selector": {"a": "1"}}, "metadata": {"labels": {"a": "1"}}});
        let labelled = json!({"spec": {"selector": {"a": "1"}}, "metadata": {"labels": {"a": "1", "b": "2"}}});
        assert!(holds(&labelled, &desired), "others may label what is ours");
        let narrowed = json!({"spec": {"selector": {"a": "1", "b": "2"}}, "metadata": {"labels": {"a": "1"}}});
        assert!(!holds(&narrowed, &desired), "a key more selects other pods");
    }
}
