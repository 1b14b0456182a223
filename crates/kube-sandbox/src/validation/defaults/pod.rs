//! Pods and pod templates.

use serde_json::{Value, json};

use super::{each, set, within};

/// A pod gets a little more than a template: requests from limits, and links to services.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = within(object, "spec") else { return };
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            requests_from_limits(container);
        }
    }
    set(spec, "enableServiceLinks", json!(true));
    pod_spec(spec);
    if let Some(status) = object.get_mut("status").filter(|s| s.is_object()) {
        set(status, "phase", json!("Pending"));
    }
}

fn requests_from_limits(container: &mut Value) {
    let Some(resources) = within(container, "resources") else {
        return;
    };
    let limits = resources
        .get("limits")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for (name, limit) in limits {
        if resources.get("requests").is_none_or(|r| !r.is_object()) {
            resources["requests"] = json!({});
        }
        set(&mut resources["requests"], &name, limit);
    }
}

/// What pods and templates share.
pub(super) fn pod_spec(spec: &mut Value) {
    if spec.is_null() {
        *spec = json!({});
    }
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "schedulerName", json!("default-scheduler"));
    same_service_account(spec);
    let host_network = spec["hostNetwork"] == json!(true);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each(spec, list) {
            self::container(container, host_network);
        }
    }
    for volume in each(spec, "volumes") {
        self::volume(volume);
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`; the server always shows both.
fn same_service_account(spec: &mut Value) {
    let name = ["serviceAccountName", "serviceAccount"].iter().find_map(|field| {
        let text = spec[*field].as_str().filter(|text| !text.is_empty());
        text.map(str::to_owned)
    });
    if let Some(name) = name {
        spec["serviceAccountName"] = json!(name);
        spec["serviceAccount"] = json!(name);
    }
}

fn container(container: &mut Value, host_network: bool) {
    let policy = if is_latest(container["image"].as_str().unwrap_or_default()) {
        "Always"
    } else {
        "IfNotPresent"
    };
    set(container, "imagePullPolicy", json!(policy));
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    for port in each(container, "ports") {
        set(port, "protocol", json!("TCP"));
        if host_network {
            let number = port["containerPort"].clone();
            set(port, "hostPort", number);
        }
    }
    for variable in each(container, "env") {
        if let Some(source) = variable.pointer_mut("/valueFrom/fieldRef").filter(|f| f.is_object()) {
            set(source, "apiVersion", json!("v1"));
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = within(container, name) {
            self::probe(probe);
        }
    }
    for hook in ["/lifecycle/postStart/httpGet", "/lifecycle/preStop/httpGet"] {
        if let Some(get) = container.pointer_mut(hook).filter(|get| get.is_object()) {
            http_get(get);
        }
    }
}

/// No tag, no digest, or the tag `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn probe(probe: &mut Value) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        set(probe, field, json!(value));
    }
    if let Some(get) = within(probe, "httpGet") {
        http_get(get);
    }
    if let Some(grpc) = within(probe, "grpc")
        && grpc.get("service").is_none_or(Value::is_null)
    {
        grpc["service"] = json!("");
    }
}

fn http_get(get: &mut Value) {
    set(get, "path", json!("/"));
    set(get, "scheme", json!("HTTP"));
}

/// Mode 0644, which every volume made of files has.
const FILE_MODE: u32 = 0o644;

fn volume(volume: &mut Value) {
    if let Some(map) = volume.as_object_mut()
        && !map.iter().any(|(key, value)| key != "name" && !value.is_null())
    {
        map.insert("emptyDir".to_owned(), json!({}));
    }
    if let Some(path) = within(volume, "hostPath")
        && path.get("type").is_none_or(Value::is_null)
    {
        path["type"] = json!("");
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        let Some(files) = within(volume, source) else { continue };
        set(files, "defaultMode", json!(FILE_MODE));
        for item in each(files, "items") {
            field_ref(item);
        }
        for part in each(files, "sources") {
            if let Some(token) = within(part, "serviceAccountToken") {
                set(token, "expirationSeconds", json!(3600));
            }
            if let Some(downward) = within(part, "downwardAPI") {
                each(downward, "items").for_each(field_ref);
            }
        }
    }
    if let Some(spec) = volume
        .pointer_mut("/ephemeral/volumeClaimTemplate/spec")
        .filter(|s| s.is_object())
    {
        set(spec, "volumeMode", json!("Filesystem"));
    }
}

fn field_ref(item: &mut Value) {
    if let Some(field) = within(item, "fieldRef") {
        set(field, "apiVersion", json!("v1"));
    }
}
