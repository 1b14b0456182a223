//! Checks that the user has the permissions that this program's commands need.

use candor_operator::manifests::permissions::OF_PEOPLE;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;

use super::{Finding, Level};
use crate::commands::connect::Connected;
use crate::commands::errors::CommandError;

/// One finding for the granted permissions, and one for each missing permission.
pub(super) async fn all(at: &Connected) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed = 0;
    for rule in OF_PEOPLE {
        let (group, resource, purpose) = (rule.group, rule.resource, rule.purpose);
        for verb in rule.verbs {
            match may(at, group, resource, verb).await {
                Ok(true) => allowed += 1,
                Ok(false) => findings.push(Finding::new(
                    Level::Warning,
                    &format!("permission to {verb} {resource}"),
                    format!("is missing in namespace {}: needed for {purpose}", at.namespace),
                    format!(
                        "kubectl create role candor-{resource} -n {} --verb={verb} --resource={}",
                        at.namespace,
                        if group.is_empty() {
                            resource.to_owned()
                        } else {
                            format!("{resource}.{group}")
                        }
                    ),
                )),
                Err(error) => {
                    findings.push(Finding::new(Level::Warning, "permissions", error.to_string(), ""));
                    return findings;
                }
            }
        }
    }
    findings.insert(
        0,
        Finding::ok(
            "your permissions",
            format!(
                "{allowed} of {} in namespace {}",
                allowed + findings.len(),
                at.namespace
            ),
        ),
    );
    findings
}

async fn may(at: &Connected, group: &str, resource: &str, verb: &str) -> Result<bool, CommandError> {
    let api: Api<SelfSubjectAccessReview> = Api::all(at.client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(at.namespace.clone()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = api.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|error| CommandError::of(&error, "permissions cannot be checked"))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
