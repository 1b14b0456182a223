//! `x-kubernetes-validations`: CEL rules of a CRD.

use serde_json::Value;

/// One rule with what it says when it does not hold.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
}

impl Rule {
    /// Reads one entry of `x-kubernetes-validations`.
    pub fn parse(entry: &Value) -> Self {
        Self {
            rule: entry["rule"].as_str().unwrap_or_default().to_owned(),
        }
    }
}
