//! One request, written without the values that differ between servers.

use std::fmt;

use serde_json::Value;

/// One request. Paths and queries may hold `$continue`; bodies are resolved against the server's earlier answers.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it tries, for the report: `patch-merge deployments`.
    pub label: String,
    pub method: &'static str,
    pub path: String,
    pub query: Vec<(String, String)>,
    pub content_type: Option<&'static str>,
    pub accept: Option<&'static str>,
    pub body: Payload,
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Payload {
    None,
    Json(Value),
    /// As it stands, broken or not.
    Raw(String),
    /// The object as this server last returned it, with some values set.
    Changed {
        of: String,
        otherwise: Value,
        sets: Vec<(&'static str, Value)>,
        version: VersionToSend,
    },
    /// Options of a delete; `$uid` and `$version` stand for the object's own.
    Options {
        of: String,
        options: Value,
    },
}

/// The resourceVersion an update carries.
#[derive(Clone, Copy, Debug)]
pub enum VersionToSend {
    Newest,
    First,
    None,
    Malformed,
}

impl Operation {
    pub fn new(label: impl Into<String>, method: &'static str, path: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            method,
            path: path.into(),
            query: Vec::new(),
            content_type: None,
            accept: None,
            body: Payload::None,
        }
    }

    pub fn query(mut self, key: &str, value: impl Into<String>) -> Self {
        self.query.push((key.to_owned(), value.into()));
        self
    }

    pub fn body(mut self, content_type: &'static str, body: Payload) -> Self {
        self.content_type = Some(content_type);
        self.body = body;
        self
    }

    pub fn json(self, value: Value) -> Self {
        self.body("application/json", Payload::Json(value))
    }

    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = Some(accept);
        self
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.label, self.method, self.path)?;
        for (at, (key, value)) in self.query.iter().enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { '?' } else { '&' })?;
        }
        match &self.body {
            Payload::None => Ok(()),
            Payload::Json(value) => write!(f, " {value}"),
            Payload::Raw(text) => write!(f, " {}", text.chars().take(200).collect::<String>()),
            Payload::Changed { sets, version, .. } => write!(f, " (last seen, {version:?}) {sets:?}"),
            Payload::Options { options, .. } => write!(f, " {options}"),
        }
    }
}
