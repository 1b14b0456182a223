//! Bodies in Kubernetes' protobuf form: kubectl's typed commands (`create deployment`, `auth can-i`, `drain`) send no
//! other. They are turned into the JSON the rest of the server works on; answers are always JSON, which those clients
//! accept.
//!
//! `fields.txt` is the table of messages, written by `hack/protobuf-fields.py` from the API's Go types; `wire` reads
//! the encoding itself.

mod wire;

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use wire::{Fields, Wire};

use crate::status::ApiError;

/// The media type.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may nest: JSON schemas aside nothing of Kubernetes comes near.
const MAX_DEPTH: usize = 64;

static MESSAGES: LazyLock<HashMap<&str, Vec<Field>>> = LazyLock::new(|| {
    include_str!("fields.txt")
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.filter_map(Field::parse).collect()))
        })
        .collect()
});

struct Field {
    /// Empty where the message is inlined.
    name: &'static str,
    number: u64,
    kind: Kind,
}

enum Kind {
    Pointer(Box<Kind>),
    List(Box<Kind>),
    Map(Box<Kind>),
    /// A message that is only a list, as Go's named list types are.
    Items(Box<Kind>),
    Text,
    Integer,
    Bool,
    Double,
    Bytes,
    Time,
    Quantity,
    IntOrString,
    Raw,
    Message(&'static str),
}

impl Field {
    fn parse(word: &'static str) -> Option<Self> {
        let mut parts = word.splitn(3, ':');
        Some(Self {
            name: parts.next()?,
            number: parts.next()?.parse().ok()?,
            kind: Kind::parse(parts.next()?),
        })
    }
}

impl Kind {
    fn parse(word: &'static str) -> Self {
        if let Some(inner) = word.strip_prefix("items(+").and_then(|w| w.strip_suffix(')')) {
            return Self::Items(Box::new(Self::parse(inner)));
        }
        let inner = || Box::new(Self::parse(&word[1..]));
        match word {
            _ if word.starts_with('*') => Self::Pointer(inner()),
            _ if word.starts_with('+') => Self::List(inner()),
            _ if word.starts_with('%') => Self::Map(inner()),
            "string" => Self::Text,
            "int" => Self::Integer,
            "bool" => Self::Bool,
            "double" => Self::Double,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "quantity" => Self::Quantity,
            "intstr" => Self::IntOrString,
            "raw" => Self::Raw,
            message => Self::Message(message),
        }
    }
}

/// An object as JSON.
pub fn decode(body: &[u8]) -> Result<Value, ApiError> {
    read(body).ok_or_else(|| {
        ApiError::bad_request("the body is not a Kubernetes protobuf object of a kind this server knows")
    })
}

fn read(body: &[u8]) -> Option<Value> {
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(body.strip_prefix(MAGIC)?) {
        match field? {
            (1, Wire::Bytes(type_meta)) => {
                for field in Fields(type_meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = text_of(text)?,
                        (2, Wire::Bytes(text)) => kind = text_of(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let package = match api_version.split_once('/') {
        _ if kind.ends_with("Options") => "meta",
        None => "core",
        Some((group, _)) => group.split('.').next().unwrap_or(group),
    };
    let mut object = message(&format!("{package}.{kind}"), raw, 0)?;
    object.insert("apiVersion".into(), json!(api_version));
    object.insert("kind".into(), json!(kind));
    Some(Value::Object(object))
}

fn message(name: &str, bytes: &[u8], depth: usize) -> Option<Map<String, Value>> {
    let known = MESSAGES.get(name).filter(|_| depth < MAX_DEPTH)?;
    let mut out = Map::new();
    for field in Fields(bytes) {
        let (number, wire) = field?;
        let Some(field) = known.iter().find(|f| f.number == number) else {
            continue;
        };
        add(&mut out, field, &wire, depth)?;
    }
    Some(out)
}

fn add(out: &mut Map<String, Value>, field: &Field, wire: &Wire<'_>, depth: usize) -> Option<()> {
    match &field.kind {
        Kind::List(item) => {
            let item = value(item, wire, depth)?;
            let list = out.entry(field.name).or_insert_with(|| json!([]));
            list.as_array_mut()?.push(item);
        }
        Kind::Map(of) => {
            let Wire::Bytes(entry) = wire else {
                return None;
            };
            let (mut key, mut content) = (String::new(), None);
            for part in Fields(entry) {
                match part? {
                    (1, Wire::Bytes(text)) => key = text_of(text)?,
                    (2, wire) => content = Some(value(of, &wire, depth)?),
                    _ => {}
                }
            }
            let map = out.entry(field.name).or_insert_with(|| json!({}));
            map.as_object_mut()?.insert(key, content.unwrap_or_else(|| zero(of)));
        }
        Kind::Pointer(inner) => {
            let content = value(inner, wire, depth)?;
            if !content.is_null() {
                out.insert(field.name.into(), content);
            }
        }
        kind => match value(kind, wire, depth)? {
            Value::Object(inlined) if field.name.is_empty() => out.extend(inlined),
            // Fields that are no pointers are always written; their zero means absent.
            content if is_zero(&content) => {}
            content => {
                out.insert(field.name.into(), content);
            }
        },
    }
    Some(())
}

fn value(kind: &Kind, wire: &Wire<'_>, depth: usize) -> Option<Value> {
    match (kind, wire) {
        (Kind::Text, Wire::Bytes(bytes)) => text_of(bytes).map(Value::String),
        (Kind::Integer, Wire::Varint(number)) => Some(json!(number.cast_signed())),
        (Kind::Bool, Wire::Varint(number)) => Some(json!(*number != 0)),
        (Kind::Double, Wire::Fixed64(bits)) => Some(json!(f64::from_bits(*bits))),
        (Kind::Bytes, Wire::Bytes(bytes)) => Some(json!(STANDARD.encode(bytes))),
        (Kind::Message(name), Wire::Bytes(bytes)) => message(name, bytes, depth + 1).map(Value::Object),
        (Kind::Items(item), Wire::Bytes(bytes)) => {
            let mut items = Vec::new();
            for field in Fields(bytes) {
                if let (1, wire) = field? {
                    items.push(value(item, &wire, depth + 1)?);
                }
            }
            Some(Value::Array(items))
        }
        (Kind::Quantity, Wire::Bytes(bytes)) => first_bytes(bytes).and_then(text_of).map(Value::String),
        (Kind::Raw, Wire::Bytes(bytes)) => first_bytes(bytes).and_then(|b| serde_json::from_slice(b).ok()),
        (Kind::Time, Wire::Bytes(bytes)) => time(bytes),
        (Kind::IntOrString, Wire::Bytes(bytes)) => int_or_string(bytes),
        _ => None,
    }
}

fn zero(kind: &Kind) -> Value {
    match kind {
        Kind::Text | Kind::Bytes => json!(""),
        Kind::Integer => json!(0),
        Kind::Bool => json!(false),
        Kind::Items(_) | Kind::List(_) => json!([]),
        _ => Value::Null,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn text_of(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn first_bytes(message: &[u8]) -> Option<&[u8]> {
    Fields(message).find_map(|field| match field {
        Some((1, Wire::Bytes(bytes))) => Some(bytes),
        _ => None,
    })
}

/// Seconds and nanoseconds; Go's zero time is an empty message.
fn time(bytes: &[u8]) -> Option<Value> {
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Varint(n)) => seconds = n.cast_signed(),
            (2, Wire::Varint(n)) => nanos = i32::try_from(n).ok()?,
            _ => {}
        }
    }
    if bytes.is_empty() || (seconds, nanos) == (0, 0) {
        return Some(Value::Null);
    }
    let at = Timestamp::new(seconds, nanos).ok()?;
    let text = if nanos == 0 {
        at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    } else {
        at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    };
    Some(Value::String(text))
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, Wire::Varint(kind)) => is_text = kind == 1,
            (2, Wire::Varint(n)) => number = n.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = text_of(bytes)?,
            _ => {}
        }
    }
    Some(if is_text { json!(text) } else { json!(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend_from_slice(bytes);
        out
    }

    #[test]
    fn an_object_becomes_the_json_its_client_meant() {
        let metadata = [
            field(1, b"a"),
            field(3, b""),
            field(8, b""),
            field(11, &[field(1, b"k"), field(2, b"v")].concat()),
        ];
        let template = field(2, &field(2, &[field(1, b"c"), field(2, b"image")].concat()));
        let spec = [vec![1 << 3, 0], field(3, &template), vec![5 << 3, 0]].concat();
        let raw = [field(1, &metadata.concat()), field(2, &spec)].concat();
        let type_meta = [field(1, b"apps/v1"), field(2, b"Deployment")].concat();
        let body = [MAGIC.to_vec(), field(1, &type_meta), field(2, &raw)].concat();
        assert_eq!(
            decode(&body).unwrap(),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "labels": {"k": "v"}},
                "spec": {"replicas": 0, "template": {"spec": {"containers": [{"name": "c", "image": "image"}]}}},
            })
        );
    }

    #[test]
    fn every_message_of_the_table_names_messages_that_are_there() {
        fn check(kind: &Kind) {
            match kind {
                Kind::Pointer(k) | Kind::List(k) | Kind::Map(k) | Kind::Items(k) => check(k),
                Kind::Message(name) => assert!(MESSAGES.contains_key(name), "{name}"),
                _ => {}
            }
        }
        assert!(MESSAGES.len() > 400);
        MESSAGES.values().flatten().for_each(|f| check(&f.kind));
    }

    #[test]
    fn malformed_input_is_rejected_without_a_panic() {
        for body in [
            &b""[..],
            b"k8s\0",
            b"k8s\0\xff\xff\xff\xff",
            b"k8s\0\x0a\x7f",
            b"{}",
            b"k8s\0\x12\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
        ] {
            assert_eq!(decode(body).unwrap_err().code, 400, "{body:?}");
        }
    }
}
