//! Deployments, replica sets, stateful sets, daemon sets, jobs.

use serde_json::{Value, json};

use super::pod::pod_spec;
use super::{each, others, set};

fn template(spec: &mut Value) {
    if spec["template"].is_object() {
        pod_spec(&mut spec["template"]["spec"]);
    }
}

pub(super) fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    template(spec);
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    let strategy = &mut spec["strategy"];
    set(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == json!("RollingUpdate") {
        set(strategy, "rollingUpdate", json!({}));
        set(&mut strategy["rollingUpdate"], "maxUnavailable", json!("25%"));
        set(&mut strategy["rollingUpdate"], "maxSurge", json!("25%"));
    }
}

pub(super) fn replica_set(object: &mut Value) {
    template(&mut object["spec"]);
    set(&mut object["spec"], "replicas", json!(1));
}

pub(super) fn stateful_set(object: &mut Value) {
    let spec = &mut object["spec"];
    template(spec);
    set(spec, "podManagementPolicy", json!("OrderedReady"));
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    let strategy = &mut spec["updateStrategy"];
    set(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == json!("RollingUpdate") {
        set(strategy, "rollingUpdate", json!({}));
        set(&mut strategy["rollingUpdate"], "partition", json!(0));
    }
    set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    set(
        &mut spec["persistentVolumeClaimRetentionPolicy"],
        "whenDeleted",
        json!("Retain"),
    );
    set(
        &mut spec["persistentVolumeClaimRetentionPolicy"],
        "whenScaled",
        json!("Retain"),
    );
    for claim in each(spec, "volumeClaimTemplates") {
        set(claim, "apiVersion", json!("v1"));
        set(claim, "kind", json!("PersistentVolumeClaim"));
        others::claim(claim);
    }
}

pub(super) fn daemon_set(object: &mut Value) {
    let spec = &mut object["spec"];
    template(spec);
    set(spec, "revisionHistoryLimit", json!(10));
    let strategy = &mut spec["updateStrategy"];
    set(strategy, "type", json!("RollingUpdate"));
    if strategy["type"] == json!("RollingUpdate") {
        set(strategy, "rollingUpdate", json!({}));
        set(&mut strategy["rollingUpdate"], "maxUnavailable", json!(1));
        set(&mut strategy["rollingUpdate"], "maxSurge", json!(0));
    }
}

pub(super) fn job(spec: &mut Value) {
    template(spec);
    let neither = ["completions", "parallelism"]
        .iter()
        .all(|field| spec.get(*field).is_none_or(Value::is_null));
    if neither {
        set(spec, "completions", json!(1));
    }
    set(spec, "parallelism", json!(1));
    set(spec, "backoffLimit", json!(6));
    set(spec, "completionMode", json!("NonIndexed"));
    set(spec, "suspend", json!(false));
    set(spec, "podReplacementPolicy", json!("TerminatingOrFailed"));
}

pub(super) fn cron_job(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "concurrencyPolicy", json!("Allow"));
    set(spec, "suspend", json!(false));
    set(spec, "successfulJobsHistoryLimit", json!(3));
    set(spec, "failedJobsHistoryLimit", json!(1));
    if let Some(inner) = spec
        .pointer_mut("/jobTemplate/spec/template/spec")
        .filter(|s| s.is_object())
    {
        pod_spec(inner);
    }
}
