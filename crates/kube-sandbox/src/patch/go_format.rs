//! Patches as the real server prints them in its errors.

use serde_json::Value;

/// A patch without the directives that took effect: those of maps and lists that the patched object has. The real server
/// prints it after it has removed them.
pub(crate) fn used(patch: &Value, object: &Value) -> Value {
    match patch {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(key, _)| !key.starts_with('$'));
            let used = fields.map(|(key, value)| {
                let value = object
                    .get(key)
                    .map_or_else(|| value.clone(), |found| used(value, found));
                (key.clone(), value)
            });
            Value::Object(used.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| used(item, item)).collect()),
        other => other.clone(),
    }
}

/// A value as Go prints it: `map[a:1 b:[x y]]`, text without quotes.
pub(crate) fn go_format(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_format(value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_format).collect();
            format!("[{}]", items.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{go_format, used};

    #[test]
    fn patches_are_printed_as_go_prints_maps() {
        for (patch, expected) in [
            (
                json!({"spec": {"renewTime": "yesterday"}}),
                "map[spec:map[renewTime:yesterday]]",
            ),
            (
                json!({"a": 7, "l": {"$patch": "replace"}}),
                "map[a:7 l:map[$patch:replace]]",
            ),
            (json!({"a": [1, "b", null, true]}), "map[a:[1 b <nil> true]]"),
        ] {
            assert_eq!(go_format(&patch), expected);
        }
    }

    #[test]
    fn directives_are_printed_where_the_object_had_nothing_for_them() {
        let patch = json!({"metadata": {"labels": {"$patch": "replace"}, "annotations": {"$patch": "replace"}}});
        let object = json!({"metadata": {"labels": {"a": "b"}}});
        let expected = json!({"metadata": {"labels": {}, "annotations": {"$patch": "replace"}}});
        assert_eq!(used(&patch, &object), expected);
    }
}
