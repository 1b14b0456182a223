//! The scale subresource: replicas of anything, in one form.

use serde_json::{Map, Value, json};

use super::api::{Api, Call};
use super::negotiate::{Accepted, content_type, unsupported};
use super::patch::APPLY;
use super::respond::{self, Reply};
use super::update::Rejected;
use super::{body, meta};
use crate::apply::{ScaleWrite, track_scale};
use crate::kinds::{Kind, ScalePaths};
use crate::patch;
use crate::status::{ApiError, Cause};

impl Api {
    pub(super) fn scale(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let Some(paths) = call.kind.scale.clone() else {
            return Err(ApiError::not_served());
        };
        if call.info.verb == "get" {
            let object = self.find(call)?;
            return Ok(respond::value(
                200,
                accepted,
                &scale_of(&call.kind, &paths, object.value())?,
            ));
        }
        let options = if call.info.verb == "patch" {
            "PatchOptions"
        } else {
            "UpdateOptions"
        };
        let dry = call.query.dry_run(options)?;
        loop {
            let current = self.find(call)?;
            let shown = scale_of(&call.kind, &paths, current.value())?;
            let desired = desired_scale(call, &shown)?;
            check(call, &desired)?;
            let mut new = current.value().clone();
            let version = meta::text(&desired, "resourceVersion");
            meta::set(
                &mut new,
                "resourceVersion",
                Some(version).filter(|v| !v.is_empty()).map(Into::into),
            );
            set_at(
                &mut new,
                &paths.spec,
                json!(desired["spec"]["replicas"].as_i64().unwrap_or(0)),
            );
            let conditional = !version.is_empty() && version != meta::text(current.value(), "resourceVersion");
            track_scale(
                &call.kind,
                &paths,
                current.value(),
                &mut new,
                call.writer(),
                write_of(call),
            )?;
            match self.replace(call, &current, new, dry, true) {
                Ok(object) => {
                    return Ok(respond::value(
                        200,
                        accepted,
                        &scale_of(&call.kind, &paths, object.value())?,
                    ));
                }
                Err(Rejected::Changed) if !conditional => {}
                Err(rejected) => return Err(rejected.into_error(call)),
            }
        }
    }
}

fn write_of(call: &Call) -> ScaleWrite {
    if call.info.verb == "patch" && content_type(&call.headers) == APPLY {
        ScaleWrite::Apply {
            force: call.query.flag("force"),
        }
    } else {
        ScaleWrite::Update
    }
}

fn desired_scale(call: &Call, shown: &Value) -> Result<Value, ApiError> {
    if call.info.verb == "update" {
        return body::parse(&call.headers, "Scale", &call.body);
    }
    match content_type(&call.headers) {
        "application/json-patch+json" => patch::json_patch(shown, &body::json(&call.body)?),
        "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
            patch::merge_patch(shown, &body::json(&call.body)?)
        }
        APPLY => patch::merge_patch(shown, &body::yaml(&call.body)?),
        _ => Err(unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ])),
    }
}

fn check(call: &Call, desired: &Value) -> Result<(), ApiError> {
    let name = meta::text(desired, "name");
    if !name.is_empty() && name != call.info.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.info.name
        )));
    }
    let replicas = desired["spec"]["replicas"].as_i64().unwrap_or(0);
    // Custom objects are judged by their own schema.
    if replicas < 0 && !call.kind.custom {
        return Err(ApiError::invalid(
            "autoscaling",
            "Scale",
            &call.info.name,
            &[Cause {
                reason: "FieldValueInvalid".into(),
                message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
                field: "spec.replicas".into(),
            }],
        ));
    }
    Ok(())
}

/// The object as a Scale.
fn scale_of(kind: &Kind, paths: &ScalePaths, object: &Value) -> Result<Value, ApiError> {
    let replicas = at(object, &paths.spec);
    if kind.custom && replicas.is_none_or(Value::is_null) {
        return Err(ApiError::new(
            500,
            "InternalError",
            format!(
                "Internal error occurred: the spec replicas field {:?} does not exist",
                paths.spec
            ),
        ));
    }
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    let mut status = json!({"replicas": at(object, &paths.status).and_then(Value::as_i64).unwrap_or(0)});
    let selector = match paths.selector.as_deref().and_then(|p| at(object, p)) {
        Some(Value::String(text)) => text.clone(),
        Some(selector @ Value::Object(_)) => selector_text(selector),
        _ => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    let mut spec = json!({});
    if let Some(replicas) = replicas.and_then(Value::as_i64).filter(|r| *r != 0) {
        spec["replicas"] = json!(replicas);
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}))
}

/// A label selector object in its text form.
pub(super) fn selector_text(selector: &Value) -> String {
    let mut terms: Vec<String> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        terms.push(match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({})", values.join(",")),
            Some("NotIn") => format!("{key} notin ({})", values.join(",")),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    terms.join(",")
}

pub(super) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.')
        .filter(|p| !p.is_empty())
        .try_fold(object, |o, part| o.get(part))
}

fn set_at(object: &mut Value, path: &str, value: Value) {
    let parts: Vec<&str> = path.split('.').filter(|p| !p.is_empty()).collect();
    let Some((last, parents)) = parts.split_last() else {
        return;
    };
    let mut place = object;
    for part in parents {
        if !place[*part].is_object() {
            place[*part] = json!({});
        }
        place = &mut place[*part];
    }
    place[*last] = value;
}
