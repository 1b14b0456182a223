//! Removes control characters from everything that is printed. User names, messages of servers and of the API server,
//! and object names may contain control characters and escape sequences that a terminal would execute.

use std::fmt::Write;

use super::output::PAINTS;

/// Whether a character may make a terminal do something, or display text in another order.
pub fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// One line of text without anything that a terminal would execute.
pub fn tame(text: &str) -> String {
    let plain = text.chars().map(|c| if is_active(c) { ' ' } else { c });
    plain.collect::<String>().trim().to_owned()
}

/// Text of several lines without anything that a terminal would execute, except the program's own colours if `colour`
/// is set.
pub fn clean(text: &str, colour: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(paint) = paint_at(rest).filter(|_| colour) {
            out.push_str(paint);
            rest = &rest[paint.len()..];
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '\n' => out.push('\n'),
            // A line end as servers write it.
            '\r' if rest.starts_with('\n') => {}
            c if is_active(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// One of the program's own colours, if the text starts with it.
fn paint_at(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let (code, _) = inner.split_once('m')?;
    PAINTS.contains(&code).then(|| &text[..=(2 + code.len())])
}

/// JSON that escapes every character that a terminal would execute; serde escapes only those below U+0020.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_active(c) {
            // All of them are in the Basic Multilingual Plane, and none occurs outside of strings. Writing to a String
            // cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_does_nothing_to_the_terminal() {
        assert_eq!(tame("a\u{1b}[2Jb\nc"), "a [2Jb c");
        for evil in [
            "\u{1b}[2J",
            "\u{1b}]0;title\u{7}",
            "\u{9b}31m",
            "\u{1b}c",
            "back\u{8}\u{8}\u{8}\u{8}",
            "over\rwritten",
            "\u{202e}txet",
            "\u{1b}[8mhidden",
            "\u{7f}",
        ] {
            for colour in [false, true] {
                let clean = clean(&format!("a {evil} b\nc"), colour);
                assert!(clean.chars().all(|c| c == '\n' || !is_active(c)), "{clean:?}");
                assert!(clean.starts_with("a ") && clean.ends_with(" b\nc"), "{clean:?}");
            }
        }
    }

    #[test]
    fn our_own_colours_stay_where_they_are_wanted() {
        let painted = "\u{1b}[31mDegraded\u{1b}[0m\n";
        assert_eq!(clean(painted, true), painted);
        assert_eq!(clean(painted, false), " [31mDegraded [0m\n");
        assert_eq!(clean("role:master\r\nx", true), "role:master\nx");
    }

    #[test]
    fn json_stays_the_same_data() {
        let value = serde_json::json!({"a": "x\u{9b}2J\u{202e}\u{1b}\u{7f}ü", "b": ["\n"]});
        let text = json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.chars().all(|c| c == '\n' || !is_active(c)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
