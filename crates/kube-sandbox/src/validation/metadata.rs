//! Rules for the metadata of every object.

use serde_json::{Value, json};

use super::{field, names};
use crate::status::Cause;

/// Annotations together may not be larger.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Everything wrong with the metadata of an object of `kind`, or with the change of it. The caller reports a
/// missing name, because generated names come late.
pub(super) fn check(kind: &str, custom: bool, object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    let metadata = &object["metadata"];
    let text = |field: &str| {
        metadata[field]
            .as_str()
            .filter(|text| !text.is_empty() && old.is_none())
    };
    if let Some(start) = text("generateName") {
        let wrong = name_rule(kind, custom)(&without_last_dash(start));
        names::reject("metadata.generateName", start, &wrong, errors);
    }
    if let Some(name) = text("name") {
        names::reject("metadata.name", name, &name_rule(kind, custom)(name), errors);
    }
    names::labels("metadata.labels", &metadata["labels"], errors);
    annotations(&metadata["annotations"], errors);
    owners(&metadata["ownerReferences"], errors);
    let any_finalizer = custom || matches!(kind, "Lease" | "PodDisruptionBudget");
    finalizers(&metadata["finalizers"], any_finalizer, errors);
    if let Some(old) = old {
        for name in ["name", "namespace", "uid", "creationTimestamp"] {
            let (before, after) = (&old["metadata"][name], &metadata[name]);
            if before.is_string() && after.is_string() && before != after {
                errors.push(field::invalid(&format!("metadata.{name}"), after, "field is immutable"));
            }
        }
        leaving(old, object, errors);
    }
}

/// What the names of a kind must be like.
fn name_rule(kind: &str, custom: bool) -> fn(&str) -> Vec<String> {
    match kind {
        _ if custom => names::subdomain,
        "Namespace" | "StatefulSet" => names::label,
        "Service" => names::old_label,
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" | "PodDisruptionBudget" => names::path_segment,
        _ => names::subdomain,
    }
}

/// The start of a generated name may end with a dash, because something follows it.
fn without_last_dash(start: &str) -> String {
    match start.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!(
            "{}a",
            &rest[..rest.len() - rest.chars().last().map_or(0, char::len_utf8)]
        ),
        _ => start.to_owned(),
    }
}

fn annotations(annotations: &Value, errors: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        names::reject(
            "metadata.annotations",
            key,
            &names::qualified(&key.to_lowercase()),
            errors,
        );
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MOST_ANNOTATIONS {
        errors.push(field::too_long("metadata.annotations", MOST_ANNOTATIONS as u64));
    }
}

fn owners(owners: &Value, errors: &mut Vec<Cause>) {
    let list = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    for owner in list {
        for (name, word) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[name].as_str().unwrap_or_default().is_empty() {
                errors.push(field::invalid(
                    &format!("metadata.ownerReferences.{name}"),
                    &json!(""),
                    word,
                ));
            }
        }
    }
    let controllers: Vec<&Value> = list.iter().filter(|o| o["controller"] == json!(true)).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let shown = |o: &Value| {
            format!(
                "{} {}",
                o["kind"].as_str().unwrap_or_default(),
                o["name"].as_str().unwrap_or_default()
            )
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            shown(first).replace(' ', "/"),
            shown(second).replace(' ', "/")
        );
        errors.push(field::invalid("metadata.ownerReferences", owners, &detail));
    }
}

fn finalizers(finalizers: &Value, any: bool, errors: &mut Vec<Cause>) {
    for (index, finalizer) in finalizers.as_array().into_iter().flatten().enumerate() {
        let text = finalizer.as_str().unwrap_or_default();
        names::reject("metadata.finalizers", text, &names::qualified(text), errors);
        let standard = ["orphan", "foregroundDeletion", "kubernetes"].contains(&text);
        if !any && !text.contains('/') && !standard {
            let word = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(field::invalid(
                &format!("metadata.finalizers[{index}]"),
                finalizer,
                word,
            ));
        }
    }
}

/// An object that is being deleted takes no new finalizers.
fn leaving(old: &Value, new: &Value, errors: &mut Vec<Cause>) {
    if !old["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    let set = |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let before = set(old);
    let added: Vec<Value> = set(new).into_iter().filter(|f| !before.contains(f)).collect();
    if !added.is_empty() {
        let shown: Vec<String> = added.iter().map(|f| format!("{f}")).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        );
        errors.push(field::forbidden("metadata.finalizers", &detail));
    }
}
