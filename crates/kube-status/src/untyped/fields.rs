//! Reads one list of conditions, field by field, so that an error names the field.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Map, Value};

use super::{Location, NO_REASON_REPORTED, Readable};
use crate::malformed::{Malformed, Problem, STATUS_VALUES};
use crate::severity::Severity;
use crate::{GradedCondition, Status, severity};

/// Conditions with the entries that they were read from.
pub(super) type Entries<C> = (Vec<C>, Vec<Map<String, Value>>);

/// The conditions at a place, and the entries that they were read from.
pub(super) fn read_list<C: Readable>(object: &Value, label: &str, location: Location) -> Result<Entries<C>, Malformed> {
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
            Value::Null => return Ok((Vec::new(), Vec::new())),
            other => {
                let problem = Problem::WrongType {
                    expected: "an object",
                    found: type_name(other),
                };
                return fail(location.0[..i].join("."), problem);
            }
        };
    }
    let list = match at {
        Value::Null => return Ok((Vec::new(), Vec::new())),
        Value::Array(list) => list,
        other => {
            return fail(
                location.to_string(),
                Problem::WrongType {
                    expected: "a list",
                    found: type_name(other),
                },
            );
        }
    };
    let mut conditions: Vec<C> = Vec::with_capacity(list.len());
    let mut entries = Vec::with_capacity(list.len());
    for (i, entry) in list.iter().enumerate() {
        let path = format!("{location}[{i}]");
        let Value::Object(fields) = entry else {
            return fail(
                path,
                Problem::WrongType {
                    expected: "an object",
                    found: type_name(entry),
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
        entries.push(fields.clone());
    }
    Ok((conditions, entries))
}

pub(super) fn type_name(value: &Value) -> &'static str {
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
                Problem::WrongType {
                    expected: "a text",
                    found: type_name(other),
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
        let unknown = |_| Problem::UnknownValue {
            found: word.to_owned(),
            known: STATUS_VALUES,
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
                let problem = Problem::UnknownValue {
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
                    Problem::WrongType {
                        expected: "a whole number",
                        found: type_name(value),
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
