//! Differences that stay, each with its reason; docs/sandbox.md lists them for people.

use super::normal::Difference;
use super::operation::Operation;

/// A difference that is accepted.
pub struct Known {
    pub reason: &'static str,
    matches: fn(&Operation, &Difference) -> bool,
}

pub const KNOWN: &[Known] = &[];

/// The reason why a difference is accepted, where there is one.
pub fn reason(operation: &Operation, difference: &Difference) -> Option<&'static str> {
    KNOWN
        .iter()
        .find(|known| (known.matches)(operation, difference))
        .map(|known| known.reason)
}
