//! Config maps, secrets, services and claims.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::status::Cause;
use crate::validation::field::{duplicate, forbidden, invalid, not_supported, required, too_long};
use crate::validation::names;

/// The most that the data of a config map or of a secret may weigh.
const DATA: usize = 1024 * 1024;

pub fn config_map(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    frozen(object, old, &["data", "binaryData"], causes);
    let mut size = keys(object, "data", causes);
    for (key, value) in object["binaryData"].as_object().into_iter().flatten() {
        let path = format!("binaryData[{key}]");
        for said in names::data_key(key) {
            causes.push(invalid(&path, &json!(key), &said));
        }
        if !object["data"][key].is_null() {
            causes.push(invalid(&path, &json!(key), "duplicate of key present in data"));
        }
        size += value.as_str().unwrap_or_default().len() * 3 / 4;
    }
    if size > DATA {
        causes.push(too_long("", DATA as u64));
    }
}

pub fn secret(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    if let Some(old) = old
        && old["type"] != object["type"]
    {
        causes.push(invalid("type", &object["type"], "field is immutable"));
    }
    frozen(object, old, &["data"], causes);
    let size = keys(object, "data", causes) * 3 / 4;
    if size > DATA {
        causes.push(too_long("data", DATA as u64));
    }
    let wanted: &[&str] = match object["type"].as_str() {
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        _ => &[],
    };
    for key in wanted {
        if object["data"][key].is_null() {
            causes.push(required(&format!("data[{key}]"), ""));
        }
    }
}

/// What is said to be immutable stays as it is.
fn frozen(object: &Value, old: Option<&Value>, fields: &[&str], causes: &mut Vec<Cause>) {
    let said = "field is immutable when `immutable` is set";
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return;
    };
    if object["immutable"] != true {
        causes.push(forbidden("immutable", said));
    }
    for field in fields {
        if object[*field] != old[*field] {
            causes.push(forbidden(field, said));
        }
    }
}

/// Checks the keys and weighs the values.
fn keys(object: &Value, field: &str, causes: &mut Vec<Cause>) -> usize {
    let mut size = 0;
    for (key, value) in object[field].as_object().into_iter().flatten() {
        for said in names::data_key(key) {
            causes.push(invalid(&format!("{field}[{key}]"), &json!(key), &said));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    size
}

pub fn service(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or("ClusterIP");
    let headless = spec["clusterIP"] == "None";
    let ports = spec["ports"].as_array().cloned().unwrap_or_default();
    if ports.is_empty() && !headless && kind != "ExternalName" {
        causes.push(required("spec.ports", ""));
    }
    if headless && matches!(kind, "NodePort" | "LoadBalancer") {
        let said = format!("may not be set to 'None' for {kind} services");
        causes.push(invalid("spec.clusterIPs[0]", &json!("None"), &said));
    }
    let mut seen_names = HashSet::new();
    let mut seen_ports = HashSet::new();
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                causes.push(required(&format!("{path}.name"), ""));
            }
        } else {
            for said in names::label(name) {
                causes.push(invalid(&format!("{path}.name"), &port["name"], &said));
            }
            if !seen_names.insert(name) {
                causes.push(duplicate(&format!("{path}.name"), &port["name"]));
            }
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let said = "must be between 1 and 65535, inclusive";
            causes.push(invalid(&format!("{path}.port"), &json!(number), said));
        }
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        if !matches!(protocol, "TCP" | "UDP" | "SCTP") {
            causes.push(not_supported(
                &format!("{path}.protocol"),
                &port["protocol"],
                &["SCTP", "TCP", "UDP"],
            ));
        }
        if !seen_ports.insert((number, protocol)) {
            causes.push(duplicate(&path, &json!({"port": number, "protocol": protocol})));
        }
    }
    let affinity = &spec["sessionAffinity"];
    if affinity.is_string() && !matches!(affinity.as_str(), Some("None" | "ClientIP")) {
        causes.push(not_supported("spec.sessionAffinity", affinity, &["ClientIP", "None"]));
    }
    if !matches!(kind, "ClusterIP" | "NodePort" | "LoadBalancer" | "ExternalName") {
        let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
        causes.push(not_supported("spec.type", &spec["type"], &known));
    }
    if kind != "LoadBalancer"
        && object["status"]["loadBalancer"]["ingress"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
    {
        let said = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(forbidden("status.loadBalancer.ingress", said));
    }
}

pub fn claim(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let modes = spec["accessModes"].as_array().cloned().unwrap_or_default();
    if modes.is_empty() {
        causes.push(required("spec.accessModes", "at least 1 access mode is required"));
    }
    let known = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in &modes {
        if !known.iter().any(|one| mode == one) {
            causes.push(not_supported("spec.accessModes", mode, &known));
        }
    }
    if spec["resources"]["requests"]["storage"].is_null() {
        causes.push(required("spec.resources[storage]", ""));
    }
}
