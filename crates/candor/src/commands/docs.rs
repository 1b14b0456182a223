//! `candor docs`: what the declarations in the code say, as tables.

use std::error::Error;
use std::io::Write;

use candor_api::valkey::conditions::ClusterCondition;
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
}

impl Docs {
    /// Prints the tables.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        let text = match self.about {
            About::Conditions => kube_status::documentation::<ClusterCondition>(),
        };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(())
    }
}
