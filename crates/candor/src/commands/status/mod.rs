//! `candor status`: the answer first.

pub mod answer;
#[cfg(test)]
pub mod fixtures;
pub mod listing;
pub mod operation;
pub mod screen;
pub mod shards;
#[cfg(test)]
mod tests;
mod watch;

use std::error::Error;

use clap::Args;
use jiff::Timestamp;

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::liveness;
use super::output::{Format, Screen, print, print_data};
use super::picture::{Picture, Wish};
use listing::Listing;
use screen::Report;

/// How clusters are: the answer first, then why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor status                  one line for every cluster of the namespace
  candor status -A               ... of every namespace
  candor status shop             one cluster: answer, shards, operation, conditions, last transitions
  candor status shop --watch     the same, as it changes, until Ctrl-C
  candor status shop -o json     the same, for programs")]
pub struct Status {
    /// The cluster; all of them if not given.
    #[arg(add = super::completion::clusters())]
    name: Option<String>,
    /// Stays, and shows what changes.
    #[arg(short, long)]
    watch: bool,
    /// Clusters of every namespace.
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    /// The namespace of the operator's lease; everywhere if not given.
    #[arg(long, value_name = "NAME")]
    operator_namespace: Option<String>,
    #[command(flatten)]
    at: Connection,
}

/// What was asked for, as it is now.
enum Seen {
    One(Box<Report>),
    All(Listing),
}

impl Status {
    /// Says how clusters are.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        if self.watch {
            return watch::watch(&self, &at).await;
        }
        let seen = self.look(&at).await?;
        let printed = match &seen {
            Seen::One(report) => print_data(report, self.output)?,
            Seen::All(listing) => print_data(listing, self.output)?,
        };
        if printed {
            return Ok(());
        }
        print(&self.draw(&seen, &Screen::of_stdout(self.output)))
    }

    async fn look(&self, at: &Connected) -> Result<Seen, CommandError> {
        if let Some(name) = &self.name {
            let wish = Wish {
                operator_namespace: self.operator_namespace.clone(),
                servers: true,
            };
            return Ok(Seen::One(Box::new(Report::of(&Picture::take(at, name, &wish).await?))));
        }
        let now = Timestamp::now();
        let (clusters, operator) = futures::join!(
            at.clusters(self.all_namespaces),
            liveness::look(&at.client, self.operator_namespace.as_deref(), &at.namespace, now),
        );
        Ok(Seen::All(Listing::of(&clusters?, &operator, now)))
    }

    fn draw(&self, seen: &Seen, screen: &Screen) -> String {
        match seen {
            Seen::One(report) => report.draw(screen),
            Seen::All(listing) => listing.draw(self.all_namespaces, screen),
        }
    }
}
