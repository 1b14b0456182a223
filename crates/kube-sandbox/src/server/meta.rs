//! Reading and writing `metadata`.

use serde_json::{Map, Value};

/// A text of `metadata`, or the empty one.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// `metadata`, made if it is missing.
pub fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    match &mut object["metadata"] {
        Value::Object(map) => map,
        // The line above put an object there.
        _ => unreachable!("metadata is an object"),
    }
}

/// Sets or removes a field of `metadata`.
pub fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) => of(object).insert(field.into(), value),
        None => of(object).remove(field),
    };
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"]
        .as_array()
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}
