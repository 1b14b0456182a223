//! Failovers: who is promoted, when, and how.
//!
//! | topic | module |
//! |---|---|
//! | the evidence that a primary has terminated | `evidence` |
//! | which replica may replace a primary | `candidates` |
//! | planned failovers | `planned` |
//! | failovers that a user requested | `requested` |
//! | primaries on a cordoned node | `evacuation` |
//!
//! What happens to a shard that has lost its primary is in `heal`.

mod candidates;
mod evacuation;
mod evidence;
mod planned;
mod requested;

pub(super) use evidence::Evidence;
