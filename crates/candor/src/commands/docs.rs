//! `candor docs`: what the declarations in the code say, as tables.

use std::error::Error;
use std::io::Write;

use candor_api::valkey::conditions::ClusterCondition;
use candor_api::valkey::events;
use candor_api::valkey::node_conditions::NodeCondition;
use clap::{Args, Subcommand};

/// Tables from the declarations in the code. Example: `candor docs conditions`
#[derive(Debug, Args)]
pub struct Docs {
    #[command(subcommand)]
    about: About,
}

#[derive(Debug, Subcommand)]
enum About {
    /// The conditions of a ValkeyCluster and their reasons, with severity and meaning.
    Conditions,
    /// The conditions of a `ValkeyNode` and their reasons.
    Nodes,
    /// The events of a ValkeyCluster.
    Events,
}

impl Docs {
    /// Prints the tables.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        let text = match self.about {
            About::Conditions => kube_status::documentation::<ClusterCondition>(),
            About::Nodes => kube_status::documentation::<NodeCondition>(),
            About::Events => events::documentation(),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
