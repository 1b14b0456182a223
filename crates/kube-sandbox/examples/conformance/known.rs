//! Differences that stay, each with its reason; docs/sandbox.md lists them for people.

use super::normal::Difference;
use super::operation::Operation;

/// A difference that is accepted.
struct Known {
    reason: &'static str,
    matches: fn(&Operation, &Difference) -> bool,
}

/// Whether the value on either side contains `text`.
fn contains(difference: &Difference, text: &str) -> bool {
    [&difference.real, &difference.ours]
        .into_iter()
        .flatten()
        .any(|value| value.to_string().contains(text))
}

const KNOWN: &[Known] = &[
    Known {
        reason: "columns of tables have no description; kubectl shows none",
        matches: |_, d| d.place.ends_with("columnDefinitions[].description"),
    },
    Known {
        reason: "a bookmark carries its version alone; the real server adds the zero values of its Go types",
        matches: |o, d| o.label.starts_with("watch-initial") && d.ours.is_none() && !d.place.contains("metadata"),
    },
    Known {
        reason: "messages that name a line of the server's Go source",
        matches: |_, d| contains(d, "pkg/runtime/scheme.go"),
    },
    Known {
        reason: "messages that print the difference of two Go values",
        matches: |_, d| contains(d, r"\n@@ -"),
    },
    Known {
        reason: "messages that name the store: keys and codes of etcd",
        matches: |_, d| contains(d, "StorageError: invalid object"),
    },
    Known {
        reason: "messages that print a whole patched object, in the order of Go's fields and with its version",
        matches: |o, d| o.label.starts_with("patch-") && contains(d, r#"Invalid value: \"{\\\"apiVersion"#),
    },
    Known {
        reason: "a service without a name is 422 as everything else; the real server fails to give it any address, 500",
        matches: |o, d| {
            let about = ["create-no-name services", "create-broken services"].contains(&o.label.as_str());
            let codes = d.real == Some(500.into()) && d.ours == Some(422.into());
            about && (codes || contains(d, "failed to allocate a serviceIP: range is full"))
        },
    },
    Known {
        reason: "which errors of an applied configuration are reported before its first unknown field: the order of a Go map",
        matches: |_, d| unknown_field_among(d),
    },
    Known {
        reason: "warnings about fields that have no effect are not given",
        matches: |_, d| d.place == "warnings" && contains(d, "is ignored for"),
    },
];

/// Whether both report an unknown field in an applied configuration, and ours reports everything that the real one does.
fn unknown_field_among(difference: &Difference) -> bool {
    let lines = |value: &Option<serde_json::Value>| -> Vec<String> {
        let text = value.as_ref().and_then(serde_json::Value::as_str).unwrap_or_default();
        let text = text
            .strip_prefix("failed to create typed patch object ")
            .unwrap_or_default();
        let errors = text.split_once("): ").map(|(_, errors)| errors).unwrap_or_default();
        errors
            .trim_start_matches("errors:")
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|l| !l.is_empty())
            .collect()
    };
    let (real, ours) = (lines(&difference.real), lines(&difference.ours));
    let unknown = |errors: &[String]| errors.iter().any(|line| line.ends_with("field not declared in schema"));
    unknown(&real) && unknown(&ours) && real.iter().all(|line| ours.contains(line))
}

/// The reason why a difference is accepted, where there is one.
pub fn reason(operation: &Operation, difference: &Difference) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|known| (known.matches)(operation, difference))
        .map(|known| known.reason)
}
