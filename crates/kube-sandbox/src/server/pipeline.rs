//! What happens to an object between its decoding and its write: unknown fields, defaults, rules.

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::meta;
use crate::schema::duplicate_fields;
use crate::status::{ApiError, Cause};

/// What is done about fields nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    Ignore,
    Warn,
    Strict,
}

impl Strictness {
    fn of(call: &Call) -> Result<Self, ApiError> {
        match call.query.get("fieldValidation") {
            None | Some("Warn") => Ok(Self::Warn),
            Some("Strict") => Ok(Self::Strict),
            Some("Ignore") => Ok(Self::Ignore),
            Some(other) => Err(ApiError::invalid(
                "meta.k8s.io",
                match call.info.verb.as_str() {
                    "create" => "CreateOptions",
                    "patch" => "PatchOptions",
                    _ => "UpdateOptions",
                },
                "",
                &[Cause {
                    reason: "FieldValueNotSupported".into(),
                    message: format!(
                        "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                    ),
                    field: "fieldValidation".into(),
                }],
            )),
        }
    }
}

impl Api {
    /// Drops unknown fields, says so as the client wants it, and fills in defaults.
    pub(super) fn shape(call: &Call, value: &mut Value) -> Result<(), ApiError> {
        let strictness = Strictness::of(call)?;
        let sent = if strictness == Strictness::Strict {
            value.clone()
        } else {
            Value::Null
        };
        if let Some(error) = call.kind.schema.decode_error(value) {
            return Err(refused(call, value, &error));
        }
        let repeated = if call.info.verb == "patch" {
            Vec::new()
        } else {
            duplicate_fields(&call.body)
        };
        let mut unknown: Vec<String> = repeated
            .iter()
            .map(|path| format!("duplicate field {path:?}"))
            .collect();
        unknown.extend(
            call.kind
                .schema
                .prune(value)
                .iter()
                .map(|path| format!("unknown field {path:?}")),
        );
        match strictness {
            Strictness::Strict if !unknown.is_empty() => {
                let said = format!("strict decoding error: {}", unknown.join(", "));
                return Err(refused(call, &sent, &said));
            }
            Strictness::Warn => unknown.iter().for_each(|warning| call.warn(warning)),
            Strictness::Strict | Strictness::Ignore => {}
        }
        call.kind.schema.default(value);
        Ok(())
    }

    /// Refuses what breaks the kind's rules.
    pub(super) fn validate(call: &Call, value: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let mut causes = Vec::new();
        if old.is_none() && meta::text(value, "name").is_empty() {
            causes.push(Cause {
                reason: "FieldValueRequired".into(),
                message: "Required value: name or generateName is required".into(),
                field: "metadata.name".into(),
            });
        }
        causes.extend(call.kind.schema.validate(value, old));
        if causes.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(
            &call.kind.group,
            &call.kind.kind,
            meta::text(value, "name"),
            &causes,
        ))
    }
}

/// What cannot be decoded: a bad request, or an invalid patch.
fn refused(call: &Call, value: &Value, said: &str) -> ApiError {
    if call.info.verb != "patch" {
        return ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {said}",
            call.kind.kind, call.kind.version, call.kind.kind
        ));
    }
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {:?}: {said}", value.to_string()),
        field: "patch".into(),
    };
    ApiError::invalid("", "", "", &[cause])
}

/// `Status` of an action that answers with nothing else.
pub(super) fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}
