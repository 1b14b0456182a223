//! Reading an untyped object with the path at hand, so that a value of a wrong type is reported with its path.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// Why an object could not be read: which object, which field, what stood there.
///
/// ```
/// use kube_status::readers::read_value;
/// use serde_json::json;
///
/// let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
///                  "status": {"containerStatuses": "none"}});
/// assert_eq!(
///     read_value(&pod).unwrap_err().to_string(),
///     "cannot read Pod shop/web: status.containerStatuses should be a list, but is a string; \
///      look at the object with `kubectl get -o yaml`"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// A field holds a value of another type than the API defines.
    #[error(
        "cannot read {object}: {field} should be {expected}, but is {found}; look at the object with `kubectl get -o yaml`"
    )]
    WrongType {
        /// Kind and name of the object.
        object: String,
        /// Path of the field, as in `status.conditions[2].status`.
        field: String,
        /// What the API defines.
        expected: &'static str,
        /// What was found instead.
        found: String,
    },
    /// A field that every object of the kind has is absent.
    #[error("cannot read {object}: {field} is missing; look at the object with `kubectl get -o yaml`")]
    Missing {
        /// Kind and name of the object.
        object: String,
        /// Path of the field.
        field: String,
    },
    /// A typed object could not be turned into JSON.
    #[error("cannot read the object: turning it into JSON failed: {problem}; its Serialize implementation is at fault")]
    Serialize {
        /// What the serialiser said.
        problem: String,
    },
}

/// A JSON object and where it stands in the object being read. Absent and `null` are the same, as in the API.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    map: Option<&'a Map<String, Value>>,
    path: String,
    object: &'a str,
}

impl<'a> Fields<'a> {
    pub(super) fn root(value: &'a Value, object: &'a str) -> Result<Self, ReadError> {
        let here = Self {
            map: None,
            path: String::new(),
            object,
        };
        match value {
            Value::Object(map) => Ok(Self { map: Some(map), ..here }),
            other => Err(here.wrong_type("the object itself", "a map", other)),
        }
    }

    /// Whether the map is there at all.
    pub(super) fn is_present(&self) -> bool {
        self.map.is_some()
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.map?.get(name).filter(|value| !value.is_null())
    }

    /// A nested map; an absent one reads as a map without fields.
    pub(super) fn map(&self, name: &str) -> Result<Self, ReadError> {
        let map = match self.get(name) {
            None => None,
            Some(Value::Object(map)) => Some(map),
            Some(other) => return Err(self.wrong_type(name, "a map", other)),
        };
        Ok(Self {
            map,
            path: self.path_of(name),
            object: self.object,
        })
    }

    /// A list of maps; an absent one is empty.
    pub(super) fn list(&self, name: &str) -> Result<Vec<Self>, ReadError> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let Value::Array(items) = value else {
            return Err(self.wrong_type(name, "a list", value));
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                let path = format!("{}[{index}]", self.path_of(name));
                match item {
                    Value::Object(map) => Ok(Self {
                        map: Some(map),
                        path,
                        object: self.object,
                    }),
                    other => Err(self.wrong_type(&format!("{name}[{index}]"), "a map", other)),
                }
            })
            .collect()
    }

    pub(super) fn strings(&self, name: &str) -> Result<Vec<&'a str>, ReadError> {
        let Some(value) = self.get(name) else {
            return Ok(Vec::new());
        };
        let Value::Array(items) = value else {
            return Err(self.wrong_type(name, "a list", value));
        };
        items
            .iter()
            .enumerate()
            .map(|(index, item)| {
                item.as_str()
                    .ok_or_else(|| self.wrong_type(&format!("{name}[{index}]"), "a string", item))
            })
            .collect()
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, ReadError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }

    /// A string, empty when absent.
    pub(super) fn text_or_empty(&self, name: &str) -> Result<&'a str, ReadError> {
        Ok(self.text(name)?.unwrap_or_default())
    }

    pub(super) fn required_text(&self, name: &str) -> Result<&'a str, ReadError> {
        self.text(name)?.ok_or_else(|| ReadError::Missing {
            object: self.object.to_owned(),
            field: self.path_of(name),
        })
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<i64>, ReadError> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => value
                .as_i64()
                .map(Some)
                .ok_or_else(|| self.wrong_type(name, "a whole number", value)),
        }
    }

    /// An `int32` of the API. The range is checked, so that sums and differences of counts cannot overflow.
    pub(super) fn small(&self, name: &str) -> Result<Option<i64>, ReadError> {
        let number = self.number(name)?;
        match number.map(i32::try_from) {
            Some(Err(_)) => Err(ReadError::WrongType {
                object: self.object.to_owned(),
                field: self.path_of(name),
                expected: "a 32-bit number",
                found: number.unwrap_or_default().to_string(),
            }),
            _ => Ok(number),
        }
    }

    /// A count, 0 when absent: the API leaves zeros out.
    pub(super) fn count(&self, name: &str) -> Result<i64, ReadError> {
        Ok(self.small(name)?.unwrap_or(0))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, ReadError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong_type(name, "true or false", other)),
        }
    }

    pub(super) fn time(&self, name: &str) -> Result<Option<Timestamp>, ReadError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ReadError::WrongType {
            object: self.object.to_owned(),
            field: self.path_of(name),
            expected: "a time as in 2006-01-02T15:04:05Z",
            found: format!("{text:?}"),
        })
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn wrong_type(&self, name: &str, expected: &'static str, found: &Value) -> ReadError {
        let found = match found {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(number) if number.is_f64() => "a fraction",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "a map",
        };
        ReadError::WrongType {
            object: self.object.to_owned(),
            field: self.path_of(name),
            expected,
            found: found.to_owned(),
        }
    }
}

/// A condition of any Kubernetes object, read leniently: only type and status are required.
pub(super) struct ObservedCondition<'a> {
    pub(super) type_: &'a str,
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) severity: &'a str,
    pub(super) since: Option<Timestamp>,
    pub(super) observed_generation: Option<i64>,
}

impl ObservedCondition<'_> {
    pub(super) fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub(super) fn is_false(&self) -> bool {
        self.status == "False"
    }
}

/// The object's `status.conditions`. Every entry is checked, also those that are not used.
pub(super) struct ObservedConditions<'a>(Vec<ObservedCondition<'a>>);

impl<'a> ObservedConditions<'a> {
    pub(super) fn of(status: &Fields<'a>) -> Result<Self, ReadError> {
        let list = status.list("conditions")?;
        list.iter()
            .map(|entry| {
                Ok(ObservedCondition {
                    type_: entry.required_text("type")?,
                    status: entry.required_text("status")?,
                    reason: entry.text_or_empty("reason")?,
                    message: entry.text_or_empty("message")?,
                    severity: entry.text_or_empty("severity")?,
                    since: entry.time("lastTransitionTime")?,
                    observed_generation: entry.number("observedGeneration")?,
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn find(&self, type_: &str) -> Option<&ObservedCondition<'a>> {
        self.0.iter().find(|observed| observed.type_ == type_)
    }

    pub(super) fn find_true(&self, type_: &str) -> Option<&ObservedCondition<'a>> {
        self.find(type_).filter(|observed| observed.is_true())
    }

    pub(super) fn types(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|observed| observed.type_)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
