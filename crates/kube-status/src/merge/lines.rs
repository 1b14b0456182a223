//! How one message becomes one line, or several below it.

use super::Input;

/// `* Type: message`, or the reason where there is no message.
pub(super) fn condition(out: &mut String, input: &Input<'_>) {
    out.push_str("* ");
    out.push_str(input.type_);
    out.push(':');
    if input.message.is_empty() {
        out.push(' ');
        out.push_str(input.reason);
    } else {
        indented(out, input.message);
    }
}

/// A message of one line follows the colon. One of several lines, or with a bullet, goes below, indented by two: if any
/// of its lines has no bullet, those lines get one, and the lines that had one move further in.
pub(super) fn indented(out: &mut String, message: &str) {
    if !message.contains('\n') && !has_bullet(message) {
        out.push(' ');
        out.push_str(message);
        return;
    }
    let all_bulleted = message.split('\n').all(has_bullet);
    for line in message.split('\n') {
        out.push_str(match (all_bulleted, has_bullet(line)) {
            (true, _) => "\n  ",
            (false, true) => "\n    ",
            (false, false) => "\n  * ",
        });
        out.push_str(line);
    }
}

/// A star with white space behind it, anywhere in the line: `2 * 3` counts, as it does in Go's helpers.
fn has_bullet(line: &str) -> bool {
    let bytes = line.as_bytes();
    bytes
        .windows(2)
        .any(|pair| pair[0] == b'*' && matches!(pair[1], b' ' | b'\t' | b'\n' | b'\r' | b'\x0c'))
}
