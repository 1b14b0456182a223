//! What happens to an object between its decoding and its write: unknown fields, defaults, rules.

use serde_json::{Value, json};

use super::api::{Api, Call};
use super::negotiate::content_type;
use super::patch::APPLY;
use super::{body, meta, scale, services};
use crate::patch;
use crate::schema::duplicate_fields;
use crate::status::{ApiError, Cause};

/// What is done about unknown fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strictness {
    Ignore,
    Warn,
    Strict,
}

impl Strictness {
    /// What the request asks for; other values were rejected with its options.
    fn of(call: &Call) -> Self {
        match call.query.get("fieldValidation") {
            Some("Strict") => Self::Strict,
            Some("Ignore") => Self::Ignore,
            _ => Self::Warn,
        }
    }
}

impl Api {
    /// Drops unknown fields, reports them as the client asked, and fills in defaults.
    pub(super) fn representation(call: &Call, value: &mut Value) -> Result<(), ApiError> {
        let strictness = Strictness::of(call);
        let sent = if strictness == Strictness::Strict {
            value.clone()
        } else {
            Value::Null
        };
        if let Some(error) = call.kind.schema.decode_error(value) {
            return Err(rejected(call, value, &error));
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
                let message = format!("strict decoding error: {}", unknown.join(", "));
                return Err(rejected(call, &sent, &message));
            }
            Strictness::Warn => unknown.iter().for_each(|warning| call.warn(warning)),
            Strictness::Strict | Strictness::Ignore => {}
        }
        call.kind.schema.default(value);
        if let Some(metadata) = value["metadata"].as_object_mut().filter(|_| call.kind.custom) {
            metadata.retain(|_, field| !field.is_null());
        }
        Ok(())
    }

    /// Rejects what breaks the kind's rules.
    pub(super) fn validate(call: &Call, value: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        let mut causes = Vec::new();
        if old.is_none() && meta::text(value, "name").is_empty() && !call.kind.custom {
            causes.push(Cause {
                reason: "FieldValueRequired".into(),
                message: "Required value: name or generateName is required".into(),
                field: "metadata.name".into(),
            });
        }
        if old.is_none() {
            causes.extend(services::unallocated(call, value));
        }
        causes.extend(call.kind.schema.validate(value, old));
        let rules_last = causes.last().is_some_and(|last| last.field == "<nil>");
        let place = causes.len() - usize::from(rules_last);
        causes.splice(place..place, scale_causes(call, value));
        if call.kind.custom && call.info.subresource == "status" {
            causes.iter_mut().for_each(relative_to_status);
        }
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

/// What is wrong with the numbers and the selector of a custom object that can be scaled.
fn scale_causes(call: &Call, value: &Value) -> Vec<Cause> {
    let Some(paths) = call.kind.scale.as_ref().filter(|_| call.kind.custom) else {
        return Vec::new();
    };
    let spec = Some(&paths.spec).filter(|_| call.info.subresource != "status");
    let numbers = spec.into_iter().chain([&paths.status]).filter_map(|path| {
        let found = scale::at(value, path)?;
        let message = match found {
            Value::Number(number) if number.as_i64().is_some_and(|n| n >= 0) => return None,
            Value::Number(number) if number.is_i64() => {
                format!("Invalid value: {number}: should be a non-negative integer")
            }
            other => format!("Invalid value: 0: {}", accessor_error(path, other, "int64")),
        };
        Some((path, message))
    });
    let selector = paths.selector.as_ref().and_then(|path| {
        let found = scale::at(value, path).filter(|found| !found.is_string())?;
        Some((
            path,
            format!("Invalid value: \"\": {}", accessor_error(path, found, "string")),
        ))
    });
    numbers
        .chain(selector)
        .map(|(path, message)| Cause {
            reason: "FieldValueInvalid".into(),
            message,
            field: path.clone(),
        })
        .collect()
}

fn accessor_error(path: &str, found: &Value, expected: &str) -> String {
    let kind = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let found = patch::go_format(found);
    format!("{path} accessor error: {found} is of the type {kind}, expected {expected}")
}

/// A write of the status validates the status alone, and names its fields from there.
fn relative_to_status(cause: &mut Cause) {
    if let Some(inner) = cause.field.strip_prefix("status.") {
        let whole = format!("{} in body", cause.field);
        cause.message = cause.message.replace(&whole, &format!("{inner} in body"));
    }
}

/// What cannot be decoded: a bad request, or an invalid patch.
fn rejected(call: &Call, value: &Value, message: &str) -> ApiError {
    if call.info.verb != "patch" {
        return ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {message}",
            call.kind.kind, call.kind.version, call.kind.kind
        ));
    }
    let kind = &call.kind;
    let shown = match content_type(&call.headers) {
        APPLY => {
            let full = if kind.group.is_empty() {
                format!("/{}, Kind={}", kind.version, kind.kind)
            } else {
                format!("{}, Kind={}", kind.api_version(), kind.kind)
            };
            let config = body::yaml(&call.body).unwrap_or_default();
            let (namespace, name) = (meta::text(&config, "namespace"), meta::text(&config, "name"));
            let message = format!(
                "failed to convert new object ({namespace}/{name}; {full}) to proper version: unable to convert \
                 unstructured object to {full}: {}",
                conversion_error(message)
            );
            return ApiError::new(500, "", message);
        }
        "application/strategic-merge-patch+json" => {
            let patch = call.used_patch.get().map(patch::go_format).unwrap_or_default();
            return undecodable(&patch, &conversion_error(message));
        }
        _ => value.to_string(),
    };
    undecodable(&shown, message)
}

/// 422 for a patch with a result that cannot be decoded.
fn undecodable(shown: &str, message: &str) -> ApiError {
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {shown:?}: {message}"),
        field: "patch".into(),
    };
    ApiError::invalid("", "", "", &[cause])
}

/// Strategic and applied patches are not decoded but converted, and a value of another type has another message.
fn conversion_error(message: &str) -> String {
    let Some((found, expected)) = message
        .strip_prefix("json: cannot unmarshal ")
        .and_then(|rest| rest.split_once(" into Go struct field "))
        .and_then(|(found, rest)| Some((found, rest.rsplit_once(" of type ")?.1)))
    else {
        let from_json = if message.starts_with("illegal base64") {
            "error decoding from json: "
        } else {
            ""
        };
        return format!("{from_json}{message}");
    };
    match expected {
        "string" if found.starts_with("number") => "cannot convert int64 to string".to_owned(),
        "string" | "bool" | "int32" | "int64" | "float64" => format!("unrecognized type: {expected}"),
        _ => message.to_owned(),
    }
}

/// The `Status` of an action that returns nothing else.
pub(super) fn success(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code})
}

#[cfg(test)]
mod tests {
    use super::conversion_error;

    #[test]
    fn a_strategic_patch_of_the_wrong_type_has_the_message_of_a_conversion() {
        for (decoded, converted) in [
            (
                "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
                "cannot convert int64 to string",
            ),
            (
                "json: cannot unmarshal bool into Go struct field ConfigMap.data of type string",
                "unrecognized type: string",
            ),
            (
                "json: cannot unmarshal string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
                "unrecognized type: int64",
            ),
            (
                "illegal base64 data at input byte 3",
                "error decoding from json: illegal base64 data at input byte 3",
            ),
            ("parsing time \"x\"", "parsing time \"x\""),
        ] {
            assert_eq!(conversion_error(decoded), converted);
        }
    }
}
