//! `candor pause`, `resume`, `restart`: requests of a user, written on the cluster for the operator.

use std::error::Error;

use candor_api::redkey::MAINTENANCE;
use candor_api::valkey::RESTARTED_AT;
use clap::Args;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::cluster::{Address, ClusterRef, Kind};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::print;

/// The field manager of these writes.
const MANAGER: &str = "candor-cli";

/// The operator reports status but makes no changes.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor pause shop")]
pub struct Pause {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    #[command(flatten)]
    at: Connection,
}

/// The operator makes changes again.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor resume shop")]
pub struct Resume {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    #[command(flatten)]
    at: Connection,
}

/// Replaces every member of a `ValkeyCluster`, one by one, replicas first.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor restart shop && candor status shop --watch")]
pub struct Restart {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: Address,
    #[command(flatten)]
    at: Connection,
}

impl Pause {
    /// Writes the request.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        if at.cluster(&cluster).await?.view().paused {
            return print(&format!("{} is paused already.\n", self.name));
        }
        write(&at, &cluster, &paused()).await?;
        print(&format!(
            "{0} is paused: the operator reports status but makes no changes. Resume with: candor resume {0}\n",
            self.name
        ))
    }
}

impl Resume {
    /// Writes the request.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        if !at.cluster(&cluster).await?.view().paused {
            return print(&format!("{} is not paused.\n", self.name));
        }
        write(&at, &cluster, &resumed(cluster.kind)).await?;
        print(&format!("{0} is resumed. See: candor status {0} --watch\n", self.name))
    }
}

/// The patch that ends a pause, whichever way it was requested.
pub(super) fn resumed(kind: Kind) -> Value {
    match kind {
        Kind::ValkeyCluster => json!({"spec": {"paused": null}}),
        Kind::RedkeyCluster => {
            json!({"spec": {"paused": null}, "metadata": {"annotations": {MAINTENANCE: null}}})
        }
    }
}

impl Restart {
    /// Writes the request.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        if cluster.kind == Kind::RedkeyCluster {
            return Err(CommandError::Usage(format!(
                "a RedkeyCluster cannot be restarted by request\nA change of image, resources, labels or config replaces \
                 its servers; see what it would do with: candor plan -f FILE, or change: kubectl edit rkcl {}",
                cluster.name
            ))
            .into());
        }
        let paused = at.cluster(&cluster).await?.view().paused;
        write(&at, &cluster, &restarted(Timestamp::now())).await?;
        let paused = if paused {
            "It is paused: nothing happens before candor resume. "
        } else {
            ""
        };
        print(&format!(
            "Members of {0} are replaced one by one. {paused}See: candor status {0} --watch\n",
            self.name
        ))
    }
}

/// The patch that requests a restart.
pub(super) fn restarted(now: Timestamp) -> Value {
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({"metadata": {"annotations": {RESTARTED_AT: now}}})
}

/// The patch that requests a pause.
pub(super) fn paused() -> Value {
    json!({"spec": {"paused": true}})
}

/// Writes a request on a cluster.
pub(super) async fn write(at: &Connected, cluster: &ClusterRef, patch: &Value) -> Result<(), CommandError> {
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let written = at
        .api(cluster.kind)
        .patch(&cluster.name, &params, &Patch::Merge(patch))
        .await;
    written.map_err(|error| CommandError::of(&error, &format!("{cluster} was not changed")))?;
    Ok(())
}
