//! What of two answers must be the same, and where they differ.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::server::Answer;

/// An answer without what must differ: ids, times, versions, generated names, addresses, tokens.
pub fn normal(answer: &Answer) -> Value {
    let mut body = answer.body.clone();
    clean(&mut body, "");
    serde_json::json!({
        "code": answer.code,
        "contentType": answer.content_type,
        "warnings": answer.warnings.iter().map(|w| neutral(w)).collect::<Vec<_>>(),
        "body": body,
    })
}

/// Cleans a value in place.
pub fn clean(value: &mut Value, key: &str) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                clean(value, key);
            }
            if map.get("reason") == Some(&Value::from("Invalid")) {
                order_errors(map);
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                clean(item, key);
            }
            // The real server reports some errors twice, and conflicts in the order of a Go map.
            if key == "causes" {
                let mut seen = Vec::new();
                items.retain(|item| !seen.contains(item) && (seen.push(item.clone()), true).1);
                if items.iter().all(|item| item["reason"] == "FieldManagerConflict") {
                    items.sort_by_key(ToString::to_string);
                }
            }
            // They are sorted by the second of their writing, and a sequence may cross one on either side.
            if key == "managedFields" {
                items.sort_by_key(|item| ["operation", "manager", "subresource"].map(|f| item[f].to_string()));
            }
        }
        Value::String(text) => {
            let replaced = match key {
                "uid" => Some("<uid>"),
                "resourceVersion" => Some("<version>"),
                "continue" => Some("<continue>"),
                "clusterIP" | "clusterIPs" if text != "None" => Some("<address>"),
                _ => None,
            };
            *text = match replaced {
                Some(fixed) => fixed.to_owned(),
                None => order_lines(&neutral(text)),
            };
        }
        Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => *value = Value::from("<port>"),
        _ => {}
    }
}

/// The lines of an error about an applied configuration, which come in the order of a Go map, sorted.
fn order_lines(text: &str) -> String {
    let Some((head, list)) = text
        .starts_with("failed to create typed patch object")
        .then(|| text.split_once(": errors:\n"))
        .flatten()
    else {
        return text.to_owned();
    };
    let mut lines: Vec<&str> = list.lines().collect();
    lines.sort_unstable();
    format!("{head}: errors:\n{}", lines.join("\n"))
}

/// Errors about custom objects come in the order of a Go map, the properties of their schema; these are sorted.
fn order_errors(status: &mut serde_json::Map<String, Value>) {
    let details = status.get("details").cloned().unwrap_or_default();
    let Some(causes) = details["causes"].as_array().filter(|_| details["kind"] == "Widget") else {
        return;
    };
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let mut errors: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")))
        .collect();
    let message = text(&Value::Object(status.clone()), "message");
    let Some((head, list)) = message.split_once(": [") else {
        return;
    };
    let list = list.trim_end_matches(']');
    let length: usize = errors.iter().map(String::len).sum::<usize>() + 2 * errors.len().saturating_sub(1);
    // Only where the message consists of the causes, in any order.
    if length != list.len() || !errors.iter().all(|one| list.contains(one)) {
        return;
    }
    errors.sort();
    let message = format!("{head}: [{}]", errors.join(", "));
    let mut causes = causes.clone();
    causes.sort_by_key(|cause| text(cause, "field") + &text(cause, "message"));
    status.insert("message".to_owned(), message.into());
    status["details"]["causes"] = causes.into();
}

/// Text without ids, times and generated names.
fn neutral(text: &str) -> String {
    static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
            (r"\bgen-[a-z0-9]{5}\b", "gen-<random>"),
            (r"\bBad_[a-z0-9]{5}\b", "Bad_<random>"),
            (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access-<random>"),
            (r"^(\d+[smh])+$|^<invalid>$", "<age>"),
            (r"\b(\d+):3\d{4}/(TCP|UDP|SCTP)\b", "$1:<port>/$2"),
            (
                r"\(\d+\) does not match the ResourceVersion in record \(\d+\)",
                "<versions>",
            ),
            (r"resourceVersion=\d+", "resourceVersion=<version>"),
            (r"resource version: \d+ \(\d+\)", "resource version: <version>"),
            (r"\b198\.19\.\d+\.\d+\b|\b10\.96\.\d+\.\d+\b", "<address>"),
        ]
        .into_iter()
        .filter_map(|(pattern, with)| Some((Regex::new(pattern).ok()?, with)))
        .collect()
    });
    RULES.iter().fold(text.to_owned(), |text, (rule, with)| {
        rule.replace_all(&text, *with).into_owned()
    })
}

/// One place where two values differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// `body.spec.replicas`, with list positions as `[]`.
    pub place: String,
    pub real: Option<Value>,
    pub ours: Option<Value>,
}

/// Every place where they differ.
pub fn differences(real: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("", Some(real), Some(ours), &mut found);
    found
}

fn compare(place: &str, real: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Difference>) {
    match (real, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let below = if place.is_empty() {
                    key.clone()
                } else {
                    format!("{place}.{key}")
                };
                compare(&below, a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                compare(&format!("{place}[]"), Some(a), Some(b), found);
            }
        }
        (real, ours) if real == ours => {}
        (real, ours) => found.push(Difference {
            place: place.to_owned(),
            real: real.cloned(),
            ours: ours.cloned(),
        }),
    }
}
