//! Rules for services, claims, secrets, config maps, budgets, leases, roles and storage classes.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::container::{not_negative, parsed, port_name, port_number, port_reference};
use super::pod::{list, needs_one_of, one_of};
use super::{field, names};
use crate::status::Cause;

/// What a config map or a secret may hold.
const MOST_DATA: usize = 1024 * 1024;
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

pub(super) fn service(object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let kind = spec["type"].as_str().unwrap_or_default();
    let address = |service: &Value| service["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    if let Some(old) = old {
        let (was, is) = (address(old), address(object));
        let lasting = kind != "ExternalName" && old["spec"]["type"] != json!("ExternalName");
        if lasting && !was.is_empty() && !is.is_empty() && was != is {
            errors.push(field::invalid(
                "spec.clusterIPs[0]",
                &json!([is]),
                "may not change once set",
            ));
        }
        if kind != "LoadBalancer" && !list(&object["status"]["loadBalancer"]["ingress"]).is_empty() {
            let word = "may only be used when `spec.type` is 'LoadBalancer'";
            errors.push(field::forbidden("status.loadBalancer.ingress", word));
        }
    }
    let headless = spec["clusterIP"] == json!("None");
    if list(&spec["ports"]).is_empty() && !headless && kind != "ExternalName" {
        errors.push(field::required("spec.ports", ""));
    }
    if kind == "ExternalName" && spec["externalName"].as_str().unwrap_or_default().is_empty() {
        errors.push(field::required("spec.externalName", ""));
    }
    if headless && ["NodePort", "LoadBalancer"].contains(&kind) {
        let word = format!("may not be set to 'None' for {kind} services");
        errors.push(field::invalid("spec.clusterIPs[0]", &json!("None"), &word));
    }
    let several = list(&spec["ports"]).len() > 1;
    let mut seen = Vec::new();
    for (index, port) in list(&spec["ports"]).iter().enumerate() {
        let at = format!("spec.ports[{index}]");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() && several {
            errors.push(field::required(&format!("{at}.name"), ""));
        } else if !name.is_empty() {
            names::reject(&format!("{at}.name"), name, &names::label(name), errors);
            if seen.contains(&name) {
                errors.push(field::duplicate(&format!("{at}.name"), &json!(name)));
            }
            seen.push(name);
        }
        port_number(&format!("{at}.port"), port["port"].as_i64().unwrap_or_default(), errors);
        one_of(
            &format!("{at}.protocol"),
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            errors,
        );
        match &port["targetPort"] {
            Value::String(name) => names::reject(&format!("{at}.targetPort"), name, &port_name(name), errors),
            other => port_reference(&format!("{at}.targetPort"), other, errors),
        }
    }
    repeated_ports(list(&spec["ports"]), errors);
    names::labels("spec.selector", &spec["selector"], errors);
    one_of(
        "spec.sessionAffinity",
        &spec["sessionAffinity"],
        &["ClientIP", "None"],
        errors,
    );
    one_of(
        "spec.type",
        &spec["type"],
        &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"],
        errors,
    );
    let address = spec["clusterIP"].as_str().filter(|a| !a.is_empty() && *a != "None");
    if let Some(address) = address.filter(|address| address.parse::<IpAddr>().is_err()) {
        let word = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        errors.push(field::invalid("spec.clusterIPs[0]", &json!(address), word));
    }
}

fn repeated_ports(ports: &[Value], errors: &mut Vec<Cause>) {
    for (index, port) in ports.iter().enumerate() {
        let same = |other: &Value| other["port"] == port["port"] && other["protocol"] == port["protocol"];
        if ports[..index].iter().any(same) {
            let printed = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            let mut cause = field::duplicate(&format!("spec.ports[{index}]"), &json!(""));
            cause.message = format!("Duplicate value: {printed}");
            errors.push(cause);
        }
    }
}

pub(super) fn claim(object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if list(&spec["accessModes"]).is_empty() {
        errors.push(field::required(
            "spec.accessModes",
            "at least 1 access mode is required",
        ));
    }
    for mode in list(&spec["accessModes"]) {
        let modes = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
        one_of("spec.accessModes", mode, &modes, errors);
    }
    let storage = &spec["resources"]["requests"]["storage"];
    match parsed(storage) {
        None => errors.push(field::required("spec.resources[storage]", "")),
        Some(amount) if amount.signum() <= 0 => {
            errors.push(field::invalid(
                "spec.resources[storage]",
                storage,
                "must be greater than zero",
            ));
        }
        Some(_) => {}
    }
    let Some(old) = old else { return };
    let before = &old["spec"];
    let bound = old["status"]["phase"] == json!("Bound");
    let fixed = |spec: &Value| {
        let mut spec = spec.clone();
        if let Some(map) = spec.as_object_mut() {
            map.remove("volumeAttributesClassName");
            if before["volumeName"].is_null() {
                map.remove("volumeName");
            }
            if before["storageClassName"].is_null() {
                map.remove("storageClassName");
            }
        }
        if let Some(requests) = spec
            .pointer_mut("/resources/requests")
            .and_then(Value::as_object_mut)
            .filter(|_| bound)
        {
            requests.remove("storage");
        }
        spec
    };
    if fixed(before) != fixed(spec) {
        let word =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(field::forbidden("spec", word));
    } else if let (Some(was), Some(is)) = (parsed(&before["resources"]["requests"]["storage"]), parsed(storage)) {
        let capacity = parsed(&old["status"]["capacity"]["storage"]);
        if is < was && capacity.is_none_or(|capacity| is <= capacity) {
            let word = "field can not be less than status.capacity";
            errors.push(field::forbidden("spec.resources.requests.storage", word));
        }
    }
}

pub(super) fn config_map(object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    immutable(object, old, &["data", "binaryData"], errors);
    names::config_keys("data", &object["data"], errors);
    names::config_keys("binaryData", &object["binaryData"], errors);
    let texts = object["data"].as_object().into_iter().flatten();
    let size: usize = texts.map(|(_, text)| text.as_str().map_or(0, str::len)).sum();
    if size + decoded_size(&object["binaryData"]) > MOST_DATA {
        errors.push(field::too_long("[]", MOST_DATA as u64));
    }
}

/// How many bytes the base64 in a map stands for.
fn decoded_size(data: &Value) -> usize {
    let size = |text: &str| (text.len() / 4 * 3).saturating_sub(text.len() - text.trim_end_matches('=').len());
    data.as_object()
        .into_iter()
        .flatten()
        .map(|(_, text)| text.as_str().map_or(0, size))
        .sum()
}

pub(super) fn secret(object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    if old.is_some_and(|old| old["type"] != object["type"]) {
        errors.push(field::invalid("type", &object["type"], "field is immutable"));
    }
    immutable(object, old, &["data"], errors);
    names::config_keys("data", &object["data"], errors);
    if decoded_size(&object["data"]) > MOST_DATA {
        errors.push(field::too_long("data", MOST_DATA as u64));
    }
    let needed: &[&str] = match object["type"].as_str() {
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        _ => &[],
    };
    for key in needed {
        if object["data"].get(key).is_none() {
            errors.push(field::required(&format!("data[{key}]"), ""));
        }
    }
}

fn immutable(object: &Value, old: Option<&Value>, fields: &[&str], errors: &mut Vec<Cause>) {
    let Some(old) = old.filter(|old| old["immutable"] == json!(true)) else {
        return;
    };
    if object["immutable"] != json!(true) {
        errors.push(field::forbidden("immutable", IMMUTABLE));
    }
    for name in fields {
        if old.get(*name) != object.get(*name) {
            errors.push(field::forbidden(name, IMMUTABLE));
        }
    }
}

pub(super) fn budget(object: &Value, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let selector = if spec["selector"].is_null() {
            "null".to_owned()
        } else {
            spec["selector"].to_string()
        };
        let printed = format!(
            "{{\"MinAvailable\":{},\"Selector\":{selector},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            spec["minAvailable"], spec["maxUnavailable"], spec["unhealthyPodEvictionPolicy"]
        );
        errors.push(field::invalid_printed(
            "spec",
            &printed,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let (path, value) = (format!("spec.{name}"), &spec[name]);
        not_negative(&path, value, errors);
        let Some(text) = value.as_str() else { continue };
        match text.strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok()) {
            Some(percent) if percent > 100 => {
                errors.push(field::invalid(&path, value, "must not be greater than 100%"));
            }
            Some(_) => {}
            None => {
                let word = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.push(field::invalid(&path, value, word));
            }
        }
    }
}

pub(super) fn lease(object: &Value, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds <= 0)
    {
        errors.push(field::invalid(
            "spec.leaseDurationSeconds",
            &spec["leaseDurationSeconds"],
            "must be greater than 0",
        ));
    }
    not_negative("spec.leaseTransitions", &spec["leaseTransitions"], errors);
}

pub(super) fn role(object: &Value, namespaced: bool, errors: &mut Vec<Cause>) {
    for (index, rule) in list(&object["rules"]).iter().enumerate() {
        let at = format!("rules[{index}]");
        if list(&rule["verbs"]).is_empty() {
            errors.push(field::required(
                &format!("{at}.verbs"),
                "verbs must contain at least one value",
            ));
        }
        let urls = list(&rule["nonResourceURLs"]);
        if !urls.is_empty() {
            if namespaced {
                let word = "namespaced rules cannot apply to non-resource URLs";
                errors.push(field::invalid(
                    &format!("{at}.nonResourceURLs"),
                    &rule["nonResourceURLs"],
                    word,
                ));
            }
            continue;
        }
        for (name, word) in [("apiGroups", "api group"), ("resources", "resource")] {
            if list(&rule[name]).is_empty() {
                let detail = format!("resource rules must supply at least one {word}");
                errors.push(field::required(&format!("{at}.{name}"), &detail));
            }
        }
    }
}

pub(super) fn binding(object: &Value, old: Option<&Value>, namespaced: bool, errors: &mut Vec<Cause>) {
    let role = &object["roleRef"];
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    needs_one_of("roleRef.kind", &role["kind"], kinds, errors);
    if role["name"].as_str().unwrap_or_default().is_empty() {
        errors.push(field::required("roleRef.name", ""));
    }
    for (index, subject) in list(&object["subjects"]).iter().enumerate() {
        let at = format!("subjects[{index}]");
        if subject["name"].as_str().unwrap_or_default().is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        }
        needs_one_of(
            &format!("{at}.kind"),
            &subject["kind"],
            &["ServiceAccount", "User", "Group"],
            errors,
        );
        let unplaced = subject["namespace"].as_str().unwrap_or_default().is_empty();
        if !namespaced && subject["kind"] == json!("ServiceAccount") && unplaced {
            errors.push(field::required(&format!("{at}.namespace"), ""));
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        let printed = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}",
            role["apiGroup"], role["kind"], role["name"]
        );
        errors.push(field::invalid_printed("roleRef", &printed, "cannot change roleRef"));
    }
}

pub(super) fn storage_class(object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    if object["provisioner"].as_str().unwrap_or_default().is_empty() {
        errors.push(field::required("provisioner", ""));
    }
    one_of("reclaimPolicy", &object["reclaimPolicy"], &["Delete", "Retain"], errors);
    one_of(
        "volumeBindingMode",
        &object["volumeBindingMode"],
        &["Immediate", "WaitForFirstConsumer"],
        errors,
    );
    let Some(old) = old else { return };
    for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        if old.get(name) != object.get(name) {
            errors.push(field::forbidden(name, &format!("updates to {name} are forbidden.")));
        }
    }
}
