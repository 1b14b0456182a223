//! `redis.conf` of a cluster: the text of `spec.config` merged over the defaults, without the keys that the operator
//! owns and without any password.
//!
//! | topic | module |
//! |---|---|
//! | the text as a server reads it: comments, quotes, escapes, line numbers | [`text`] |
//! | defaults, owned keys, credentials | [`merge()`] |
//! | `maxmemory` and the resources that follow from it | [`memory`] |

pub mod memory;
mod merge;
pub mod text;

#[cfg(test)]
mod tests;

use std::fmt;

pub use merge::{Ignored, Merged, Storage, merge};
pub use text::TextError;

/// A password. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Returns None for an empty text, which is not a password.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// The password itself, for a server or a Secret.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password(..)")
    }
}
