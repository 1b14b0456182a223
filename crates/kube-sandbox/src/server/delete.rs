//! Delete: preconditions, grace, finalizers and the three kinds of cascade.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::{Api, Call, table_of};
use super::negotiate::Accepted;
use super::read::{Selection, item_bytes, key_of, list_metadata, object_reply};
use super::respond::{self, Reply};
use super::{body, clock, crds, meta, strategy};
use crate::kinds::Kind;
use crate::status::{ApiError, Cause};
use crate::store::{Object, ObjectKey, WriteError};

/// `DeleteOptions`, from the body and the query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeleteOptions {
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// The outcome of a deletion.
pub(super) enum Deletion {
    /// The object is gone.
    Done(Arc<Object>),
    /// It waits for its grace period or its finalizers.
    Waiting(Arc<Object>),
}

impl DeleteOptions {
    fn of(call: &Call) -> Result<Self, ApiError> {
        // Options in the body replace those in the query.
        if !call.body.is_empty() {
            let value = body::parse(&call.headers, "DeleteOptions", &call.body)?;
            let options: Self = serde_json::from_value(value).map_err(|e| ApiError::bad_request(e.to_string()))?;
            options.check()?;
            return Ok(options);
        }
        let query = &call.query;
        let dry: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        let options = Self {
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            preconditions: None,
            orphan_dependents: query.get("orphanDependents").map(|_| query.flag("orphanDependents")),
            propagation_policy: query.get("propagationPolicy").map(str::to_owned),
            dry_run: (!dry.is_empty()).then_some(dry),
        };
        options.check()?;
        Ok(options)
    }

    /// Everything that is wrong with them, at once.
    fn check(&self) -> Result<(), ApiError> {
        let mut causes = Vec::new();
        let mut reject = |field: &str, reason: &str, message: String| {
            causes.push(Cause {
                reason: reason.into(),
                message,
                field: field.into(),
            });
        };
        let policy = self.propagation_policy.as_deref();
        if let (Some(policy), Some(_)) = (policy, self.orphan_dependents) {
            let message = "orphanDependents and deletionPropagation cannot be both set";
            let message = format!("Invalid value: {policy:?}: {message}");
            reject("propagationPolicy", "FieldValueInvalid", message);
        }
        if let Some(other) = policy.filter(|policy| !["Foreground", "Background", "Orphan"].contains(policy)) {
            let known = r#""Foreground", "Background", "Orphan", "nil""#;
            let message = format!("Unsupported value: {other:?}: supported values: {known}");
            reject("propagationPolicy", "FieldValueNotSupported", message);
        }
        if let Some(value) = self.dry_run.iter().flatten().find(|value| *value != "All") {
            let message = format!("Unsupported value: [{value:?}]: supported values: \"All\"");
            reject("dryRun", "FieldValueNotSupported", message);
        }
        if causes.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &causes))
    }

    /// Options inside another object.
    pub(super) fn from_value(value: &Value) -> Result<Self, ApiError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let options: Self = serde_json::from_value(value.clone()).map_err(|e| ApiError::bad_request(e.to_string()))?;
        options.check()?;
        Ok(options)
    }

    /// The same options, for the object with this uid unless they name one already.
    pub(super) fn only(mut self, uid: &str) -> Self {
        let preconditions = self.preconditions.get_or_insert_default();
        preconditions.uid.get_or_insert_with(|| uid.to_owned());
        self
    }

    pub(super) fn is_dry(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|d| !d.is_empty())
    }
}

impl Api {
    pub(super) fn delete(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let options = DeleteOptions::of(call)?;
        let dry = options.is_dry();
        let key = super::read::key(call);
        match self.delete_object(&call.kind, &key, &options, dry)? {
            Deletion::Done(object) if strategy::returns_deleted_object(&call.kind) => {
                Ok(object_reply(call, 200, accepted, &object))
            }
            Deletion::Done(object) => Ok(respond::value(
                200,
                accepted,
                &respond::deleted(
                    &call.kind.group,
                    &call.kind.plural,
                    &call.info.name,
                    meta::text(object.value(), "uid"),
                ),
            )),
            Deletion::Waiting(object) => {
                let code = if options.orphan_dependents == Some(false) {
                    202
                } else {
                    200
                };
                Ok(object_reply(call, code, accepted, &object))
            }
        }
    }

    /// Begins or finishes the deletion of one object, and retries after a concurrent write.
    pub(super) fn delete_object(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        options: &DeleteOptions,
        dry: bool,
    ) -> Result<Deletion, ApiError> {
        let table = table_of(kind);
        loop {
            let current = self
                .store()
                .get(&table, key)
                .ok_or_else(|| ApiError::not_found(&kind.group, &kind.plural, &key.name))?;
            check_preconditions(kind, &key.name, current.value(), options)?;
            if is_pod(kind) && goes_on(current.value(), options) {
                return Ok(Deletion::Waiting(current));
            }
            let mut new = current.value().clone();
            let gone = begin(kind, &mut new, options);
            let mut revision = current.revision();
            let mut marked = None;
            // A pod without a grace period is marked all the same, and watchers see it.
            let unmarked = current.value()["metadata"]["deletionGracePeriodSeconds"] != json!(0);
            if gone && !dry && is_pod(kind) && unmarked {
                match self.store().replace(&table, key.clone(), revision, new.clone()) {
                    Ok(object) => {
                        revision = object.revision();
                        marked = Some(object);
                    }
                    Err(_) => continue,
                }
            }
            let written = match (gone, dry) {
                (true, true) if is_pod(kind) => return Ok(Deletion::Done(Arc::new(Object::unversioned(new)))),
                (true, true) => return Ok(Deletion::Done(current)),
                (false, true) => return Ok(Deletion::Waiting(Arc::new(Object::unversioned(new)))),
                (true, false) => self.store().delete(&table, key.clone(), revision).map(Deletion::Done),
                (false, false) if new == *current.value() => return Ok(Deletion::Waiting(current)),
                (false, false) => self
                    .store()
                    .replace(&table, key.clone(), current.revision(), new)
                    .map(Deletion::Waiting),
            };
            match written {
                Ok(deletion) => {
                    if crds::is_crd(kind) {
                        let (Deletion::Done(object) | Deletion::Waiting(object)) = &deletion;
                        self.crd_written(object);
                    }
                    return Ok(deletion);
                }
                Err(WriteError::Changed) => {}
                // A concurrent deletion finished first what this request has begun.
                Err(_) => {
                    let done = marked.map(Deletion::Done);
                    return done.ok_or_else(|| ApiError::not_found(&kind.group, &kind.plural, &key.name));
                }
            }
        }
    }

    pub(super) async fn delete_collection(&self, call: &Call) -> Result<Reply, ApiError> {
        let accepted = Accepted::of(&call.headers, true)?;
        let options = DeleteOptions::of(call)?;
        let dry = options.is_dry();
        let selection = Selection::of(call)?;
        let (objects, revision) = self.store().list(&call.table(), selection.namespace.as_deref());
        let mut items = Vec::new();
        for object in objects.iter().filter(|o| selection.matches(o.value())) {
            match self.delete_object(&call.kind, &key_of(object.value()), &options, dry) {
                // The answer lists the objects as they were found.
                Ok(_) => items.push(object.clone()),
                Err(error) if error.code == 404 => {}
                Err(error) => return Err(error),
            }
            tokio::task::yield_now().await;
        }
        let metadata = list_metadata(&call.kind, revision);
        let list = respond::list_bytes(
            &call.kind.kind,
            &body::api_version(&call.kind),
            &metadata,
            items.iter().map(|o| item_bytes(&call.kind, o)),
        );
        Ok(respond::json_bytes(200, accepted, list))
    }
}

fn check_preconditions(kind: &Kind, name: &str, object: &Value, options: &DeleteOptions) -> Result<(), ApiError> {
    let Some(expected) = &options.preconditions else {
        return Ok(());
    };
    let reject = |what: &str, expected: &str, found: &str, ending: &str| {
        let why = format!(
            "the {what} in the precondition ({expected}) does not match the {what} in record ({found}). The object might have been {ending}"
        );
        Err(ApiError::conflict(&kind.group, &kind.kind, name, &why))
    };
    let found = |field: &str| meta::text(object, field);
    if let Some(uid) = expected.uid.as_deref().filter(|u| *u != found("uid")) {
        return reject("UID", uid, found("uid"), "deleted and then recreated");
    }
    if let Some(version) = expected
        .resource_version
        .as_deref()
        .filter(|v| *v != found("resourceVersion"))
    {
        return reject("ResourceVersion", version, found("resourceVersion"), "modified");
    }
    Ok(())
}

/// Whether a pod's grace period runs already, and the options do not shorten it: nothing changes then.
fn goes_on(pod: &Value, options: &DeleteOptions) -> bool {
    let running = pod["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let shorter = options
        .grace_period_seconds
        .is_some_and(|expected| expected.max(0) < running);
    meta::is_deleting(pod) && running > 0 && !shorter
}

/// Marks an object for deletion; true when nothing holds it and it can be removed now.
fn begin(kind: &Kind, object: &mut Value, options: &DeleteOptions) -> bool {
    if crds::is_crd(kind) {
        crds::begin_deletion(object);
    }
    let kind = (kind.group.as_str(), kind.plural.as_str());
    let grace = grace_seconds(kind, object, options);
    set_cascade(object, options);
    let held = !meta::finalizers(object).is_empty() || (kind == ("", "namespaces") && holds_namespace(object));
    let gone = grace == 0 && !held;
    if gone && kind != ("", "pods") {
        return true;
    }
    let earlier = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if !meta::is_deleting(object) {
        let at = Timestamp::now() + SignedDuration::from_secs(grace);
        meta::set(object, "deletionTimestamp", Some(clock::seconds(at).into()));
        if kind != ("", "namespaces") {
            meta::set(object, "deletionGracePeriodSeconds", Some(grace.into()));
        }
        bump_generation(object);
    } else if earlier.is_some_and(|e| grace < e) {
        let shorter = SignedDuration::from_secs(earlier.unwrap_or(0) - grace);
        if let Ok(at) = meta::text(object, "deletionTimestamp").parse::<Timestamp>() {
            meta::set(object, "deletionTimestamp", Some(clock::seconds(at - shorter).into()));
        }
        meta::set(object, "deletionGracePeriodSeconds", Some(grace.into()));
    }
    if kind == ("", "namespaces") {
        object["status"]["phase"] = json!("Terminating");
    }
    gone
}

fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}

fn bump_generation(object: &mut Value) {
    if let Some(generation) = object["metadata"]["generation"].as_i64() {
        meta::set(object, "generation", Some((generation + 1).into()));
    }
}

fn holds_namespace(namespace: &Value) -> bool {
    namespace["spec"]["finalizers"]
        .as_array()
        .is_some_and(|f| !f.is_empty())
}

/// Only pods have a grace period, and only once a node may have started them.
fn grace_seconds(kind: (&str, &str), object: &Value, options: &DeleteOptions) -> i64 {
    if kind != ("", "pods") {
        return 0;
    }
    let unscheduled = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let ended = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || ended {
        return 0;
    }
    let expected = options
        .grace_period_seconds
        .or(object["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30);
    // The real server takes a negative period for the shortest there is.
    let expected = if expected < 0 { 1 } else { expected };
    match object["metadata"]["deletionGracePeriodSeconds"].as_i64() {
        Some(running) if meta::is_deleting(object) => expected.min(running),
        _ => expected,
    }
}

/// The finalizers that ask the garbage collector for a cascade other than the usual one.
fn set_cascade(object: &mut Value, options: &DeleteOptions) {
    let policy = match (options.propagation_policy.as_deref(), options.orphan_dependents) {
        (Some(policy), _) => policy,
        (None, Some(true)) => "Orphan",
        (None, Some(false)) => "Background",
        (None, None) => return,
    };
    let mut finalizers: Vec<String> = meta::finalizers(object)
        .into_iter()
        .filter(|f| *f != "orphan" && *f != "foregroundDeletion")
        .map(str::to_owned)
        .collect();
    match policy {
        "Foreground" => finalizers.push("foregroundDeletion".into()),
        "Orphan" => finalizers.push("orphan".into()),
        _ => {}
    }
    let finalizers = (!finalizers.is_empty()).then(|| json!(finalizers));
    meta::set(object, "finalizers", finalizers);
}
