//! Who owns the replicas after a write to `scale`.
//!
//! The real server tracks managed fields on the Scale, which has only the replicas of an object, and converts them to the
//! object and back. An entry also holds the API version that its manager used, and the version of a Scale is another
//! one. So a manager that wrote the replicas through the object itself owns them in a separate entry afterwards, without
//! a time. Replicas without an owner stay without one.

use std::collections::BTreeSet;

use serde_json::Value;

use super::managers::{Managed, Manager, Owned, write_entries};
use super::set::{Element, Set};
use super::{Failure, Writer};
use crate::kinds::{Kind, ScalePaths};
use crate::status::ApiError;

const SCALE_VERSION: &str = "autoscaling/v1";

/// How a Scale was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleWrite {
    /// By update or patch.
    Update,
    /// By apply.
    Apply {
        /// Whether the replicas are taken from others.
        force: bool,
    },
}

/// Records in `new` which manager owns the replicas, whether or not they differ from those of `live`.
pub fn track_scale(
    kind: &Kind,
    paths: &ScalePaths,
    live: &Value,
    new: &mut Value,
    writer: Writer<'_>,
    write: ScaleWrite,
) -> Result<(), ApiError> {
    let Some(parent) = Managed::decode(live) else {
        return Ok(());
    };
    let path: Vec<Element> = paths
        .spec
        .split('.')
        .filter(|part| !part.is_empty())
        .map(|part| Element::Field(part.to_owned()))
        .collect();
    let mut replicas = Set::default();
    replicas.insert(&path);
    let count = |object: &Value| {
        object
            .pointer(&paths.spec.replace('.', "/"))
            .and_then(Value::as_i64)
            .unwrap_or(0)
    };
    let holders = parent.0.iter().filter(|(_, owned)| owned.fields.contains(&path));
    let holders = holders.map(|(manager, _)| speaking(manager, SCALE_VERSION)).collect();
    let mut holders = after_write(holders, writer, write, count(live), count(new))?;
    let mut entries = Vec::new();
    for (manager, mut owned) in parent.0 {
        if owned.fields.contains(&path) && !holders.remove(&manager) {
            owned.fields = owned.fields.difference(&replicas);
        }
        if !owned.fields.is_empty() {
            entries.push((manager, owned));
        }
    }
    let version = kind.api_version();
    entries.extend(holders.iter().map(|holder| {
        let owned = Owned {
            version: version.clone(),
            time: None,
            fields: replicas.clone(),
        };
        (speaking(holder, &version), owned)
    }));
    write_entries(entries.iter().map(|(manager, owned)| (manager, owned)).collect(), new);
    Ok(())
}

/// Which managers own the replicas of the Scale after the write. A Scale without replicas omits the field, as with zero.
fn after_write(
    mut holders: BTreeSet<Manager>,
    writer: Writer<'_>,
    write: ScaleWrite,
    before: i64,
    after: i64,
) -> Result<BTreeSet<Manager>, ApiError> {
    let changed = before != after;
    let ScaleWrite::Apply { force } = write else {
        if changed && !holders.is_empty() {
            holders.clear();
            holders.extend((after != 0).then(|| writer.manager(false, SCALE_VERSION)));
        }
        return Ok(holders);
    };
    let me = writer.manager(true, SCALE_VERSION);
    if changed {
        holders.remove(&me);
        if !force && !holders.is_empty() {
            let path = ["spec", "replicas"].map(|part| Element::Field(part.to_owned()));
            let conflicts = holders.into_iter().map(|holder| (holder, path.to_vec())).collect();
            return Err(Failure::Conflicts(conflicts).into_error());
        }
        holders.clear();
    }
    holders.extend((after != 0).then_some(me));
    Ok(holders)
}

/// The same manager in another version; appliers have none.
fn speaking(manager: &Manager, version: &str) -> Manager {
    Manager {
        version: if manager.applies {
            String::new()
        } else {
            version.to_owned()
        },
        ..manager.clone()
    }
}
