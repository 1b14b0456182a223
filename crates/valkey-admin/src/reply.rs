//! What a server answered, before it is understood: one shape for RESP2 and RESP3, without a client.

use crate::ParseError;

/// An answer, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// Many.
    Array(Vec<Reply>),
    /// Pairs, as RESP3 gives them.
    Map(Vec<(Reply, Reply)>),
    /// An error in the server's own words.
    Error(String),
}

impl Reply {
    /// As text; numbers are written out.
    pub fn text(&self, command: &'static str) -> Result<String, ParseError> {
        match self {
            Self::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Self::Int(number) => Ok(number.to_string()),
            other => Err(other.unlike(command, "text")),
        }
    }

    /// As a number; numbers in text are read.
    pub fn int(&self, command: &'static str) -> Result<i64, ParseError> {
        match self {
            Self::Int(number) => Ok(*number),
            Self::Bytes(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                text.parse().map_err(|_| ParseError::new(command, "a number", text))
            }
            other => Err(other.unlike(command, "a number")),
        }
    }

    /// As a list.
    pub fn items(&self, command: &'static str) -> Result<&[Reply], ParseError> {
        match self {
            Self::Array(items) => Ok(items),
            other => Err(other.unlike(command, "a list")),
        }
    }

    /// As pairs: a RESP3 map, or a RESP2 list of keys and values in turn.
    pub fn pairs(&self, command: &'static str) -> Result<Vec<(String, &Reply)>, ParseError> {
        match self {
            Self::Map(pairs) => pairs
                .iter()
                .map(|(key, value)| Ok((key.text(command)?, value)))
                .collect(),
            Self::Array(items) if items.len() % 2 == 0 => items
                .chunks_exact(2)
                .map(|pair| Ok((pair[0].text(command)?, &pair[1])))
                .collect(),
            other => Err(other.unlike(command, "keys and values")),
        }
    }

    /// The error for a reply of another shape.
    pub(crate) fn unlike(&self, command: &'static str, expected: &'static str) -> ParseError {
        let found = match self {
            Self::Nil => "nothing".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Array(items) => format!("a list of {}", items.len()),
            Self::Map(pairs) => format!("a map of {}", pairs.len()),
            Self::Error(words) => words.clone(),
        };
        ParseError::new(command, expected, found)
    }
}

/// Whether a server's error says that it lives and cannot do more right now.
pub fn is_alive(words: &str) -> bool {
    ["LOADING", "BUSY", "MASTERDOWN"]
        .iter()
        .any(|code| words.starts_with(code))
}

/// No answer that we ask for is near this; a length beyond it is nonsense, not a promise to wait for.
const LONGEST: usize = 64 * 1024 * 1024;
/// How deep lists may stand in lists.
const DEEPEST: usize = 16;

impl Reply {
    /// Reads one answer (RESP2 or RESP3) off the front of what has come in so far, with the number of bytes it took;
    /// nothing while it is incomplete.
    ///
    /// ```
    /// # use valkey_admin::Reply;
    /// assert_eq!(Reply::decode(b"$2\r\nhi\r\n+OK\r\n")?, Some((Reply::from("hi"), 8)));
    /// assert_eq!(Reply::decode(b"$2\r\nh")?, None);
    /// # Ok::<(), valkey_admin::ParseError>(())
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, ParseError> {
        let mut wire = Incoming { bytes, at: 0 };
        Ok(wire.reply(DEEPEST)?.map(|reply| (reply, wire.at)))
    }
}

/// Bytes on the way in, and how far they are read.
struct Incoming<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Incoming<'a> {
    fn reply(&mut self, depth: usize) -> Result<Option<Reply>, ParseError> {
        let Some(line) = self.line()? else { return Ok(None) };
        let wrong = || ParseError::new("RESP", "an answer of the protocol", String::from_utf8_lossy(line));
        let (kind, rest) = line.split_first().ok_or_else(wrong)?;
        if depth == 0 {
            return Err(wrong());
        }
        let reply = match kind {
            b'+' | b',' | b'(' => Reply::Bytes(rest.to_vec()),
            b'-' => Reply::Error(String::from_utf8_lossy(rest).into_owned()),
            b':' => Reply::Int(number(rest).ok_or_else(wrong)?),
            b'#' => Reply::Int(i64::from(rest == b"t")),
            b'_' => Reply::Nil,
            b'$' | b'=' | b'!' => {
                let Some(length) = length(rest).ok_or_else(wrong)? else {
                    return Ok(Some(Reply::Nil));
                };
                let Some(body) = self.body(length)? else {
                    return Ok(None);
                };
                match kind {
                    b'!' => Reply::Error(String::from_utf8_lossy(body).into_owned()),
                    // `txt:` or `mkd:` stands before the text.
                    b'=' => Reply::Bytes(body.get(4..).unwrap_or_default().to_vec()),
                    _ => Reply::Bytes(body.to_vec()),
                }
            }
            b'*' | b'~' | b'>' => {
                let Some(length) = length(rest).ok_or_else(wrong)? else {
                    return Ok(Some(Reply::Nil));
                };
                let Some(items) = self.replies(length, depth)? else {
                    return Ok(None);
                };
                Reply::Array(items)
            }
            b'%' => {
                let length = length(rest).flatten().ok_or_else(wrong)?;
                let Some(items) = self.replies(length * 2, depth)? else {
                    return Ok(None);
                };
                let mut items = items.into_iter();
                Reply::Map(std::iter::from_fn(|| items.next().zip(items.next())).collect())
            }
            _ => return Err(wrong()),
        };
        Ok(Some(reply))
    }

    fn replies(&mut self, count: usize, depth: usize) -> Result<Option<Vec<Reply>>, ParseError> {
        // Reserved by what is there, not by what is promised.
        let mut items = Vec::with_capacity(count.min((self.bytes.len() - self.at) / 3));
        for _ in 0..count {
            match self.reply(depth - 1)? {
                Some(item) => items.push(item),
                None => return Ok(None),
            }
        }
        Ok(Some(items))
    }

    fn line(&mut self) -> Result<Option<&'a [u8]>, ParseError> {
        let rest = &self.bytes[self.at..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else {
            if rest.len() > LONGEST {
                return Err(ParseError::new("RESP", "the end of a line", "none"));
            }
            return Ok(None);
        };
        self.at += end + 2;
        Ok(Some(&rest[..end]))
    }

    fn body(&mut self, length: usize) -> Result<Option<&'a [u8]>, ParseError> {
        let rest = &self.bytes[self.at..];
        let Some(body) = rest.get(..length + 2) else {
            return Ok(None);
        };
        let Some(body) = body.strip_suffix(b"\r\n") else {
            return Err(ParseError::new("RESP", "the end of a text", "other bytes"));
        };
        self.at += length + 2;
        Ok(Some(body))
    }
}

fn number(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A length; -1 is "nothing at all", and more than [`LONGEST`] is no length.
#[allow(clippy::option_option)] // no length, and the length of nothing, are different things
fn length(digits: &[u8]) -> Option<Option<usize>> {
    match number(digits)? {
        -1 => Some(None),
        length => usize::try_from(length)
            .ok()
            .filter(|length| *length <= LONGEST)
            .map(Some),
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}
