//! Writes over all slots, at a steady rate, each with a number, each remembered when it was acknowledged.
//!
//! The key of a slot is a bitmap, and the n-th round sets its n-th bit: a write that is repeated does no harm, a lost
//! one leaves a hole that no later write covers, and a day of writing takes a few hundred bytes a slot.

pub(crate) mod ledger;
pub(crate) mod links;
pub(crate) mod routes;
pub(crate) mod send;
pub(crate) mod writer;
