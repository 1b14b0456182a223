//! Parts of the spec that the API server stores without validation. They are decoded into Kubernetes types, and no
//! field is dropped silently.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Problem;

/// Decodes a preserved object. A value of the wrong type or an unknown field is an error with its path.
pub(super) fn read<T: DeserializeOwned + Serialize>(field: &str, value: &Value) -> Result<T, Problem> {
    let typed: T = serde_json::from_value(value.clone()).map_err(|error| Problem::shape(field, error.to_string()))?;
    let understood = serde_json::to_value(&typed).map_err(|error| Problem::shape(field, error.to_string()))?;
    match lost(value, &understood) {
        Some(path) => Err(Problem::shape(
            format!("{field}{path}"),
            "Kubernetes knows no such field here; check its name",
        )),
        None => Ok(typed),
    }
}

/// The path of the first field of `written` that is missing in `understood`.
fn lost(written: &Value, understood: &Value) -> Option<String> {
    match (written, understood) {
        (Value::Object(written), Value::Object(understood)) => written.iter().find_map(|(key, value)| {
            if empty(value) {
                return None;
            }
            match understood.get(key) {
                None => Some(format!(".{key}")),
                Some(kept) => lost(value, kept).map(|rest| format!(".{key}{rest}")),
            }
        }),
        (Value::Array(written), Value::Array(understood)) => {
            let pairs = written.iter().zip(understood).enumerate();
            let mut paths =
                pairs.filter_map(|(index, (value, kept))| lost(value, kept).map(|rest| format!("[{index}]{rest}")));
            paths.next()
        }
        _ => None,
    }
}

fn empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}
