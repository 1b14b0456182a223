//! The bearer token.

use std::fmt;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};

/// The tokens that authorize changes: the current one, and the previous one after a rotation. Only their hashes are
/// stored.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tokens(Vec<[u8; 32]>);

impl fmt::Debug for Tokens {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Tokens({})", self.0.len())
    }
}

impl Tokens {
    /// An empty token authorizes nothing.
    pub fn new<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Self {
        let usable = tokens.into_iter().map(str::trim).filter(|token| !token.is_empty());
        Self(usable.map(|token| Sha256::digest(token.as_bytes()).into()).collect())
    }

    /// Whether a request has one of the tokens.
    pub(super) fn admit(&self, headers: &HeaderMap) -> bool {
        let Some(shown) = bearer(headers) else {
            return false;
        };
        // Hashes are always compared completely, so that the time reveals nothing about the token.
        let shown: [u8; 32] = Sha256::digest(shown.as_bytes()).into();
        let differs = |token: &[u8; 32]| {
            token
                .iter()
                .zip(shown)
                .fold(0, |all, (ours, theirs)| all | (ours ^ theirs))
        };
        self.0.iter().fold(false, |found, token| found | (differs(token) == 0))
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(AUTHORIZATION).iter();
    let (one, None) = (all.next()?, all.next()) else {
        return None;
    };
    let (scheme, token) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
