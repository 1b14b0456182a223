//! Strategic merge patch: a merge patch that knows which lists merge by which key.

use serde_json::{Map, Value, json};

use super::order;
use crate::schema::{Node, Schema, Strategy};
use crate::status::ApiError;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch to an object of a built-in kind.
pub fn strategic_merge(object: &Value, patch: &Value, schema: &Schema) -> Result<Value, ApiError> {
    if patch.is_null() {
        return Ok(object.clone());
    }
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(ApiError::bad_request(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            super::json::go_word(patch)
        )));
    };
    merge_map(object.clone(), patch.clone(), Some(schema.root())).map(Value::Object)
}

fn merge_map(mut original: Fields, mut patch: Fields, node: Option<&Node>) -> Result<Fields, ApiError> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(without_directives(patch)),
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(&directive, patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, node)?;
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            let Value::Array(gone) = &value else {
                return Err(ApiError::bad_request("invalid patch format of primitive list"));
            };
            if let Some(Value::Array(list)) = original.get_mut(field) {
                list.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if value.is_null() {
            original.remove(&key);
            continue;
        }
        let merged = match (original.remove(&key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                if strategy(node, &key).is_some_and(|s| s.replace) {
                    Some(Value::Object(without_directives(new)))
                } else {
                    let child = node.and_then(|n| n.child(&key));
                    Some(Value::Object(merge_map(old, new, child)?))
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => Some(Value::Array(merge_list(old, new, node, &key)?)),
            (_, new) => clean(new),
        };
        if let Some(merged) = merged {
            original.insert(key, merged);
        }
    }
    Ok(original)
}

fn strategy<'a>(node: Option<&'a Node>, field: &str) -> Option<&'a Strategy> {
    node?.strategies.get(field)
}

/// `$retainKeys`: every key of the original that is not in the list goes, and the patch may name no other.
fn retain_keys(original: &mut Fields, patch: &mut Fields) -> Result<(), ApiError> {
    let Some(keys) = patch.remove(RETAIN) else {
        return Ok(());
    };
    let Value::Array(keys) = keys else {
        return Err(ApiError::bad_request("invalid patch format of retainKeys"));
    };
    let known = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    let stray = |(key, value): (&String, &Value)| !key.starts_with('$') && !value.is_null() && !known(key);
    if patch.iter().any(stray) {
        return Err(unprocessable());
    }
    original.retain(|key, _| known(key));
    Ok(())
}

/// `$setElementOrder/x`: merges list x now and puts it in the order given.
fn order_lists(original: &mut Fields, patch: &mut Fields, node: Option<&Node>) -> Result<(), ApiError> {
    let ordered: Vec<String> = patch.keys().filter(|k| k.starts_with(ORDER)).cloned().collect();
    for key in ordered {
        let Some(Value::Array(order)) = patch.remove(&key) else {
            return Err(ApiError::bad_request("invalid patch format of setElementOrder list"));
        };
        let field = &key[ORDER.len()..];
        let (old, new) = (original.remove(field), patch.remove(field));
        let server_order = old.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        let key = strategy(node, field).and_then(|s| s.key.clone());
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None | Some(Value::Null), Some(new)) => match clean(new) {
                Some(new) => new,
                None => continue,
            },
            (Some(Value::Array(old)), Some(Value::Array(new))) => Value::Array(merge_list(old, new, node, field)?),
            (Some(_), Some(new)) => new,
        };
        let Value::Array(merged) = merged else {
            if !merged.is_null() {
                original.insert(field.to_owned(), merged);
            }
            continue;
        };
        let deleted = patch.remove(&format!("{DELETE_FROM}{field}"));
        let deleted = deleted.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        let kept = merged.into_iter().filter(|item| !deleted.contains(item)).collect();
        let sorted = order::arrange(kept, &order, &server_order, key.as_deref());
        original.insert(field.to_owned(), Value::Array(sorted));
    }
    Ok(())
}

fn merge_list(old: Vec<Value>, new: Vec<Value>, node: Option<&Node>, field: &str) -> Result<Vec<Value>, ApiError> {
    let Some(strategy) = strategy(node, field).filter(|s| s.merge) else {
        let replaced = clean(Value::Array(new));
        return Ok(replaced.and_then(|v| v.as_array().cloned()).unwrap_or_default());
    };
    let item = node.and_then(|n| n.child(field)).and_then(Node::item);
    let Some(key) = strategy.key.as_deref() else {
        let mut merged = old.clone();
        for value in &new {
            if !merged.contains(value) {
                merged.push(value.clone());
            }
        }
        return Ok(order::arrange(merged, &new, &old, None));
    };
    let (mut kept, mut additions) = (old, Vec::new());
    let mut replaced = false;
    for value in new {
        let Value::Object(mut fields) = value else {
            return Err(unprocessable());
        };
        match fields.remove(PATCH) {
            None => additions.push(fields),
            Some(directive) => match directive.as_str() {
                Some("delete") => {
                    let expected = fields.get(key).ok_or_else(|| no_merge_key(&fields, key))?;
                    kept.retain(|item| item.get(key) != Some(expected));
                }
                Some("replace") => replaced = true,
                _ => return Err(unknown_directive(&directive, fields)),
            },
        }
    }
    if replaced {
        return Ok(additions
            .into_iter()
            .map(|fields| Value::Object(without_directives(fields)))
            .collect());
    }
    let server_order = kept.clone();
    let patch_order: Vec<Value> = additions.iter().cloned().map(Value::Object).collect();
    for fields in additions {
        let expected = fields.get(key).ok_or_else(|| no_merge_key(&fields, key))?;
        let slot = kept.iter().position(|item| item.get(key) == Some(expected));
        match slot {
            Some(slot) => {
                let before = kept[slot].as_object().cloned().unwrap_or_default();
                kept[slot] = Value::Object(merge_map(before, fields, item)?);
            }
            None => kept.push(Value::Object(without_directives(fields))),
        }
    }
    Ok(order::arrange(kept, &patch_order, &server_order, Some(key)))
}

/// A value that meets nothing to merge with: its directives and nulls go; nothing is left of `$patch: delete`.
fn clean(value: Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::Object(fields) => {
            if fields.get(PATCH).and_then(Value::as_str) == Some("delete") {
                return None;
            }
            // With nothing to replace the real server drops the whole value.
            if fields.get(PATCH).and_then(Value::as_str) == Some("replace") {
                return Some(json!({}));
            }
            Some(Value::Object(without_directives(fields)))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(clean).collect())),
        scalar => Some(scalar),
    }
}

fn without_directives(fields: Fields) -> Fields {
    let directive = |key: &str| key == PATCH || key == RETAIN || key.starts_with(ORDER) || key.starts_with(DELETE_FROM);
    let kept = fields.into_iter().filter(|(key, _)| !directive(key));
    kept.filter_map(|(key, value)| clean(value).map(|value| (key, value)))
        .collect()
}

fn unprocessable() -> ApiError {
    let mut error = ApiError::new(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    error.details = Some(json!({}));
    error
}

fn no_merge_key(fields: &Fields, key: &str) -> ApiError {
    let shown = go_print(&Value::Object(fields.clone()));
    ApiError::new(
        500,
        "",
        format!("map: {shown} does not contain declared merge key: {key}"),
    )
}

fn unknown_directive(directive: &Value, mut fields: Fields) -> ApiError {
    fields.insert(PATCH.to_owned(), directive.clone());
    let shown = go_print(&Value::Object(fields));
    ApiError::new(
        500,
        "",
        format!("unknown patch type: {} in map: {shown}", go_print(directive)),
    )
}

/// A value as Go prints it with `%v`.
pub(crate) fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_print).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut keys: Vec<_> = fields.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            let shown: Vec<_> = keys.into_iter().map(|(k, v)| format!("{k}:{}", go_print(v))).collect();
            format!("map[{}]", shown.join(" "))
        }
        other => other.to_string(),
    }
}
