//! Text into columns: words where they fit, the width of characters as a terminal counts them.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// Text without anything that a terminal would act on. Line breaks stay, tabs become blanks, carriage returns go.
pub(super) fn tame(text: &str) -> String {
    text.chars()
        .filter(|&c| c != '\r')
        .map(|c| match c {
            '\n' => '\n',
            c if c.is_control() => ' ',
            // Marks that turn the direction of writing could make a row say something else.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => ' ',
            c => c,
        })
        .collect()
}

/// Breaks a message into lines of at most `columns`; every line of the message starts anew, what is wrapped hangs
/// below the text of its bullet. A word longer than a line is broken.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    text.trim_end()
        .split('\n')
        .flat_map(|line| wrap_line(line.trim_end(), columns))
        .collect()
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    if width(line) <= columns {
        return vec![line.to_owned()];
    }
    let indent = hanging(line).min(columns / 2);
    let mut lines = vec![String::new()];
    // Whether the current line has a word yet: the first one needs no blank before it.
    let mut begun = false;
    let lead = line.len() - line.trim_start().len();
    lines[0].push_str(&" ".repeat(width(&line[..lead]).min(columns / 2)));
    for word in line.split_whitespace() {
        let taken = lines.last().map_or(0, |last| width(last));
        if begun && taken + 1 + width(word) > columns {
            lines.push(" ".repeat(indent));
            begun = false;
        }
        if begun && let Some(last) = lines.last_mut() {
            last.push(' ');
        }
        push_word(&mut lines, word, columns, indent);
        begun = true;
    }
    lines
}

fn push_word(lines: &mut Vec<String>, word: &str, columns: usize, indent: usize) {
    for c in word.chars() {
        let taken = lines.last().map_or(0, |last| width(last));
        let needs = c.width().unwrap_or(0);
        if taken + needs > columns && taken > indent {
            lines.push(" ".repeat(indent));
        }
        if let Some(last) = lines.last_mut() {
            last.push(c);
        }
    }
}

/// Where wrapped text hangs: below the text that follows the bullet.
fn hanging(line: &str) -> usize {
    let text = line.trim_start();
    let lead = width(&line[..line.len() - text.len()]);
    if text.starts_with("* ") || text.starts_with("- ") {
        lead + 2
    } else {
        lead
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_stay_whole_where_they_fit_and_bullets_hang() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("* Ready: no answer", 10), ["* Ready:", "  no", "  answer"]);
        assert_eq!(wrap("  * a bcd e", 7), ["  * a", "   bcd", "   e"]);
        assert_eq!(wrap("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(wrap("first\nsecond\n", 20), ["first", "second"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
    }

    #[test]
    fn escape_sequences_do_not_survive() {
        assert_eq!(tame("\u{1b}[31mred\u{7}\tx\r\n\u{202e}y"), " [31mred  x\n y");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_asked_and_no_letter_is_lost(text in "[ \\*a-zé漢\n]{0,60}", columns in 4_usize..30) {
            let lines = wrap(&text, columns);
            for line in &lines {
                prop_assert!(width(line) <= columns, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
