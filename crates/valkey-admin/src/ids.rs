//! Newtypes for node ids, epochs and versions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ParseError;

/// A node's id: 160 bits, written as 40 hexadecimal digits. Shard ids have the same form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId([u8; 20]);

impl FromStr for NodeId {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("node id", "40 hexadecimal digits", text);
        let digits = text.as_bytes();
        if digits.len() != 40 {
            return Err(wrong());
        }
        let mut id = [0; 20];
        for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |d: u8| char::from(d).to_digit(16).and_then(|v| u8::try_from(v).ok());
            *byte = digit(pair[0])
                .zip(digit(pair[1]))
                .map(|(high, low)| high << 4 | low)
                .ok_or_else(wrong)?;
        }
        Ok(Self(id))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for NodeId {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> String {
        id.to_string()
    }
}

/// A configuration epoch: the larger one wins a conflict about slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// Redis or Valkey: each has its own version numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// Redis, and versions before the fork.
    Redis,
    /// Valkey.
    Valkey,
}

/// A server's family and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Version {
    /// Redis or Valkey.
    pub family: Family,
    /// The first number.
    pub major: u16,
    /// The second number.
    pub minor: u16,
    /// The third number.
    pub patch: u16,
}

impl Version {
    /// Parses `9.1.2`, also `255.255.255` of a development build and a suffix such as `8.0.0-rc1`.
    pub fn parse(family: Family, text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("version", "major.minor.patch", text);
        let plain = text.split(['-', '+', '~']).next().unwrap_or_default();
        let mut numbers = plain.split('.').map(|part| part.parse::<u16>().map_err(|_| wrong()));
        let mut next = || numbers.next().unwrap_or(Ok(0));
        let (major, minor, patch) = (next()?, next()?, next()?);
        if plain.is_empty() || numbers.next().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            family,
            major,
            minor,
            patch,
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::Redis => "Redis",
            Family::Valkey => "Valkey",
        };
        write!(f, "{family} {}.{}.{}", self.major, self.minor, self.patch)
    }
}
