//! `candor status`: the answer first.

pub mod facts;
#[cfg(test)]
mod faults;
#[cfg(test)]
pub mod fixtures;
#[cfg(test)]
mod furnished;
pub mod listing;
pub mod operation;
#[cfg(test)]
pub mod redkey_fixtures;
pub mod screen;
pub mod shards;
#[cfg(test)]
mod tests;
mod watch;

use std::error::Error;

use clap::Args;
use jiff::Timestamp;

use super::cluster::{Address, ClusterRef};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::liveness;
use super::output::{Format, Screen, print, print_data};
use super::snapshot::{Include, Snapshot};
use listing::Listing;
use screen::Report;

/// Shows how clusters are: the answer first, then why.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor status                  one line for every cluster of the namespace
  candor status -A               ... of every namespace
  candor status shop             one cluster: answer, operation, what it runs, shards, last transitions
  candor status shop -o wide     with every slot range, versions, restarts, nodes, pods and addresses
  candor status shop --conditions  with the conditions of the cluster and its members
  candor status rkcl/shop        the RedkeyCluster, where a ValkeyCluster has the same name (vkc/shop)
  candor status shop --watch     the same, as it changes, until Ctrl-C
  candor status shop -o json     the same, for programs")]
pub struct Status {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME; all clusters if not given.
    #[arg(add = super::completion::clusters())]
    name: Option<Address>,
    /// Stays, and shows what changes.
    #[arg(short, long)]
    watch: bool,
    /// Shows the conditions of the cluster and its members even if all is well.
    #[arg(long)]
    conditions: bool,
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

/// What is shown.
enum Shown {
    One(Box<Report>),
    All(Listing),
}

impl Status {
    /// Shows how clusters are.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = match &self.name {
            Some(address) => Some(at.resolve(address).await?),
            None => None,
        };
        if self.watch {
            return watch::watch(&self, &at, cluster.as_ref()).await;
        }
        let shown = self.fetch(&at, cluster.as_ref()).await?;
        let printed = match &shown {
            Shown::One(report) => print_data(report, self.output)?,
            Shown::All(listing) => print_data(listing, self.output)?,
        };
        if printed {
            return Ok(());
        }
        print(&self.draw(&shown, &Screen::of_stdout(self.output)))
    }

    async fn fetch(&self, at: &Connected, cluster: Option<&ClusterRef>) -> Result<Shown, CommandError> {
        if let Some(cluster) = cluster {
            let include = Include {
                operator_namespace: self.operator_namespace.clone(),
                servers: true,
                around: true,
            };
            let snapshot = Snapshot::take(at, cluster, &include).await?;
            return Ok(Shown::One(Box::new(Report::of(&snapshot).with_tree(self.conditions))));
        }
        let now = Timestamp::now();
        let (clusters, operator) = futures::join!(
            at.clusters_with_members(self.all_namespaces),
            liveness::fetch(&at.client, self.operator_namespace.as_deref(), &at.namespace, now),
        );
        Ok(Shown::All(Listing::of(&clusters?, &operator, now)))
    }

    fn draw(&self, shown: &Shown, screen: &Screen) -> String {
        match shown {
            Shown::One(report) => report.draw(screen),
            Shown::All(listing) => listing.draw(self.all_namespaces, screen),
        }
    }
}
