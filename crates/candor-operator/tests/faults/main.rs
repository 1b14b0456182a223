//! The operator under faults: killed after every write, and one of two. Members are simulated.
//!
//! `CANDOR_FAULTS=all` tries every crash point; without it every second or fourth, by how many there are.
//!
//! | you look for | it is in |
//! |---|---|
//! | an operator that can be killed at an instant | [`life`] |
//! | what is done to a cluster, from its beginning to its end | [`chapter`] |
//! | how a cluster is, without what differs between any two runs | [`ending`] |
//! | status against the members' own truth, on one clock | [`truth`] |

#[allow(dead_code)] // this binary uses its part
#[path = "../support/mod.rs"]
mod support;

mod chapter;
mod crashes;
mod ending;
mod leases;
mod life;
mod truth;

/// Whether every point is tried, or only every few.
fn thorough() -> bool {
    std::env::var("CANDOR_FAULTS").is_ok_and(|how| how == "all")
}
