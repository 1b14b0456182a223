//! One node of a schema: what a value at this place may look like, and how lists and maps in it merge.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::builtin;
use super::limits::Limits;

/// The JSON type a schema names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Type {
    /// No type is given: anything.
    #[default]
    Any,
    /// A map with known or unknown keys.
    Object,
    /// A list.
    Array,
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// true or false.
    Boolean,
    /// `x-kubernetes-int-or-string`: ports, percentages, quantities.
    IntOrString,
}

impl Type {
    /// The word in OpenAPI; empty where the type is free.
    pub fn word(self) -> &'static str {
        match self {
            Self::Any | Self::IntOrString => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// How a list merges under server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListKind {
    /// One owner for the whole list.
    #[default]
    Atomic,
    /// Scalars, each with its own owners.
    Set,
    /// Objects identified by these keys.
    Map(Vec<Box<str>>),
}

/// How a field merges under a strategic merge patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    /// `merge`: list elements are matched by [`Strategy::key`], or by value where there is none.
    pub merge: bool,
    /// The key of list elements.
    pub key: Option<Box<str>>,
    /// `replace`: a map is replaced whole.
    pub replace: bool,
    /// `retainKeys`: clients send the keys that stay; the server takes the directive wherever it comes.
    pub retain_keys: bool,
}

/// A child schema: our own, or a shared definition of the built-in kinds (which refer to each other in circles).
#[derive(Clone, Debug)]
pub enum Link {
    /// A part of this schema.
    Own(Arc<Node>),
    /// A built-in definition by its name, such as `io.k8s.api.core.v1.PodSpec`.
    Named(Arc<str>),
}

impl Link {
    /// The node behind the link.
    pub fn node(&self) -> &Node {
        match self {
            Self::Own(node) => node,
            Self::Named(name) => builtin::definition(name),
        }
    }
}

/// What a value at one place may look like.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is an extension of the OpenAPI schema, by its own name
pub struct Node {
    /// The JSON type.
    pub kind: Type,
    /// The definition this node is, for built-in kinds; Go's type names in decoding errors come from it.
    pub name: Option<Arc<str>>,
    /// Whether null is a value here.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded: bool,
    /// Known fields.
    pub properties: BTreeMap<Box<str>, Link>,
    /// The shape of the values of free keys.
    pub additional: Option<Link>,
    /// The shape of list items.
    pub items: Option<Link>,
    /// Fields that must be there.
    pub required: Vec<Box<str>>,
    /// How a list merges.
    pub list: ListKind,
    /// `x-kubernetes-map-type: atomic`: one owner for the whole object.
    pub atomic: bool,
    /// Strategic merge strategies of the fields of this object.
    pub strategies: BTreeMap<Box<str>, Strategy>,
    /// The value a missing field gets.
    pub default: Option<Value>,
    /// What an empty value of a built-in definition looks like.
    pub zero: Option<Value>,
    /// Scalar fields of a built-in definition for which zero is a value.
    pub pointers: Vec<Box<str>>,
    /// Value validations; absent where there are none.
    pub limits: Option<Box<Limits>>,
}

impl Node {
    /// Reads an OpenAPI v3 schema, either a CRD's or one of the generated ones.
    pub fn parse(schema: &Value) -> Self {
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
        let int_or_string = flag("x-kubernetes-int-or-string");
        let word = schema.get("type").and_then(Value::as_str);
        let kind = match word {
            _ if int_or_string => Type::IntOrString,
            Some("object") => Type::Object,
            Some("array") => Type::Array,
            Some("string") => Type::String,
            Some("integer") => Type::Integer,
            Some("number") => Type::Number,
            Some("boolean") => Type::Boolean,
            _ => Type::Any,
        };
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .map(|map| map.iter().map(|(k, v)| (k.as_str().into(), link(v))).collect())
            .unwrap_or_default();
        let additional = match schema.get("additionalProperties") {
            Some(Value::Object(_)) => schema.get("additionalProperties").map(link),
            Some(Value::Bool(true)) => Some(Link::Own(Arc::new(Self {
                preserve: true,
                ..Self::default()
            }))),
            _ => None,
        };
        let limits = Limits::parse(schema);
        Self {
            kind,
            name: None,
            nullable: flag("nullable"),
            preserve: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            properties,
            additional,
            items: schema.get("items").map(link),
            required: strings(schema.get("required")),
            list: match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Map(strings(schema.get("x-kubernetes-list-map-keys"))),
                _ => ListKind::Atomic,
            },
            atomic: schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
            strategies: BTreeMap::new(),
            default: schema.get("default").cloned(),
            zero: None,
            pointers: Vec::new(),
            limits: (!limits.is_empty()).then(|| Box::new(limits)),
        }
    }

    /// The schema of one field: a known one, or that of free keys.
    pub fn child(&self, field: &str) -> Option<&Self> {
        self.properties.get(field).or(self.additional.as_ref()).map(Link::node)
    }

    /// Whether this node or one below it is as asked. Only for schemas without circles, which CRDs are.
    pub fn any(&self, expected: &dyn Fn(&Self) -> bool) -> bool {
        let below = self.properties.values().chain(&self.additional).chain(&self.items);
        expected(self)
            || below
                .into_iter()
                .any(|link| matches!(link, Link::Own(node) if node.any(expected)))
    }

    /// The schema of list items.
    pub fn item(&self) -> Option<&Self> {
        self.items.as_ref().map(Link::node)
    }
}

fn link(schema: &Value) -> Link {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(reference) => Link::Named(reference.rsplit('/').next().unwrap_or(reference).into()),
        None => Link::Own(Arc::new(Node::parse(schema))),
    }
}

fn strings(list: Option<&Value>) -> Vec<Box<str>> {
    list.and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).map(Into::into).collect())
        .unwrap_or_default()
}
