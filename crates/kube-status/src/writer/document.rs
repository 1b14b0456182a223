//! Status as JSON: what identifies the object, when two statuses say the same, and how texts are kept short.

use serde::Serialize;
use serde_json::{Map, Value};

use super::WriteError;
use crate::limits::{REASON_LIMIT, cut_message, cut_reason};

/// An object as it was read, with what a write needs of it.
pub(super) struct Document {
    pub(super) json: Value,
    /// Kind and name, for messages.
    pub(super) called: String,
}

impl Document {
    pub(super) fn of(object: &impl Serialize) -> Result<Self, WriteError> {
        let json = serde_json::to_value(object).map_err(|source| WriteError::Serialize {
            object: "the object".to_owned(),
            source,
        })?;
        let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, name, namespace) = (text("/kind"), text("/metadata/name"), text("/metadata/namespace"));
        let slash = if namespace.is_empty() { "" } else { "/" };
        let called = format!("{kind} {namespace}{slash}{name}").trim().to_owned();
        Ok(Self { json, called })
    }

    pub(super) fn name(&self) -> Result<&str, WriteError> {
        self.text("/metadata/name", "metadata.name")
    }

    pub(super) fn version(&self) -> Result<&str, WriteError> {
        self.text("/metadata/resourceVersion", "metadata.resourceVersion")
    }

    pub(super) fn text(&self, pointer: &str, field: &'static str) -> Result<&str, WriteError> {
        let found = self.json.pointer(pointer).and_then(Value::as_str);
        found
            .filter(|text| !text.is_empty())
            .ok_or(WriteError::Unidentified { field })
    }

    pub(super) fn status(&self) -> Option<&Value> {
        self.json.get("status")
    }

    /// An error of the API about this object.
    pub(super) fn rejected(&self, source: kube::Error) -> WriteError {
        WriteError::Api {
            object: self.called.clone(),
            source: Box::new(source),
        }
    }
}

/// Without nulls: the API server drops them, so they would make every comparison differ.
pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(list) => list.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Whether two statuses are equal: null means absent, and a list of conditions is a map by type, because the API server
/// may have changed its order while merging.
pub(super) fn is_same_content(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let present = |map: &Map<String, Value>| map.values().filter(|value| !value.is_null()).count();
            present(a) == present(b)
                && a.iter()
                    .filter(|(_, value)| !value.is_null())
                    .all(|(key, value)| b.get(key).is_some_and(|other| is_same_content(value, other)))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => match (by_type(a), by_type(b)) {
            (Some(a), Some(b)) => a.iter().zip(&b).all(|(a, b)| is_same_content(a, b)),
            _ => a.iter().zip(b).all(|(a, b)| is_same_content(a, b)),
        },
        (a, b) => a == b,
    }
}

/// The entries in the order of their types, if every entry has its own type.
fn by_type(list: &[Value]) -> Option<Vec<&Value>> {
    let mut entries: Vec<_> = list
        .iter()
        .map(|entry| Some((entry.get("type")?.as_str()?, entry)))
        .collect::<Option<_>>()?;
    entries.sort_by_key(|(type_, _)| *type_);
    let distinct = entries.windows(2).all(|pair| pair[0].0 != pair[1].0);
    distinct.then(|| entries.into_iter().map(|(_, entry)| entry).collect())
}

/// Shortens the texts of every condition in a status, wherever its conditions stand.
pub(super) fn keep_within_limits(status: &mut Value) {
    let Value::Object(map) = status else { return };
    for (key, value) in map {
        match value {
            Value::Array(list) if key == "conditions" => list.iter_mut().for_each(shorten),
            nested => keep_within_limits(nested),
        }
    }
}

/// Shortens the texts of one condition.
pub(super) fn shorten(condition: &mut Value) {
    if let Some(Value::String(message)) = condition.get_mut("message")
        && let std::borrow::Cow::Owned(short) = cut_message(message)
    {
        *message = short;
    }
    if let Some(Value::String(reason)) = condition.get_mut("reason") {
        let length = cut_reason(reason, REASON_LIMIT).len();
        reason.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_reordered_conditions_are_no_difference() {
        let base = json!({"replicas": 3, "conditions": [{"type": "Ready", "status": "True"}, {"type": "Paused", "status": "False"}]});
        for (other, same) in [
            (
                json!({"replicas": 3, "phase": null, "conditions": [{"type": "Paused", "status": "False"}, {"type": "Ready", "status": "True"}]}),
                true,
            ),
            (json!({"replicas": 4, "conditions": base["conditions"]}), false),
            (json!({"replicas": 3}), false),
            (
                json!({"replicas": 3, "extra": 1, "conditions": base["conditions"]}),
                false,
            ),
            (json!({"replicas": 3, "conditions": [base["conditions"][0]]}), false),
            (
                json!({"replicas": 3, "conditions": [{"type": "Ready", "status": "False"}, base["conditions"][1]]}),
                false,
            ),
        ] {
            assert_eq!(is_same_content(&base, &other), same, "{other}");
            assert_eq!(is_same_content(&other, &base), same, "{other}, the other way round");
        }
        assert!(
            !is_same_content(&json!(["a", "b"]), &json!(["b", "a"])),
            "the order of any other list counts"
        );
        let twice = json!([{"type": "A", "n": 1}, {"type": "A", "n": 2}]);
        let reordered = json!([{"type": "A", "n": 2}, {"type": "A", "n": 1}]);
        assert!(!is_same_content(&twice, &reordered), "a list with duplicates is no map");
        let (a1, b, a2) = (
            json!({"type": "A", "n": 1}),
            json!({"type": "B"}),
            json!({"type": "A", "n": 2}),
        );
        assert!(
            !is_same_content(&json!([a1, b, a2]), &json!([a1, a2, b])),
            "nor are its entries moved"
        );
    }

    #[test]
    fn conditions_are_shortened_wherever_they_stand_and_nothing_else_is() {
        let long = "ä".repeat(40_000);
        let mut status = json!({
            "note": long,
            "conditions": [{"type": "A", "message": long, "reason": "R".repeat(2_000)}, "odd"],
            "v1beta2": {"conditions": [{"type": "A", "message": long}]},
        });
        keep_within_limits(&mut status);
        assert_eq!(status["note"].as_str().unwrap().len(), 80_000);
        assert!(status["conditions"][0]["message"].as_str().unwrap().len() <= 32_768);
        assert_eq!(status["conditions"][0]["reason"].as_str().unwrap().len(), 1_024);
        assert!(status["v1beta2"]["conditions"][0]["message"].as_str().unwrap().len() <= 32_768);
    }
}
