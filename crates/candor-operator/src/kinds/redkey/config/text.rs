//! `redis.conf` text, read exactly as a server reads it (`loadServerConfigFromString` and `sdssplitargs` in Redis): one
//! directive per line, comments only at the start of a line, values in single or double quotes with escapes.

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// Line number, starting at 1.
    pub line: usize,
    /// The key in lower case: servers ignore the case.
    pub key: String,
    /// The values without quotes and escapes. There is at least one.
    pub values: Vec<Vec<u8>>,
    /// The original line, trimmed.
    pub written: String,
}

impl Directive {
    /// The value as text, if there is exactly one and it is valid UTF-8.
    pub fn single(&self) -> Option<&str> {
        match self.values.as_slice() {
            [value] => std::str::from_utf8(value).ok(),
            _ => None,
        }
    }
}

/// Why the text cannot be parsed. The message never contains a value, because it may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A quote is not closed, or is closed in the middle of a word.
    #[error("spec.config, line {line} ({key}): unbalanced quotes; close every quote and put a space behind it")]
    Quotes {
        /// Line number, starting at 1.
        line: usize,
        /// The first word.
        key: String,
    },
    /// A key without a value.
    #[error("spec.config, line {line}: {key} has no value; write {key} and its value on one line")]
    NoValue {
        /// Line number, starting at 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// The text contains a zero byte, which ends the line for a server.
    #[error("spec.config, line {line}: the line has a zero byte; remove it")]
    Zero {
        /// Line number, starting at 1.
        line: usize,
    },
    /// A password that is not valid UTF-8.
    #[error("spec.config, line {line}: {key} is not valid UTF-8; choose a password without such bytes")]
    Password {
        /// Line number, starting at 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// A value that no server accepts.
    #[error("spec.config, line {line}: the value of {key} is wrong; {instead}")]
    Value {
        /// Line number, starting at 1.
        line: usize,
        /// The key.
        key: String,
        /// What to write instead.
        instead: &'static str,
    },
}

/// Parses every directive, in the order of the text.
pub fn parse(text: &str) -> Result<Vec<Directive>, TextError> {
    let mut found = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let (number, written) = (index + 1, line.trim_matches([' ', '\t', '\r']));
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        if written.contains('\0') {
            return Err(TextError::Zero { line: number });
        }
        let message = message(written.as_bytes()).ok_or_else(|| TextError::Quotes {
            line: number,
            key: first_word(written),
        })?;
        let Some((key, values)) = message.split_first() else {
            continue;
        };
        let key = String::from_utf8_lossy(key).to_lowercase();
        if values.is_empty() {
            return Err(TextError::NoValue { line: number, key });
        }
        found.push(Directive {
            line: number,
            key,
            values: values.to_vec(),
            written: written.to_owned(),
        });
    }
    Ok(found)
}

/// The key of a line that cannot be split into words.
fn first_word(line: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    line.chars().take_while(plain).collect()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Splits a line into words without quotes. Returns None if a quote is not closed, or if no space follows it.
fn message(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let mut rest = line;
    loop {
        while let [byte, after @ ..] = rest
            && is_space(*byte)
        {
            rest = after;
        }
        if rest.is_empty() {
            return Some(all);
        }
        let (word, after) = word(rest)?;
        all.push(word);
        rest = after;
    }
}

/// Reads one word, and returns it with the rest of the line. A quote may begin in the middle of a word.
fn word(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    loop {
        match rest {
            [] | [b' ' | b'\n' | b'\r' | b'\t', ..] => return Some((word, rest)),
            [b'"', after @ ..] => return double_quoted(word, after),
            [b'\'', after @ ..] => return single_quoted(word, after),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn double_quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    loop {
        match rest {
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push((hex(*high) << 4) | hex(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = after;
            }
            [b'"', after @ ..] => return closed(word, after),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn single_quoted(mut word: Vec<u8>, mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    loop {
        match rest {
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [b'\'', after @ ..] => return closed(word, after),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

/// A closing quote ends the word.
fn closed(word: Vec<u8>, after: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    after
        .first()
        .is_none_or(|byte| is_space(*byte))
        .then_some((word, after))
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10),
    }
}

/// Writes a value in double quotes, so that a server reads the same bytes.
pub fn quoted(value: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in value {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\\""),
            b' '..=b'~' => out.push(char::from(*byte)),
            other => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\x");
                out.push(char::from(DIGITS[usize::from(other >> 4)]));
                out.push(char::from(DIGITS[usize::from(other & 15)]));
            }
        }
    }
    out.push('"');
    out
}
