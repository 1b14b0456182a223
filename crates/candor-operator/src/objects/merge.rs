//! A partial container laid over another, as `kubectl patch` would do it: objects by field, the lists that have a key
//! by that key, everything else replaced.

use serde_json::{Map, Value};

/// The lists inside a container whose entries are found by a key.
const KEYED: &[(&str, &str)] = &[
    ("env", "name"),
    ("ports", "containerPort"),
    ("volumeDevices", "devicePath"),
    ("volumeMounts", "mountPath"),
];

/// Lays `over` on `base`. A null takes a field away.
pub(super) fn merge(base: &mut Value, over: &Value) {
    let (Value::Object(fields), Value::Object(over)) = (&mut *base, over) else {
        *base = over.clone();
        return;
    };
    for (name, value) in over {
        merge_field(fields, name, value);
    }
}

fn merge_field(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        fields.remove(name);
        return;
    }
    let key = KEYED.iter().find(|(list, _)| *list == name).map(|(_, key)| *key);
    match (fields.get_mut(name), key, value) {
        (Some(Value::Array(base)), Some(key), Value::Array(over)) => merge_list(base, over, key),
        (Some(base @ Value::Object(_)), _, Value::Object(over)) => {
            one_way(base, over);
            merge(base, value);
        }
        _ => {
            fields.insert(name.to_owned(), value.clone());
        }
    }
}

/// A probe asks in one way: another one beside it would be refused.
fn one_way(base: &mut Value, over: &Map<String, Value>) {
    const WAYS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
    if let Value::Object(fields) = base
        && WAYS.iter().any(|way| over.contains_key(*way))
    {
        fields.retain(|name, _| !WAYS.contains(&name.as_str()));
    }
}

fn merge_list(base: &mut Vec<Value>, over: &[Value], key: &str) {
    for entry in over {
        let same = |other: &&mut Value| entry.get(key).is_some() && other.get(key) == entry.get(key);
        match base.iter_mut().find(same) {
            // An environment variable has a value or a source of it, never both.
            Some(known) if key == "name" => *known = entry.clone(),
            Some(known) => merge(known, entry),
            None => base.push(entry.clone()),
        }
    }
}
