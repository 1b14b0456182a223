//! The plural of a kind, as people read it in an aggregate's message.

mod words;

use std::borrow::Cow;

use words::{ACRONYMS, ENDINGS, WORDS};

/// The plural of a `CamelCase` kind: only its last word changes.
///
/// ```
/// use kube_status::pluralize;
/// assert_eq!(pluralize("Server"), "Servers");
/// assert_eq!(pluralize("NetworkPolicy"), "NetworkPolicies");
/// assert_eq!(pluralize("ValkeyIndex"), "ValkeyIndices");
/// ```
pub fn pluralize(kind: &str) -> String {
    let last = last_word(kind);
    if last.is_empty() {
        return String::new();
    }
    if let Some(word) = WORDS.iter().find(|w| w.singular == kind) {
        return word.plural.to_owned();
    }
    if is_plural(kind) {
        return kind.to_owned();
    }
    let lower = last.to_lowercase();
    if is_plural(&lower) {
        return kind.to_owned();
    }
    // A break at the end hides the last word from its own replacement: the plural is then put behind it.
    let head = kind.strip_suffix(&*last).unwrap_or(kind);
    if let Some(word) = WORDS.iter().find(|w| w.singular == lower) {
        return format!("{head}{}", as_written(&last, word.plural));
    }
    if let Some((stem, plural)) = by_ending(&last) {
        return format!("{head}{stem}{plural}");
    }
    if lower.ends_with('s') {
        kind.to_owned()
    } else {
        format!("{kind}s")
    }
}

fn is_plural(word: &str) -> bool {
    WORDS
        .iter()
        .any(|w| !w.one_way && (w.plural == word || (!w.also.is_empty() && w.also == word)))
}

/// A capitalised word gets a capitalised plural.
fn as_written(word: &str, plural: &str) -> String {
    let mut letters = plural.chars();
    match letters.next() {
        Some(first) if !word.starts_with(char::is_lowercase) => first.to_uppercase().chain(letters).collect(),
        _ => plural.to_owned(),
    }
}

/// The stem and its new ending. An ending that is a plural already stays.
fn by_ending(word: &str) -> Option<(&str, &'static str)> {
    let irregular = WORDS.iter().rev().filter(|w| !w.whole).map(|w| (w.singular, w.plural));
    irregular.chain(ENDINGS.iter().copied()).find_map(|(singular, plural)| {
        let stem = word.strip_suffix(plural).or_else(|| word.strip_suffix(singular))?;
        Some((stem, plural))
    })
}

fn is_break(c: char) -> bool {
    matches!(c, '_' | ' ' | ':' | '-' | '/') || c.is_whitespace()
}

fn is_acronym(word: &str) -> bool {
    ACRONYMS.iter().any(|a| a.eq_ignore_ascii_case(word))
}

/// The last word of a kind: words begin at a capital, after a break, and after an acronym.
fn last_word(kind: &str) -> Cow<'_, str> {
    let kind = kind.trim_end_matches(is_break);
    let mut start = 0;
    let mut previous = None;
    for (at, c) in kind.char_indices() {
        let begins = if is_break(c) {
            start = at + c.len_utf8();
            false
        } else {
            c.is_uppercase() && (!previous.is_some_and(char::is_uppercase) || is_acronym(&kind[start..at]))
        };
        if begins {
            start = at;
        }
        previous = Some(c);
    }
    let word = &kind[start..];
    if is_acronym(word) {
        Cow::Owned(word.to_uppercase())
    } else {
        Cow::Borrowed(word)
    }
}
