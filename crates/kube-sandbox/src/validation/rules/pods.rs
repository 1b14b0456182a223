//! Pods, alone or as the template of something.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::status::Cause;
use crate::validation::field::{duplicate, invalid, not_found, not_supported, required};
use crate::validation::names;

/// Everything wrong with a pod's spec.
pub fn spec(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let volumes = volumes(spec, path, causes);
    let containers = spec["containers"].as_array().cloned().unwrap_or_default();
    if containers.is_empty() {
        causes.push(required(&format!("{path}.containers"), ""));
    }
    let mut seen = HashSet::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in spec[list].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            check_container(container, &path, &volumes, causes);
            let name = container["name"].as_str().unwrap_or_default();
            if !name.is_empty() && !seen.insert(name.to_owned()) {
                causes.push(duplicate(&format!("{path}.name"), &container["name"]));
            }
        }
    }
    choice(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], causes);
    choice(
        spec,
        path,
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
        causes,
    );
    let grace = &spec["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|seconds| seconds < 0) {
        let said = "must be greater than or equal to 0";
        causes.push(invalid(&format!("{path}.terminationGracePeriodSeconds"), grace, said));
    }
}

fn choice(spec: &Value, path: &str, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    if let Some(value) = spec[field].as_str()
        && !known.contains(&value)
    {
        causes.push(not_supported(&format!("{path}.{field}"), &spec[field], known));
    }
}

fn volumes(spec: &Value, path: &str, causes: &mut Vec<Cause>) -> HashSet<String> {
    let mut seen = HashSet::new();
    for (at, volume) in spec["volumes"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        let name = volume["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(required(&format!("{path}.name"), ""));
            continue;
        }
        for said in names::label(name) {
            causes.push(invalid(&format!("{path}.name"), &volume["name"], &said));
        }
        if volume.as_object().is_none_or(|fields| fields.len() < 2) {
            causes.push(required(&path, "must specify a volume type"));
        }
        if !seen.insert(name.to_owned()) {
            causes.push(duplicate(&format!("{path}.name"), &volume["name"]));
        }
    }
    seen
}

fn check_container(container: &Value, path: &str, volumes: &HashSet<String>, causes: &mut Vec<Cause>) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(required(&format!("{path}.name"), ""));
    } else {
        for said in names::label(name) {
            causes.push(invalid(&format!("{path}.name"), &container["name"], &said));
        }
    }
    if container["image"].as_str().unwrap_or_default().is_empty() {
        causes.push(required(&format!("{path}.image"), ""));
    }
    for (at, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.ports[{at}].containerPort");
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => causes.push(required(&path, "")),
            number if !(1..=65535).contains(&number) => {
                causes.push(invalid(&path, &json!(number), "must be between 1 and 65535, inclusive"));
            }
            _ => {}
        }
    }
    for (at, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(required(&format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            causes.push(not_found(&format!("{path}.name"), &mount["name"]));
        }
        if mount["mountPath"].as_str().unwrap_or_default().is_empty() {
            causes.push(required(&format!("{path}.mountPath"), ""));
        }
    }
    choice(
        container,
        path,
        "imagePullPolicy",
        &["Always", "IfNotPresent", "Never"],
        causes,
    );
}
