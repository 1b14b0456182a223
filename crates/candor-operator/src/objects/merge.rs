//! Merges a partial container, pod or Service over another one as `kubectl patch` does: objects by field, lists with a
//! merge key by that key. All other values are replaced.

use serde_json::{Map, Value};

/// The lists with a merge key, and whether an entry in both lists is merged or replaced.
const KEYED: &[(&str, &str, Entry)] = &[
    ("containers", "name", Entry::Merged),
    // An environment variable has either a value or a value source, never both.
    ("env", "name", Entry::Replaced),
    ("hostAliases", "ip", Entry::Replaced),
    ("imagePullSecrets", "name", Entry::Replaced),
    ("initContainers", "name", Entry::Merged),
    ("ports", "containerPort", Entry::Merged),
    ("topologySpreadConstraints", "topologyKey", Entry::Merged),
    ("volumeDevices", "devicePath", Entry::Merged),
    ("volumeMounts", "mountPath", Entry::Merged),
    // A volume has exactly one source.
    ("volumes", "name", Entry::Replaced),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    Merged,
    Replaced,
}

/// Merges `over` into `base`. A null removes a field.
pub(crate) fn merge(base: &mut Value, over: &Value) {
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
    let keyed = KEYED.iter().find(|(list, _, _)| *list == name);
    match (fields.get_mut(name), keyed, value) {
        (Some(Value::Array(base)), Some((_, key, entry)), Value::Array(over)) => {
            // The ports of a Service have another merge key than the ports of a container.
            let of_service = *key == "containerPort" && base.iter().chain(over).all(|port| port.get(key).is_none());
            merge_list(base, over, if of_service { "port" } else { key }, *entry);
        }
        (Some(base @ Value::Object(_)), _, Value::Object(over)) => {
            one_way(base, over);
            merge(base, value);
        }
        _ => {
            fields.insert(name.to_owned(), value.clone());
        }
    }
}

/// A probe has exactly one handler. The API server rejects a probe with two.
fn one_way(base: &mut Value, over: &Map<String, Value>) {
    const WAYS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
    if let Value::Object(fields) = base
        && WAYS.iter().any(|way| over.contains_key(*way))
    {
        fields.retain(|name, _| !WAYS.contains(&name.as_str()));
    }
}

fn merge_list(base: &mut Vec<Value>, over: &[Value], key: &str, both: Entry) {
    for entry in over {
        let same = |other: &&mut Value| entry.get(key).is_some() && other.get(key) == entry.get(key);
        match base.iter_mut().find(same) {
            Some(known) if both == Entry::Replaced => *known = entry.clone(),
            Some(known) => merge(known, entry),
            None => base.push(entry.clone()),
        }
    }
}
