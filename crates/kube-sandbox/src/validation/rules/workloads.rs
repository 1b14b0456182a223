//! Deployments, replica sets and stateful sets.

use serde_json::{Value, json};

use super::pods;
use crate::status::Cause;
use crate::validation::field::{forbidden, invalid, not_supported, required};
use crate::validation::metadata;

pub fn deployment(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    at_least_zero(spec, "replicas", causes);
    selector_and_template(spec, causes);
    let strategy = &spec["strategy"];
    match strategy["type"].as_str() {
        Some("RollingUpdate") => {}
        Some("Recreate") => {
            if !strategy["rollingUpdate"].is_null() {
                let said = "may not be specified when strategy `type` is 'Recreate'";
                causes.push(forbidden("spec.strategy.rollingUpdate", said));
            }
        }
        Some(_) => causes.push(not_supported(
            "spec.strategy.type",
            &strategy["type"],
            &["Recreate", "RollingUpdate"],
        )),
        None => {}
    }
    for field in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        at_least_zero(spec, field, causes);
    }
    if let (Some(deadline), ready) = (
        spec["progressDeadlineSeconds"].as_i64(),
        spec["minReadySeconds"].as_i64().unwrap_or(0),
    ) && deadline <= ready
    {
        let said = "must be greater than minReadySeconds";
        causes.push(invalid(
            "spec.progressDeadlineSeconds",
            &spec["progressDeadlineSeconds"],
            said,
        ));
    }
    same_selector(object, old, causes);
    status_counts(object, causes);
}

pub fn replica_set(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    at_least_zero(&object["spec"], "replicas", causes);
    at_least_zero(&object["spec"], "minReadySeconds", causes);
    selector_and_template(&object["spec"], causes);
    same_selector(object, old, causes);
    status_counts(object, causes);
}

pub fn stateful_set(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if let Some(old) = old {
        let said = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
                    'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        let free = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        if without(spec, &free) != without(&old["spec"], &free) {
            causes.push(forbidden("spec", said));
        }
        at_least_zero(spec, "replicas", causes);
        return;
    }
    match spec["podManagementPolicy"].as_str() {
        None | Some("OrderedReady" | "Parallel") => {}
        Some(_) => {
            let said = "must be 'OrderedReady' or 'Parallel'";
            causes.push(invalid("spec.podManagementPolicy", &spec["podManagementPolicy"], said));
        }
    }
    at_least_zero(spec, "replicas", causes);
    at_least_zero(spec, "minReadySeconds", causes);
    selector_and_template(spec, causes);
    status_counts(object, causes);
}

fn without(spec: &Value, fields: &[&str]) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        map.retain(|key, _| !fields.contains(&key.as_str()));
    }
    spec
}

fn at_least_zero(of: &Value, field: &str, causes: &mut Vec<Cause>) {
    if of[field].as_i64().is_some_and(|number| number < 0) {
        causes.push(invalid(
            &format!("spec.{field}"),
            &of[field],
            "must be greater than or equal to 0",
        ));
    }
}

/// Numbers of a status are never negative.
fn status_counts(object: &Value, causes: &mut Vec<Cause>) {
    for field in [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
    ] {
        let value = &object["status"][field];
        if value.as_i64().is_some_and(|number| number < 0) {
            causes.push(invalid(
                &format!("status.{field}"),
                value,
                "must be greater than or equal to 0",
            ));
        }
    }
}

fn same_selector(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    if let Some(old) = old
        && old["spec"]["selector"] != object["spec"]["selector"]
    {
        causes.push(invalid(
            "spec.selector",
            &object["spec"]["selector"],
            "field is immutable",
        ));
    }
}

fn selector_and_template(spec: &Value, causes: &mut Vec<Cause>) {
    let selector = &spec["selector"];
    let wanted = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"]
        .as_array()
        .is_some_and(|list| !list.is_empty());
    let empty = wanted.is_none_or(serde_json::Map::is_empty) && !expressions;
    if selector.is_null() {
        causes.push(required("spec.selector", ""));
    } else if empty {
        let said = "empty selector is invalid for deployment";
        causes.push(invalid("spec.selector", selector, said));
    }
    let template = &spec["template"];
    let labels = &template["metadata"]["labels"];
    let matched = wanted.is_some_and(|wanted| wanted.iter().all(|(key, value)| labels[key] == *value));
    if selector.is_null() || (!matched && !expressions) {
        let said = "`selector` does not match template `labels`";
        let shown = if labels.is_null() { json!(null) } else { labels.clone() };
        causes.push(invalid("spec.template.metadata.labels", &shown, said));
    }
    metadata::check_labels(&template["metadata"], "spec.template.labels", causes);
    pods::spec(&template["spec"], "spec.template.spec", causes);
    let restart = &template["spec"]["restartPolicy"];
    if matches!(restart.as_str(), Some("OnFailure" | "Never")) {
        causes.push(not_supported("spec.template.spec.restartPolicy", restart, &["Always"]));
    }
}
