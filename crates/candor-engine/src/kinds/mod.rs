//! The kinds of clusters. A kind is a thin translation: its spec into the desired state, its status into memory and
//! back, and the messages of its conditions and events. Everything else in this crate is independent of the kind.

pub mod redkey;
pub mod valkey;

/// The API's numbers are signed. The schema rejects a negative number; here it counts as zero.
pub(crate) fn count(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

/// The API's numbers are signed.
pub(crate) fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
