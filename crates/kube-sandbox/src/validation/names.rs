//! Names, label keys and values, and the errors about them.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::field;
use crate::status::Cause;

pub(super) const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(super) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
pub(super) const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

static SUBDOMAIN_FORM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok());
static LABEL_FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$").ok());
static OLD_LABEL_FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("^[a-z]([-a-z0-9]*[a-z0-9])?$").ok());
static QUALIFIED_FORM: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$").ok());

fn matches(form: &LazyLock<Option<Regex>>, text: &str) -> bool {
    form.as_ref().is_some_and(|form| form.is_match(text))
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} characters")
}

/// What is wrong with a DNS subdomain.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push(too_long(253));
    }
    if !matches(&SUBDOMAIN_FORM, name) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with a DNS label.
pub(super) fn label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push(too_long(63));
    }
    if !matches(&LABEL_FORM, name) {
        wrong.push(
            if name.contains('.') {
                "must not contain dots"
            } else {
                LABEL
            }
            .to_owned(),
        );
    }
    wrong
}

/// What is wrong with a label that must start with a letter.
pub(super) fn old_label(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 63 {
        wrong.push(too_long(63));
    }
    if !matches(&OLD_LABEL_FORM, name) {
        wrong.push(OLD_LABEL.to_owned());
    }
    wrong
}

/// What is wrong with a name that is only a part of a path.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name == "." || name == ".." {
        wrong.push(format!("may not be '{name}'"));
    }
    for part in ["/", "%"] {
        if name.contains(part) {
            wrong.push(format!("may not contain '{part}'"));
        }
    }
    wrong
}

/// What is wrong with a key such as `example.com/name`.
pub(super) fn qualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (*name).to_owned(),
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(prefix).into_iter().map(|w| format!("prefix part {w}")));
            }
            (*name).to_owned()
        }
        _ => {
            wrong.push(
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                    .to_owned(),
            );
            return wrong;
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", too_long(63)));
    }
    if !matches(&QUALIFIED_FORM, &name) {
        wrong.push(QUALIFIED.to_owned());
    }
    wrong
}

/// What is wrong with the value of a label.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > 63 {
        wrong.push(too_long(63));
    }
    if !value.is_empty() && !matches(&QUALIFIED_FORM, value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Labels, or a selector made of them.
pub(super) fn labels(path: &str, labels: &Value, errors: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.extend(qualified(key).iter().map(|w| field::invalid(path, &json!(key), w)));
        let text = value.as_str().unwrap_or_default();
        errors.extend(label_value(text).iter().map(|w| field::invalid(path, value, w)));
    }
}

/// Keys of config maps and secrets.
pub(super) fn config_keys(field_name: &str, data: &Value, errors: &mut Vec<Cause>) {
    for key in data.as_object().into_iter().flatten().map(|(key, _)| key) {
        let path = format!("{field_name}[{key}]");
        let good = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if key.len() > 253 {
            errors.push(field::invalid(&path, &json!(key), &too_long(253)));
        } else if !good {
            errors.push(field::invalid(&path, &json!(key), CONFIG_KEY));
        } else if key == "." || key == ".." || key.starts_with("..") {
            let word = if key.starts_with("..") && key != ".." {
                "must not start with '..'"
            } else {
                "must not be a dot"
            };
            errors.push(field::invalid(&path, &json!(key), word));
        }
    }
}

/// Tells every complaint about one value.
pub(super) fn reject(path: &str, text: &str, wrong: &[String], errors: &mut Vec<Cause>) {
    errors.extend(wrong.iter().map(|w| field::invalid(path, &json!(text), w)));
}
