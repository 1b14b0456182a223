//! Services, volumes, secrets, namespaces, network policies, bindings, CRDs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{each, set, within};

pub(super) fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "sessionAffinity", json!("None"));
    if spec["sessionAffinity"] == json!("ClientIP") {
        set(
            spec,
            "sessionAffinityConfig",
            json!({"clientIP": {"timeoutSeconds": 10800}}),
        );
    } else if spec["sessionAffinity"] == json!("None") {
        spec.as_object_mut().map(|spec| spec.remove("sessionAffinityConfig"));
    }
    set(spec, "type", json!("ClusterIP"));
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        if port
            .get("targetPort")
            .is_none_or(|p| p.is_null() || *p == json!(0) || *p == json!(""))
        {
            port["targetPort"] = number;
        }
    }
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "NodePort" || kind == "LoadBalancer" {
        set(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    if kind == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    if kind != "ExternalName" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
}

pub(super) fn claim(object: &mut Value) {
    set(object, "status", json!({}));
    set(&mut object["status"], "phase", json!("Pending"));
    if let Some(spec) = within(object, "spec") {
        set(spec, "volumeMode", json!("Filesystem"));
    }
}

pub(super) fn volume(object: &mut Value) {
    set(object, "status", json!({}));
    set(&mut object["status"], "phase", json!("Pending"));
    if let Some(spec) = within(object, "spec") {
        set(spec, "persistentVolumeReclaimPolicy", json!("Retain"));
        set(spec, "volumeMode", json!("Filesystem"));
        if let Some(path) = within(spec, "hostPath")
            && path.get("type").is_none_or(Value::is_null)
        {
            path["type"] = json!("");
        }
    }
}

pub(super) fn storage_class(object: &mut Value) {
    set(object, "reclaimPolicy", json!("Delete"));
    set(object, "volumeBindingMode", json!("Immediate"));
}

/// `stringData` is for writing only: it becomes data.
pub(super) fn secret(object: &mut Value) {
    set(object, "type", json!("Opaque"));
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(plain)) = map.remove("stringData") else {
        return;
    };
    if plain.is_empty() {
        return;
    }
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    for (key, value) in plain {
        if let Some(text) = value.as_str() {
            if !data.is_object() {
                *data = json!({});
            }
            data[key] = json!(STANDARD.encode(text));
        }
    }
}

pub(super) fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if !name.is_empty() {
        set(&mut object["metadata"], "labels", json!({}));
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
    }
    set(&mut object["status"], "phase", json!("Active"));
}

pub(super) fn endpoints(object: &mut Value) {
    for subset in each(object, "subsets") {
        for port in each(subset, "ports") {
            set(port, "protocol", json!("TCP"));
        }
    }
}

pub(super) fn endpoint_slice(object: &mut Value) {
    for port in each(object, "ports") {
        if port.get("name").is_none_or(Value::is_null) {
            port["name"] = json!("");
        }
        set(port, "protocol", json!("TCP"));
    }
}

pub(super) fn network_policy(object: &mut Value) {
    let Some(spec) = within(object, "spec") else { return };
    if spec["policyTypes"].as_array().is_none_or(Vec::is_empty) {
        let egress = spec["egress"].as_array().is_some_and(|rules| !rules.is_empty());
        spec["policyTypes"] = if egress {
            json!(["Ingress", "Egress"])
        } else {
            json!(["Ingress"])
        };
    }
    for rules in ["ingress", "egress"] {
        for rule in each(spec, rules) {
            for port in each(rule, "ports") {
                set(port, "protocol", json!("TCP"));
            }
        }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn binding(object: &mut Value) {
    if let Some(role) = within(object, "roleRef") {
        set(role, "apiGroup", json!(RBAC));
    }
    for subject in each(object, "subjects") {
        if subject["kind"] == json!("User") || subject["kind"] == json!("Group") {
            set(subject, "apiGroup", json!(RBAC));
        }
    }
}

pub(super) fn definition(object: &mut Value) {
    let Some(spec) = within(object, "spec") else { return };
    if let Some(names) = within(spec, "names") {
        let kind = names["kind"].as_str().unwrap_or_default().to_owned();
        set(names, "singular", json!(kind.to_lowercase()));
        set(names, "listKind", json!(format!("{kind}List")));
    }
    set(spec, "scope", json!(""));
    set(spec, "conversion", json!({"strategy": "None"}));
}
