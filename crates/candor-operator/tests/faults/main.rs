//! The operator under faults: killed after every write, refused, late, lied to, and one of two. Members are simulated.
//!
//! `CANDOR_FAULTS=all` tries every crash point, and every refusal of every third write; without it a few of each.
//!
//! | you look for | it is in |
//! |---|---|
//! | an operator that can be killed at an instant | [`life`] |
//! | what is done to a cluster, from its beginning to its end | [`chapter`] |
//! | what goes wrong meanwhile | [`disturbance`] |
//! | every chapter with everything that can go wrong | [`chapters`] |
//! | how a cluster is, without what differs between any two runs | [`ending`] |
//! | status against the members' own truth, on one clock | [`truth`] |

#[allow(dead_code)] // this binary uses its part
#[path = "../support/mod.rs"]
mod support;

mod chapter;
mod chapters;
mod disturbance;
mod ending;
mod leases;
mod life;
mod truth;

/// Whether every point is tried, or only every few.
fn thorough() -> bool {
    std::env::var("CANDOR_FAULTS").is_ok_and(|how| how == "all")
}
