//! `candor docs`: what the declarations in the code say, as tables.

use std::error::Error;

use candor_api::reference;
use candor_api::valkey::conditions::ClusterCondition;
use candor_api::valkey::events;
use candor_api::valkey::node_conditions::NodeCondition;
use clap::{Args, Subcommand};

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
    /// Every field of a `ValkeyCluster`, from its schema.
    Reference,
}

impl Docs {
    /// Prints the tables.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        print(&match self.about {
            About::Conditions => kube_status::documentation::<ClusterCondition>(),
            About::Nodes => kube_status::documentation::<NodeCondition>(),
            About::Advice => reference::advice(),
            About::Events => events::documentation(),
            About::Reference => reference::fields(),
        })
    }
}
