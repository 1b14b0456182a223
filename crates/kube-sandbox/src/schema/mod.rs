//! Structural schemas: the shape of built-in and custom kinds; defaulting, pruning, validation, CEL.
//!
//! | what | where |
//! |---|---|
//! | the schema of one kind, and what can be done with it | [`Schema`] |
//! | one node of it | [`Node`] |
//! | the definitions of the built-in kinds | [`builtin`] |
//! | how their lists and maps merge | `merging` |
//! | bounds, patterns, enumerations | [`limits`] |
//! | CEL rules | [`cel`] |
//! | the form in which the server gives built-in objects back | `zero_values` |
//! | values of the wrong type in built-in objects | `decode` |
//! | fields named twice | [`duplicate_fields`] |
//! | unknown fields | `prune` |
//! | values for missing fields | `defaulting` |
//! | types, bounds and required fields | `validate`, `formats` |
//! | duplicates in sets and keyed lists | `listtype` |

use std::sync::Arc;

use serde_json::{Value, json};

use crate::status::Cause;
use crate::validation::field;

pub mod builtin;
pub mod cel;
mod cel_values;
mod correlate;
mod decode;
mod defaulting;
mod formats;
pub mod limits;
mod listtype;
mod merging;
pub mod node;
mod prune;
mod strict;
mod validate;
mod zero_values;

pub use strict::duplicate_fields;

pub use node::{Link, ListKind, Node, Strategy, Type};

/// The shape, defaults and rules of one kind.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Root,
}

#[derive(Clone, Debug)]
enum Root {
    /// Shared by all sandboxes of the process and made on first use.
    Builtin(Arc<str>),
    Custom {
        node: Arc<Node>,
        /// As the CRD gave it, for OpenAPI.
        raw: Arc<Value>,
        /// Whether there is any CEL rule.
        rules: bool,
    },
}

impl Schema {
    /// The schema of a built-in kind; nothing is read until it is used.
    pub fn builtin(group: &str, version: &str, kind: &str) -> Self {
        Self {
            root: Root::Builtin(crate::kinds::definition_name(group, version, kind).into()),
        }
    }

    /// The schema of a CRD's version. `preserve` is the old `spec.preserveUnknownFields`.
    pub fn custom(open_api: Value, preserve: bool) -> Self {
        let mut node = Node::parse(&open_api);
        node.preserve |= preserve || open_api.is_null();
        node.embedded = true;
        Self {
            root: Root::Custom {
                rules: node.any(&|n| n.limits.as_ref().is_some_and(|l| !l.rules.is_empty())),
                node: Arc::new(node),
                raw: Arc::new(open_api),
            },
        }
    }

    /// The node of a whole object.
    pub fn root(&self) -> &Node {
        match &self.root {
            Root::Builtin(name) => builtin::definition(name),
            Root::Custom { node, .. } => node,
        }
    }

    /// `openAPIV3Schema` of a custom kind.
    pub fn open_api(&self) -> Option<&Value> {
        match &self.root {
            Root::Builtin(_) => None,
            Root::Custom { raw, .. } => Some(raw),
        }
    }

    /// Removes fields that the schema does not know and returns their paths, such as `spec.foo` or `spec.list[0].bar`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// The error about the first value of a built-in object that its type cannot hold, worded as the real server's decoder
    /// does. Values of custom objects are validated by [`Schema::validate`].
    pub fn decode_error(&self, object: &Value) -> Option<String> {
        match &self.root {
            Root::Builtin(name) => decode::error(builtin::definition(name), object),
            Root::Custom { .. } => None,
        }
    }

    /// What is wrong with the shape of a value alone, CEL rules and metadata apart.
    pub(crate) fn shape_errors(&self, value: &Value) -> Vec<Cause> {
        validate::validate(self.root(), value, None, "")
    }

    /// Fills in what is missing.
    pub fn default(&self, object: &mut Value) {
        match &self.root {
            Root::Builtin(name) => {
                let node = builtin::definition(name);
                zero_values::complete(node, object);
                let kind = name.rsplit('.').next().unwrap_or(name);
                crate::validation::defaults::apply(kind, object);
                zero_values::complete(node, object);
            }
            Root::Custom { node, .. } => defaulting::default(node, object),
        }
    }

    /// Everything that is wrong with an object, or with the change from `old` to it.
    ///
    /// CEL rules run only on what is sound in shape; where they do not, a cause says so, as the real server's does.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        match &self.root {
            Root::Builtin(name) => {
                let kind = name.rsplit('.').next().unwrap_or(name);
                crate::validation::check(kind, object, old)
            }
            Root::Custom { node, rules, .. } => {
                let mut errors = Vec::new();
                if old.is_none() && object["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
                    errors.push(field::required("metadata.name", "name or generateName is required"));
                }
                errors.extend(crate::validation::check_metadata("", true, object, old));
                errors.extend(validate::validate(node, object, old, ""));
                listtype::duplicates(node, object, "", &mut errors);
                if !rules {
                    return errors;
                }
                let blocking = ["NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"];
                if errors
                    .iter()
                    .any(|e| blocking.iter().any(|b| e.reason.strip_prefix("FieldValue") == Some(*b)))
                {
                    errors.push(field::invalid("<nil>", &json!(null), RULES_NOT_CHECKED));
                } else {
                    cel::check(node, object, old, "", &mut errors);
                }
                errors
            }
        }
    }
}

const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the \
    existing errors to complete validation";
