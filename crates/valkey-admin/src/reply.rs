//! A decoded reply before it is parsed: one type for RESP2 and RESP3, independent of the client.

use crate::ParseError;

/// A reply, or an item of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A number.
    Int(i64),
    /// Text or bytes.
    Bytes(Vec<u8>),
    /// A list.
    Array(Vec<Reply>),
    /// A RESP3 map.
    Map(Vec<(Reply, Reply)>),
    /// An error message of the server.
    Error(String),
}

impl Reply {
    /// Returns the text; a number is formatted.
    pub fn text(&self, command: &'static str) -> Result<String, ParseError> {
        match self {
            Self::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Self::Int(number) => Ok(number.to_string()),
            other => Err(other.unlike(command, "text")),
        }
    }

    /// Returns the number; text is parsed.
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

    /// Returns the items of a list.
    pub fn items(&self, command: &'static str) -> Result<&[Reply], ParseError> {
        match self {
            Self::Array(items) => Ok(items),
            other => Err(other.unlike(command, "a list")),
        }
    }

    /// Returns the pairs of a RESP3 map, or of a RESP2 list of alternating keys and values.
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

    /// Returns the error for a reply of an unexpected type.
    pub(crate) fn unlike(&self, command: &'static str, expected: &'static str) -> ParseError {
        let found = match self {
            Self::Nil => "nothing".to_owned(),
            Self::Int(number) => number.to_string(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Array(items) => format!("a list of {}", items.len()),
            Self::Map(pairs) => format!("a map of {}", pairs.len()),
            Self::Error(message) => message.clone(),
        };
        ParseError::new(command, expected, found)
    }
}

/// Whether an error message means that the server is alive but cannot serve the command right now.
pub fn is_alive(message: &str) -> bool {
    ["LOADING", "BUSY", "MASTERDOWN"]
        .iter()
        .any(|code| message.starts_with(code))
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }
}
