//! JSON as CEL sees it through a schema: numbers by their declared type, times and durations as such, names escaped.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, Program, Value as Cel};
use serde_json::Value;

use super::node::{Node, Type};

/// Names that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A value of `node` for a rule.
pub(super) fn to_cel(node: &Node, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => {
            let float = || Cel::Float(number.as_f64().unwrap_or(f64::NAN));
            match (node.kind, number.as_i64()) {
                (Type::Number, _) | (_, None) => float(),
                (_, Some(whole)) => Cel::Int(whole),
            }
        }
        Value::String(text) => typed_text(node, text),
        Value::Array(items) => {
            let free = Node::default();
            let child = node.item().unwrap_or(&free);
            Cel::List(Arc::new(items.iter().map(|item| to_cel(child, item)).collect()))
        }
        Value::Object(fields) => {
            let free = Node::default();
            let mut map = HashMap::with_capacity(fields.len());
            for (name, inner) in fields {
                if node.embedded && name == "metadata" {
                    map.insert(key(name), to_cel(&free, &known_metadata(inner)));
                    continue;
                }
                let known = node.properties.contains_key(name.as_str());
                let child = node.child(name).unwrap_or(&free);
                // Keys of a free map are data and stay as they are.
                let name = if known || node.additional.is_none() {
                    escape(name)
                } else {
                    name.clone()
                };
                map.insert(key(&name), to_cel(child, inner));
            }
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Rules may look at the name of an object and at nothing else in its metadata.
fn known_metadata(metadata: &Value) -> Value {
    let fields = metadata.as_object().into_iter().flatten();
    let known = fields.filter(|(name, _)| *name == "name" || *name == "generateName");
    Value::Object(known.map(|(name, value)| (name.clone(), value.clone())).collect())
}

fn key(name: &str) -> Key {
    Key::String(Arc::new(name.to_owned()))
}

static TIME: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("timestamp(text)").ok());
static DURATION: LazyLock<Option<Program>> = LazyLock::new(|| Program::compile("duration(text)").ok());

fn typed_text(node: &Node, text: &str) -> Cel {
    let plain = || Cel::String(Arc::new(text.to_owned()));
    let format = node.limits.as_ref().and_then(|limits| limits.format.as_deref());
    let converted = match format {
        Some("date-time") => run(TIME.as_ref(), text),
        Some("date") => run(TIME.as_ref(), &format!("{text}T00:00:00Z")),
        Some("duration") => run(DURATION.as_ref(), text),
        Some("byte") => STANDARD.decode(text).ok().map(|bytes| Cel::Bytes(Arc::new(bytes))),
        _ => None,
    };
    converted.unwrap_or_else(plain)
}

fn run(program: Option<&Program>, text: &str) -> Option<Cel> {
    let mut context = Context::default();
    context.add_variable_from_value("text", text.to_owned());
    program?.execute(&context).ok()
}

/// `foo-bar` is `foo__dash__bar` in a rule.
fn escape(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
