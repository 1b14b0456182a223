//! Objects known only as JSON: reads and writes their conditions, and loses nothing.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, Value};

use crate::malformed::{Malformed, Problem, STATUS_WORDS};
use crate::severity::Severity;
use crate::{Conditioned, ConditionedMut, GradedCondition, Status, severity};

/// The reason a condition gets that was read without one: generation 1 may omit it, generation 2 may not.
///
/// ```
/// assert_eq!(kube_status::NO_REASON_REPORTED, "NoReasonReported");
/// ```
pub const NO_REASON_REPORTED: &str = "NoReasonReported";

/// Machines with this label belong to a control plane: an aggregate lists them first.
const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";

/// Where an object keeps its conditions.
///
/// ```
/// use kube_status::{Location, Untyped, severity};
/// let object = serde_json::json!({"kind": "Cluster", "status": {"deprecated": {"v1beta1": {"conditions": []}}}});
/// let cluster = Untyped::<severity::Condition>::read_at(&object, Location::DEPRECATED_V1BETA1)?;
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(&'static [&'static str]);

impl Location {
    /// `status.conditions`.
    ///
    /// ```
    /// assert_eq!(kube_status::Location::STATUS.to_string(), "status.conditions");
    /// ```
    pub const STATUS: Self = Self(&["status", "conditions"]);
    /// `status.v1beta2.conditions`: generation 2 beside generation 1.
    ///
    /// ```
    /// assert_eq!(kube_status::Location::V1BETA2.to_string(), "status.v1beta2.conditions");
    /// ```
    pub const V1BETA2: Self = Self(&["status", "v1beta2", "conditions"]);
    /// `status.deprecated.v1beta1.conditions`: generation 1 beside generation 2.
    ///
    /// ```
    /// use kube_status::Location;
    /// assert_eq!(Location::DEPRECATED_V1BETA1.to_string(), "status.deprecated.v1beta1.conditions");
    /// ```
    pub const DEPRECATED_V1BETA1: Self = Self(&["status", "deprecated", "v1beta1", "conditions"]);

    /// Any other place.
    ///
    /// ```
    /// let place = kube_status::Location::at(&["status", "health", "conditions"]);
    /// assert_eq!(place.to_string(), "status.health.conditions");
    /// ```
    pub const fn at(path: &'static [&'static str]) -> Self {
        Self(path)
    }

    /// The fields on the way there.
    #[cfg(feature = "client")]
    pub(crate) fn steps(self) -> &'static [&'static str] {
        self.0
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// An object read from JSON.
///
/// ```
/// use kube_status::{Condition, Conditioned, Untyped, is_true};
/// let object = serde_json::json!({
///     "kind": "Server",
///     "metadata": {"name": "m1", "generation": 2},
///     "status": {"conditions": [
///         {"type": "Ready", "status": "True", "reason": "Up", "lastTransitionTime": "2026-02-05T10:00:00Z"},
///     ]},
/// });
/// let server = Untyped::<Condition>::read(&object)?;
/// assert!(is_true(server.conditions(), "Ready"));
/// # Ok::<_, kube_status::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Untyped<C = Condition> {
    kind: String,
    name: String,
    generation: i64,
    prominent: bool,
    location: Location,
    conditions: Vec<C>,
}

/// A condition that can be read from JSON; implemented for both generations.
///
/// ```
/// use kube_status::{Conditioned, GradedCondition, Location, Malformed, Readable, Untyped};
/// fn count<C: Readable>(object: &serde_json::Value) -> Result<usize, Malformed> {
///     Ok(Untyped::<C>::read_at(object, Location::STATUS)?.conditions().len())
/// }
/// assert_eq!(count::<GradedCondition>(&serde_json::json!({"kind": "Cache"}))?, 0);
/// # Ok::<_, Malformed>(())
/// ```
pub trait Readable: crate::patch::private::Sealed + Sized + serde::Serialize {
    #[doc(hidden)]
    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed>;
    #[doc(hidden)]
    fn type_of(&self) -> &str;
}

impl Untyped<Condition> {
    /// Reads generation 2 from where the object has it: `status.v1beta2.conditions`, else `status.conditions`.
    ///
    /// Conditions of generation 1 in `status.conditions` are read as well as they can be: the severity has no place,
    /// and a missing reason becomes [`NO_REASON_REPORTED`]. That is enough to mirror them.
    ///
    /// ```
    /// use kube_status::{Condition, Conditioned, Untyped, NO_REASON_REPORTED};
    /// let old = serde_json::json!({"kind": "Server", "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    /// assert_eq!(Untyped::<Condition>::read(&old)?.conditions()[0].reason, NO_REASON_REPORTED);
    /// # Ok::<_, kube_status::Malformed>(())
    /// ```
    pub fn read(object: &Value) -> Result<Self, Malformed> {
        let beside = object
            .pointer("/status/v1beta2/conditions")
            .is_some_and(|found| !found.is_null());
        Self::read_at(object, if beside { Location::V1BETA2 } else { Location::STATUS })
    }
}

impl<C: Readable> Untyped<C> {
    /// Reads the conditions at a place. An object without any has none; a place of another shape is an error.
    ///
    /// ```
    /// use kube_status::{Condition, Location, Untyped};
    /// let wrong = serde_json::json!({"kind": "Server", "status": "fine"});
    /// let error = Untyped::<Condition>::read_at(&wrong, Location::STATUS).unwrap_err();
    /// assert_eq!(error.field, "status");
    /// ```
    pub fn read_at(object: &Value, location: Location) -> Result<Self, Malformed> {
        let text = |pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let generation = object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
        let prominent = kind == "Machine" && labels.is_some_and(|labels| labels.contains_key(CONTROL_PLANE_LABEL));
        let label = format!("{kind} {name:?}");
        let conditions = read_list(object, &label, location)?;
        Ok(Self {
            kind,
            name,
            generation,
            prominent,
            location,
            conditions,
        })
    }

    /// Writes the conditions back to where they were read; everything else in the object stays as it is.
    ///
    /// ```
    /// use kube_status::{Condition, Draft, Status, Untyped, set};
    /// let mut object = serde_json::json!({"kind": "Server", "metadata": {"name": "m1"}, "spec": {}});
    /// let mut server = Untyped::<Condition>::read(&object)?;
    /// let _ = set(&mut server, Draft::new("Ready", Status::True, "Up"), jiff::Timestamp::UNIX_EPOCH);
    /// server.write_to(&mut object)?;
    /// assert_eq!(object["status"]["conditions"][0]["message"], "");
    /// # Ok::<_, kube_status::Malformed>(())
    /// ```
    pub fn write_to(&self, object: &mut Value) -> Result<(), Malformed> {
        let label = format!("{} {:?}", self.kind, self.name);
        let shape = |field: String, expected, found: &Value| Malformed {
            object: label.clone(),
            field,
            problem: Problem::Shape {
                expected,
                found: shape_of(found),
            },
        };
        let mut at = object;
        let mut path = String::new();
        for step in self.location.0 {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            if !at.is_object() {
                return Err(shape(path, "an object", at));
            }
            at = &mut at[*step];
            path = if path.is_empty() {
                (*step).to_owned()
            } else {
                format!("{path}.{step}")
            };
        }
        *at = serde_json::to_value(&self.conditions).map_err(|_| shape(path, "conditions", &Value::Null))?;
        Ok(())
    }
}

impl<C: Readable> Conditioned<C> for Untyped<C> {
    fn kind(&self) -> &str {
        &self.kind
    }
    fn name(&self) -> &str {
        &self.name
    }
    fn generation(&self) -> i64 {
        self.generation
    }
    fn conditions(&self) -> &[C] {
        &self.conditions
    }
    fn is_prominent(&self) -> bool {
        self.prominent
    }
}

impl<C: Readable> ConditionedMut<C> for Untyped<C> {
    fn conditions_mut(&mut self) -> &mut Vec<C> {
        &mut self.conditions
    }
}

fn read_list<C: Readable>(object: &Value, label: &str, location: Location) -> Result<Vec<C>, Malformed> {
    let fail = |field: String, problem| {
        Err(Malformed {
            object: label.to_owned(),
            field,
            problem,
        })
    };
    let mut at = object;
    for (i, step) in location.0.iter().enumerate() {
        at = match at {
            Value::Object(fields) => fields.get(*step).unwrap_or(&Value::Null),
            Value::Null => return Ok(Vec::new()),
            other => {
                let problem = Problem::Shape {
                    expected: "an object",
                    found: shape_of(other),
                };
                return fail(location.0[..i].join("."), problem);
            }
        };
    }
    let list = match at {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        other => {
            return fail(
                location.to_string(),
                Problem::Shape {
                    expected: "a list",
                    found: shape_of(other),
                },
            );
        }
    };
    let mut conditions: Vec<C> = Vec::with_capacity(list.len());
    for (i, entry) in list.iter().enumerate() {
        let path = format!("{location}[{i}]");
        let Value::Object(fields) = entry else {
            return fail(
                path,
                Problem::Shape {
                    expected: "an object",
                    found: shape_of(entry),
                },
            );
        };
        let condition = C::from_fields(&Fields {
            object: label,
            path: &path,
            entries: fields,
        })?;
        if conditions
            .iter()
            .any(|earlier| earlier.type_of() == condition.type_of())
        {
            return fail(
                format!("{path}.type"),
                Problem::Duplicate(condition.type_of().to_owned()),
            );
        }
        conditions.push(condition);
    }
    Ok(conditions)
}

fn shape_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The fields of one condition, with what an error about them needs.
#[derive(Debug)]
pub struct Fields<'v> {
    object: &'v str,
    path: &'v str,
    entries: &'v Map<String, Value>,
}

impl<'v> Fields<'v> {
    fn fail<T>(&self, field: &str, problem: Problem) -> Result<T, Malformed> {
        Err(Malformed {
            object: self.object.to_owned(),
            field: format!("{}.{field}", self.path),
            problem,
        })
    }

    fn text(&self, field: &str) -> Result<&'v str, Malformed> {
        match self.entries.get(field) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(other) => self.fail(
                field,
                Problem::Shape {
                    expected: "a text",
                    found: shape_of(other),
                },
            ),
        }
    }

    fn required(&self, field: &str) -> Result<&'v str, Malformed> {
        match (self.entries.contains_key(field), self.text(field)?) {
            (false, _) => self.fail(field, Problem::Missing),
            (true, "") => self.fail(field, Problem::Empty),
            (true, text) => Ok(text),
        }
    }

    fn status(&self) -> Result<Status, Malformed> {
        let word = self.required("status")?;
        let unknown = |_| Problem::Word {
            found: word.to_owned(),
            known: STATUS_WORDS,
        };
        word.parse()
            .or_else(|error: crate::UnknownStatus| self.fail("status", unknown(error)))
    }

    fn severity(&self) -> Result<Option<Severity>, Malformed> {
        match self.text("severity")? {
            "" => Ok(None),
            "Error" => Ok(Some(Severity::Error)),
            "Warning" => Ok(Some(Severity::Warning)),
            "Info" => Ok(Some(Severity::Info)),
            other => {
                let problem = Problem::Word {
                    found: other.to_owned(),
                    known: "Error, Warning, Info",
                };
                self.fail("severity", problem)
            }
        }
    }

    fn time(&self) -> Result<Option<Timestamp>, Malformed> {
        match self.text("lastTransitionTime")? {
            "" => Ok(None),
            text => text.parse().map(Some).or_else(|_| {
                let problem = Problem::Time(text.to_owned());
                self.fail("lastTransitionTime", problem)
            }),
        }
    }

    fn number(&self, field: &str) -> Result<Option<i64>, Malformed> {
        match self.entries.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => self.fail(
                    field,
                    Problem::Shape {
                        expected: "a whole number",
                        found: shape_of(value),
                    },
                ),
            },
        }
    }
}

impl Readable for Condition {
    /// A condition without a time is given the epoch, which stands for "not known": a mirror does not carry it on.
    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed> {
        let reason = match fields.text("reason")? {
            "" => NO_REASON_REPORTED,
            reason => reason,
        };
        Ok(Self {
            type_: fields.required("type")?.to_owned(),
            status: fields.status()?.as_str().to_owned(),
            observed_generation: fields.number("observedGeneration")?,
            last_transition_time: Time(fields.time()?.unwrap_or(Timestamp::UNIX_EPOCH)),
            reason: reason.to_owned(),
            message: fields.text("message")?.to_owned(),
        })
    }

    fn type_of(&self) -> &str {
        &self.type_
    }
}

impl Readable for GradedCondition {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self::read(Condition::from_fields(fields)?, fields.severity()?))
    }

    fn type_of(&self) -> &str {
        &self.type_
    }
}

impl Readable for severity::Condition {
    fn from_fields(fields: &Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            type_: fields.required("type")?.to_owned(),
            status: fields.status()?,
            severity: fields.severity()?,
            last_transition_time: fields.time()?,
            reason: fields.text("reason")?.to_owned(),
            message: fields.text("message")?.to_owned(),
        })
    }

    fn type_of(&self) -> &str {
        self.type_()
    }
}
