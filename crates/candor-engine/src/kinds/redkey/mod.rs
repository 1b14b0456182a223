//! `RedkeyCluster`: one `StatefulSet` with the members by ordinal.
//!
//! | you look for | it is in |
//! |---|---|
//! | which operation runs, and the plan for it | [`operation`] |
//! | which server sits in which seat | `seating` |
//! | slow scaling; fast scaling and upgrading; slow upgrading | `scale`, `recreate`, `upgrade` |
//! | taking over a cluster of the existing operator | `adoption` |
//! | the rows of `kubectl get rkcl -w` | [`rows`] |
//! | whether a scale-down fits into memory | `capacity` |
//! | `primaries: 0` and back | `hibernation` |
//! | status as memory and back | [`memory`] |
//! | status, conditions and events after a reconcile | [`report`] |

mod adoption;
mod capacity;
mod hibernation;
pub mod memory;
pub mod operation;
mod recreate;
pub mod report;
pub mod rows;
mod scale;
mod seating;
mod upgrade;

/// The node timeout that servers run with unless `spec.config` sets one, in milliseconds.
pub const NODE_TIMEOUT: u64 = 15_000;
