//! Finds, names and removes unknown fields.

use serde_json::Value;

use super::builtin;
use super::node::{Node, Type};

/// Removes what `root` does not know from an object and returns the paths of what was removed, in the order of keys.
pub(super) fn prune(root: &Node, object: &mut Value) -> Vec<String> {
    let mut removed = Vec::new();
    if root.name.is_some() {
        walk(root, object, "", &mut removed);
    } else {
        resource(root, object, "", &mut removed);
    }
    removed
}

/// A whole object, at the root or embedded: its head is known whatever the schema says.
fn resource(node: &Node, value: &mut Value, path: &str, removed: &mut Vec<String>) {
    let Value::Object(map) = value else { return };
    let head: Vec<_> = ["apiVersion", "kind", "metadata"]
        .iter()
        .filter_map(|k| map.remove_entry(*k))
        .collect();
    walk(node, value, path, removed);
    let Value::Object(map) = value else { return };
    for (key, mut inner) in head {
        if key == "metadata" {
            let meta = builtin::definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
            walk(meta, &mut inner, &join(path, "metadata"), removed);
        }
        map.insert(key, inner);
    }
}

fn walk(node: &Node, value: &mut Value, path: &str, removed: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            let opaque = node.properties.is_empty() && node.additional.is_none() && node.name.is_some();
            if node.kind != Type::Object && !node.preserve && node.properties.is_empty() && node.additional.is_none() {
                return;
            }
            let mut unknown = Vec::new();
            // Reported in the order of the document, as a decoder meets them.
            for (key, inner) in map.iter_mut() {
                match node.child(key) {
                    Some(child) if child.embedded => resource(child, inner, &join(path, key), removed),
                    Some(child) => walk(child, inner, &join(path, key), removed),
                    None if node.preserve || opaque => {}
                    None => {
                        unknown.push(key.clone());
                        removed.push(join(path, key));
                    }
                }
            }
            for key in unknown {
                map.remove(&key);
            }
        }
        Value::Array(items) => {
            let Some(child) = node.item() else { return };
            for (index, inner) in items.iter_mut().enumerate() {
                let path = format!("{path}[{index}]");
                if child.embedded {
                    resource(child, inner, &path, removed);
                } else {
                    walk(child, inner, &path, removed);
                }
            }
        }
        _ => {}
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}
