//! Value validations of a schema: bounds, patterns, enumerations, formats, combinations and CEL rules.

use std::sync::Arc;

use regex::Regex;
use serde_json::{Number, Value};

use super::cel::Rule;
use super::node::Node;

/// Everything a schema says about a value beyond its type.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // each is a keyword of the schema
pub struct Limits {
    /// Inclusive unless [`Limits::exclusive_minimum`].
    pub minimum: Option<Number>,
    /// Inclusive unless [`Limits::exclusive_maximum`].
    pub maximum: Option<Number>,
    /// The bound itself is rejected.
    pub exclusive_minimum: bool,
    /// The bound itself is rejected.
    pub exclusive_maximum: bool,
    /// The value is a multiple of this.
    pub multiple_of: Option<Number>,
    /// In characters.
    pub min_length: Option<u64>,
    /// In characters.
    pub max_length: Option<u64>,
    /// Source and compiled form; a pattern that does not compile rejects nothing (the CRD check reports it).
    pub pattern: Option<(Box<str>, Option<Regex>)>,
    /// Of a list.
    pub min_items: Option<u64>,
    /// Of a list.
    pub max_items: Option<u64>,
    /// No two equal items.
    pub unique_items: bool,
    /// Of a map.
    pub min_properties: Option<u64>,
    /// Of a map.
    pub max_properties: Option<u64>,
    /// The only values allowed; empty means all.
    pub choices: Vec<Value>,
    /// `int32`, `date-time` …
    pub format: Option<Box<str>>,
    /// All of these hold.
    pub all_of: Vec<Arc<Node>>,
    /// At least one of these holds.
    pub any_of: Vec<Arc<Node>>,
    /// Exactly one of these holds.
    pub one_of: Vec<Arc<Node>>,
    /// This does not hold.
    pub not: Option<Arc<Node>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Arc<Rule>>,
}

impl Limits {
    /// Reads the validations of an OpenAPI v3 schema.
    pub fn parse(schema: &Value) -> Self {
        let number = |name: &str| match schema.get(name) {
            Some(Value::Number(number)) => Some(number.clone()),
            _ => None,
        };
        let count = |name: &str| schema.get(name).and_then(Value::as_u64);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
        let nodes = |name: &str| -> Vec<Arc<Node>> {
            let list = schema.get(name).and_then(Value::as_array);
            list.map(|list| list.iter().map(|v| Arc::new(Node::parse(v))).collect())
                .unwrap_or_default()
        };
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        Self {
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: schema
                .get("pattern")
                .and_then(Value::as_str)
                .filter(|source| !source.is_empty())
                .map(|source| (source.into(), Regex::new(source).ok())),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            choices: schema
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            format: schema.get("format").and_then(Value::as_str).map(Into::into),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: schema.get("not").map(|not| Arc::new(Node::parse(not))),
            rules: rules
                .map(|list| list.iter().map(|v| Arc::new(Rule::parse(v))).collect())
                .unwrap_or_default(),
        }
    }

    /// Whether nothing is limited at all.
    pub fn is_empty(&self) -> bool {
        self.minimum.is_none()
            && self.maximum.is_none()
            && self.multiple_of.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
            && self.pattern.is_none()
            && self.min_items.is_none()
            && self.max_items.is_none()
            && !self.unique_items
            && self.min_properties.is_none()
            && self.max_properties.is_none()
            && self.choices.is_empty()
            && self.format.is_none()
            && self.all_of.is_empty()
            && self.any_of.is_empty()
            && self.one_of.is_empty()
            && self.not.is_none()
            && self.rules.is_empty()
    }
}
