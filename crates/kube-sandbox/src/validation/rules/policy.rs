//! Budgets, leases, roles and bindings.

use serde_json::{Value, json};

use crate::status::Cause;
use crate::validation::field::{invalid, not_supported, required};
use crate::validation::names;

pub fn budget(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let (least, most) = (&spec["minAvailable"], &spec["maxUnavailable"]);
    if !least.is_null() && !most.is_null() {
        // The real server shows its own in-memory form here.
        let shown = json!({"MinAvailable": least, "Selector": spec["selector"], "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec["unhealthyPodEvictionPolicy"]});
        causes.push(invalid(
            "spec",
            &shown,
            "minAvailable and maxUnavailable cannot be both set",
        ));
    }
    for (field, value) in [("minAvailable", least), ("maxUnavailable", most)] {
        let path = format!("spec.{field}");
        if value.as_i64().is_some_and(|number| number < 0) {
            causes.push(invalid(&path, value, "must be greater than or equal to 0"));
        }
        if let Some(text) = value.as_str() {
            let digits = text.strip_suffix('%').filter(|digits| digits.parse::<u32>().is_ok());
            match digits.and_then(|digits| digits.parse::<u32>().ok()) {
                None => causes.push(invalid(&path, value, "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')")),
                Some(percent) if percent > 100 => causes.push(invalid(&path, value, "must not be greater than 100%")),
                Some(_) => {}
            }
        }
    }
    let eviction = &spec["unhealthyPodEvictionPolicy"];
    if eviction.is_string() && !matches!(eviction.as_str(), Some("IfHealthyBudget" | "AlwaysAllow")) {
        let known = ["AlwaysAllow", "IfHealthyBudget"];
        causes.push(not_supported("spec.unhealthyPodEvictionPolicy", eviction, &known));
    }
}

pub fn lease(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"]
        .as_i64()
        .is_some_and(|seconds| seconds <= 0)
    {
        causes.push(invalid(
            "spec.leaseDurationSeconds",
            &spec["leaseDurationSeconds"],
            "must be greater than 0",
        ));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|number| number < 0) {
        let said = "must be greater than or equal to 0";
        causes.push(invalid("spec.leaseTransitions", &spec["leaseTransitions"], said));
    }
}

pub fn role(object: &Value, causes: &mut Vec<Cause>) {
    let cluster = object["metadata"]["namespace"].is_null();
    let empty = |value: &Value| value.as_array().is_none_or(Vec::is_empty);
    for (at, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        let path = format!("rules[{at}]");
        if empty(&rule["verbs"]) {
            causes.push(required(
                &format!("{path}.verbs"),
                "verbs must contain at least one value",
            ));
        }
        if !empty(&rule["nonResourceURLs"]) {
            if !cluster {
                let said = "namespaced rules cannot apply to non-resource URLs";
                causes.push(invalid(
                    &format!("{path}.nonResourceURLs"),
                    &rule["nonResourceURLs"],
                    said,
                ));
            }
            if !empty(&rule["apiGroups"]) || !empty(&rule["resources"]) || !empty(&rule["resourceNames"]) {
                let said = "rules cannot apply to both regular resources and non-resource URLs";
                causes.push(invalid(
                    &format!("{path}.nonResourceURLs"),
                    &rule["nonResourceURLs"],
                    said,
                ));
            }
            continue;
        }
        if empty(&rule["apiGroups"]) {
            causes.push(required(
                &format!("{path}.apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if empty(&rule["resources"]) {
            causes.push(required(
                &format!("{path}.resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

pub fn binding(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let role = &object["roleRef"];
    if role["apiGroup"] != GROUP {
        causes.push(not_supported("roleRef.apiGroup", &role["apiGroup"], &[GROUP]));
    }
    let known: &[&str] = if object["metadata"]["namespace"].is_null() {
        &["ClusterRole"]
    } else {
        &["ClusterRole", "Role"]
    };
    if !known.iter().any(|one| role["kind"] == *one) {
        causes.push(not_supported("roleRef.kind", &role["kind"], known));
    }
    match role["name"].as_str().unwrap_or_default() {
        "" => causes.push(required("roleRef.name", "")),
        name => {
            for said in names::path_segment(name) {
                causes.push(invalid("roleRef.name", &role["name"], &said));
            }
        }
    }
    for (at, subject) in object["subjects"].as_array().into_iter().flatten().enumerate() {
        let path = format!("subjects[{at}]");
        if subject["name"].as_str().unwrap_or_default().is_empty() {
            causes.push(required(&format!("{path}.name"), ""));
        }
        match subject["kind"].as_str() {
            Some("ServiceAccount") => {
                if subject["namespace"].as_str().unwrap_or_default().is_empty() {
                    causes.push(required(&format!("{path}.namespace"), ""));
                }
            }
            Some("User" | "Group") => {
                if subject["apiGroup"] != GROUP {
                    causes.push(not_supported(
                        &format!("{path}.apiGroup"),
                        &subject["apiGroup"],
                        &[GROUP],
                    ));
                }
            }
            _ => causes.push(not_supported(
                &format!("{path}.kind"),
                &subject["kind"],
                &["ServiceAccount", "User", "Group"],
            )),
        }
    }
    if let Some(old) = old
        && old["roleRef"] != *role
    {
        let shown = json!({"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]});
        causes.push(invalid("roleRef", &shown, "cannot change roleRef"));
    }
}
