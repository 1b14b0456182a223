//! Whether an object is as it was asked to be. Servers fill in defaults and write numbers their own way, so a live
//! object never equals what was sent: it is right when it holds all that was sent. Where that cannot be seen (a
//! quantity written another way), one apply settles it, and its answer is remembered instead of being asked for again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

/// What was found right: by uid, the wanted shape and the version of the object that had it.
#[derive(Default)]
pub struct Shapes {
    right: Mutex<HashMap<String, (u64, Mark)>>,
}

/// What changes when somebody changes what was asked for: the generation where the kind has one, with what does not
/// count in it, else the version.
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
    /// Whether a live object has the wanted shape.
    pub fn fits<K: ResourceExt + Serialize>(&self, wanted: &K, live: &K) -> bool {
        let Ok(shape) = serde_json::to_value(wanted) else {
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

    /// An apply of the wanted shape was answered with this object: it is right by the API server's own word.
    pub fn applied<K: ResourceExt + Serialize>(&self, wanted: &K, answer: &K) {
        if let (Ok(shape), Some(uid)) = (serde_json::to_value(wanted), answer.uid()) {
            self.lock().insert(uid, (hash(&shape), mark(answer)));
        }
    }

    /// An object is gone.
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

/// What is one value, however many keys it has: a key more selects other pods.
const WHOLE: [&str; 3] = ["selector", "matchLabels", "nodeSelector"];

/// Whether `live` holds all of `wanted`: every key, every element in its place. What is empty may be absent.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, value)| match live.get(key) {
            Some(there) if WHOLE.contains(&key.as_str()) => there == value,
            Some(there) => holds(there, value),
            None => is_empty(value),
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
        }
        (live, wanted) => live == wanted,
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
        let wanted = json!({"spec": {"ports": [{"name": "valkey", "port": 6379}], "extra": {}}});
        let live =
            json!({"spec": {"ports": [{"name": "valkey", "port": 6379, "protocol": "TCP"}], "type": "ClusterIP"}});
        assert!(holds(&live, &wanted));
        let edited = json!({"spec": {"ports": [{"name": "valkey", "port": 6380, "protocol": "TCP"}]}});
        assert!(!holds(&edited, &wanted));
        let added = json!({"spec": {"ports": [{"name": "valkey", "port": 6379}, {"port": 1}]}});
        assert!(!holds(&added, &wanted), "an element more is an edit");
        let wanted = json!({"spec": {"selector": {"a": "1"}}, "metadata": {"labels": {"a": "1"}}});
        let labelled = json!({"spec": {"selector": {"a": "1"}}, "metadata": {"labels": {"a": "1", "b": "2"}}});
        assert!(holds(&labelled, &wanted), "others may label what is ours");
        let narrowed = json!({"spec": {"selector": {"a": "1", "b": "2"}}, "metadata": {"labels": {"a": "1"}}});
        assert!(!holds(&narrowed, &wanted), "a key more selects other pods");
    }
}
