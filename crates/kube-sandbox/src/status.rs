//! Errors as a Kubernetes client receives them: a `Status` object with the real server's code, reason and message.

use serde::Serialize;
use serde_json::{Value, json};

/// The reason of an error that is answered in plain text.
pub(crate) const NO_PAGE: &str = "page not found";

/// One entry of `status.details.causes`: the field, the reason, the message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Such as `FieldValueInvalid`.
    pub reason: String,
    /// For a person.
    pub message: String,
    /// A path such as `spec.replicas`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// A request that failed, ready to be sent as a `Status`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The HTTP code.
    pub code: u16,
    /// `NotFound`, `Conflict`, `Invalid` …
    pub reason: &'static str,
    /// The sentence a person reads.
    pub message: String,
    /// `status.details`, where the real server gives them.
    pub details: Option<Value>,
    /// `metadata.continue`: the token to go on with after the one of a list expired.
    pub continue_token: Option<String>,
}

impl ApiError {
    /// An error without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// The same error about one object.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let mut details = json!({});
        for (field, text) in [("name", name), ("group", group), ("kind", kind)] {
            if !text.is_empty() {
                details[field] = json!(text);
            }
        }
        self.details = Some(details);
        self
    }

    /// 404 for one object: `pods "a" not found`.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} \"{name}\" not found", qualified(group, plural)),
        )
        .about(group, plural, name)
    }

    /// 409 on create: `pods "a" already exists`.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", qualified(group, plural)),
        )
        .about(group, plural, name)
    }

    /// 409 on a stale resourceVersion or a failed precondition.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} \"{name}\": {why}",
                qualified(group, plural)
            ),
        )
        .about(group, plural, name)
    }

    /// 422 with one cause per field. `kind` is the Kind (`Pod`), as the real server writes it.
    pub fn invalid(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let messages: Vec<String> = causes
            .iter()
            .map(|c| {
                if c.field.is_empty() {
                    c.message.clone()
                } else {
                    format!("{}: {}", c.field, c.message)
                }
            })
            .collect();
        let list = match messages.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let mut error = Self::new(
            422,
            "Invalid",
            format!("{} \"{name}\" is invalid{list}", qualified(group, kind)),
        )
        .about(group, kind, name);
        if let Some(details) = error.details.as_mut().filter(|_| !causes.is_empty()) {
            details["causes"] = json!(causes);
        }
        error
    }

    /// 400 with a message.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 410: the asked revision is compacted away.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 404 for a path nothing is served at.
    pub fn not_served() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        error.details = Some(json!({}));
        error
    }

    /// 404 outside the groups that are served: a plain line instead of a `Status`.
    pub fn no_page() -> Self {
        Self::new(404, NO_PAGE, "404 page not found\n")
    }

    /// 405 for a verb that is not served at this path.
    pub fn method_not_allowed() -> Self {
        let mut error = Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
        error.details = Some(json!({}));
        error
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

/// `deployments.apps`, or `pods` in the core group.
pub(crate) fn qualified(group: &str, name: &str) -> String {
    if group.is_empty() {
        name.to_owned()
    } else {
        format!("{name}.{group}")
    }
}
