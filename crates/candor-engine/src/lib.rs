//! Observation, plan, report. Pure: no runtime, no network, no clock.
//!
//! | you look for | it is in |
//! |---|---|
//! | names: shards, members, the desired state | [`model`] |
//! | the observed state | [`observation`] |
//! | what status remembers | [`memory`] |
//! | what this process has tried lately | [`attempts`] |
//! | the steps that the operator can execute | [`step`] |
//! | which steps to execute now | [`plan`] |
//! | which slots go where | [`slots`] |
//! | in which zones primaries run | [`placement`] |
//! | which ordinal of a `StatefulSet` belongs to which shard | [`seats`] |
//! | the result of a step | [`outcome`] |
//! | losses, overdue errors, progress: what every kind reports, each with its messages | [`assess`] |
//! | the kinds: translation of spec and status, messages of conditions and events | [`kinds`] |
#![forbid(unsafe_code)]

pub mod assess;
pub mod attempts;
pub mod kinds;
pub mod memory;
pub mod model;
pub mod observation;
pub mod outcome;
pub mod placement;
pub mod plan;
pub mod seats;
pub mod slots;
pub mod step;
