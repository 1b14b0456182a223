//! Which part of the stored object a part of the new one was: by field, and in keyed lists by key.

use serde_json::Value;

use super::node::{ListKind, Node};

/// The old item of a list of type `map` with the same keys; items of other lists have no past.
pub(super) fn item<'a>(node: &Node, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    let ListKind::Map(keys) = &node.list else {
        return None;
    };
    let same = |other: &&Value| keys.iter().all(|key| other.get(key.as_ref()) == item.get(key.as_ref()));
    old?.as_array()?.iter().find(same)
}
