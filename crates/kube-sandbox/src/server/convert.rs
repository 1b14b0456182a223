//! One stored object, seen through the versions and groups that serve it.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::kinds::Kind;
use crate::store::Object;

/// Field names of an event: core v1 and events.k8s.io/v1. The store holds the first.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The object as `kind` shows it. The same object where nothing differs, so that its JSON is written once.
pub fn view(kind: &Kind, object: &Arc<Object>) -> Arc<Object> {
    let expected = kind.api_version();
    if object.value()["apiVersion"] == *expected {
        return object.clone();
    }
    let mut value = object.value().clone();
    value["apiVersion"] = Value::String(expected);
    if kind.group == "events.k8s.io" {
        rename(&mut value, |(core, new)| (core, new));
    }
    Arc::new(Object::at_revision(value, object.revision()))
}

/// The object as it is stored.
pub fn to_storage(kind: &Kind, mut value: Value) -> Value {
    if kind.group == "events.k8s.io" {
        value["apiVersion"] = Value::String("v1".into());
        rename(&mut value, |(core, new)| (new, core));
        // Core events have these fields even when they are not set, and clients sort by them.
        let zero = crate::schema::Schema::builtin("", "v1", "Event").root().zero.clone();
        if let (Some(map), Some(Value::Object(zero))) = (value.as_object_mut(), zero) {
            for (field, empty) in zero {
                map.entry(field).or_insert(empty);
            }
        }
    }
    value
}

fn rename(value: &mut Value, direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(map) = value.as_object_mut() else {
        return;
    };
    let mut renamed = Map::new();
    for pair in EVENT_FIELDS {
        let (from, to) = direction(pair);
        if let Some(field) = map.remove(from) {
            renamed.insert(to.into(), field);
        }
    }
    map.extend(renamed);
}

/// A field of events.k8s.io as the store names it, for selectors.
pub fn stored_field(kind: &Kind, field: &str) -> String {
    if kind.plural != "events" {
        return field.to_owned();
    }
    let (head, rest) = field.split_once('.').map_or((field, None), |(h, r)| (h, Some(r)));
    let head = EVENT_FIELDS
        .iter()
        .find(|(_, new)| *new == head)
        .map_or(head, |(core, _)| core);
    match (head, rest) {
        ("source", None) => "source.component".to_owned(),
        (head, None) => head.to_owned(),
        (head, Some(rest)) => format!("{head}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::to_storage;
    use crate::kinds::Registry;

    #[test]
    fn an_event_of_the_new_group_is_stored_with_the_empty_times_clients_sort_by() {
        let kinds = Registry::builtin();
        let kind = kinds.find_kind("events.k8s.io", "v1", "Event").unwrap();
        let sent =
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "a"}, "note": "said"});
        let stored = to_storage(&kind, sent);
        assert_eq!(stored["message"], "said");
        for field in ["firstTimestamp", "lastTimestamp", "eventTime"] {
            assert_eq!(stored.get(field), Some(&Value::Null), "{field}");
        }
    }
}
