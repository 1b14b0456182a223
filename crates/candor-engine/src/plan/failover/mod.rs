//! Failovers: who is promoted, when, and how.
//!
//! | topic | module |
//! |---|---|
//! | the evidence that a primary has terminated | `evidence` |
//! | a shard without a primary: force or takeover | `forced` |
//! | which replica may replace a primary | `candidates` |
//! | planned failovers | `planned` |
//! | failovers that a user requested | `requested` |
//! | primaries on a cordoned node | `evacuation` |
//!
//! What else happens to a shard that has lost a member is in `heal`, and lost data in `data_loss`.

mod candidates;
mod evacuation;
mod evidence;
mod forced;
mod planned;
mod requested;

pub(super) use evidence::Evidence;
