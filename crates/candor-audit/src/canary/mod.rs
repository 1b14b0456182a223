//! Numbered writes over all slots at a steady rate. Each acknowledged write is recorded.
//!
//! The key of a slot is a bitmap, and the n-th round sets its n-th bit. Repeating a write does no harm, a lost write
//! leaves a hole that no later write covers, and a day of writes takes a few hundred bytes per slot.

pub(crate) mod ledger;
pub(crate) mod links;
pub(crate) mod routes;
pub(crate) mod send;
pub(crate) mod writer;
