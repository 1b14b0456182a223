//! The pages about the kinds that are written from the code: every field from the schema, every condition, reason and
//! event from its declaration.

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube_status::Reason;
use serde_json::Value;

use crate::redkey::conditions::{RedkeyCondition, RedkeyReason};
use crate::valkey::advice::Advice;
use crate::valkey::conditions::{ClusterCondition, ClusterReason};
use crate::valkey::node_conditions::NodeCondition;
use crate::{RedkeyCluster, ValkeyCluster, ValkeyNode, redkey, valkey};

/// Every field of the spec and of the status, in Markdown.
///
/// ```
/// let page = candor_api::reference::fields();
/// assert!(page.contains("| `spec.shards` | integer, 1 to 1000, required | How many shards share the slots. |"));
/// ```
pub fn fields() -> String {
    tables([
        ("ValkeyCluster: spec", ValkeyCluster::crd(), "spec"),
        ("ValkeyCluster: status", ValkeyCluster::crd(), "status"),
        ("ValkeyNode: status", ValkeyNode::crd(), "status"),
    ])
}

/// Every field of a `RedkeyCluster`, in Markdown.
///
/// ```
/// let page = candor_api::reference::redkey_fields();
/// assert!(page.contains("| `spec.ephemeral` | boolean, default `true` | Whether data lives in memory only. Immutable. |"));
/// ```
pub fn redkey_fields() -> String {
    tables([
        ("RedkeyCluster: spec", RedkeyCluster::crd(), "spec"),
        ("RedkeyCluster: status", RedkeyCluster::crd(), "status"),
    ])
}

/// A table of the fields of each part.
fn tables(parts: impl IntoIterator<Item = (&'static str, CustomResourceDefinition, &'static str)>) -> String {
    let mut out = String::new();
    for (title, crd, part) in parts {
        let crd = serde_json::to_value(crd).unwrap_or_default();
        let path = format!("/spec/versions/0/schema/openAPIV3Schema/properties/{part}");
        let schema = crd.pointer(&path).cloned().unwrap_or_default();
        let mut rows = Vec::new();
        let mut rules = Vec::new();
        walk(&schema, part, &mut rows, &mut rules);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "## {title}\n\n| field | type | meaning |\n|---|---|---|");
        for (field, kind, meaning) in rows {
            let _ = writeln!(out, "| `{field}` | {kind} | {meaning} |");
        }
        if !rules.is_empty() {
            let _ = writeln!(
                out,
                "\nRules, in the words with which the API server refuses what breaks them:\n"
            );
            for (field, message) in rules {
                let _ = writeln!(out, "- `{field}`: {message}");
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Conditions, reasons, advice and events, in Markdown.
pub fn conditions() -> String {
    let mut out = String::from("## Conditions of a ValkeyCluster\n\n");
    out.push_str(&kube_status::documentation::<ClusterCondition>());
    out.push_str("\n## Conditions of a ValkeyNode\n\n");
    out.push_str(&kube_status::documentation::<NodeCondition>());
    out.push_str("\n## What is done about each reason\n\n");
    out.push_str(&advice());
    out.push_str("\n## Events\n\n");
    out.push_str(&valkey::events::documentation());
    out
}

/// Conditions, reasons, advice and events of a `RedkeyCluster`, in Markdown.
pub fn redkey_conditions() -> String {
    let mut out = String::from("## Conditions of a RedkeyCluster\n\n");
    out.push_str(&kube_status::documentation::<RedkeyCondition>());
    out.push_str("\n## What is done about each reason\n\n");
    out.push_str(&redkey_advice());
    out.push_str("\n## Events\n\n");
    out.push_str(&redkey::events::documentation());
    out
}

/// What the operator does about each reason, and what a person should do.
pub fn advice() -> String {
    advice_of(ClusterReason::ALL, ClusterReason::advice)
}

/// The same for the reasons of a `RedkeyCluster`.
pub fn redkey_advice() -> String {
    advice_of(RedkeyReason::ALL, RedkeyReason::advice)
}

fn advice_of<R: Reason>(reasons: &[R], advice: impl Fn(R) -> Advice) -> String {
    let mut out = String::from("| Reason | The operator | A person |\n|---|---|---|\n");
    for reason in reasons {
        let advice = advice(*reason);
        let _ = writeln!(out, "| `{}` | {} | {} |", reason.name(), advice.operator, advice.person);
    }
    out
}

type Rows = Vec<(String, String, String)>;

fn walk(schema: &Value, path: &str, rows: &mut Rows, rules: &mut Vec<(String, String)>) {
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let message = rule["message"].as_str().unwrap_or_default();
        rules.push((path.to_owned(), cell(message)));
    }
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let list = field["type"] == "array";
        let path = format!("{path}.{name}{}", if list { "[]" } else { "" });
        let mut kind = kind_of(field);
        if path.starts_with("spec.") {
            kind.extend(default_of(field));
        }
        if required.contains(&name.as_str()) {
            kind.push_str(", required");
        }
        let meaning = field["description"].as_str().unwrap_or_default();
        rows.push((path.clone(), kind, cell(meaning)));
        walk(if list { &field["items"] } else { field }, &path, rows, rules);
    }
}

/// The type of a field and its bounds.
fn kind_of(field: &Value) -> String {
    if let Some(words) = field["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(|word| Some(format!("`{}`", word.as_str()?)))
            .collect();
        return words.join(" or ");
    }
    let mut kind = if field["x-kubernetes-int-or-string"] == true {
        let rule = field["x-kubernetes-validations"][0]["rule"]
            .as_str()
            .unwrap_or_default();
        let quantity = rule.contains("isQuantity");
        if quantity { "quantity" } else { "integer or string" }.to_owned()
    } else if field["x-kubernetes-preserve-unknown-fields"] == true {
        "object, as in a pod".to_owned()
    } else if field["additionalProperties"].is_object() {
        "map".to_owned()
    } else if field["type"] == "array" {
        let of = kind_of(&field["items"]);
        format!("list of {of}").replace("list of object", "list")
    } else {
        field["type"].as_str().unwrap_or("object").to_owned()
    };
    match (field["minimum"].as_f64(), field["maximum"].as_f64()) {
        (Some(least), Some(most)) => {
            let _ = write!(kind, ", {least} to {most}");
        }
        (Some(least), None) => {
            let _ = write!(kind, ", at least {least}");
        }
        _ => {}
    }
    kind
}

/// A default as it stands in the schema.
fn default_of(field: &Value) -> Option<String> {
    let default = field.get("default")?;
    match default {
        Value::Array(items) if items.is_empty() => None,
        Value::Object(fields) if fields.is_empty() => None,
        other => Some(format!(", default `{other}`")),
    }
}

/// A text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_all_its_cells() {
        for text in [advice(), fields(), redkey_advice(), redkey_fields()] {
            for row in text.lines().filter(|line| line.starts_with('|')) {
                assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{row}");
            }
        }
        assert!(advice().contains("| `PausedByUser` |"));
    }

    #[test]
    fn every_field_has_a_meaning() {
        let silent: Vec<String> = fields()
            .lines()
            .filter(|line| line.ends_with("|  |"))
            .map(str::to_owned)
            .collect();
        assert_eq!(silent, ["| `spec.containers[].name` | string, required |  |"]);
        let silent = redkey_fields().lines().filter(|line| line.ends_with("|  |")).count();
        assert_eq!(silent, 0);
    }

    #[test]
    fn rules_stand_with_their_messages() {
        let page = fields();
        assert!(page.contains("- `spec`: workloadType is immutable"), "{page}");
        assert!(page.contains("- `spec.persistence`: persistence.size may only be expanded"));
    }
}
