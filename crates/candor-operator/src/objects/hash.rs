//! Hashes as text.

use sha2::{Digest, Sha256};

/// Encodes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// SHA-256 as hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// A short hash of a JSON value. Equal values have equal hashes, because the keys of JSON objects are sorted.
pub(crate) fn fingerprint(value: &serde_json::Value) -> String {
    sha256(value.to_string().as_bytes())[..16].to_owned()
}
