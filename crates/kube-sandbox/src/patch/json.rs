//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386) with the real server's answers to bad ones.

use json_patch::PatchOperation;
use serde_json::{Value, json};

use crate::status::ApiError;

/// More operations than this are rejected.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a JSON patch. A `test` that fails, or a path that is not there, is 422 without saying which.
pub fn json_patch(object: &Value, patch: &Value) -> Result<Value, ApiError> {
    let Value::Array(operations) = patch else {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            go_word(patch)
        )));
    };
    if operations.len() > MOST_OPERATIONS {
        return Err(ApiError::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            ),
        ));
    }
    let mut patched = object.clone();
    for (index, operation) in operations.iter().enumerate() {
        if !operation.is_object() {
            return Err(ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
                go_word(&operations[index])
            )));
        }
        apply_one(&mut patched, operation).ok_or_else(rejected)?;
    }
    Ok(patched)
}

/// Applies a JSON merge patch: null removes, everything but objects replaces.
pub fn merge_patch(object: &Value, patch: &Value) -> Result<Value, ApiError> {
    if patch.is_null() {
        return Err(ApiError::bad_request("Invalid JSON Patch"));
    }
    if !patch.is_object() {
        return Err(ApiError::bad_request(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_word(patch)
        )));
    }
    let mut patched = object.clone();
    json_patch::merge(&mut patched, patch);
    Ok(patched)
}

/// The real server hides which operation failed.
fn rejected() -> ApiError {
    let mut error = ApiError::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(json!({}));
    error
}

/// Nothing where the operation does not apply.
fn apply_one(document: &mut Value, operation: &Value) -> Option<()> {
    let kind = operation.get("op")?.as_str()?;
    let path = operation.get("path")?.as_str()?;
    if path.is_empty() && kind != "replace" && kind != "test" {
        return None;
    }
    let path = from_the_end(document, path, kind == "add" || kind == "copy" || kind == "move");
    if kind == "test" {
        let expected = operation.get("value").unwrap_or(&Value::Null);
        let found = document.pointer(&path).unwrap_or(&Value::Null);
        return same(found, expected).then_some(());
    }
    let mut operation = operation.clone();
    operation["path"] = json!(path);
    if kind == "add" || kind == "replace" {
        operation.as_object_mut()?.entry("value").or_insert(Value::Null);
    }
    // The library the real server uses knows no missing keys of maps: they are replaced, and copied as null.
    if kind == "replace" && is_missing_key(document, &path) {
        operation["op"] = json!("add");
    }
    if let Some(from) = operation.get("from").and_then(Value::as_str) {
        let from = from_the_end(document, from, false);
        if kind == "copy" && is_missing_key(document, &from) {
            operation = json!({"op": "add", "path": path, "value": null});
        } else {
            operation["from"] = json!(from);
        }
    }
    let operation: PatchOperation = serde_json::from_value(operation).ok()?;
    json_patch::patch(document, &[operation]).ok()
}

/// Whether the path leads to a map without that key.
fn is_missing_key(document: &Value, path: &str) -> bool {
    let parent = path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    parent.is_some_and(Value::is_object) && document.pointer(path).is_none()
}

/// Numbers are the same when their values are: 1 and 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || x.as_f64() == y.as_f64(),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(k, v)| y.get(k).is_some_and(|w| same(v, w)))
        }
        _ => a == b,
    }
}

/// The server takes negative list indices, which the RFC does not know: -1 is the last item, or, when `adding`, the end.
fn from_the_end(document: &Value, path: &str, adding: bool) -> String {
    if !path.contains("/-") {
        return path.to_owned();
    }
    let mut walked = String::new();
    let tokens: Vec<&str> = path.split('/').skip(1).collect();
    for (position, token) in tokens.iter().enumerate() {
        let list = document.pointer(&walked).and_then(Value::as_array);
        let at_the_end = position + 1 == tokens.len();
        let resolved = match (list, token.parse::<i64>()) {
            (Some(list), Ok(index)) if index < 0 => {
                let length = i64::try_from(list.len()).unwrap_or(i64::MAX) + i64::from(adding && at_the_end);
                Some(length + index)
            }
            _ => None,
        };
        walked.push('/');
        match resolved {
            Some(index) => walked.push_str(&index.to_string()),
            None => walked.push_str(token),
        }
    }
    walked
}

pub(super) fn go_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_change_what_they_name() {
        let pod = json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}, "spec": {"list": [1, 2, 3]}});
        for (patch, expected) in [
            (
                json!([{"op": "add", "path": "/metadata/labels/b", "value": "2"}]),
                json!({"metadata": {"name": "a", "labels": {"x/y": "1", "b": "2"}}, "spec": {"list": [1, 2, 3]}}),
            ),
            (
                json!([{"op": "remove", "path": "/metadata/labels/x~1y"}]),
                json!({"metadata": {"name": "a", "labels": {}}, "spec": {"list": [1, 2, 3]}}),
            ),
            (
                json!([{"op": "remove", "path": "/spec/list/-1"}, {"op": "add", "path": "/spec/list/-", "value": 9}]),
                json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}, "spec": {"list": [1, 2, 9]}}),
            ),
            (
                json!([{"op": "replace", "path": "/metadata/labels", "value": {}}, {"op": "replace", "path": "/metadata/labels/b", "value": "2"}]),
                json!({"metadata": {"name": "a", "labels": {"b": "2"}}, "spec": {"list": [1, 2, 3]}}),
            ),
            (
                json!([{"op": "copy", "from": "/spec/none", "path": "/spec/list"}, {"op": "add", "path": "/l"}]),
                json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}, "spec": {"list": null}, "l": null}),
            ),
            (
                json!([{"op": "test", "path": "/spec/none", "value": null}, {"op": "move", "from": "/spec/list", "path": "/l"}]),
                json!({"metadata": {"name": "a", "labels": {"x/y": "1"}}, "spec": {}, "l": [1, 2, 3]}),
            ),
        ] {
            assert_eq!(json_patch(&pod, &patch).unwrap(), expected, "{patch}");
        }
    }

    #[test]
    fn operations_that_do_not_apply_are_422_without_a_reason() {
        let pod = json!({"spec": {"replicas": 1}});
        for patch in [
            json!([{"op": "test", "path": "/spec/replicas", "value": 2}]),
            json!([{"op": "remove", "path": "/spec/none"}]),
            json!([{"op": "replace", "path": "/none/none", "value": 1}]),
            json!([{"op": "move", "from": "/spec/none", "path": "/spec/x"}]),
            json!([{"op": "add", "path": "/none/none", "value": 1}]),
            json!([{"op": "dance", "path": "/spec"}]),
            json!([{"op": "add"}]),
            json!([{"op": "add", "path": ""}]),
        ] {
            let error = json_patch(&pod, &patch).unwrap_err();
            assert_eq!((error.code, error.reason), (422, "Invalid"), "{patch}");
        }
        assert_eq!(json_patch(&pod, &json!({})).unwrap_err().code, 400);
        assert_eq!(merge_patch(&pod, &json!([])).unwrap_err().code, 400);
    }
}
