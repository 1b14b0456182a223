//! Checks that the CRDs are installed and match this program.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client, ResourceExt};

use super::{Finding, Level};
use crate::commands::cluster::Kind;
use crate::commands::errors::CommandError;

/// One finding per CRD.
pub(super) async fn all(client: &Client) -> Vec<Finding> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut findings = Vec::new();
    for ours in candor_api::crds::all() {
        let name = ours.name_any();
        let what = format!("CRD {name}");
        findings.push(match api.get_opt(&name).await {
            Ok(Some(theirs)) => compare(&what, &ours, &theirs),
            // Clusters of the other kind do not need it.
            Ok(None) if ours.spec.names.kind == Kind::RedkeyCluster.name() => Finding::new(
                Level::Warning,
                &what,
                "is not installed: there can be no RedkeyCluster",
                "candor install",
            ),
            Ok(None) => Finding::new(Level::Failed, &what, "is not installed", "candor install"),
            Err(error) => Finding::new(
                Level::Warning,
                &what,
                format!("cannot be read: {}", CommandError::of(&error, "CRDs").first_line()),
                "",
            ),
        });
    }
    findings
}

/// Every field that this program knows must be in the installed schema.
fn compare(what: &str, ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Finding {
    let conditions = theirs.status.as_ref().and_then(|status| status.conditions.as_ref());
    let established =
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"));
    if !established {
        return Finding::new(
            Level::Failed,
            what,
            "is not established yet",
            "kubectl describe crd shows why",
        );
    }
    let missing = missing_fields(
        &serde_json::to_value(&ours.spec.versions).unwrap_or_default(),
        &serde_json::to_value(&theirs.spec.versions).unwrap_or_default(),
    );
    match missing.first() {
        None => Finding::ok(what, "installed"),
        Some(first) => Finding::new(
            Level::Failed,
            what,
            format!(
                "is older than this program: {first} is missing{}",
                if missing.len() > 1 { " and more" } else { "" }
            ),
            "candor install",
        ),
    }
}

/// Properties of one schema that are missing in another, by path.
fn missing_fields(ours: &serde_json::Value, theirs: &serde_json::Value) -> Vec<String> {
    fn walk(ours: &serde_json::Value, theirs: Option<&serde_json::Value>, path: &str, missing: &mut Vec<String>) {
        let Some(fields) = ours.get("properties").and_then(serde_json::Value::as_object) else {
            if let Some(items) = ours.get("items") {
                walk(items, theirs.and_then(|one| one.get("items")), path, missing);
            }
            return;
        };
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match theirs.and_then(|one| one.get("properties")?.get(name)) {
                Some(known) => walk(field, Some(known), &path, missing),
                None => missing.push(path),
            }
        }
    }
    let mut missing = Vec::new();
    let schema = |versions: &serde_json::Value| {
        versions
            .pointer("/0/schema/openAPIV3Schema")
            .cloned()
            .unwrap_or_default()
    };
    walk(&schema(ours), Some(&schema(theirs)), "", &mut missing);
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crd_without_a_known_field_is_older() {
        let ours = candor_api::crds::all().remove(0);
        let mut theirs = ours.clone();
        theirs.status =
            serde_json::from_value(serde_json::json!({"conditions": [{"type": "Established", "status": "True"}]}))
                .unwrap();
        assert_eq!(compare("d", &ours, &theirs).level, Level::Ok);
        let mut text = serde_json::to_value(&theirs).unwrap();
        let fields = text
            .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties")
            .unwrap();
        fields.as_object_mut().unwrap().remove("paused");
        let older = serde_json::from_value(text).unwrap();
        let finding = compare("d", &ours, &older);
        assert_eq!(
            (finding.level, finding.found.as_str()),
            (Level::Failed, "is older than this program: .spec.paused is missing")
        );
        theirs.status = None;
        assert_eq!(compare("d", &ours, &theirs).found, "is not established yet");
    }
}
