//! The conditions of an object that others write to as well.

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{Api, Patch as Sent, PatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::document::{Document, is_same_content, shorten};
use super::{StatusWriter, WriteError, Written, is};
use crate::{Conditioned, Location, Ownership, Patch, Patchable, Readable, Untyped};

/// What this controller has to say on an object that others write to as well.
///
/// ```
/// use kube_status::writer::Shared;
/// use kube_status::{Condition, Draft, Location, Ownership, Status};
///
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// let after = [Draft::new("BackupReady", Status::True, "Done").into_condition(1, now)];
/// let shared = Shared::new(&after, now).at(Location::V1BETA2).ownership(Ownership::of(["BackupReady"]));
/// # let _ = shared;
/// ```
#[derive(Debug, Clone)]
#[must_use = "writes nothing by itself"]
pub struct Shared<'a, C> {
    after: &'a [C],
    now: Timestamp,
    location: Location,
    ownership: Ownership<'a>,
    fields: Option<&'a Value>,
}

impl<'a, C> Shared<'a, C> {
    /// The conditions as they should be after this reconcile, those of other writers included as they were read.
    ///
    /// ```
    /// use kube_status::writer::Shared;
    /// use kube_status::Draft;
    ///
    /// let now = jiff::Timestamp::UNIX_EPOCH;
    /// let after = [Draft::good("BackupReady", "Done").into_condition(1, now)];
    /// let shared = Shared::new(&after, now);
    /// # let _ = shared;
    /// ```
    pub fn new(after: &'a [C], now: Timestamp) -> Self {
        Self {
            after,
            now,
            location: Location::STATUS,
            ownership: Ownership::none(),
            fields: None,
        }
    }

    /// Where the conditions stand; `status.conditions` if not given.
    ///
    /// ```
    /// use kube_status::writer::Shared;
    /// use kube_status::{Draft, Location};
    ///
    /// let now = jiff::Timestamp::UNIX_EPOCH;
    /// let after = [Draft::good("BackupReady", "Done").into_condition(1, now)];
    /// let shared = Shared::new(&after, now).at(Location::V1BETA2);
    /// # let _ = shared;
    /// ```
    pub fn at(self, location: Location) -> Self {
        Self { location, ..self }
    }

    /// The types for which this writer wins; without it every disagreement is a conflict.
    ///
    /// ```
    /// use kube_status::writer::Shared;
    /// use kube_status::{Draft, Ownership};
    ///
    /// let now = jiff::Timestamp::UNIX_EPOCH;
    /// let after = [Draft::good("BackupReady", "Done").into_condition(1, now)];
    /// let shared = Shared::new(&after, now).ownership(Ownership::of(["BackupReady"]));
    /// # let _ = shared;
    /// ```
    pub fn ownership(self, ownership: Ownership<'a>) -> Self {
        Self { ownership, ..self }
    }

    /// Other fields of status to set, sent after the conditions as a separate merge patch.
    ///
    /// ```
    /// use kube_status::writer::Shared;
    /// use kube_status::Condition;
    ///
    /// let fields = serde_json::json!({"lastBackup": "2026-02-05T10:00:00Z"});
    /// let shared = Shared::<Condition>::new(&[], jiff::Timestamp::UNIX_EPOCH).fields(&fields);
    /// # let _ = shared;
    /// ```
    pub fn fields(self, fields: &'a Value) -> Self {
        Self {
            fields: Some(fields),
            ..self
        }
    }
}

impl StatusWriter {
    /// Writes what this controller changed on a shared object since it read `observed`, and nothing else.
    ///
    /// The difference between `observed` and the new conditions is applied to the latest version, under its
    /// resourceVersion. After a conflict the latest is read again and the difference is applied again, a limited number of
    /// times. Conditions of other writers are sent back exactly as they were, fields unknown to this library
    /// included. When there is no difference, or the latest has it already, nothing is sent.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_status::writer::{Shared, StatusWriter, WriteError};
    /// use kube_status::{Condition, Ownership};
    ///
    /// # async fn run(api: kube::Api<Pod>, seen: Pod, after: Vec<Condition>, now: jiff::Timestamp) -> Result<(), WriteError> {
    /// let gate = Shared::new(&after, now).ownership(Ownership::of(["shop.io/attached"]));
    /// let written = StatusWriter::new("shop-controller").patch(&api, &seen, &gate).await?;
    /// # let _ = written;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn patch<K, C>(
        &self,
        api: &Api<K>,
        observed: &K,
        shared: &Shared<'_, C>,
    ) -> Result<Written<K>, WriteError>
    where
        K: Clone + Debug + Serialize + DeserializeOwned,
        C: Patchable + Readable,
    {
        let observed = Document::of(observed)?;
        let before = conditions_of::<C>(&observed, shared.location)?;
        // Shortened first: a text that is shortened later would always differ from the stored one.
        let after = within_limits(&observed, shared)?;
        let patch = Patch::between(&before, after.as_deref().unwrap_or(shared.after));
        let conditions = self.send_conditions(api, &observed, &patch, shared).await?;
        let Some(fields) = shared.fields else {
            return Ok(conditions);
        };
        let latest = match &conditions {
            Written::Changed(latest) => Document::of(latest)?,
            Written::Unchanged => observed,
        };
        Ok(match self.send_fields(api, &latest, fields).await? {
            Written::Unchanged => conditions,
            changed @ Written::Changed(_) => changed,
        })
    }

    async fn send_conditions<K, C>(
        &self,
        api: &Api<K>,
        observed: &Document,
        patch: &Patch<C>,
        shared: &Shared<'_, C>,
    ) -> Result<Written<K>, WriteError>
    where
        K: Clone + Debug + Serialize + DeserializeOwned,
        C: Patchable + Readable,
    {
        let mut newer = None;
        for attempt in 0..self.attempts {
            if attempt > 0 {
                tokio::time::sleep(pause(attempt)).await;
                let read = api
                    .get(observed.name()?)
                    .await
                    .map_err(|error| observed.rejected(error))?;
                newer = Some(Document::of(&read)?);
            }
            let latest = newer.as_ref().unwrap_or(observed);
            let Some(body) = next_body(latest, patch, shared)? else {
                return Ok(Written::Unchanged);
            };
            match api
                .patch_status(observed.name()?, &self.merge(), &Sent::Merge(&body))
                .await
            {
                Ok(written) => return Ok(Written::Changed(Box::new(written))),
                Err(error) if is(&error, 409) => {}
                Err(error) => return Err(observed.rejected(error)),
            }
        }
        Err(WriteError::Contended {
            object: observed.called.clone(),
            attempts: self.attempts,
        })
    }

    async fn send_fields<K>(&self, api: &Api<K>, latest: &Document, fields: &Value) -> Result<Written<K>, WriteError>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let status = latest.status().cloned().unwrap_or(Value::Null);
        let mut after = status.clone();
        json_patch::merge(&mut after, fields);
        if is_same_content(&status, &after) {
            return Ok(Written::Unchanged);
        }
        let body = json!({"status": fields});
        match api
            .patch_status(latest.name()?, &self.merge(), &Sent::Merge(&body))
            .await
        {
            Ok(written) => Ok(Written::Changed(Box::new(written))),
            Err(error) => Err(latest.rejected(error)),
        }
    }

    fn merge(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.manager.clone()),
            ..PatchParams::default()
        }
    }
}

/// 10, 20, 40 ms …: long enough for the other writer to be done, short enough for a reconcile.
fn pause(attempt: usize) -> Duration {
    Duration::from_millis(10 << attempt.saturating_sub(1).min(4))
}

fn conditions_of<C: Readable + Clone>(object: &Document, location: Location) -> Result<Vec<C>, WriteError> {
    let read = Untyped::<C>::read_at(&object.json, location).map_err(|source| WriteError::Malformed {
        object: object.called.clone(),
        source,
    })?;
    Ok(read.conditions().to_vec())
}

/// The new conditions with every text within its limit; `None` when they are so already.
fn within_limits<C>(observed: &Document, shared: &Shared<'_, C>) -> Result<Option<Vec<C>>, WriteError>
where
    C: Patchable + Readable,
{
    let written = serde_json::to_value(shared.after).map_err(|source| WriteError::Serialize {
        object: observed.called.clone(),
        source,
    })?;
    let mut short = written.clone();
    short.as_array_mut().into_iter().flatten().for_each(shorten);
    if short == written {
        return Ok(None);
    }
    let object = Document {
        json: nest(shared.location, short),
        called: observed.called.clone(),
    };
    conditions_of(&object, shared.location).map(Some)
}

/// The merge patch that brings the latest version to where it should be; `None` when it is there already.
fn next_body<C: Patchable + Readable>(
    latest: &Document,
    patch: &Patch<C>,
    shared: &Shared<'_, C>,
) -> Result<Option<Value>, WriteError> {
    let current = conditions_of::<C>(latest, shared.location)?;
    let mut next = current.clone();
    let change = patch
        .apply(&mut next, &shared.ownership, shared.now)
        .map_err(|source| WriteError::Conflict {
            object: latest.called.clone(),
            source,
        })?;
    if !change.must_write() {
        return Ok(None);
    }
    let raw = raw_entries(&latest.json, shared.location);
    let entries: Vec<Value> = next
        .iter()
        .map(|condition| {
            let known = current
                .iter()
                .position(|same| same.type_name() == condition.type_name());
            let stored = known.and_then(|at| raw.get(at));
            match (known, stored) {
                // Untouched: exactly as it was, whatever else stands in it.
                (Some(at), Some(stored)) if current[at] == *condition => Ok(stored.clone()),
                (_, stored) => overlay(stored, condition),
            }
        })
        .collect::<Result<_, _>>()
        .map_err(|source| WriteError::Serialize {
            object: latest.called.clone(),
            source,
        })?;
    let mut body = nest(shared.location, Value::Array(entries));
    body["metadata"] = json!({"resourceVersion": latest.version()?});
    Ok(Some(body))
}

/// The stored list, entry by entry as it was parsed.
fn raw_entries(object: &Value, location: Location) -> Vec<Value> {
    let found = location.steps().iter().try_fold(object, |at, step| at.get(step));
    found.and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A changed condition over what is stored under its type, so that foreign fields of the entry stay.
fn overlay(stored: Option<&Value>, condition: &impl Serialize) -> Result<Value, serde_json::Error> {
    let ours = serde_json::to_value(condition)?;
    let mut entry = stored.and_then(Value::as_object).cloned().unwrap_or_default();
    // What this library knows of a condition is ours to say, also that it is not there.
    for field in ["severity", "reason", "message", "observedGeneration"] {
        entry.remove(field);
    }
    if let Value::Object(fields) = ours {
        entry.extend(fields);
    }
    Ok(Value::Object(entry))
}

fn nest(location: Location, list: Value) -> Value {
    location.steps().iter().rev().fold(list, |inner, step| {
        let mut outer = Map::new();
        outer.insert((*step).to_owned(), inner);
        Value::Object(outer)
    })
}
