//! Rules for pods and pod templates; containers are in `container`.

use serde_json::{Value, json};

use super::{container, field, names};
use crate::status::Cause;

const CHANGEABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A whole pod, or the change of one.
pub(super) fn check(pod: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    let spec = &pod["spec"];
    check_spec("spec", spec, errors);
    if let Some(old) = old {
        update(&old["spec"], spec, errors);
    }
}

/// The spec of a pod or of a template at `path`.
pub(super) fn check_spec(path: &str, spec: &Value, errors: &mut Vec<Cause>) {
    let volumes = volumes(&format!("{path}.volumes"), &spec["volumes"], errors);
    if list(&spec["containers"]).is_empty() {
        errors.push(field::required(&format!("{path}.containers"), ""));
    }
    let mut seen = Vec::new();
    container::check_all(
        &format!("{path}.containers"),
        &spec["containers"],
        &volumes,
        &mut seen,
        errors,
    );
    container::check_all(
        &format!("{path}.initContainers"),
        &spec["initContainers"],
        &volumes,
        &mut seen,
        errors,
    );
    one_of(
        &format!("{path}.restartPolicy"),
        &spec["restartPolicy"],
        &["Always", "OnFailure", "Never"],
        errors,
    );
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &policies, errors);
    if spec["dnsPolicy"] == json!("None") && !spec["dnsConfig"].is_object() {
        let word = "must provide `dnsConfig` when `dnsPolicy` is None";
        errors.push(field::required(&format!("{path}.dnsConfig"), word));
    }
    names::labels(&format!("{path}.nodeSelector"), &spec["nodeSelector"], errors);
    if let Some(account) = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty()) {
        names::reject(
            &format!("{path}.serviceAccountName"),
            account,
            &names::subdomain(account),
            errors,
        );
    }
    for name in ["hostname", "subdomain"] {
        if let Some(text) = spec[name].as_str().filter(|text| !text.is_empty()) {
            names::reject(&format!("{path}.{name}"), text, &names::label(text), errors);
        }
    }
    tolerations(&format!("{path}.tolerations"), &spec["tolerations"], errors);
    spread(
        &format!("{path}.topologySpreadConstraints"),
        &spec["topologySpreadConstraints"],
        errors,
    );
}

/// One of a few words; nothing at all is left to others.
pub(super) fn one_of(path: &str, value: &Value, choices: &[&str], errors: &mut Vec<Cause>) {
    if let Some(text) = value
        .as_str()
        .filter(|text| !text.is_empty() && !choices.contains(text))
    {
        errors.push(field::not_supported(path, &json!(text), choices));
    }
}

/// The same where the field may not be left out.
pub(super) fn needs_one_of(path: &str, value: &Value, choices: &[&str], errors: &mut Vec<Cause>) {
    let text = value.as_str().unwrap_or_default();
    if !choices.contains(&text) {
        errors.push(field::not_supported(path, &json!(text), choices));
    }
}

/// The names of the volumes.
fn volumes(path: &str, volumes: &Value, errors: &mut Vec<Cause>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for (index, volume) in list(volumes).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let name = volume["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            errors.push(field::required(&format!("{at}.name"), ""));
        } else if seen.contains(&name) {
            errors.push(field::duplicate(&format!("{at}.name"), &json!(name)));
        } else {
            names::reject(&format!("{at}.name"), &name, &names::label(&name), errors);
        }
        let sources = volume
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, v)| *key != "name" && !v.is_null());
        for (extra, _) in sources.skip(1) {
            let word = "may not specify more than 1 volume type";
            errors.push(field::forbidden(&format!("{at}.{extra}"), word));
        }
        for (source, name) in [
            ("configMap", "name"),
            ("secret", "secretName"),
            ("persistentVolumeClaim", "claimName"),
        ] {
            if volume[source].is_object() && volume[source][name].as_str().unwrap_or_default().is_empty() {
                errors.push(field::required(&format!("{at}.{source}.{name}"), ""));
            }
        }
        seen.push(name);
    }
    seen
}

fn tolerations(path: &str, tolerations: &Value, errors: &mut Vec<Cause>) {
    for (index, toleration) in list(tolerations).iter().enumerate() {
        let at = format!("{path}[{index}]");
        let (key, operator) = (
            toleration["key"].as_str().unwrap_or_default(),
            toleration["operator"].as_str().unwrap_or_default(),
        );
        if !key.is_empty() {
            names::reject(&format!("{at}.key"), key, &names::qualified(key), errors);
        }
        if key.is_empty() && operator != "Exists" {
            let word = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(field::invalid(&format!("{at}.operator"), &json!(operator), word));
        }
        if !["", "Equal", "Exists"].contains(&operator) {
            errors.push(field::not_supported(
                &format!("{at}.operator"),
                &json!(operator),
                &["Equal", "Exists"],
            ));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        one_of(&format!("{at}.effect"), &toleration["effect"], &effects, errors);
    }
}

fn spread(path: &str, constraints: &Value, errors: &mut Vec<Cause>) {
    for (index, constraint) in list(constraints).iter().enumerate() {
        let at = format!("{path}[{index}]");
        if constraint["maxSkew"].as_i64().unwrap_or_default() <= 0 {
            errors.push(field::invalid(
                &format!("{at}.maxSkew"),
                &constraint["maxSkew"],
                "must be greater than zero",
            ));
        }
        if constraint["topologyKey"].as_str().unwrap_or_default().is_empty() {
            errors.push(field::required(&format!("{at}.topologyKey"), "can not be empty"));
        }
        let expected = ["DoNotSchedule", "ScheduleAnyway"];
        let when = constraint["whenUnsatisfiable"].as_str().unwrap_or_default();
        if !expected.contains(&when) {
            errors.push(field::not_supported(
                &format!("{at}.whenUnsatisfiable"),
                &json!(when),
                &expected,
            ));
        }
    }
}

/// Images, deadlines and more tolerations may change; a node is given once, by the scheduler.
fn update(old: &Value, new: &Value, errors: &mut Vec<Cause>) {
    for name in ["containers", "initContainers"] {
        if list(&old[name]).len() != list(&new[name]).len() {
            let word = "pod updates may not add or remove containers";
            errors.push(field::forbidden(&format!("spec.{name}"), word));
            return;
        }
    }
    if comparable(old) == comparable(new) && tolerated(old, new) {
        return;
    }
    errors.push(field::forbidden("spec", CHANGEABLE));
}

fn comparable(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for name in ["containers", "initContainers"] {
        for container in spec.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(map) = container.as_object_mut() {
                map.remove("image");
            }
        }
    }
    if let Some(map) = spec.as_object_mut() {
        for name in [
            "activeDeadlineSeconds",
            "tolerations",
            "schedulingGates",
            "ephemeralContainers",
        ] {
            map.remove(name);
        }
    }
    spec
}

fn tolerated(old: &Value, new: &Value) -> bool {
    list(&old["tolerations"]).iter().all(|toleration| {
        let key = |t: &Value| {
            (
                t["key"].clone(),
                t["operator"].clone(),
                t["value"].clone(),
                t["effect"].clone(),
            )
        };
        list(&new["tolerations"])
            .iter()
            .any(|other| key(other) == key(toleration))
    })
}
