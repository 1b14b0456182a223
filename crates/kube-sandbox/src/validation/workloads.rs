//! Rules for deployments, replica sets, stateful sets and daemon sets.

use serde_json::{Value, json};

use super::container::not_negative;
use super::pod::{check_spec, list, one_of};
use super::{field, names};
use crate::status::Cause;

const STATEFUL_SET_SPEC: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

/// A set of pods of `kind`, or the change of one.
pub(super) fn check(kind: &str, object: &Value, old: Option<&Value>, errors: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if kind == "StatefulSet" {
        stateful_strategy(spec, errors);
    }
    not_negative("spec.replicas", &spec["replicas"], errors);
    if kind != "Deployment" {
        not_negative("spec.minReadySeconds", &spec["minReadySeconds"], errors);
    }
    selector(kind, &spec["selector"], &spec["template"]["metadata"]["labels"], errors);
    names::labels("spec.template.labels", &spec["template"]["metadata"]["labels"], errors);
    let mut template = spec["template"]["spec"].clone();
    if kind == "StatefulSet" {
        let claims = list(&spec["volumeClaimTemplates"])
            .iter()
            .map(|c| json!({"name": c["metadata"]["name"], "persistentVolumeClaim": {"claimName": "x"}}));
        let mut volumes = list(&template["volumes"]).to_vec();
        volumes.extend(claims.filter(|claim| !list(&template["volumes"]).iter().any(|v| v["name"] == claim["name"])));
        template["volumes"] = Value::Array(volumes);
    }
    check_spec("spec.template.spec", &template, errors);
    if template["restartPolicy"]
        .as_str()
        .is_some_and(|policy| policy == "Never" || policy == "OnFailure")
    {
        errors.push(field::not_supported(
            "spec.template.spec.restartPolicy",
            &template["restartPolicy"],
            &["Always"],
        ));
    }
    if kind == "Deployment" {
        deployment_strategy(&spec["strategy"], errors);
        not_negative("spec.minReadySeconds", &spec["minReadySeconds"], errors);
    }
    not_negative("spec.revisionHistoryLimit", &spec["revisionHistoryLimit"], errors);
    if let Some(old) = old {
        let before = &old["spec"];
        status(kind, &object["status"], errors);
        if kind == "StatefulSet" {
            if fixed(before) != fixed(spec) {
                errors.push(field::forbidden("spec", STATEFUL_SET_SPEC));
            }
        } else if before["selector"] != spec["selector"] {
            errors.push(field::invalid("spec.selector", &spec["selector"], "field is immutable"));
        }
    }
}

/// The counts of a set: none is negative, and no part is more than the whole.
fn status(kind: &str, status: &Value, errors: &mut Vec<Cause>) {
    let parts: &[&str] = match kind {
        "StatefulSet" => &[
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ],
        "Deployment" => &["updatedReplicas", "readyReplicas", "availableReplicas"],
        _ => return,
    };
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let path = |name: &str| format!("status.{name}");
    not_negative("status.replicas", &status["replicas"], errors);
    for part in parts {
        not_negative(&path(part), &status[*part], errors);
    }
    for part in parts.iter().filter(|part| count(part) > count("replicas")) {
        let word = "cannot be greater than status.replicas";
        errors.push(field::invalid(&path(part), &json!(count(part)), word));
    }
    if count("availableReplicas") > count("readyReplicas") {
        let word = match kind {
            "StatefulSet" => "cannot be greater than status.readyReplicas",
            _ => "cannot be greater than readyReplicas",
        };
        let count = json!(count("availableReplicas"));
        errors.push(field::invalid("status.availableReplicas", &count, word));
    }
}

fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(map) = spec.as_object_mut() {
        for name in [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ] {
            map.remove(name);
        }
    }
    spec
}

fn selector(kind: &str, selector: &Value, labels: &Value, errors: &mut Vec<Cause>) {
    let noun = match kind {
        "StatefulSet" => "statefulset",
        "Deployment" => "deployment",
        "ReplicaSet" => "replicaset",
        _ => "daemonset",
    };
    let empty = |part: &Value| part.as_object().is_none_or(serde_json::Map::is_empty) && list(part).is_empty();
    if !selector.is_object() {
        errors.push(field::required("spec.selector", ""));
    } else if empty(&selector["matchLabels"]) && empty(&selector["matchExpressions"]) {
        let detail = format!("empty selector is invalid for {noun}");
        errors.push(field::invalid("spec.selector", selector, &detail));
        return;
    }
    names::labels("spec.selector.matchLabels", &selector["matchLabels"], errors);
    if !selects(selector, labels) {
        let detail = "`selector` does not match template `labels`";
        errors.push(field::invalid("spec.template.metadata.labels", labels, detail));
    }
}

/// Whether a label selector holds for labels; no selector selects nothing.
fn selects(selector: &Value, labels: &Value) -> bool {
    if !selector.is_object() {
        return false;
    }
    let by_label = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    by_label
        && list(&selector["matchExpressions"]).iter().all(|expression| {
            let found = expression["key"].as_str().and_then(|key| labels.get(key));
            let listed = found.is_some_and(|value| list(&expression["values"]).contains(value));
            match expression["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => found.is_some(),
                _ => found.is_none(),
            }
        })
}

/// A strategy as the real server prints it.
fn printed(kind: &str) -> String {
    format!("{{\"Type\":{kind:?},\"RollingUpdate\":null}}")
}

fn deployment_strategy(strategy: &Value, errors: &mut Vec<Cause>) {
    match strategy["type"].as_str() {
        Some("RollingUpdate") => {}
        Some("Recreate") => {
            if strategy["rollingUpdate"].is_object() {
                let word = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(field::forbidden("spec.strategy.rollingUpdate", word));
            }
        }
        other => {
            let mut cause = field::not_supported("spec.strategy", &json!(""), &["Recreate", "RollingUpdate"]);
            cause.message = cause.message.replacen("\"\"", &printed(other.unwrap_or_default()), 1);
            errors.push(cause);
        }
    }
}

fn stateful_strategy(spec: &Value, errors: &mut Vec<Cause>) {
    if let Some(policy) = spec["podManagementPolicy"]
        .as_str()
        .filter(|p| !["OrderedReady", "Parallel"].contains(p))
    {
        let word = "must be 'OrderedReady' or 'Parallel'";
        errors.push(field::invalid("spec.podManagementPolicy", &json!(policy), word));
    }
    let strategy = &spec["updateStrategy"];
    if let Some(kind) = strategy["type"]
        .as_str()
        .filter(|kind| !["RollingUpdate", "OnDelete"].contains(kind))
    {
        let word = "must be 'RollingUpdate' or 'OnDelete'";
        errors.push(field::invalid_printed("spec.updateStrategy", &printed(kind), word));
    }
    for name in ["whenDeleted", "whenScaled"] {
        let path = format!("spec.persistentVolumeClaimRetentionPolicy.{name}");
        one_of(
            &path,
            &spec["persistentVolumeClaimRetentionPolicy"][name],
            &["Retain", "Delete"],
            errors,
        );
    }
}
