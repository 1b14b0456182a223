//! Objects known only as JSON: reads and writes their conditions, and loses nothing.

mod fields;
mod object;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value};

use crate::malformed::{Malformed, Problem};
use crate::{Conditioned, ConditionedMut, Conventions};

pub use fields::Fields;
use fields::{read_list, type_name};
pub use object::UntypedObject;

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

/// An object read from JSON, or from kube's `DynamicObject` (feature `client`).
///
/// Writing it back loses nothing: fields that this library does not know stay, and so does what it could only guess, such
/// as a missing time.
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
    conventions: Conventions,
    conditions: Vec<C>,
    /// The conditions as they were read, with the JSON they were read from.
    read: Vec<(C, Map<String, Value>)>,
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
pub trait Readable: crate::patch::private::Sealed + Clone + PartialEq + serde::Serialize {
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
    pub fn read(object: &impl UntypedObject) -> Result<Self, Malformed> {
        let beside = object
            .body()
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
    pub fn read_at(object: &impl UntypedObject, location: Location) -> Result<Self, Malformed> {
        let (kind, name) = (object.kind().to_owned(), object.name().to_owned());
        let prominent = kind == "Machine" && object.has_label(CONTROL_PLANE_LABEL);
        let label = format!("{kind} {name:?}");
        let (conditions, entries) = read_list::<C>(object.body(), &label, location)?;
        Ok(Self {
            generation: object.generation(),
            kind,
            name,
            prominent,
            location,
            conventions: Conventions::STANDARD,
            read: conditions.iter().cloned().zip(entries).collect(),
            conditions,
        })
    }

    /// The same object with the conventions of another API.
    ///
    /// ```
    /// use kube_status::{Condition, Conditioned, Conventions, Untyped};
    /// let object = serde_json::json!({"kind": "Cluster"});
    /// let cluster = Untyped::<Condition>::read(&object)?.with_conventions(Conventions::CLUSTER_API);
    /// assert_eq!(cluster.conventions(), Conventions::CLUSTER_API);
    /// # Ok::<_, kube_status::Malformed>(())
    /// ```
    #[must_use]
    pub fn with_conventions(mut self, conventions: Conventions) -> Self {
        self.conventions = conventions;
        self
    }

    /// Writes the conditions back to where they were read; everything else in the object stays as it is. Of a condition
    /// that was read only the fields that changed are written.
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
    pub fn write_to(&self, object: &mut impl UntypedObject) -> Result<(), Malformed> {
        let label = format!("{} {:?}", self.kind, self.name);
        let wrong_type = |field: String, expected, found: &Value| Malformed {
            object: label.clone(),
            field,
            problem: Problem::WrongType {
                expected,
                found: type_name(found),
            },
        };
        let list: Result<Vec<Value>, _> = self.conditions.iter().map(|one| self.entry(one)).collect();
        let list = list.map_err(|_| wrong_type(self.location.to_string(), "conditions", &Value::Null))?;
        let mut at = object.body_mut();
        let mut path = String::new();
        for step in self.location.0 {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            if !at.is_object() {
                return Err(wrong_type(path, "an object", at));
            }
            at = &mut at[*step];
            path = if path.is_empty() {
                (*step).to_owned()
            } else {
                format!("{path}.{step}")
            };
        }
        *at = Value::Array(list);
        Ok(())
    }

    /// One condition as JSON: as it was read where nothing changed, else with the fields that changed.
    fn entry(&self, condition: &C) -> serde_json::Result<Value> {
        let type_ = condition.type_of();
        let Some((read, entry)) = self.read.iter().find(|(read, _)| read.type_of() == type_) else {
            return serde_json::to_value(condition);
        };
        let mut entry = entry.clone();
        let (before, after) = (serde_json::to_value(read)?, serde_json::to_value(condition)?);
        let names = |fields: &Value| {
            fields
                .as_object()
                .into_iter()
                .flat_map(Map::keys)
                .cloned()
                .collect::<Vec<_>>()
        };
        for name in names(&before).into_iter().chain(names(&after)) {
            match after.get(&name) {
                now if now == before.get(&name) => {}
                Some(now) => drop(entry.insert(name, now.clone())),
                None => drop(entry.remove(&name)),
            }
        }
        Ok(Value::Object(entry))
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
    fn conventions(&self) -> Conventions {
        self.conventions
    }
}

impl<C: Readable> ConditionedMut<C> for Untyped<C> {
    fn conditions_mut(&mut self) -> &mut Vec<C> {
        &mut self.conditions
    }
}
