//! Server-side apply and the bookkeeping of who owns which field.
//!
//! | you look for | it is in |
//! |---|---|
//! | apply a configuration | [`apply`] |
//! | note who changed what on create, update and patch | [`track_update`] |
//! | no new times for a write without effect | [`keep_times`] |
//! | who owns the replicas after a write to `scale` | [`track_scale`] |
//! | sets of field paths, `fieldsV1` | [`set`] |
//! | objects seen through their schema: compare, merge, remove | [`typed`] |
//! | `managedFields` as a value | [`managers`] |
//! | errors about values of a wrong type | `misfit` |

use jiff::Timestamp;
use serde_json::{Value, json};

pub mod managers;
mod misfit;
mod scale;
pub mod set;
pub mod typed;

use managers::{Managed, Manager, Owned};
use set::{Element, Set};
use typed::{Changes, Typed};

pub use scale::{ScaleWrite, track_scale};

use crate::kinds::Kind;
use crate::status::{ApiError, Cause};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The owner of what was there before anyone applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who writes, how and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager; clients that name none are known by the start of their user agent.
    pub manager: &'a str,
    /// `status`, `scale` or empty.
    pub subresource: &'a str,
    /// The time the entry gets when something changed.
    pub now: Timestamp,
}

impl Writer<'_> {
    fn manager(&self, applies: bool, version: &str) -> Manager {
        Manager {
            name: if self.manager.is_empty() {
                "unknown"
            } else {
                self.manager
            }
            .to_owned(),
            applies,
            version: if applies { String::new() } else { version.to_owned() },
            subresource: self.subresource.to_owned(),
        }
    }

    fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// Applies `config` to `live` and returns the merged object with its managed fields, before defaulting and validation.
///
/// Without a live object the configuration becomes the object. An apply that changes nothing returns the live object
/// with, at most, other managed fields.
pub fn apply(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    let result = apply_once(kind, live, config, writer, force);
    // kubectl's own move from client-side to server-side apply: what the old annotation proves to be its own is no conflict.
    match (result, live) {
        (Err(Failure::Conflicts(conflicts)), Some(live)) if writer.manager == "kubectl" => {
            let own = unchanged_since_last_applied(kind, live);
            let foreign: Vec<_> = conflicts.into_iter().filter(|(_, path)| !own.contains(path)).collect();
            if foreign.is_empty() {
                apply_once(kind, Some(live), config, writer, true).map_err(Failure::into_error)
            } else {
                Err(Failure::Conflicts(foreign).into_error())
            }
        }
        (result, _) => result.map_err(Failure::into_error),
    }
}

enum Failure {
    Conflicts(Vec<(Manager, Vec<Element>)>),
    Rejected(ApiError),
}

fn apply_once(
    kind: &Kind,
    live: Option<&Value>,
    config: &Value,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, Failure> {
    let version = kind.api_version();
    check_config(kind, config, &version).map_err(Failure::Rejected)?;
    let typed = Typed(Some(kind.schema.root()));
    let empty = empty_object(kind);
    let before = live.unwrap_or(&empty);
    let mut managed = Managed::decode(before)
        .ok_or_else(|| Failure::Rejected(ApiError::new(500, "", "failed to decode managed fields")))?;
    let mut before = before.clone();
    take_managed_fields(&mut before);
    if managed.0.is_empty() && live.is_some() {
        let first = Writer {
            manager: BEFORE_FIRST_APPLY,
            ..writer
        };
        note_update(kind, &empty, &before, &mut managed, first);
    }
    let me = writer.manager(true, &version);
    let mut config = config.clone();
    take_managed_fields(&mut config);
    let mut mine = typed.field_set(&config);
    for fields in ignored_fields(kind, writer.subresource) {
        mine.remove_below(fields);
    }
    let last = managed.0.get(&me).cloned();
    let time = last.as_ref().and_then(|last| last.time.clone());
    managed.0.insert(
        me.clone(),
        Owned {
            version: version.clone(),
            time,
            fields: mine,
        },
    );
    let mut merged = typed.merge(&before, &config);
    if let Some(last) = last.filter(|last| !last.fields.is_empty()) {
        merged = relinquish(typed, &merged, &managed, &last.fields);
    }
    let changes = changes(kind, &before, &merged, writer.subresource);
    let written = changes.modified.union(&changes.added);
    if !force {
        let others = managed.0.iter().filter(|(manager, _)| **manager != me);
        let conflicts: Vec<_> = others
            .flat_map(|(manager, owned)| {
                let paths = owned.fields.intersection(&written).paths();
                paths.into_iter().map(move |path| (manager.clone(), path))
            })
            .collect();
        if !conflicts.is_empty() {
            return Err(Failure::Conflicts(conflicts));
        }
    }
    managed.take_from_others(Some(&me), &written.union(&changes.removed));
    if let Some(owned) = managed.0.get_mut(&me) {
        owned.fields = owned.fields.difference(&changes.removed);
        strip(&mut owned.fields);
        if merged != before {
            owned.time = Some(writer.time());
        }
    }
    managed.0.retain(|_, owned| !owned.fields.is_empty());
    sync_last_applied(&mut merged, &config, writer);
    managed.encode(&mut merged);
    Ok(merged)
}

/// Removes the fields that this manager applied last time and does not apply now, unless another manager owns them.
fn relinquish(typed: Typed<'_>, merged: &Value, managed: &Managed, last: &Set) -> Value {
    let named = |set: &Set| set.with_named_fields(typed);
    let nothing = || json!({});
    let last = named(last);
    let pruned = typed.without(merged, &last).unwrap_or_else(nothing);
    let owned = managed
        .0
        .values()
        .fold(Set::default(), |all, one| all.union(&one.fields));
    let (all, left) = (named(&typed.field_set(merged)), named(&typed.field_set(&pruned)));
    let gone = all.difference(&left.union(&named(&owned)));
    let pruned = typed.without(merged, &gone).unwrap_or_else(nothing);
    let left = named(&typed.field_set(&pruned));
    let gone = all.difference(&left).intersection(&last);
    typed.without(merged, &gone).unwrap_or_else(nothing)
}

/// Records in `new` which manager changed which field since `live`, on a create (no live object), update or patch.
pub fn track_update(kind: &Kind, live: Option<&Value>, new: &mut Value, writer: Writer<'_>) {
    let empty = empty_object(kind);
    let before = live.unwrap_or(&empty);
    let asked = new
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .cloned();
    let reset = asked.as_ref().is_some_and(|list| match list.as_slice() {
        [] => true,
        [only] => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    });
    let live_managed = || Managed::decode(before).unwrap_or_default();
    let mut managed = if !writer.subresource.is_empty() {
        live_managed()
    } else if reset {
        Managed::default()
    } else {
        Managed::decode(new)
            .filter(|managed| !managed.0.is_empty())
            .unwrap_or_else(live_managed)
    };
    take_managed_fields(new);
    // A custom object with values of a wrong type cannot be compared, so its managed fields are dropped. Such an object is
    // stored only if the server restores the wrong part, as it does with a spec that is sent to `status`.
    if kind.custom && !is_same_kind(kind, new) {
        return;
    }
    // An object without managed fields gets none until a manager applies.
    if managed.0.is_empty() && live.is_some() {
        return;
    }
    let mut before = before.clone();
    take_managed_fields(&mut before);
    note_update(kind, &before, new, &mut managed, writer);
    managed.cap();
    managed.encode(new);
}

/// Puts the old times back where nothing but times differs, so that a write without effect stays without effect.
/// Call it last, on the object as it would be stored.
pub fn keep_times(live: &Value, new: &mut Value) {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object
            .pointer_mut("/metadata/managedFields")
            .and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        object
    };
    let (mut ours, mut theirs) = (timeless(new), timeless(live));
    for object in [&mut ours, &mut theirs] {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
    }
    if ours == theirs
        && let Some(kept) = live.pointer("/metadata/managedFields")
    {
        new["metadata"]["managedFields"] = kept.clone();
    }
}

fn note_update(kind: &Kind, before: &Value, new: &Value, managed: &mut Managed, writer: Writer<'_>) {
    let version = kind.api_version();
    let changes = changes(kind, before, new, writer.subresource);
    let written = changes.modified.union(&changes.added);
    managed.take_from_others(None, &written.union(&changes.removed));
    let mut mine = written;
    strip(&mut mine);
    if mine.is_empty() {
        return;
    }
    let owned = managed.0.entry(writer.manager(false, &version)).or_default();
    owned.version = version;
    owned.time = Some(writer.time());
    owned.fields = owned.fields.union(&mine);
}

fn changes(kind: &Kind, before: &Value, after: &Value, subresource: &str) -> Changes {
    let mut changes = Typed(Some(kind.schema.root())).compare(before, after);
    for fields in ignored_fields(kind, subresource) {
        changes.ignore(fields);
    }
    changes
}

/// What a request cannot change, because the server puts the old value back.
fn ignored_fields(kind: &Kind, subresource: &str) -> &'static [&'static [&'static str]] {
    match subresource {
        "status" if kind.kind == "Deployment" => &[&["spec"], &["metadata", "labels"]],
        "status" if kind.kind == "Pod" => &[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
        "status" => &[&["spec"]],
        "" if kind.has_status => &[&["status"]],
        _ => &[],
    }
}

/// Removes the fields that no manager owns: kind, version and identity.
fn strip(fields: &mut Set) {
    let mut head = Set::default();
    for path in [
        &["apiVersion"][..],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ] {
        head.insert_fields(path);
    }
    *fields = fields.difference(&head);
}

/// The object that the real server compares with: built-in kinds have some of their fields even when empty.
fn empty_object(kind: &Kind) -> Value {
    let mut object = kind.schema.root().zero.clone().unwrap_or_else(|| json!({}));
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    object
}

fn is_same_kind(kind: &Kind, object: &Value) -> bool {
    let mut misfits = Vec::new();
    Typed(Some(kind.schema.root())).undeclared(object, &mut Vec::new(), &mut misfits);
    misfits.is_empty()
}

fn take_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn check_config(kind: &Kind, config: &Value, version: &str) -> Result<(), ApiError> {
    let asked = config["apiVersion"].as_str().unwrap_or_default();
    if asked != version {
        return Err(ApiError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {asked}, expected: {version}"
        )));
    }
    let managed = config.pointer("/metadata/managedFields");
    if managed.is_some_and(|managed| !managed.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let mut errors = Vec::new();
    let typed = Typed(Some(kind.schema.root()));
    typed.undeclared(config, &mut Vec::new(), &mut errors);
    typed.duplicates(config, &mut Vec::new(), &mut errors);
    let errors = match errors.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("errors:\n  {}", many.join("\n  "))),
    };
    if let Some(errors) = errors {
        let head = typed_patch_error(kind, config);
        return Err(ApiError::new(500, "", format!("{head}: {errors}")));
    }
    Ok(())
}

/// The beginning of every error about an applied configuration that does not match its schema.
pub fn typed_patch_error(kind: &Kind, config: &Value) -> String {
    let text = |name: &str| config["metadata"][name].as_str().unwrap_or_default();
    format!(
        "failed to create typed patch object ({}/{}; {}, Kind={})",
        text("namespace"),
        text("name"),
        if kind.group.is_empty() {
            format!("/{}", kind.version)
        } else {
            kind.api_version()
        },
        kind.kind
    )
}

/// The part of the last client-side apply that the live object still has.
fn unchanged_since_last_applied(kind: &Kind, live: &Value) -> Set {
    let annotation = live["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .unwrap_or_default();
    let Ok(last) = serde_json::from_str::<Value>(annotation) else {
        return Set::default();
    };
    if last["apiVersion"].as_str() != Some(kind.api_version().as_str()) {
        return Set::default();
    }
    let typed = Typed(Some(kind.schema.root()));
    let changes = typed.compare(&last, live);
    typed
        .field_set(&last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed)
}

/// kubectl's server-side apply keeps the annotation of client-side apply in step where there is one.
fn sync_last_applied(merged: &mut Value, config: &Value, writer: Writer<'_>) {
    let present = merged["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .is_some_and(|text| !text.is_empty());
    if writer.manager != "kubectl" || !present {
        return;
    }
    let mut plain = config.clone();
    if let Some(annotations) = plain
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut)
    {
        annotations.remove(LAST_APPLIED);
    }
    merged["metadata"]["annotations"][LAST_APPLIED] = json!(format!("{plain}\n"));
}

impl Failure {
    fn into_error(self) -> ApiError {
        match self {
            Self::Rejected(error) => error,
            Self::Conflicts(conflicts) => conflict_error(&conflicts),
        }
    }
}

fn conflict_error(conflicts: &[(Manager, Vec<Element>)]) -> ApiError {
    let shown = |path: &[Element]| path.iter().map(ToString::to_string).collect::<String>();
    let causes: Vec<Cause> = conflicts
        .iter()
        .map(|(manager, path)| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: format!("conflict with {}", manager.shown()),
            field: shown(path),
        })
        .collect();
    let message = if let [(manager, path)] = conflicts {
        format!(
            "Apply failed with 1 conflict: conflict with {}: {}",
            manager.shown(),
            shown(path)
        )
    } else {
        let mut lines: Vec<String> = Vec::new();
        let mut last: Option<&Manager> = None;
        let mut sorted: Vec<_> = conflicts.iter().collect();
        sorted.sort_by_key(|(manager, _)| manager.rank());
        for (manager, path) in sorted {
            if last != Some(manager) {
                lines.push(format!("conflicts with {}:", manager.shown()));
                last = Some(manager);
            }
            lines.push(format!("- {}", shown(path)));
        }
        format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
    };
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(json!({ "causes": causes }));
    error
}
