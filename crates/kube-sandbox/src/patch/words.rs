//! Patches as the real server prints them in a complaint.

use serde_json::Value;

/// A value as Go prints it: `map[a:1 b:[x y]]`, text without quotes. Directives are gone by the time it is printed.
pub(crate) fn go_words(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields = map.iter().filter(|(key, _)| !key.starts_with('$'));
            let words: Vec<String> = fields
                .map(|(key, value)| format!("{key}:{}", go_words(value)))
                .collect();
            format!("map[{}]", words.join(" "))
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(go_words).collect();
            format!("[{}]", words.join(" "))
        }
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::go_words;

    #[test]
    fn patches_are_printed_as_go_prints_maps() {
        for (patch, words) in [
            (
                json!({"spec": {"renewTime": "yesterday"}}),
                "map[spec:map[renewTime:yesterday]]",
            ),
            (json!({"a": 7, "l": {"$patch": "replace"}}), "map[a:7 l:map[]]"),
            (json!({"a": [1, "b", null, true]}), "map[a:[1 b <nil> true]]"),
        ] {
            assert_eq!(go_words(&patch), words);
        }
    }
}
