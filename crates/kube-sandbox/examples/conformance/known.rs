//! Differences that stay, each with its reason; docs/sandbox.md lists them for people.

use super::normal::Difference;
use super::operation::Operation;

/// A difference that is accepted.
struct Known {
    reason: &'static str,
    matches: fn(&Operation, &Difference) -> bool,
}

/// What a place's value says, on either side.
fn says(difference: &Difference, text: &str) -> bool {
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
        reason: "words that name a line of the server's Go source",
        matches: |_, d| says(d, "pkg/runtime/scheme.go"),
    },
    Known {
        reason: "words that print the difference of two Go values",
        matches: |_, d| says(d, r"\n@@ -"),
    },
    Known {
        reason: "words that name the store: keys and codes of etcd",
        matches: |_, d| says(d, "StorageError: invalid object"),
    },
    Known {
        reason: "words that print a whole patched object, in the order of Go's fields and with its version",
        matches: |o, d| o.label.starts_with("patch-") && says(d, r#"Invalid value: \"{\\\"apiVersion"#),
    },
    Known {
        reason: "warnings about fields that have no effect are not given",
        matches: |_, d| d.place == "warnings" && says(d, "is ignored for"),
    },
];

/// The reason why a difference is accepted, where there is one.
pub fn reason(operation: &Operation, difference: &Difference) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|known| (known.matches)(operation, difference))
        .map(|known| known.reason)
}
