//! Objects of built-in kinds in the form the real server gives back: fields that are always there are, empty ones that
//! are left out are.
//!
//! `zero_values.txt` has one line per definition, `Definition zero pointers`: what an empty value looks like, and which
//! scalar fields distinguish "empty" from "absent". The names are those of the table in `merging`.

use serde_json::Value;

use super::node::{Node, Type};
use crate::quantity::Quantity;

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// The lines of `zero_values.txt`: definition, zero value, fields for which zero is a value.
pub(super) fn lines() -> impl Iterator<Item = (&'static str, Value, Vec<Box<str>>)> {
    include_str!("zero_values.txt").lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, zero) = (words.next()?, serde_json::from_str(words.next()?).ok()?);
        let pointers = words
            .next()
            .unwrap_or_default()
            .split(',')
            .filter(|w| !w.is_empty())
            .map(Into::into);
        Some((name, zero, pointers.collect()))
    })
}

/// Brings an object of a built-in kind into its form.
pub(super) fn complete(node: &Node, value: &mut Value) {
    if node.name.as_deref() == Some(QUANTITY) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let Some(quantity) = Quantity::parse(&text) {
            *value = Value::String(quantity.canonical());
        }
        return;
    }
    match value {
        Value::Object(map) => {
            if node.name.is_some() {
                let always = |key: &str| node.zero.as_ref().is_some_and(|zero| zero.get(key).is_some());
                map.retain(|key, inner| always(key) || !left_out(node, key, inner));
                if let Some(Value::Object(zero)) = &node.zero {
                    for (key, empty) in zero {
                        let missing = map.get(key).is_none_or(Value::is_null);
                        if missing {
                            map.insert(key.clone(), empty.clone());
                        }
                    }
                }
            }
            for (key, inner) in map.iter_mut() {
                if let Some(child) = node.child(key) {
                    if inner.is_null() && child.kind == Type::String && node.additional.is_some() {
                        *inner = Value::String(String::new());
                    }
                    complete(child, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(child) = node.item() {
                for item in items {
                    complete(child, item);
                }
            }
        }
        _ => {}
    }
}

/// Whether a field that may be left out is empty.
fn left_out(node: &Node, key: &str, value: &Value) -> bool {
    let Some(child) = node.properties.get(key).map(super::Link::node) else {
        return false;
    };
    if child.kind == Type::Any {
        return value.is_null();
    }
    let pointer = node.pointers.iter().any(|p| p.as_ref() == key);
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag && !pointer,
        Value::Number(number) => number.as_f64() == Some(0.0) && !pointer && child.kind != Type::IntOrString,
        Value::String(text) => text.is_empty() && !pointer && child.kind != Type::IntOrString,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty() && child.additional.is_some(),
    }
}
