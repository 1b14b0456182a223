//! The configuration, judged and hashed.
//!
//! The hash decides when pods roll, so it is made of what the server reads and of nothing else: the configuration as
//! data (comments and the order of keys change nothing), and the data of the Secrets (their labels change nothing).

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::DittoServer;
use crate::observe::Observation;

/// What the configuration comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Config {
    /// Usable, with this hash.
    Valid(String),
    /// The user's fault: not YAML, or not an object.
    Invalid(String),
    /// The user's fault: these Secrets do not exist.
    SecretsMissing(Vec<String>),
    /// Not known: a Secret could not be read.
    Unknown(String),
}

impl Config {
    /// Judges the configuration of a server.
    pub fn judge(server: &DittoServer, observed: &Observation) -> Self {
        let config = match parse(&server.spec.config) {
            Ok(config) => config,
            Err(why) => return Self::Invalid(why),
        };
        let (mut secrets, mut missing) = (BTreeMap::new(), Vec::new());
        for (name, secret) in &observed.secrets {
            match secret {
                Ok(Some(secret)) => drop(secrets.insert(name.as_str(), &secret.data)),
                Ok(None) => missing.push(name.clone()),
                Err(why) => return Self::Unknown(why.clone()),
            }
        }
        if missing.is_empty() {
            Self::Valid(hash(&json!({"config": config, "secrets": secrets})))
        } else {
            Self::SecretsMissing(missing)
        }
    }
}

/// The configuration as data; an empty text is an empty object.
fn parse(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    let value: Value = serde_saphyr::from_str(text).map_err(|error| sentence(&error.to_string()).to_owned())?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(json!({})),
        Value::Array(_) => Err("its top level must be an object, and is a list".to_owned()),
        _ => Err("its top level must be an object, and is a single value".to_owned()),
    }
}

/// The parser draws the place of an error over several lines; a condition wants the sentence.
fn sentence(text: &str) -> &str {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first)
}

fn hash(read: &Value) -> String {
    let digest = Sha256::digest(read.to_string().as_bytes());
    digest[..8]
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
