//! Token, access, rules and self reviews. They are answered, never stored.

use serde_json::{Value, json};

use super::api::Api;
use super::body;
use super::negotiate::Accepted;
use super::rbac::Question;
use super::respond::{self, Reply};
use super::route::RequestInfo;
use super::tokens::ISSUER;
use super::user::User;
use crate::status::{ApiError, Cause};
use bytes::Bytes;
use http::HeaderMap;

/// Group, kind, plural, whether it is asked in a namespace.
pub(super) const REVIEWS: [(&str, &str, &str, bool); 6] = [
    (
        "authentication.k8s.io",
        "SelfSubjectReview",
        "selfsubjectreviews",
        false,
    ),
    ("authentication.k8s.io", "TokenReview", "tokenreviews", false),
    (
        "authorization.k8s.io",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        true,
    ),
    (
        "authorization.k8s.io",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
        false,
    ),
    (
        "authorization.k8s.io",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
        false,
    ),
    (
        "authorization.k8s.io",
        "SubjectAccessReview",
        "subjectaccessreviews",
        false,
    ),
];

/// Whether a request is a review.
pub(super) fn find(info: &RequestInfo) -> Option<&'static str> {
    REVIEWS
        .iter()
        .find(|(group, _, plural, namespaced)| {
            *group == info.group
                && *plural == info.resource
                && info.version == "v1"
                && info.name.is_empty()
                && *namespaced != info.namespace.is_empty()
        })
        .map(|(_, kind, _, _)| *kind)
}

impl Api {
    pub(super) fn review(
        &self,
        kind: &str,
        info: &RequestInfo,
        user: &User,
        headers: &HeaderMap,
        sent: &Bytes,
    ) -> Result<Reply, ApiError> {
        if info.verb != "create" {
            return Err(ApiError::method_not_allowed());
        }
        let accepted = Accepted::of(headers, false)?;
        let mut review = body::parse(headers, kind, sent)?;
        if !review.is_object() {
            return Err(ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {kind})"
            )));
        }
        review["kind"] = json!(kind);
        review["apiVersion"] = json!(format!("{}/v1", info.group));
        if !review["metadata"].is_object() {
            review["metadata"] = json!({});
        }
        let spec = review["spec"].clone();
        review["status"] = match kind {
            "SelfSubjectReview" => json!({"userInfo": user_info(user)}),
            "TokenReview" => self.token_review(&spec)?,
            "SelfSubjectRulesReview" => self.rules_review(user, spec["namespace"].as_str().unwrap_or_default()),
            "SelfSubjectAccessReview" => self.access_review(kind, user, &spec)?,
            _ => {
                let asked = asked_user(kind, &spec)?;
                if kind == "LocalSubjectAccessReview" && spec["resourceAttributes"]["namespace"] != *info.namespace {
                    return Err(invalid(
                        kind,
                        "spec.resourceAttributes.namespace",
                        &format!(
                            "Invalid value: {}: must match metadata.namespace",
                            spec["resourceAttributes"]["namespace"]
                        ),
                    ));
                }
                self.access_review(kind, &asked, &spec)?
            }
        };
        Ok(respond::value(201, accepted, &review))
    }

    fn token_review(&self, spec: &Value) -> Result<Value, ApiError> {
        let token = spec["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::bad_request(
                "token is required for TokenReview in authentication",
            ));
        }
        let mut audiences: Vec<String> = spec["audiences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|a| a.as_str().map(str::to_owned))
            .collect();
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        Ok(match self.verify_token(token, &audiences) {
            Ok(verified) => json!({
                "authenticated": true, "user": user_info(&verified.user), "audiences": verified.audiences,
            }),
            Err(why) => json!({"user": {}, "error": why}),
        })
    }

    fn access_review(&self, kind: &str, user: &User, spec: &Value) -> Result<Value, ApiError> {
        let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        let text = |v: &Value, field: &str| v[field].as_str().unwrap_or_default().to_owned();
        let question = match (resource.is_object(), path.is_object()) {
            (true, false) => Question {
                verb: text(resource, "verb"),
                group: text(resource, "group"),
                resource: text(resource, "resource"),
                subresource: text(resource, "subresource"),
                namespace: text(resource, "namespace"),
                name: text(resource, "name"),
                path: None,
            },
            (false, true) => Question {
                verb: text(path, "verb"),
                path: Some(text(path, "path")),
                ..Question::default()
            },
            (true, true) => {
                return Err(invalid(
                    kind,
                    "spec.nonResourceAttributes",
                    "Invalid value: null: cannot be specified in combination with resourceAttributes",
                ));
            }
            (false, false) => {
                return Err(invalid(
                    kind,
                    "spec.resourceAttributes",
                    "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
                ));
            }
        };
        let decision = self.decide(user, &question);
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = json!(decision.reason);
        }
        Ok(status)
    }

    fn rules_review(&self, user: &User, namespace: &str) -> Value {
        let (paths, resources): (Vec<Value>, Vec<Value>) = self
            .rules_for(user, namespace)
            .into_iter()
            .partition(|r| r["nonResourceURLs"].is_array());
        json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
    }
}

fn asked_user(kind: &str, spec: &Value) -> Result<User, ApiError> {
    let name = spec["user"].as_str().unwrap_or_default();
    let groups: Vec<String> = spec["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|g| g.as_str().map(str::to_owned))
        .collect();
    if name.is_empty() && groups.is_empty() {
        return Err(invalid(
            kind,
            "spec.user",
            "Invalid value: \"\": at least one of user or group must be specified",
        ));
    }
    Ok(User {
        name: name.to_owned(),
        groups,
        ..User::default()
    })
}

fn invalid(kind: &str, field: &str, message: &str) -> ApiError {
    ApiError::invalid(
        "authorization.k8s.io",
        kind,
        "",
        &[Cause {
            reason: "FieldValueInvalid".into(),
            message: message.into(),
            field: field.into(),
        }],
    )
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}
