//! What `metadata` may hold.

use serde_json::{Value, json};

use super::field::{child, forbidden, invalid, required, too_long};
use super::names;
use crate::kinds::Kind;
use crate::status::Cause;

/// The most that all annotations of an object may weigh.
const ANNOTATIONS: usize = 256 * 1024;

/// Everything wrong with the metadata of an object, or with what an update makes of it.
pub fn check(kind: &Kind, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    match old {
        None => {
            check_name(kind, metadata, &mut causes);
            check_labels(metadata, "metadata.labels", &mut causes);
            check_annotations(metadata, &mut causes);
            check_owners(metadata, &mut causes);
            check_finalizers(kind, metadata, &mut causes);
        }
        Some(old) => {
            check_new_finalizers(metadata, &old["metadata"], &mut causes);
            check_labels(metadata, "metadata.labels", &mut causes);
            check_annotations(metadata, &mut causes);
            check_owners(metadata, &mut causes);
        }
    }
    causes
}

/// Labels, of an object or of a template.
pub fn check_labels(metadata: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        for said in names::qualified(key) {
            causes.push(invalid(path, &json!(key), &said));
        }
        for said in names::label_value(value.as_str().unwrap_or_default()) {
            causes.push(invalid(path, value, &said));
        }
    }
}

fn check_name(kind: &Kind, metadata: &Value, causes: &mut Vec<Cause>) {
    let check = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => names::service,
        ("", "namespaces") | ("apps", "statefulsets") => names::label,
        ("rbac.authorization.k8s.io", _) => names::path_segment,
        _ => names::subdomain,
    };
    if let Some(base) = metadata["generateName"].as_str().filter(|base| !base.is_empty()) {
        // The name goes on after it, so it may end with what a name may not end with.
        let masked = match base.strip_suffix('-') {
            Some(rest) if !rest.is_empty() => format!("{rest}a"),
            _ => base.to_owned(),
        };
        for said in check(&masked) {
            causes.push(invalid("metadata.generateName", &json!(base), &said));
        }
    }
    match metadata["name"].as_str().unwrap_or_default() {
        "" => causes.push(required("metadata.name", "name or generateName is required")),
        name => {
            for said in check(name) {
                causes.push(invalid("metadata.name", &json!(name), &said));
            }
        }
    }
}

fn check_annotations(metadata: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        for said in names::qualified(&key.to_lowercase()) {
            causes.push(invalid("metadata.annotations", &json!(key), &said));
        }
    }
    if size > ANNOTATIONS {
        causes.push(too_long("metadata.annotations", ANNOTATIONS as u64));
    }
}

fn check_owners(metadata: &Value, causes: &mut Vec<Cause>) {
    let mut controllers = 0;
    for (at, owner) in metadata["ownerReferences"].as_array().into_iter().flatten().enumerate() {
        let path = format!("metadata.ownerReferences[{at}]");
        for (field, said) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                causes.push(invalid(&child(&path, field), &json!(""), said));
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let said = "Only one reference can have Controller set to true";
        causes.push(invalid("metadata.ownerReferences", &metadata["ownerReferences"], said));
    }
}

fn check_finalizers(kind: &Kind, metadata: &Value, causes: &mut Vec<Cause>) {
    let finalizers = || metadata["finalizers"].as_array().into_iter().flatten();
    for finalizer in finalizers() {
        for said in names::qualified(finalizer.as_str().unwrap_or_default()) {
            causes.push(invalid("metadata.finalizers", finalizer, &said));
        }
    }
    // The groups whose validation is that of the core ask for a domain.
    if !matches!(kind.group.as_str(), "" | "apps" | "rbac.authorization.k8s.io" | "batch") {
        return;
    }
    for (at, finalizer) in finalizers().enumerate() {
        let name = finalizer.as_str().unwrap_or_default();
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let said = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(invalid(&format!("metadata.finalizers[{at}]"), finalizer, said));
        }
    }
}

/// An object that is being deleted takes no new finalizers.
fn check_new_finalizers(metadata: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if !old["deletionTimestamp"].is_string() {
        return;
    }
    let had = old["finalizers"].as_array().cloned().unwrap_or_default();
    let new: Vec<String> = metadata["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finalizer| !had.contains(finalizer))
        .map(ToString::to_string)
        .collect();
    if !new.is_empty() {
        let said = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            new.join(", ")
        );
        causes.push(forbidden("metadata.finalizers", &said));
    }
}
