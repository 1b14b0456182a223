//! Errors about applied values of another type than the schema's, worded as the real server's.

use serde_json::Value;

use crate::patch::go_format;
use crate::schema::{Node, Type};

/// What is wrong with a value, its fields and items apart. Null fits everywhere.
pub(super) fn misfit(node: &Node, value: &Value) -> Option<String> {
    let quantity = node
        .name
        .as_deref()
        .is_some_and(|name| name.ends_with("api.resource.Quantity"));
    if value.is_null() || quantity {
        return None;
    }
    let expected = match (node.kind, value) {
        (Type::Object, Value::Object(_))
        | (Type::Array, Value::Array(_))
        | (Type::String, Value::String(_))
        | (Type::Integer | Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Any | Type::IntOrString, _) => return None,
        (Type::Object, _) => "map",
        (Type::Array, _) => "list",
        (Type::String, _) => "string",
        (Type::Integer | Type::Number, _) => "numeric (int or float)",
        (Type::Boolean, _) => "boolean",
    };
    Some(match node.kind {
        Type::String => format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_literal(value)
        ),
        Type::Integer | Type::Number => format!("expected {expected}, got {}", go_type(value)),
        _ => format!("expected {expected}, got &{{{}}}", go_format(value)),
    })
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "map[string]interface {}",
        Value::Array(_) => "[]interface {}",
        Value::Bool(_) => "bool",
        _ => "string",
    }
}

/// A value as a Go program would write it.
fn go_literal(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields: Vec<String> = map.iter().map(|(k, v)| format!("{k:?}:{}", go_literal(v))).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_literal).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        scalar => scalar.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::misfit;
    use crate::schema::Node;

    #[test]
    fn values_of_another_type_have_the_real_servers_message() {
        for (kind, value, message) in [
            ("string", json!("x"), None),
            ("string", json!(null), None),
            (
                "string",
                json!(7),
                Some("expected string, got &value.valueUnstructured{Value:7}"),
            ),
            (
                "string",
                json!({"b": 1}),
                Some("expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"b\":1}}"),
            ),
            (
                "integer",
                json!("x"),
                Some("expected numeric (int or float), got string"),
            ),
            ("boolean", json!("yes"), Some("expected boolean, got &{yes}")),
            ("array", json!("q"), Some("expected list, got &{q}")),
            ("object", json!([1]), Some("expected map, got &{[1]}")),
        ] {
            let node = Node::parse(&json!({"type": kind}));
            assert_eq!(misfit(&node, &value).as_deref(), message, "{kind} {value}");
        }
    }
}
