//! How long a text may be, and how it is shortened.
//!
//! The API server rejects a condition with a message or reason that is too long, and an event with such a note. The
//! whole write fails, with everything else in the status. So texts are shortened where they leave the process (the
//! status writer, the event recorder) and nowhere else: the rules keep them whole.

use std::borrow::Cow;

/// Longest message of a condition, in bytes.
///
/// ```
/// assert_eq!(kube_status::limits::MESSAGE_LIMIT, 32_768);
/// ```
pub const MESSAGE_LIMIT: usize = 32_768;
/// Longest reason of a condition, in bytes.
///
/// ```
/// assert_eq!(kube_status::limits::REASON_LIMIT, 1_024);
/// ```
pub const REASON_LIMIT: usize = 1_024;
/// Longest note (`message`) of an event, in bytes.
///
/// ```
/// assert_eq!(kube_status::limits::NOTE_LIMIT, 1_024);
/// ```
pub const NOTE_LIMIT: usize = 1_024;
/// Longest reason, action and reporting instance of an event that carries `eventTime`, in bytes.
///
/// ```
/// assert_eq!(kube_status::limits::EVENT_FIELD_LIMIT, 128);
/// ```
pub const EVENT_FIELD_LIMIT: usize = 128;

const ELLIPSIS: &str = "...";

/// Shortens free text to `limit` bytes, never inside a character; a shortened text ends in `...`.
///
/// ```
/// use kube_status::limits::cut;
///
/// assert_eq!(cut("all is well", 20), "all is well");
/// assert_eq!(cut("a long story", 9), "a long...");
/// assert_eq!(cut("Überlänge", 5), "Ü...");
/// ```
pub fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    if limit < ELLIPSIS.len() {
        return Cow::Borrowed(&text[..boundary(text, limit)]);
    }
    let kept = &text[..boundary(text, limit - ELLIPSIS.len())];
    Cow::Owned(format!("{kept}{ELLIPSIS}"))
}

/// Shortens a condition's message to [`MESSAGE_LIMIT`].
///
/// ```
/// let long = "é".repeat(20_000);
/// let cut = kube_status::limits::cut_message(&long);
/// assert_eq!(cut.len(), 32_767);
/// ```
pub fn cut_message(message: &str) -> Cow<'_, str> {
    cut(message, MESSAGE_LIMIT)
}

/// Shortens an event's note to [`NOTE_LIMIT`].
///
/// ```
/// assert_eq!(kube_status::limits::cut_note(&"x".repeat(5_000)).len(), 1_024);
/// ```
pub fn cut_note(note: &str) -> Cow<'_, str> {
    cut(note, NOTE_LIMIT)
}

/// Shortens a reason to `limit` bytes so that it still is one.
///
/// The pattern of a reason allows `,` and `:` inside but not at the end, and no dots at all: what is cut off
/// leaves no mark, and a separator left dangling goes too.
///
/// ```
/// use kube_status::limits::cut_reason;
///
/// assert_eq!(cut_reason("ImagePull:BackOff", 10), "ImagePull");
/// ```
pub fn cut_reason(reason: &str, limit: usize) -> &str {
    if reason.len() <= limit {
        return reason;
    }
    reason[..boundary(reason, limit)].trim_end_matches([',', ':'])
}

/// The last character boundary at or before `at`; 0 always is one.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_of_exactly_the_limit_is_left_alone() {
        let text = "x".repeat(MESSAGE_LIMIT);
        assert!(matches!(cut_message(&text), Cow::Borrowed(same) if same.len() == MESSAGE_LIMIT));
    }

    #[test]
    fn a_limit_below_the_ellipsis_still_holds() {
        assert_eq!(cut("ääää", 0), "");
        assert_eq!(cut("ääää", 1), "");
        assert_eq!(cut("ääää", 2), "ä");
        assert_eq!(cut("ääää", 3), "...");
    }

    proptest! {
        #[test]
        fn no_text_exceeds_its_limit_and_what_remains_is_its_beginning(text in "\\PC{0,60}", limit in 0_usize..80) {
            let short = cut(&text, limit);
            prop_assert!(short.len() <= limit.max(text.len().min(limit)));
            let kept = short.strip_suffix(ELLIPSIS).filter(|_| text.len() > limit).unwrap_or(&short);
            prop_assert!(text.starts_with(kept));
            prop_assert_eq!(short.len() == text.len(), text.len() <= limit);
        }

        #[test]
        fn a_cut_reason_keeps_the_pattern(reason in "[A-Za-z][A-Za-z0-9_,:]{0,40}[A-Za-z0-9_]", limit in 1_usize..60) {
            let short = cut_reason(&reason, limit);
            prop_assert!(short.len() <= limit);
            prop_assert!(!short.is_empty());
            prop_assert!(!short.ends_with([',', ':']));
        }
    }
}
