//! What names, labels and keys may look like, in the real server's words.

use std::sync::LazyLock;

use regex::Regex;

fn whole(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

/// A form that text must have: its pattern, its longest length and what is said about text of another form.
struct Form {
    pattern: LazyLock<Option<Regex>>,
    longest: usize,
    words: &'static str,
}

impl Form {
    /// Everything wrong with the text.
    fn check(&self, text: &str) -> Vec<String> {
        let mut wrong = Vec::new();
        if text.len() > self.longest {
            wrong.push(format!("must be no more than {} characters", self.longest));
        }
        if !self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)) {
            wrong.push(self.words.to_owned());
        }
        wrong
    }
}

static SUBDOMAIN: Form = Form {
    pattern: LazyLock::new(|| whole(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")),
    longest: 253,
    words: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
            and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
            '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
};

static LABEL: Form = Form {
    pattern: LazyLock::new(|| whole("[a-z0-9]([-a-z0-9]*[a-z0-9])?")),
    longest: 63,
    words: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end \
            with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
            '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
};

static LABEL_1035: Form = Form {
    pattern: LazyLock::new(|| whole("[a-z]([-a-z0-9]*[a-z0-9])?")),
    longest: 63,
    words: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
            character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation \
            is '[a-z]([-a-z0-9]*[a-z0-9])?')",
};

static LABEL_VALUE: Form = Form {
    pattern: LazyLock::new(|| whole("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")),
    longest: 63,
    words: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
            and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
            validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
};

static NAME_PART: Form = Form {
    pattern: LazyLock::new(|| whole("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")),
    longest: 63,
    words: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
            character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
            '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
};

static DATA_KEY: Form = Form {
    pattern: LazyLock::new(|| whole("[-._a-zA-Z0-9]+")),
    longest: 253,
    words: "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  \
            or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
};

/// Names of most objects.
pub fn subdomain(name: &str) -> Vec<String> {
    SUBDOMAIN.check(name)
}

/// Names of namespaces, containers, ports and stateful sets.
pub fn label(name: &str) -> Vec<String> {
    LABEL.check(name)
}

/// Names of services, which must not begin with a digit.
pub fn service(name: &str) -> Vec<String> {
    LABEL_1035.check(name)
}

/// Names of roles and bindings: anything that can stand in a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| name.contains(*part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// Values of labels.
pub fn label_value(value: &str) -> Vec<String> {
    LABEL_VALUE.check(value)
}

/// Keys of labels and annotations, and finalizers: a name with an optional domain before it.
pub fn qualified(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let mut wrong = Vec::new();
    let part = match parts.as_slice() {
        [part] => part,
        [domain, part] => {
            if domain.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(domain).into_iter().map(|said| format!("prefix part {said}")));
            }
            part
        }
        _ => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                NAME_PART.words
            )];
        }
    };
    if part.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if part.len() > NAME_PART.longest {
        wrong.push(format!("name part must be no more than {} bytes", NAME_PART.longest));
    }
    wrong.extend(
        NAME_PART
            .check(part)
            .into_iter()
            .filter(|said| said == NAME_PART.words)
            .map(|said| format!("name part {said}")),
    );
    wrong
}

/// Keys of config maps and secrets.
pub fn data_key(key: &str) -> Vec<String> {
    let mut wrong = DATA_KEY.check(key);
    match key {
        "." => wrong.push("must not be '.'".to_owned()),
        ".." => wrong.push("must not be '..'".to_owned()),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_form() {
        let table: [(&str, fn(&str) -> Vec<String>, bool); 14] = [
            ("a.b-c", subdomain, true),
            ("A", subdomain, false),
            ("", subdomain, false),
            ("a.b", label, false),
            ("1a", label, true),
            ("1a", service, false),
            ("system:x", path_segment, true),
            ("a/b", path_segment, false),
            ("", label_value, true),
            ("-a", label_value, false),
            ("example.com/a_b", qualified, true),
            ("a/b/c", qualified, false),
            ("no slash", qualified, false),
            ("..data", data_key, false),
        ];
        for (text, check, good) in table {
            assert_eq!(check(text).is_empty(), good, "{text:?}: {:?}", check(text));
        }
    }
}
