//! Whether a value has the types of a built-in kind, with the errors of Go's decoder.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::node::{Link, Node, Type};
use crate::quantity::{NOT_A_QUANTITY, Quantity};

/// The first thing that does not fit.
pub(super) fn error(root: &Node, object: &Value) -> Option<String> {
    walk(
        root,
        object,
        &Place {
            owner: "",
            path: String::new(),
        },
    )
}

/// The struct a field belongs to, and the field's path from the root without indices.
struct Place<'a> {
    owner: &'a str,
    path: String,
}

impl Place<'_> {
    fn reject(&self, value: &Value, expected: &str) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if expected.starts_with("int") => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        format!(
            "json: cannot unmarshal {found} into Go struct field {}.{} of type {expected}",
            self.owner, self.path
        )
    }
}

fn walk(node: &Node, value: &Value, place: &Place<'_>) -> Option<String> {
    if value.is_null() || (node.kind == Type::Any && node.preserve) {
        return None;
    }
    if node
        .name
        .as_deref()
        .is_some_and(|name| name.ends_with("api.resource.Quantity"))
    {
        return match value {
            Value::String(text) => Quantity::parse(text).is_none().then(|| NOT_A_QUANTITY.to_owned()),
            Value::Number(_) => None,
            _ => Some(NOT_A_QUANTITY.to_owned()),
        };
    }
    let format = node
        .limits
        .as_ref()
        .and_then(|limits| limits.format.as_deref())
        .unwrap_or_default();
    match (node.kind, value) {
        (Type::Object, Value::Object(map)) => {
            let owner = node.name.as_deref().map_or(place.owner, short);
            map.iter().find_map(|(key, inner)| {
                let known = node.properties.get(key.as_str());
                let child = known.or(node.additional.as_ref()).map(Link::node)?;
                let path = match (known.is_some(), place.path.is_empty()) {
                    (true, true) => key.clone(),
                    (true, false) => format!("{}.{key}", place.path),
                    (false, _) => place.path.clone(),
                };
                walk(child, inner, &Place { owner, path })
            })
        }
        (Type::Array, Value::Array(items)) => {
            let child = node.item()?;
            items.iter().find_map(|item| walk(child, item, place))
        }
        (Type::String, Value::String(text)) => match format {
            "date-time" if text.parse::<Timestamp>().is_err() => Some(format!(
                "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
            )),
            "byte" if STANDARD.decode(text).is_err() => {
                Some(format!("illegal base64 data at input byte {}", bad_byte(text)))
            }
            _ => None,
        },
        (Type::Integer, Value::Number(number)) => {
            let fits = match format {
                "int32" => number.as_i64().is_some_and(|n| i32::try_from(n).is_ok()),
                _ => number.as_i64().is_some(),
            };
            (!fits).then(|| place.reject(value, &go_type(node)))
        }
        (Type::Number, Value::Number(_))
        | (Type::Boolean, Value::Bool(_))
        | (Type::Any, _)
        | (Type::IntOrString, Value::String(_)) => None,
        (Type::IntOrString, Value::Number(number)) if number.as_i64().is_some() => None,
        (Type::IntOrString, _) => Some(place.reject(value, "int32")),
        _ => Some(place.reject(value, &go_type(node))),
    }
}

/// The name Go gives the type.
fn go_type(node: &Node) -> String {
    let format = node
        .limits
        .as_ref()
        .and_then(|limits| limits.format.as_deref())
        .unwrap_or_default();
    match node.kind {
        Type::String if format == "byte" => "[]uint8".to_owned(),
        Type::String => "string".to_owned(),
        Type::Boolean => "bool".to_owned(),
        Type::Number => "float64".to_owned(),
        Type::Integer => if format == "int32" { "int32" } else { "int64" }.to_owned(),
        Type::Array => format!("[]{}", node.item().map_or_else(|| "interface {}".to_owned(), go_type)),
        Type::Object => match (&node.name, &node.additional) {
            (Some(name), _) => format!("v1.{}", short(name)),
            (None, Some(values)) => format!("map[string]{}", go_type(values.node())),
            (None, None) => "map[string]interface {}".to_owned(),
        },
        Type::Any | Type::IntOrString => "interface {}".to_owned(),
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Where base64 goes wrong.
fn bad_byte(text: &str) -> usize {
    let good = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    text.find(|c| !good(c)).unwrap_or_else(|| text.len() / 4 * 4)
}
