//! Values for fields that are missing, as a CRD's schema gives them.

use serde_json::Value;

use super::node::{Link, Node};

/// Fills in defaults. A null where null is no value counts as missing: it gets the default, or goes if there is none.
pub(super) fn default(node: &Node, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let rejected = |key: &String, inner: &Value| {
                inner.is_null()
                    && node
                        .child(key)
                        .is_some_and(|child| !child.nullable && child.default.is_none() && !child.preserve)
                    && !node.preserve
            };
            map.retain(|key, inner| !rejected(key, inner));
            for (key, child) in &node.properties {
                let child = child.node();
                let Some(default) = &child.default else { continue };
                let missing = map.get(key.as_ref()).is_none_or(|v| v.is_null() && !child.nullable);
                if missing {
                    map.insert(key.to_string(), default.clone());
                }
            }
            for (key, inner) in map.iter_mut() {
                let Some(child) = node
                    .properties
                    .get(key.as_str())
                    .or(node.additional.as_ref())
                    .map(Link::node)
                else {
                    continue;
                };
                fill_null(child, inner);
                self::default(child, inner);
            }
        }
        Value::Array(items) => {
            let Some(child) = node.item() else { return };
            for inner in items {
                fill_null(child, inner);
                self::default(child, inner);
            }
        }
        _ => {}
    }
}

fn fill_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.nullable
        && let Some(default) = &node.default
    {
        *value = default.clone();
    }
}
