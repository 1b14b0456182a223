//! Patch: a change to the stored object, repeated after a concurrent write.

use serde_json::Value;

use super::api::{Api, Call};
use super::negotiate::{Accepted, content_type, unsupported};
use super::rbac::Question;
use super::read::{key, object_reply};
use super::respond::Reply;
use super::update::{Rejected, undeterminable};
use super::{body, convert, meta, strategy};
use crate::apply;
use crate::patch;
use crate::status::{ApiError, Cause, qualified};

pub(super) const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    pub(super) fn patch(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        check_media(call)?;
        check_options(call)?;
        let dry = call.query.dry_run("PatchOptions")?;
        if content_type(&call.headers) == APPLY {
            return self.apply(call, accepted, dry);
        }
        loop {
            let current = self.find(call)?;
            let new = patched(call, convert::view(&call.kind, &current).value())?;
            Self::check_patched_name(call, &new)?;
            let conditional = meta::text(&new, "resourceVersion") != meta::text(current.value(), "resourceVersion");
            match self.replace(call, &current, new, dry, false) {
                Ok(object) => return Ok(object_reply(call, 200, accepted, &object)),
                Err(Rejected::Changed) if !conditional => {}
                Err(rejected) => return Err(rejected.into_error(call)),
            }
        }
    }
}

impl Api {
    /// Server-side apply: merges the configuration of one manager into the object, or creates the object.
    fn apply(&self, call: &Call, accepted: Accepted, dry: bool) -> Result<Reply, ApiError> {
        let force = call.query.flag("force");
        let config = body::object(self.kinds(), &call.kind, body::yaml(&call.body)?)?;
        if meta::text(&config, "name").is_empty() {
            return Err(undeterminable(call));
        }
        loop {
            let Some(current) = self.store().get(&call.table(), &key(call)) else {
                match self.apply_new(call, accepted, &config, dry) {
                    // A concurrent request created it: merge into that object.
                    Err(Rejected::Exists(_)) => continue,
                    Err(rejected) => return Err(rejected.into_error(call)),
                    Ok(reply) => return Ok(reply),
                }
            };
            let live = convert::view(&call.kind, &current);
            let new = apply::apply(&call.kind, Some(live.value()), &config, call.writer(), force)?;
            Self::check_patched_name(call, &new)?;
            let conditional = !meta::text(&config, "resourceVersion").is_empty();
            match self.replace(call, &current, new, dry, true) {
                Ok(object) => return Ok(object_reply(call, 200, accepted, &object)),
                Err(Rejected::Removed) => {}
                Err(Rejected::Changed) if !conditional => {}
                Err(rejected) => return Err(rejected.into_error(call)),
            }
        }
    }

    fn apply_new(&self, call: &Call, accepted: Accepted, config: &Value, dry: bool) -> Result<Reply, Rejected> {
        let kind = &call.kind;
        let status_makes = call.info.subresource == "status" && strategy::allows_create_on_update(kind);
        if !call.info.subresource.is_empty() && !status_makes {
            return Err(ApiError::not_found(&kind.group, &kind.plural, &call.info.name).into());
        }
        if !meta::text(config, "uid").is_empty() {
            return Err(ApiError::conflict(
                &kind.group,
                &kind.plural,
                &call.info.name,
                &format!(
                    "uid mismatch: the provided object specified uid {}, and no existing object was found",
                    meta::text(config, "uid")
                ),
            )
            .into());
        }
        let mut new = apply::apply(kind, None, config, call.writer(), call.query.flag("force"))?;
        Self::check_patched_name(call, &new)?;
        meta::set(&mut new, "resourceVersion", None);
        self.allow_creation(call)?;
        let object = self.create_object(call, new, dry, true)?;
        Ok(object_reply(call, 201, accepted, &object))
    }
}

impl Api {
    /// An apply that creates an object needs the permission to create as well as to patch.
    fn allow_creation(&self, call: &Call) -> Result<(), ApiError> {
        let (info, kind) = (&call.info, &call.kind);
        let mut question = Question::on("create", &info.group, &info.resource, &info.namespace, &info.name);
        question.subresource.clone_from(&info.subresource);
        let decision = self.decide(&call.user, &question);
        if decision.allowed {
            return Ok(());
        }
        let message = format!(
            "{} {:?} is forbidden: {}",
            qualified(&kind.group, &kind.plural),
            info.name,
            decision.reason
        );
        Err(ApiError::new(403, "Forbidden", message).about(&kind.group, &kind.plural, &info.name))
    }

    /// A patch may not rename. A patch that cannot be decoded is rejected for that first.
    fn check_patched_name(call: &Call, new: &Value) -> Result<(), ApiError> {
        check_name(call, new).or_else(|error| Self::representation(call, &mut new.clone()).and(Err(error)))
    }
}

fn check_name(call: &Call, config: &Value) -> Result<(), ApiError> {
    let name = meta::text(config, "name");
    if name.is_empty() {
        return Err(undeterminable(call));
    }
    if name == call.info.name {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the name of the object ({name}) does not match the name on the URL ({})",
        call.info.name
    )))
}

fn patched(call: &Call, current: &Value) -> Result<Value, ApiError> {
    match content_type(&call.headers) {
        "application/json-patch+json" => patch::json_patch(current, &body::json(&call.body)?),
        "application/merge-patch+json" => patch::merge_patch(current, &body::json(&call.body)?),
        // `check_media` let nothing else in.
        _ => {
            let patch = body::read_json(&call.body).map_err(ApiError::bad_request)?;
            let _ = call.used_patch.set(patch::used(&patch, current));
            patch::strategic_merge(current, &patch, &call.kind.schema)
        }
    }
}

/// An apply names its manager. All errors of the options are reported at once.
fn check_options(call: &Call) -> Result<(), ApiError> {
    if content_type(&call.headers) != APPLY || call.query.get("fieldManager").is_some() {
        return Ok(());
    }
    let mut causes = vec![Cause {
        reason: "FieldValueRequired".into(),
        message: "Required value: is required for apply patch".into(),
        field: "fieldManager".into(),
    }];
    causes.extend(call.query.write_causes());
    Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &causes))
}

/// 415 for an unsupported patch type, before the object is read.
fn check_media(call: &Call) -> Result<(), ApiError> {
    match content_type(&call.headers) {
        "application/json-patch+json" | "application/merge-patch+json" | APPLY => Ok(()),
        "application/strategic-merge-patch+json" if !call.kind.custom => Ok(()),
        _ if call.kind.custom => Err(unsupported(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            APPLY,
        ])),
        _ => {
            let mut error = ApiError::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            error.details = Some(serde_json::json!({}));
            Err(error)
        }
    }
}
