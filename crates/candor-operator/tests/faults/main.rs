//! The operator under faults: killed after every write, refused, late, lied to, and one of two. Members are simulated.
//!
//! Without more, every crash point of the short chapters is tried, some of the long ones and some of what else can go
//! wrong; `CANDOR_FAULTS=crashes` tries every crash point, `CANDOR_FAULTS=all` (`make faults`) also every refusal of every
//! third write.
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
    /// What is told most in minutes.
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
