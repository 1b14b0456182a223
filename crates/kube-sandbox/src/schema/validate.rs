//! Validates the shape of a value against its schema, with the real server's error messages.
//!
//! What an update does not touch is not checked again ("ratcheting"): an object stored under older rules can still be
//! changed elsewhere.

use serde_json::{Number, Value, json};

use super::correlate;
use super::formats;
use super::limits::Limits;
use super::node::{Node, Type};
use crate::status::Cause;
use crate::validation::field;

/// All errors of a value at `path`.
pub(super) fn validate(node: &Node, value: &Value, old: Option<&Value>, path: &str) -> Vec<Cause> {
    let mut errors = Vec::new();
    walk(node, value, old, path, &mut errors);
    errors
}

fn walk(node: &Node, value: &Value, old: Option<&Value>, path: &str, errors: &mut Vec<Cause>) {
    if old == Some(value) {
        return;
    }
    let before = errors.len();
    check_type(node, value, path, errors);
    if value.is_null() {
        if let Some(limits) = &node.limits {
            check_choices(limits, value, path, errors);
        }
        return;
    }
    if let Some(limits) = &node.limits {
        combinations(limits, value, path, errors);
        let mistyped = errors.len() > before;
        match value {
            Value::String(text) => check_text(limits, node.kind, text, path, errors),
            Value::Number(number) if !mistyped => check_number(limits, number, path, errors),
            Value::Array(items) => check_list(limits, items, path, errors),
            Value::Object(map) => check_map(limits, map.len(), path, errors),
            _ => {}
        }
        check_choices(limits, value, path, errors);
    }
    match value {
        Value::Array(items) => {
            let Some(child) = node.item() else { return };
            for (index, item) in items.iter().enumerate() {
                let old = correlate::item(node, item, old);
                walk(child, item, old, &format!("{path}[{index}]"), errors);
            }
        }
        Value::Object(map) => {
            for (key, inner) in map {
                if let Some(child) = node.child(key) {
                    walk(
                        child,
                        inner,
                        old.and_then(|o| o.get(key)),
                        &field::child(path, key),
                        errors,
                    );
                }
            }
            for key in &node.required {
                if !map.contains_key(key.as_ref()) {
                    errors.push(field::required(&field::child(path, key), ""));
                }
            }
        }
        _ => {}
    }
}

fn check_type(node: &Node, value: &Value, path: &str, errors: &mut Vec<Cause>) {
    let found = match value {
        Value::Null if node.nullable || node.kind == Type::Any => return,
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let whole = |value: &Value| value.as_f64().is_some_and(|f| f.fract() == 0.0);
    let fits = match node.kind {
        Type::Any => true,
        Type::IntOrString => found == "integer" || found == "string" || (found == "number" && whole(value)),
        Type::Integer => found == "integer" || (found == "number" && whole(value)),
        Type::Number => found == "integer" || found == "number",
        other => other.word() == found,
    };
    if !fits {
        let expected = if node.kind == Type::IntOrString {
            "integer,string"
        } else {
            node.kind.word()
        };
        let detail = format!("{path} in body must be of type {expected}: {found:?}");
        errors.push(field::type_invalid(&nil_at_root(path), &json!(found), &detail));
    }
}

fn check_text(limits: &Limits, kind: Type, text: &str, path: &str, errors: &mut Vec<Cause>) {
    let length = text.chars().count() as u64;
    let value = json!(text);
    if let Some(most) = limits.max_length.filter(|most| length > *most) {
        errors.push(field::too_long(path, most));
    }
    if let Some(least) = limits.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        errors.push(field::invalid(path, &value, &detail));
    }
    if let Some((source, Some(pattern))) = &limits.pattern
        && !pattern.is_match(text)
    {
        errors.push(field::invalid(
            path,
            &value,
            &format!("{path} in body should match '{source}'"),
        ));
    }
    if let Some(format) = limits.format.as_deref().filter(|_| kind == Type::String)
        && !formats::matches(format, text)
    {
        let detail = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(field::type_invalid(path, &value, &detail));
    }
}

fn check_number(limits: &Limits, number: &Number, path: &str, errors: &mut Vec<Cause>) {
    let value = Value::Number(number.clone());
    let mut reject = |relation: &str, bound: &Number| {
        let detail = format!("{path} in body should be {relation} {}", plain(bound));
        errors.push(field::invalid(path, &value, &detail));
    };
    if let Some(factor) = &limits.multiple_of {
        let ratio = as_f64(number) / as_f64(factor);
        if (ratio - ratio.round()).abs() > 1e-9 {
            reject("a multiple of", factor);
        }
    }
    if let Some(most) = &limits.maximum {
        match compare(number, most) {
            std::cmp::Ordering::Greater if !limits.exclusive_maximum => reject("less than or equal to", most),
            std::cmp::Ordering::Greater | std::cmp::Ordering::Equal if limits.exclusive_maximum => {
                reject("less than", most);
            }
            _ => {}
        }
    }
    if let Some(least) = &limits.minimum {
        match compare(number, least) {
            std::cmp::Ordering::Less if !limits.exclusive_minimum => reject("greater than or equal to", least),
            std::cmp::Ordering::Less | std::cmp::Ordering::Equal if limits.exclusive_minimum => {
                reject("greater than", least);
            }
            _ => {}
        }
    }
}

fn check_list(limits: &Limits, items: &[Value], path: &str, errors: &mut Vec<Cause>) {
    let size = items.len() as u64;
    if let Some(least) = limits.min_items.filter(|least| size < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        errors.push(field::invalid(path, &json!(size), &detail));
    }
    if let Some(most) = limits.max_items.filter(|most| size > *most) {
        errors.push(field::too_many(path, items.len(), most));
    }
    if limits.unique_items && items.iter().enumerate().any(|(i, item)| items[..i].contains(item)) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        errors.push(field::invalid(path, &json!(""), &detail));
    }
}

fn check_map(limits: &Limits, size: usize, path: &str, errors: &mut Vec<Cause>) {
    if let Some(least) = limits.min_properties.filter(|least| (size as u64) < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        errors.push(field::invalid(path, &json!(size), &detail));
    }
    if let Some(most) = limits.max_properties.filter(|most| size as u64 > *most) {
        errors.push(field::too_many(path, size, most));
    }
}

fn check_choices(limits: &Limits, value: &Value, path: &str, errors: &mut Vec<Cause>) {
    let equal = |choice: &Value| choice == value || (choice.is_number() && choice.as_f64() == value.as_f64());
    if limits.choices.is_empty() || limits.choices.iter().any(equal) {
        return;
    }
    let shown = |choice: &Value| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
    let choices: Vec<String> = limits.choices.iter().map(shown).collect();
    errors.push(field::not_supported(path, value, &choices));
}

/// `anyOf`, `oneOf`, `allOf` and `not`. Errors of the alternative that came closest are reported as well.
fn combinations(limits: &Limits, value: &Value, path: &str, errors: &mut Vec<Cause>) {
    let error = |message: String| field::invalid("<nil>", &json!(""), &format!("{path:?} {message}"));
    let of = |node: &Node| validate(node, value, None, path);
    if !limits.any_of.is_empty() {
        let results: Vec<_> = limits.any_of.iter().map(|node| of(node)).collect();
        if results.iter().all(|errors| !errors.is_empty()) {
            errors.push(error("must validate at least one schema (anyOf)".to_owned()));
            errors.extend(results.into_iter().min_by_key(Vec::len).unwrap_or_default());
        }
    }
    if !limits.one_of.is_empty() {
        let results: Vec<_> = limits.one_of.iter().map(|node| of(node)).collect();
        match results.iter().filter(|errors| errors.is_empty()).count() {
            1 => {}
            0 => {
                errors.push(error(
                    "must validate one and only one schema (oneOf). Found none valid".to_owned(),
                ));
                errors.extend(results.into_iter().min_by_key(Vec::len).unwrap_or_default());
            }
            many => errors.push(error(format!(
                "must validate one and only one schema (oneOf). Found {many} valid alternatives"
            ))),
        }
    }
    if !limits.all_of.is_empty() {
        let results: Vec<_> = limits.all_of.iter().map(|node| of(node)).collect();
        let failed = results.iter().filter(|errors| !errors.is_empty()).count();
        let none = if failed == results.len() {
            ". None validated"
        } else {
            ""
        };
        errors.extend(results.into_iter().flatten());
        if failed > 0 {
            errors.push(error(format!("must validate all the schemas (allOf){none}")));
        }
    }
    if limits.not.as_deref().is_some_and(|node| of(node).is_empty()) {
        errors.push(error("must not validate the schema (not)".to_owned()));
    }
}

fn compare(a: &Number, b: &Number) -> std::cmp::Ordering {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => as_f64(a).total_cmp(&as_f64(b)),
    }
}

fn as_f64(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

/// A bound is a float in the schema; `1.0` is printed as `1`.
fn plain(number: &Number) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn nil_at_root(path: &str) -> String {
    if path.is_empty() {
        "<nil>".to_owned()
    } else {
        path.to_owned()
    }
}
