//! The operator under faults: killed after every write, refused, late, lied to, and one of two. Members are simulated.
//!
//! `CANDOR_FAULTS=crashes` tries every crash point, `CANDOR_FAULTS=all` also every refusal of every third write; without
//! it a few of each are tried.
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

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trying {
    /// A few of each.
    Few,
    /// Every crash point, and nothing else.
    Crashes,
    /// Everything.
    All,
}

fn trying() -> Trying {
    match std::env::var("CANDOR_FAULTS").as_deref() {
        Ok("all") => Trying::All,
        Ok("crashes") => Trying::Crashes,
        _ => Trying::Few,
    }
}
