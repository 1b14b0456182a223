//! Observation, plan, report. Pure: no runtime, no network, no clock.
//!
//! | you look for | it is in |
//! |---|---|
//! | which slots go where | [`slots`] |
//! | names of things: shards, members, what is wanted | [`model`] |
#![forbid(unsafe_code)]

pub mod model;
pub mod slots;
