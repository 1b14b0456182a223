//! Rules for containers: names, ports, environment, mounts, probes, resources.

use serde_json::{Value, json};

use super::pod::{list, one_of};
use super::{field, names};
use crate::quantity::Quantity;
use crate::status::Cause;

/// The containers of one list. Names are unique over all lists of a pod.
pub(super) fn check_all(
    path: &str,
    containers: &Value,
    volumes: &[String],
    seen: &mut Vec<String>,
    errors: &mut Vec<Cause>,
) {
    for (index, container) in list(containers).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = container["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        } else {
            names::reject(&format!("{at}.name"), &name, &names::label(&name), errors);
            if seen.contains(&name) {
                errors.push(field::duplicate(&format!("{at}.name"), &json!(name)));
            }
        }
        seen.push(name);
        check(&at, container, volumes, errors);
    }
}

fn check(at: &str, container: &Value, volumes: &[String], errors: &mut Vec<Cause>) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.is_empty() {
        errors.push(field::required(&format!("{at}.image"), ""));
    } else if image.trim() != image {
        let word = "must not have leading or trailing whitespace";
        errors.push(field::invalid(&format!("{at}.image"), &json!(image), word));
    }
    ports(&format!("{at}.ports"), &container["ports"], errors);
    environment(&format!("{at}.env"), &container["env"], errors);
    mounts(
        &format!("{at}.volumeMounts"),
        &container["volumeMounts"],
        volumes,
        errors,
    );
    one_of(
        &format!("{at}.imagePullPolicy"),
        &container["imagePullPolicy"],
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
    resources(&format!("{at}.resources"), &container["resources"], errors);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[name].is_object() {
            probe(
                &format!("{at}.{name}"),
                &container[name],
                name != "readinessProbe",
                errors,
            );
        }
    }
}

fn ports(path: &str, ports: &Value, errors: &mut Vec<Cause>) {
    let mut seen = Vec::new();
    for (index, port) in list(ports).iter().enumerate() {
        let at = format!("{path}[{index}]");
        if let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) {
            names::reject(&format!("{at}.name"), name, &port_name(name), errors);
            if seen.contains(&name) {
                errors.push(field::duplicate(&format!("{at}.name"), &json!(name)));
            }
            seen.push(name);
        }
        match port["containerPort"].as_i64().unwrap_or_default() {
            0 => errors.push(field::required(&format!("{at}.containerPort"), "")),
            number => port_number(&format!("{at}.containerPort"), number, errors),
        }
        if let Some(number) = port["hostPort"].as_i64().filter(|n| *n != 0) {
            port_number(&format!("{at}.hostPort"), number, errors);
        }
        one_of(
            &format!("{at}.protocol"),
            &port["protocol"],
            &["SCTP", "TCP", "UDP"],
            errors,
        );
    }
}

/// 1 to 65535.
pub(super) fn port_number(path: &str, number: i64, errors: &mut Vec<Cause>) {
    if !(1..=65535).contains(&number) {
        errors.push(field::invalid(
            path,
            &json!(number),
            "must be between 1 and 65535, inclusive",
        ));
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push("must be no more than 15 characters".to_owned());
    }
    if !name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.chars().any(|c| c.is_ascii_alphabetic()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// A port by number or by name.
pub(super) fn port_reference(path: &str, port: &Value, errors: &mut Vec<Cause>) {
    match port {
        Value::String(name) => names::reject(path, name, &port_name(name), errors),
        other => port_number(path, other.as_i64().unwrap_or_default(), errors),
    }
}

fn environment(path: &str, variables: &Value, errors: &mut Vec<Cause>) {
    for (index, variable) in list(variables).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = variable["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        } else if !name.chars().all(|c| (' '..='~').contains(&c) && c != '=') {
            let word =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            errors.push(field::invalid(&format!("{at}.name"), &json!(name), word));
        }
        let source = &variable["valueFrom"];
        if !source.is_object() {
            continue;
        }
        let at = format!("{at}.valueFrom");
        if variable["value"].as_str().is_some_and(|value| !value.is_empty()) {
            errors.push(field::invalid(
                &at,
                &json!(""),
                "may not be specified when `value` is not empty",
            ));
        }
        if let Some(path) = source["fieldRef"]["fieldPath"]
            .as_str()
            .filter(|path| !known_field(path))
        {
            let word = format!("error converting fieldPath: field label not supported: {path}");
            errors.push(field::invalid(&format!("{at}.fieldRef.fieldPath"), &json!(path), &word));
        }
        for selector in ["configMapKeyRef", "secretKeyRef"] {
            if source[selector].is_object() && source[selector]["key"].as_str().unwrap_or_default().is_empty() {
                errors.push(field::required(&format!("{at}.{selector}.key"), ""));
            }
        }
    }
}

fn known_field(path: &str) -> bool {
    let known = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let keyed = ["metadata.labels['", "metadata.annotations['"];
    known.contains(&path)
        || keyed
            .iter()
            .any(|start| path.starts_with(start) && path.ends_with("']"))
}

fn mounts(path: &str, mounts: &Value, volumes: &[String], errors: &mut Vec<Cause>) {
    let mut seen = Vec::new();
    for (index, mount) in list(mounts).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        } else if !volumes.iter().any(|volume| volume == name) {
            errors.push(field::not_found(&format!("{at}.name"), &json!(name)));
        }
        let place = mount["mountPath"].as_str().unwrap_or_default();
        if place.is_empty() {
            errors.push(field::required(&format!("{at}.mountPath"), ""));
        } else if seen.contains(&place) {
            errors.push(field::invalid(
                &format!("{at}.mountPath"),
                &json!(place),
                "must be unique",
            ));
        }
        seen.push(place);
    }
}

fn probe(at: &str, probe: &Value, only_once: bool, errors: &mut Vec<Cause>) {
    let handlers: Vec<&str> = ["exec", "httpGet", "tcpSocket", "grpc"]
        .into_iter()
        .filter(|kind| probe[*kind].is_object())
        .collect();
    if handlers.is_empty() {
        errors.push(field::required(at, "must specify a handler type"));
    }
    for (index, kind) in handlers.into_iter().enumerate() {
        let (path, handler) = (format!("{at}.{kind}"), &probe[kind]);
        if index > 0 {
            errors.push(field::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        match kind {
            "exec" if list(&handler["command"]).is_empty() => {
                errors.push(field::required(&format!("{path}.command"), ""));
            }
            "exec" => {}
            "httpGet" if handler["path"].as_str().unwrap_or_default().is_empty() => {
                errors.push(field::required(&format!("{path}.path"), ""));
            }
            _ => port_reference(&format!("{path}.port"), &handler["port"], errors),
        }
    }
    for name in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        not_negative(&format!("{at}.{name}"), &probe[name], errors);
    }
    if only_once && probe["successThreshold"].as_i64().is_some_and(|n| n != 1) {
        errors.push(field::invalid(
            &format!("{at}.successThreshold"),
            &probe["successThreshold"],
            "must be 1",
        ));
    }
}

/// Zero or more.
pub(super) fn not_negative(path: &str, value: &Value, errors: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|number| number < 0) {
        errors.push(field::invalid(path, value, "must be greater than or equal to 0"));
    }
}

fn resources(path: &str, resources: &Value, errors: &mut Vec<Cause>) {
    for kind in ["limits", "requests"] {
        for (name, amount) in resources[kind].as_object().into_iter().flatten() {
            let at = format!("{path}.{kind}[{name}]");
            let standard =
                ["cpu", "memory", "ephemeral-storage"].contains(&name.as_str()) || name.starts_with("hugepages-");
            if !name.contains('/') && !standard {
                let messages = [
                    "must be a standard resource type or fully qualified",
                    "must be a standard resource for containers",
                ];
                errors.extend(
                    messages
                        .iter()
                        .map(|message| field::invalid(&at, &json!(name), message)),
                );
            }
            if parsed(amount).is_some_and(|quantity| quantity.signum() < 0) {
                errors.push(field::invalid(&at, amount, "must be greater than or equal to 0"));
            }
            let limit = parsed(&resources["limits"][name]);
            if kind == "requests"
                && limit
                    .zip(parsed(amount))
                    .is_some_and(|(limit, request)| request > limit)
            {
                let shown = resources["limits"][name].as_str().unwrap_or_default();
                let detail = format!("must be less than or equal to {name} limit of {shown}");
                errors.push(field::invalid(&format!("{path}.requests"), amount, &detail));
            }
        }
    }
}

pub(super) fn parsed(amount: &Value) -> Option<Quantity> {
    amount.as_str().and_then(Quantity::parse)
}
