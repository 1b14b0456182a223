//! The operator under faults: killed after every write, rejected, delayed, given stale data, and run twice at a time.
//! Members are simulated.
//!
//! By default, the tests cover every crash point of the short scenarios, some of the long ones and some of the other
//! faults. `CANDOR_FAULTS=crashes` covers every crash point. `CANDOR_FAULTS=all` (`make faults`) also covers every
//! rejection of every third write. `CANDOR_FAULTS=none` runs the scenarios undisturbed. `CANDOR_FAULT=gets` keeps only
//! the faults with this in their name.
//!
//! | topic | module |
//! |---|---|
//! | an operator that can be killed at any moment | [`life`] |
//! | the scenarios, from beginning to end | [`chapter`] |
//! | the faults during a scenario | [`disturbance`] |
//! | every scenario with every fault | [`chapters`] |
//! | the scenarios of a `RedkeyCluster`; its Robin killed at slot turns | [`redkey`], [`robin`] |
//! | the final state of a cluster, without values that differ between any two runs | [`ending`] |
//! | status compared with the members' actual state, on one clock | [`truth`] |

#[allow(dead_code)] // this binary uses its part
#[path = "../support/mod.rs"]
mod support;

mod chapter;
mod chapters;
mod disturbance;
mod ending;
mod leases;
mod life;
mod redkey;
mod robin;
mod truth;

/// The test coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trying {
    /// The scenarios alone, without faults.
    Nothing,
    /// The most informative tests that fit into minutes.
    Few,
    /// Every crash point, and no other faults.
    Crashes,
    /// Everything.
    All,
}

fn trying() -> Trying {
    match std::env::var("CANDOR_FAULTS").as_deref() {
        Ok("none") => Trying::Nothing,
        Ok("all") => Trying::All,
        Ok("crashes") => Trying::Crashes,
        _ => Trying::Few,
    }
}
