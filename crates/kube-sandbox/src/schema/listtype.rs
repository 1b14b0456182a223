//! Lists of type `set` and `map` hold no two of the same.

use serde_json::{Map, Value, json};

use super::node::{Link, ListKind, Node};
use crate::status::Cause;
use crate::validation::field;

/// Duplicates in every list below `value`.
pub(super) fn duplicates(node: &Node, value: &Value, path: &str, errors: &mut Vec<Cause>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                if let Some(child) = node.properties.get(key.as_str()) {
                    duplicates(child.node(), inner, &field::child(path, key), errors);
                } else if let Some(child) = node.additional.as_ref().map(Link::node) {
                    duplicates(child, inner, &format!("{path}[{key}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match &node.list {
                ListKind::Atomic => {}
                ListKind::Set => repeated(items, path, errors),
                ListKind::Map(keys) => keyed(keys, items, path, errors),
            }
            if let Some(child) = node.item() {
                for (index, inner) in items.iter().enumerate() {
                    duplicates(child, inner, &format!("{path}[{index}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed(keys: &[Box<str>], items: &[Value], path: &str, errors: &mut Vec<Cause>) {
    let stray = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = stray {
        let detail = "must be an object for an array of list-type map";
        errors.push(field::invalid(&format!("{path}[{index}]"), &items[index], detail));
        return;
    }
    let key_of = |item: &Value| {
        let present = keys
            .iter()
            .filter_map(|key| Some((key.to_string(), item.get(key.as_ref())?.clone())));
        Value::Object(present.collect::<Map<_, _>>())
    };
    repeated(&items.iter().map(key_of).collect::<Vec<_>>(), path, errors);
}

/// The second of equal items is reported, a third is not.
fn repeated(items: &[Value], path: &str, errors: &mut Vec<Cause>) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].iter().filter(|other| *other == item).count() == 1 {
            errors.push(field::duplicate(&format!("{path}[{index}]"), &json!(item)));
        }
    }
}
