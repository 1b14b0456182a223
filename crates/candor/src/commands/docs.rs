//! `candor docs`: what the declarations in the code say, as tables.

use std::error::Error;
use std::fmt::Write;

use candor_api::valkey::conditions::{ClusterCondition, ClusterReason};
use candor_api::valkey::events;
use candor_api::valkey::node_conditions::NodeCondition;
use clap::{Args, Subcommand};
use kube_status::Reason;

use super::output::print;

/// Tables from the declarations in the code.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor docs conditions")]
pub struct Docs {
    #[command(subcommand)]
    about: About,
}

#[derive(Debug, Subcommand)]
enum About {
    /// The conditions of a `ValkeyCluster` and their reasons, with severity and meaning.
    Conditions,
    /// The conditions of a `ValkeyNode` and their reasons.
    Nodes,
    /// What the operator does about each reason, and what a person should do.
    Advice,
    /// The events of a `ValkeyCluster`.
    Events,
}

impl Docs {
    /// Prints the tables.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        print(&match self.about {
            About::Conditions => kube_status::documentation::<ClusterCondition>(),
            About::Nodes => kube_status::documentation::<NodeCondition>(),
            About::Advice => advice(),
            About::Events => events::documentation(),
        })
    }
}

fn advice() -> String {
    let mut out = String::from("| Reason | The operator | A person |\n|---|---|---|\n");
    for reason in ClusterReason::ALL {
        let advice = reason.advice();
        // Writing into a String cannot fail.
        let _ = writeln!(out, "| `{}` | {} | {} |", reason.name(), advice.operator, advice.person);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_all_its_cells() {
        let text = advice();
        for row in text.lines() {
            assert_eq!(row.matches('|').count(), 4, "{row}");
        }
        assert!(text.contains("| `PausedByUser` |"));
    }
}
