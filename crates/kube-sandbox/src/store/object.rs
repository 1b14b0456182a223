//! One stored object and its name in the table.

use std::sync::OnceLock;

use bytes::Bytes;
use serde_json::Value;

/// Where an object is in its table; the order is the order of lists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Empty for cluster-wide objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

impl ObjectKey {
    /// A key; `namespace` is empty for cluster-wide objects.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// An object as it was at one revision. Its JSON is serialised once, on first use.
#[derive(Debug)]
pub struct Object {
    value: Value,
    revision: u64,
    json: OnceLock<Serialised>,
}

fn weight(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| 2 * size_of::<Value>() + key.len() + weight(value))
            .sum(),
        _ => 0,
    };
    size_of::<Value>() + below
}

#[derive(Debug)]
struct Serialised {
    bytes: Bytes,
    /// Where `metadata` begins: after `{"kind":"Pod","apiVersion":"v1",`.
    body: usize,
}

impl Object {
    /// Takes a value and stamps `metadata.resourceVersion` with the revision.
    pub fn new(mut value: Value, revision: u64) -> Self {
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.insert("resourceVersion".into(), Value::String(revision.to_string()));
        }
        Self {
            value,
            revision,
            json: OnceLock::new(),
        }
    }

    /// An object that is nowhere stored: the answer of a dry run.
    pub fn unversioned(value: Value) -> Self {
        Self {
            value,
            revision: 0,
            json: OnceLock::new(),
        }
    }

    /// A stored object in another form, with the revision it has.
    pub fn at_revision(value: Value, revision: u64) -> Self {
        Self {
            value,
            revision,
            json: OnceLock::new(),
        }
    }

    /// About how much memory it takes, which is a multiple of its JSON.
    pub(super) fn weight(&self) -> usize {
        weight(&self.value)
    }

    /// The object itself.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The revision that wrote it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The whole object as JSON: kind, apiVersion, then the rest.
    pub fn json(&self) -> Bytes {
        self.serialised().bytes.clone()
    }

    /// The fields without kind and apiVersion, from `"metadata":` up to and with the closing brace: built-in
    /// lists carry their items without the two.
    pub fn json_fields(&self) -> Bytes {
        let serialised = self.serialised();
        serialised.bytes.slice(serialised.body..)
    }

    fn serialised(&self) -> &Serialised {
        self.json.get_or_init(|| serialise(&self.value))
    }
}

fn serialise(value: &Value) -> Serialised {
    let mut out = Vec::with_capacity(512);
    out.push(b'{');
    let Some(map) = value.as_object() else {
        return Serialised {
            bytes: Bytes::from(value.to_string()),
            body: 0,
        };
    };
    for head in ["kind", "apiVersion"] {
        if let Some(v) = map.get(head) {
            write_field(&mut out, head, v);
        }
    }
    let body = out.len();
    for (name, v) in map.iter().filter(|(k, _)| *k != "kind" && *k != "apiVersion") {
        write_field(&mut out, name, v);
    }
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b'}');
    Serialised {
        body: body.min(out.len() - 1),
        bytes: Bytes::from(out),
    }
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &Value) {
    out.extend_from_slice(Value::from(name).to_string().as_bytes());
    out.push(b':');
    // Writing a Value into a Vec cannot fail: it has no maps with keys that are not strings.
    let _ = serde_json::to_writer(&mut *out, value);
    out.push(b',');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_json_starts_with_kind_and_api_version_which_can_be_left_out() {
        let object = Object::new(
            json!({"apiVersion": "v1", "data": {"a": "b"}, "kind": "ConfigMap", "metadata": {"name": "x"}}),
            7,
        );
        assert_eq!(
            &object.json()[..],
            br#"{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"b"},"metadata":{"name":"x","resourceVersion":"7"}}"#
        );
        assert_eq!(
            &object.json_fields()[..],
            br#""data":{"a":"b"},"metadata":{"name":"x","resourceVersion":"7"}}"#
        );
    }
}
