//! Redacts passwords, keys and tokens. Every text of a report passes through here.
//!
//! Two methods, because each alone has gaps. First, every value of a Secret is searched for in every text: raw, in
//! base64, and as the hash that ACLs contain. Second, fields that usually hold a secret are emptied, whatever they
//! hold.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The replacement for redacted text.
pub const MARK: &str = "[redacted]";
/// A shorter value is redacted only as a whole field: within a text it would match everywhere.
const SEARCHED_FROM: usize = 4;

/// Holds the secret values.
#[derive(Default)]
pub struct Redactor {
    /// The longest first, so that no shorter match leaves a part of a longer one.
    needles: Vec<String>,
    short: BTreeSet<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Treats every value in these Secrets as secret.
    pub fn new(secrets: &[Secret]) -> Self {
        let mut found = Self::default();
        for secret in secrets {
            let data = secret.data.iter().flatten().map(|(_, value)| value.0.clone());
            let plain = secret
                .string_data
                .iter()
                .flatten()
                .map(|(_, value)| value.clone().into_bytes());
            for value in data.chain(plain) {
                found.learn(&value);
            }
        }
        found.needles.sort_by_key(|needle| std::cmp::Reverse(needle.len()));
        found.needles.dedup();
        found
    }

    fn learn(&mut self, value: &[u8]) {
        self.needles.push(format!("{:x}", Sha256::digest(value)));
        let encoded = STANDARD.encode(value);
        if value.len() >= SEARCHED_FROM {
            self.needles.push(encoded);
        }
        let Ok(text) = std::str::from_utf8(value) else { return };
        // A file in a Secret (a certificate, users.acl) may be quoted line by line.
        let lines = text.lines().map(str::trim).chain([text, text.trim()]);
        for line in lines {
            // JSON and Rust's debug output escape quotes and backslashes.
            let escaped = serde_json::to_string(line).unwrap_or_default();
            let escaped = escaped.trim_matches('"').to_owned();
            for form in [line.to_owned(), escaped] {
                if form.len() >= SEARCHED_FROM {
                    self.needles.push(form);
                } else if !form.is_empty() {
                    self.short.insert(form);
                }
            }
        }
    }

    /// Redacts a text.
    pub fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for needle in &self.needles {
            if clean.contains(needle.as_str()) {
                clean = clean.replace(needle.as_str(), MARK);
            }
        }
        let lines = clean.split('\n').map(line);
        let mut inside = false;
        let kept = lines.map(|line| {
            // PEM keys that are in no Secret.
            inside |= line.contains("-----BEGIN") && line.contains("PRIVATE KEY");
            let shown = if inside { MARK.to_owned() } else { line.clone() };
            if line.contains("-----END") {
                inside = false;
            }
            shown
        });
        kept.collect::<Vec<_>>().join("\n")
    }

    /// Redacts an object and removes fields that are of no use to a reader.
    pub fn object(&self, mut object: Value) -> Value {
        if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
        if is_secret {
            for part in ["data", "stringData"] {
                for value in object
                    .get_mut(part)
                    .and_then(Value::as_object_mut)
                    .into_iter()
                    .flat_map(|map| map.values_mut())
                {
                    let length = value
                        .as_str()
                        .map_or(0, |text| STANDARD.decode(text).map_or(text.len(), |raw| raw.len()));
                    *value = Value::String(format!("{MARK}, {length} bytes"));
                }
            }
        }
        self.value(object, "")
    }

    fn value(&self, value: Value, name: &str) -> Value {
        match value {
            Value::String(_) if is_sensitive(name) => Value::String(MARK.to_owned()),
            Value::String(text) if self.short.contains(&text) => Value::String(MARK.to_owned()),
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) if ["args", "command"].contains(&name) => Value::Array(self.arguments(items)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item, name)).collect()),
            Value::Object(map) if name == "annotations" => Value::Object(self.annotations(map)),
            Value::Object(mut map) => {
                // `{name: DB_PASSWORD, value: …}` of an environment: deciding by the name is a guess, so only values
                // that are known to be harmless stay.
                let harmless =
                    |name: &str, value: &str| !is_sensitive(name) && (is_known_variable(name) || is_plain_value(value));
                let text = |map: &serde_json::Map<String, Value>, key: &str| map.get(key)?.as_str().map(str::to_owned);
                if let (Some(name), Some(value)) = (text(&map, "name"), text(&map, "value"))
                    && !harmless(&name, &value)
                {
                    map.insert("value".to_owned(), Value::String(MARK.to_owned()));
                }
                let clean = map.into_iter().map(|(key, value)| {
                    let value = self.value(value, &key);
                    (key, value)
                });
                Value::Object(clean.collect())
            }
            other => other,
        }
    }

    /// The arguments of a program. The value of an option follows `=` or is the next argument.
    fn arguments(&self, items: Vec<Value>) -> Vec<Value> {
        let mut hide_next = false;
        let each = items.into_iter().map(|item| {
            let Value::String(text) = item else { return item };
            if std::mem::take(&mut hide_next) && !text.starts_with('-') {
                return Value::String(MARK.to_owned());
            }
            hide_next = text.starts_with('-') && !text.contains(['=', ' ']) && is_sensitive(&text);
            match text.split_once('=') {
                Some((name, _)) if !name.contains(char::is_whitespace) && is_sensitive(name) => {
                    Value::String(format!("{name}={MARK}"))
                }
                _ => self.value(Value::String(text), ""),
            }
        });
        each.collect()
    }

    /// Annotations: tools store copies of whole manifests there, as JSON or compressed.
    fn annotations(&self, map: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
        /// Annotations for people are shorter than this.
        const READABLE: usize = 512;
        let each = map.into_iter().map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            let structured = text.trim_start().starts_with(['{', '[']);
            let value = if structured || text.len() > READABLE {
                Value::String(format!("[left out, {} bytes]", text.len()))
            } else {
                self.value(value, &key)
            };
            (key, value)
        });
        each.collect()
    }
}

/// Variables that the operator sets, and those that every image has.
fn is_known_variable(name: &str) -> bool {
    const KNOWN: [&str; 7] = ["HOME", "PATH", "TZ", "LANG", "POD_IP", "POD_NAME", "REDIS_USER"];
    KNOWN.contains(&name) || name.starts_with("REDIS_EXPORTER_") || name.starts_with("VALKEY_DATA")
}

/// A number, a switch, or a path: nothing that grants access.
fn is_plain_value(value: &str) -> bool {
    let number = value.len() <= 6 && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let switch = ["true", "false", "yes", "no", "on", "off"].contains(&value.to_ascii_lowercase().as_str());
    let path = value.starts_with('/') && value.len() <= 64 && !value.contains(['=', '?', '@', ' ']);
    value.is_empty() || number || switch || path
}

/// Splits a name into its words: `DB_PASS`, `awsSecretAccessKey`, `--api-key`.
fn words(name: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() || (c.is_ascii_uppercase() && lower) {
            all.push(String::new());
        }
        lower = c.is_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            all.last_mut()
                .into_iter()
                .for_each(|word| word.push(c.to_ascii_lowercase()));
        }
    }
    all.retain(|word| !word.is_empty());
    all
}

/// Names of fields, options and variables with a value that is usually secret. References to Secrets are not.
fn is_sensitive(name: &str) -> bool {
    const INSIDE: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "requirepass",
        "masterauth",
        "primaryauth",
        "token",
        "apikey",
        "credential",
    ];
    const WORDS: [&str; 12] = [
        "pass",
        "pwd",
        "pw",
        "secret",
        "secrets",
        "auth",
        "cookie",
        "dsn",
        "bearer",
        "authorization",
        "signature",
        "salt",
    ];
    // Words that mark a key as one that grants access.
    const OF_KEYS: [&str; 12] = [
        "api",
        "access",
        "private",
        "secret",
        "account",
        "signing",
        "encryption",
        "ssh",
        "license",
        "master",
        "shared",
        "host",
    ];
    let words = words(name);
    let low = words.concat();
    let last = words.last().map(String::as_str).unwrap_or_default();
    let reference = name.ends_with("Secret")
        || ["name", "names", "file", "path", "ref"].contains(&last)
        || low.contains("automount");
    let key = words.iter().any(|word| word == "key") && words.iter().any(|word| OF_KEYS.contains(&word.as_str()));
    let is_named =
        INSIDE.iter().any(|part| low.contains(part)) || words.iter().any(|word| WORDS.contains(&word.as_str()));
    !reference && (is_named || key || name == "permissions")
}

/// Redacts one line of a log or of a configuration: ACL passwords and hashes, options, tokens.
fn line(text: &str) -> String {
    let mut hidden = 0;
    let words = text.split(' ').map(|word| {
        if hidden > 0 && !word.is_empty() {
            hidden -= 1;
            return MARK.to_owned();
        }
        let bare = word
            .trim_matches(|c: char| !c.is_alphanumeric() && c != '#' && c != '>' && c != '<' && c != '!' && c != '-');
        let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        // `>password` or `#hash` of an ACL rule.
        if bare.strip_prefix(['#', '!']).is_some_and(is_hash)
            || (bare.len() > 1 && bare.starts_with(['>', '<']) && text.contains("user "))
        {
            return MARK.to_owned();
        }
        // The command of a client that logs in, as in a log: `AUTH user password`.
        if bare == "AUTH" {
            hidden = 2;
            return word.to_owned();
        }
        if bare.eq_ignore_ascii_case("bearer") || is_sensitive(bare) && !bare.is_empty() && !word.contains('=') {
            hidden = usize::from(bare.eq_ignore_ascii_case("bearer") || is_option(bare));
            return word.to_owned();
        }
        match word.split_once('=') {
            Some((name, value)) if is_sensitive(name) && !value.is_empty() => format!("{name}={MARK}"),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Options with a value in the next word. `password` alone is an ordinary word in a sentence.
fn is_option(word: &str) -> bool {
    let low = word.trim_start_matches('-').to_ascii_lowercase();
    let server = ["requirepass", "masterauth", "primaryauth"].contains(&low.as_str());
    server || (word.starts_with("--") && is_sensitive(word))
}

#[cfg(test)]
mod tests;
