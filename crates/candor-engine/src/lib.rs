//! Observation, plan, report. Pure: no runtime, no network, no clock.
//!
//! | you look for | it is in |
//! |---|---|
//! | names of things: shards, members, what is wanted | [`model`] |
//! | what was seen | [`observation`] |
//! | what status remembers | [`memory`] |
//! | what this process has tried lately | [`attempts`] |
//! | what can be done | [`step`] |
//! | what shall be done now | [`plan`] |
//! | which slots go where | [`slots`] |
//! | which ordinal of a `StatefulSet` belongs to which shard | [`seats`] |
//! | what came of it | [`outcome`] |
//! | the kinds: spec and status translated, the words of conditions and events | [`kinds`] |
#![forbid(unsafe_code)]

pub mod attempts;
pub mod kinds;
pub mod memory;
pub mod model;
pub mod observation;
pub mod outcome;
pub mod plan;
pub mod seats;
pub mod slots;
pub mod step;
