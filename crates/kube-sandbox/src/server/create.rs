//! Create.

use serde_json::Value;

use super::api::{Api, Call};
use super::negotiate::{Accepted, body_format, content_type};
use super::read::object_reply;
use super::respond::Reply;
use super::{body, clock, convert, crds, meta, protobuf, strategy};
use crate::apply::track_update;
use crate::kinds::Kind;
use crate::status::ApiError;
use crate::store::{Object, ObjectKey, WriteError};

impl Api {
    pub(super) fn create(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        if content_type(&call.headers) != protobuf::MEDIA {
            body_format(&call.headers)?;
        }
        let dry = call.query.dry_run("CreateOptions")?;
        let value = self.sent_object(call)?;
        let object = self.create_object(call, value, dry, false)?;
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

    /// Everything between a decoded object and its place in the store. An applied one knows its managers already.
    pub(super) fn create_object(
        &self,
        call: &Call,
        mut value: Value,
        dry: bool,
        applied: bool,
    ) -> Result<std::sync::Arc<Object>, ApiError> {
        let kind = &call.kind;
        Self::shape(call, &mut value)?;
        place_in_namespace(call, &mut value)?;
        let version = meta::text(&value, "resourceVersion").to_owned();
        let generated = meta::text(&value, "name").is_empty();
        let base = meta::text(&value, "generateName").to_owned();
        stamp(&mut value);
        if !applied {
            track_update(kind, None, &mut value, call.writer());
        }
        let mut attempts = 0;
        loop {
            if generated && !base.is_empty() {
                meta::set(&mut value, "name", Some(clock::generated_name(&base).into()));
            }
            if attempts == 0 {
                strategy::on_create(kind, &call.info.subresource, &mut value);
                self.admit_create(call, &mut value)?;
                Self::validate(call, &value, None)?;
            }
            if !version.is_empty() && !dry {
                let said = "resourceVersion should not be set on objects to be created";
                return Err(ApiError::new(500, "", said));
            }
            let name = meta::text(&value, "name").to_owned();
            let key = ObjectKey::new(meta::text(&value, "namespace"), name.as_str());
            let written = if dry {
                // Nothing is written, and so nothing looks at the version that was sent.
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
                self.store()
                    .create(&call.table(), key, convert::to_storage(kind, value.clone()))
            };
            match written {
                Ok(object) => {
                    if !dry {
                        self.created(kind, &object);
                    }
                    return Ok(object);
                }
                Err(_) if generated && attempts < 8 => attempts += 1,
                Err(_) => return Err(self.taken(call, &name)),
            }
        }
    }
}

impl Api {
    /// 409 for a name in use; one that is about to become free says so.
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

/// The object's namespace is the path's.
pub(super) fn place_in_namespace(call: &Call, value: &mut Value) -> Result<(), ApiError> {
    let wanted = if call.kind.namespaced {
        call.info.namespace.as_str()
    } else {
        ""
    };
    let said = meta::text(value, "namespace");
    if !said.is_empty() && said != wanted {
        return Err(ApiError::bad_request(if wanted.is_empty() {
            "namespace may not be specified for cluster-scoped resources".to_owned()
        } else {
            "the namespace of the provided object does not match the namespace sent on the request".to_owned()
        }));
    }
    meta::set(
        value,
        "namespace",
        Some(wanted).filter(|n| !n.is_empty()).map(Into::into),
    );
    Ok(())
}

/// What the server alone says about a new object.
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
