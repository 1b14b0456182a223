//! A new list against what was cached before.

use std::collections::HashMap;
use std::sync::Arc;

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::stored::Stored;
use super::{ClusterKey, Named};

/// Whether a resource version is newer than another one of the same object. The API guarantees that resource versions
/// are numbers. If they are not, the version that arrived last counts as newer.
pub(super) fn is_newer(one: Option<&str>, other: Option<&str>) -> bool {
    let number = |version: Option<&str>| version?.parse::<u64>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one > other,
        _ => one != other,
    }
}

/// Keeps objects that are newer than the list: the response to one of the operator's own writes may have arrived while
/// the list was in progress.
pub(super) fn keep_newer<K>(before: &HashMap<ClusterKey, Named<K>>, fresh: &mut HashMap<ClusterKey, Named<K>>) {
    for (key, group) in fresh {
        for (name, object) in group {
            let known = before.get(key).and_then(|group| group.get(name));
            let newer = |known: &&Stored<K>| is_newer(known.version.as_deref(), object.version.as_deref());
            if let Some(known) = known.filter(|known| known.uid == object.uid).filter(newer) {
                *object = known.clone();
            }
        }
    }
}

/// Objects that were added, changed or deleted between two lists.
pub(super) fn differences<K: Resource + Serialize + DeserializeOwned>(
    before: &HashMap<ClusterKey, Named<K>>,
    after: &HashMap<ClusterKey, Named<K>>,
) -> Vec<Arc<K>> {
    fn in_list<'a, K>(lists: &'a HashMap<ClusterKey, Named<K>>, key: &ClusterKey, name: &str) -> Option<&'a Stored<K>> {
        lists.get(key).and_then(|group| group.get(name))
    }
    let mut changed = Vec::new();
    for (key, group) in after {
        for (name, object) in group {
            if in_list(before, key, name).is_none_or(|known| known.version != object.version) {
                changed.push(object.object());
            }
        }
    }
    for (key, group) in before {
        let gone = group.iter().filter(|(name, _)| in_list(after, key, name).is_none());
        changed.extend(gone.map(|(_, object)| object.object()));
    }
    changed
}
