//! Create.

use serde_json::Value;

use super::api::{Api, Call};
use super::negotiate::{Accepted, body_format, content_type};
use super::read::object_reply;
use super::respond::Reply;
use super::update::Rejected;
use super::{body, clock, convert, crds, meta, protobuf, strategy};
use crate::apply::track_update;
use crate::kinds::Kind;
use crate::status::ApiError;
use crate::store::{Object, ObjectKey, Stored, WriteError};

impl Api {
    pub(super) fn create(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        if content_type(&call.headers) != protobuf::MEDIA {
            body_format(&call.headers)?;
        }
        self.check_crd(call)?;
        let dry = call.query.dry_run("CreateOptions")?;
        let value = self.sent_object(call)?;
        let created = self.create_object(call, value, dry, false);
        let object = created.map_err(|rejected| rejected.into_error(call))?;
        Ok(object_reply(call, 201, accepted, &object))
    }

    /// The object in a request's body.
    pub(super) fn sent_object(&self, call: &Call) -> Result<Value, ApiError> {
        let value = if call.body.as_ref() == b"null" {
            Value::Object(serde_json::Map::new())
        } else {
            body::parse(&call.headers, &call.kind.kind, &call.body)?
        };
        if call.kind.custom && value["kind"].as_str().unwrap_or_default().is_empty() {
            return Err(body::missing_kind(&call.kind.kind, &call.body));
        }
        body::object(self.kinds(), &call.kind, value)
    }

    /// Everything between a decoded object and its place in the store. An applied object has its managed fields already.
    pub(super) fn create_object(
        &self,
        call: &Call,
        mut value: Value,
        dry: bool,
        applied: bool,
    ) -> Result<std::sync::Arc<Object>, Rejected> {
        let kind = &call.kind;
        let _allocations = self.lock_allocations(call);
        Self::representation(call, &mut value)?;
        place_in_namespace(call, &mut value)?;
        let version = meta::text(&value, "resourceVersion").to_owned();
        let generated = meta::text(&value, "name").is_empty();
        let base = meta::text(&value, "generateName").to_owned();
        stamp(&mut value);
        if !applied {
            track_update(kind, None, &mut value, call.writer());
        }
        let mut prepared = false;
        let mut attempts = 0;
        loop {
            if generated && !base.is_empty() {
                meta::set(&mut value, "name", Some(clock::generated_name(&base).into()));
            }
            if !prepared {
                strategy::on_create(kind, &call.info.subresource, &mut value);
                self.admit_create(call, &mut value)?;
                Self::validate(call, &value, None)?;
                prepared = true;
            }
            if !version.is_empty() && !dry {
                let message = "resourceVersion should not be set on objects to be created";
                return Err(ApiError::new(500, "", message).into());
            }
            let name = meta::text(&value, "name").to_owned();
            let key = ObjectKey::new(meta::text(&value, "namespace"), name.as_str());
            let written = if dry {
                // Nothing is written, so the version that was sent is not checked.
                meta::set(
                    &mut value,
                    "resourceVersion",
                    Some(&*version).filter(|v| !v.is_empty()).map(Into::into),
                );
                match self.store().get(&call.table(), &key) {
                    Some(_) => Err(WriteError::Exists),
                    None => Ok(std::sync::Arc::new(Object::unversioned(value.clone()))),
                }
            } else {
                let new = convert::to_storage(kind, value.clone());
                self.store()
                    .create_if(&call.table(), key, new, |stored| has_home(call, stored))
            };
            match written {
                Ok(object) => {
                    if !dry {
                        self.created(kind, &object);
                    }
                    return Ok(object);
                }
                Err(WriteError::Unmet) => {
                    self.check_namespace(call, &value)?;
                    self.check_crd(call)?;
                }
                Err(_) if generated && attempts < 8 => attempts += 1,
                Err(_) => return Err(Rejected::Exists(self.taken(call, &name))),
            }
        }
    }
}

impl Api {
    /// 409 for a name in use; the message says if its object is being deleted.
    fn taken(&self, call: &Call, name: &str) -> ApiError {
        let mut error = ApiError::already_exists(&call.kind.group, &call.kind.plural, name);
        let namespace = if call.kind.namespaced {
            call.info.namespace.as_str()
        } else {
            ""
        };
        let holder = self.store().get(&call.table(), &ObjectKey::new(namespace, name));
        if holder.is_some_and(|h| meta::is_deleting(h.value())) {
            error.message = format!("object is being deleted: {}", error.message);
        }
        error
    }

    /// What follows from a new object at once.
    fn created(&self, kind: &Kind, object: &Object) {
        if crds::is_crd(kind) {
            self.crd_written(object);
        }
        if kind.group.is_empty() && kind.plural == "namespaces" {
            self.publish_authority(meta::text(object.value(), "name"));
        }
    }
}

/// Whether the namespace and the definition of a new object are there and are not being deleted.
///
/// Admission checks the same, but a deletion may come between it and the write. The object would then outlive its
/// namespace.
fn has_home(call: &Call, stored: &Stored<'_>) -> bool {
    let live = |table: &str, name: &str| {
        stored
            .get(table, &ObjectKey::new("", name))
            .is_some_and(|object| !meta::is_deleting(object.value()))
    };
    let kind = &call.kind;
    (!kind.namespaced || live("namespaces", &call.info.namespace))
        && (!kind.custom || live(crds::TABLE, &crds::name_of(kind)))
}

/// The object's namespace is the path's.
pub(super) fn place_in_namespace(call: &Call, value: &mut Value) -> Result<(), ApiError> {
    let expected = if call.kind.namespaced {
        call.info.namespace.as_str()
    } else {
        ""
    };
    let given = meta::text(value, "namespace");
    if !given.is_empty() && given != expected {
        return Err(ApiError::bad_request(if expected.is_empty() {
            "namespace may not be specified for cluster-scoped resources".to_owned()
        } else {
            "the namespace of the provided object does not match the namespace sent on the request".to_owned()
        }));
    }
    meta::set(
        value,
        "namespace",
        Some(expected).filter(|n| !n.is_empty()).map(Into::into),
    );
    Ok(())
}

/// Sets what only the server sets on a new object.
fn stamp(value: &mut Value) {
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "resourceVersion",
    ] {
        meta::set(value, field, None);
    }
    meta::set(value, "uid", Some(clock::uid().into()));
    meta::set(value, "creationTimestamp", Some(clock::now().into()));
}
