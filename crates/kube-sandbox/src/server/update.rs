//! Update: the rules every replacement of an object obeys, whether it came as a PUT or as a patch.

use std::sync::Arc;

use serde_json::Value;

use super::api::{Api, Call};
use super::negotiate::Accepted;
use super::read::{key, object_reply};
use super::respond::Reply;
use super::{admission, convert, crds, create, meta, strategy};
use crate::apply::{keep_times, track_update};
use crate::status::{ApiError, Cause};
use crate::store::{Change, Object, WriteError};

/// The message of a conflict with a concurrent write.
pub(super) const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

impl Api {
    pub(super) fn put(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let dry = call.query.dry_run("UpdateOptions")?;
        let mut value = self.sent_object(call)?;
        Self::representation(call, &mut value)?;
        let name = meta::text(&value, "name");
        if !name.is_empty() && name != call.info.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                call.info.name
            )));
        }
        if name.is_empty() {
            return Err(undeterminable(call));
        }
        loop {
            let Some(current) = self.store().get(&call.table(), &key(call)) else {
                let whole = matches!(call.info.subresource.as_str(), "" | "status");
                if strategy::allows_create_on_update(&call.kind) && whole {
                    if !meta::text(&value, "uid").is_empty() {
                        return Err(other_uid(call, meta::text(&value, "uid"), ""));
                    }
                    asked_version(&value)?;
                    let mut value = value.clone();
                    meta::set(&mut value, "resourceVersion", None);
                    match self.create_object(call, value, dry, false) {
                        // A concurrent request created it: update that object.
                        Err(Rejected::Exists(_)) => continue,
                        Err(rejected) => return Err(rejected.into_error(call)),
                        Ok(object) => return Ok(object_reply(call, 201, accepted, &object)),
                    }
                }
                return Err(ApiError::not_found(
                    &call.kind.group,
                    &call.kind.plural,
                    &call.info.name,
                ));
            };
            let conditional = !meta::text(&value, "resourceVersion").is_empty();
            match self.replace(call, &current, value.clone(), dry, false) {
                Err(Rejected::Removed) => {}
                Err(Rejected::Changed) if !conditional => {}
                Err(rejected) => return Err(rejected.into_error(call)),
                Ok(object) => return Ok(object_reply(call, 200, accepted, &object)),
            }
        }
    }

    /// Replaces `current` by `new`: checks it, restores what the client may not change, and writes it. Removes an object
    /// that lost its last finalizer. An applied object has its managed fields already.
    pub(super) fn replace(
        &self,
        call: &Call,
        current: &Arc<Object>,
        mut new: Value,
        dry: bool,
        applied: bool,
    ) -> Result<Arc<Object>, Rejected> {
        let _allocations = self.lock_allocations(call);
        let old = &convert::view(&call.kind, current);
        let old = old.value();
        Self::representation(call, &mut new)?;
        create::place_in_namespace(call, &mut new)?;
        let uid = meta::text(&new, "uid");
        if !uid.is_empty() && uid != meta::text(old, "uid") {
            return Err(other_uid(call, uid, meta::text(old, "uid")).into());
        }
        let version = asked_version(&new)?;
        if version == 0 {
            let require = call.info.verb == "update" && call.info.subresource != "scale";
            if require && !strategy::allows_unconditional_update(&call.kind) {
                return Err(must_be_specified(call).into());
            }
        } else if version.to_string() != meta::text(old, "resourceVersion") {
            return Err(Rejected::Changed);
        }
        // Managed fields are recorded before the server restores what this request cannot change.
        if !applied {
            track_update(&call.kind, Some(old), &mut new, call.writer());
        }
        admission::admit_update(call, &mut new);
        match call.info.subresource.as_str() {
            "status" => strategy::on_status_update(&call.kind, old, &mut new),
            "finalize" => strategy::on_finalize(old, &mut new),
            _ => strategy::on_update(&call.kind, old, &mut new),
        }
        keep_identity(old, &mut new);
        keep_times(old, &mut new);
        self.reallocate(call, old, &mut new)?;
        Self::validate(call, &new, Some(old))?;
        self.admit_resize(call, old, &new)?;
        if new == *old && !self.settles_phase(call, current) {
            return Ok(current.clone());
        }
        self.commit(call, current, new, dry)
    }

    /// The phase of a new claim or volume is only shown, not stored, until its first update: so that one is a write even
    /// when it changes nothing.
    fn settles_phase(&self, call: &Call, current: &Object) -> bool {
        let has_phase = matches!(
            call.kind.plural.as_str(),
            "persistentvolumeclaims" | "persistentvolumes"
        );
        let written = |revision: u64| self.store().events_after(&call.table(), revision - 1, 1).ok();
        has_phase
            && call.kind.group.is_empty()
            && written(current.revision())
                .is_some_and(|(events, _)| events.first().is_some_and(|event| event.change == Change::Added))
    }

    fn commit(&self, call: &Call, current: &Arc<Object>, new: Value, dry: bool) -> Result<Arc<Object>, Rejected> {
        if dry {
            return Ok(Arc::new(Object::at_revision(new, current.revision())));
        }
        let done = is_finished(&new);
        let new = convert::to_storage(&call.kind, new);
        let table = call.table();
        let written = if done {
            // Watchers see the last state that was stored; the client sees what it made of it.
            match self.store().delete(&table, key(call), current.revision()) {
                Ok(gone) => Ok(Arc::new(Object::new(new, gone.revision()))),
                // A concurrent update has removed the last finalizer as well. Both have done what they were asked for.
                Err(WriteError::Missing) => Ok(Arc::new(Object::new(new, current.revision()))),
                Err(error) => Err(error),
            }
        } else {
            self.store().replace(&table, key(call), current.revision(), new)
        };
        if let (Ok(object), true) = (&written, crds::is_crd(&call.kind)) {
            self.crd_written(object);
        }
        written.map_err(|error| match error {
            WriteError::Missing => Rejected::Removed,
            WriteError::Changed | WriteError::Exists | WriteError::Unmet => Rejected::Changed,
        })
    }
}

/// Whether a deletion that has begun waits for nothing any more.
pub(super) fn is_finished(object: &Value) -> bool {
    meta::is_deleting(object)
        && meta::finalizers(object).is_empty()
        && object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && object["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty)
}

/// 400 for an object without a name.
pub(super) fn undeterminable(call: &Call) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        call.info.name
    ))
}

/// Why a write did not happen.
///
/// The first three are the outcome of a concurrent write. A real API server (`GuaranteedUpdate` of its store) reads the
/// object again and repeats the request without a limit, unless the client sent a resourceVersion. So a client never
/// gets `AlreadyExists` from an apply or an update, nor a conflict from a patch without a version.
pub(super) enum Rejected {
    /// A create found the name taken. Holds the answer to a request that only creates.
    Exists(ApiError),
    /// The object changed since it was read, or is not at the version that the client sent.
    Changed,
    /// The object was removed since it was read.
    Removed,
    /// The request itself is wrong.
    Error(ApiError),
}

impl From<ApiError> for Rejected {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Rejected {
    pub fn into_error(self, call: &Call) -> ApiError {
        match self {
            Self::Changed => ApiError::conflict(&call.kind.group, &call.kind.plural, &call.info.name, MODIFIED),
            Self::Removed => ApiError::not_found(&call.kind.group, &call.kind.plural, &call.info.name),
            Self::Exists(error) | Self::Error(error) => error,
        }
    }
}

/// The version an update is meant for; 0 is any.
fn asked_version(object: &Value) -> Result<u64, ApiError> {
    match meta::text(object, "resourceVersion") {
        "" => Ok(0),
        text => text.parse().map_err(|_| {
            let message = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
            ApiError::new(500, "", message)
        }),
    }
}

/// 409 for an update that means another object of the same name.
pub(super) fn other_uid(call: &Call, asked: &str, found: &str) -> ApiError {
    ApiError::conflict(
        &call.kind.group,
        &call.kind.plural,
        &call.info.name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
             failed: UID in precondition: {asked}, UID in object meta: {found}",
            storage_key(call),
        ),
    )
}

/// Where a real server keeps the object; it says so when an update means another one of the same name.
fn storage_key(call: &Call) -> String {
    let kind = &call.kind;
    let resource = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        (group, plural) if kind.custom => format!("{group}/{plural}"),
        ("apiextensions.k8s.io", plural) => format!("apiextensions.k8s.io/{plural}"),
        (_, plural) => plural.to_owned(),
    };
    if kind.namespaced {
        format!("/registry/{resource}/{}/{}", call.info.namespace, call.info.name)
    } else {
        format!("/registry/{resource}/{}", call.info.name)
    }
}

fn must_be_specified(call: &Call) -> ApiError {
    ApiError::invalid(
        &call.kind.group,
        &call.kind.plural,
        &call.info.name,
        &[Cause {
            reason: "FieldValueInvalid".into(),
            message: "Invalid value: 0: must be specified for an update".into(),
            field: "metadata.resourceVersion".into(),
        }],
    )
}

/// What no update changes.
fn keep_identity(old: &Value, new: &mut Value) {
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
        "resourceVersion",
    ] {
        meta::set(new, field, old["metadata"].get(field).cloned());
    }
}
