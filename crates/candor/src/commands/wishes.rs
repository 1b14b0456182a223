//! `candor pause`, `resume`, `restart`: a person's wishes, written on the cluster for the operator to read.

use std::error::Error;

use candor_api::ValkeyCluster;
use candor_api::valkey::RESTARTED_AT;
use clap::Args;
use jiff::Timestamp;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::print;

/// Who writes, in managed fields.
const MANAGER: &str = "candor-cli";

/// The operator looks and tells, and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor pause shop")]
pub struct Pause {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    #[command(flatten)]
    at: Connection,
}

/// The operator goes on.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor resume shop")]
pub struct Resume {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    #[command(flatten)]
    at: Connection,
}

/// Replaces every member, one by one, replicas first.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor restart shop && candor status shop --watch")]
pub struct Restart {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    #[command(flatten)]
    at: Connection,
}

impl Pause {
    /// Writes the wish.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.cluster(&self.name).await?;
        if cluster.spec.paused == Some(true) {
            return print(&format!("{} is paused already.\n", self.name));
        }
        write(&at, &self.name, &json!({"spec": {"paused": true}})).await?;
        print(&format!(
            "{0} is paused: the operator looks and tells, and changes nothing. Go on with: candor resume {0}\n",
            self.name
        ))
    }
}

impl Resume {
    /// Writes the wish.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.cluster(&self.name).await?;
        if cluster.spec.paused != Some(true) {
            return print(&format!("{} is not paused.\n", self.name));
        }
        write(&at, &self.name, &json!({"spec": {"paused": null}})).await?;
        print(&format!("{0} goes on. See: candor status {0} --watch\n", self.name))
    }
}

impl Restart {
    /// Writes the wish.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.cluster(&self.name).await?;
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        write(
            &at,
            &self.name,
            &json!({"metadata": {"annotations": {RESTARTED_AT: now}}}),
        )
        .await?;
        let paused = if cluster.spec.paused == Some(true) {
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

/// Writes a wish on a cluster.
pub(super) async fn write(at: &Connected, name: &str, patch: &Value) -> Result<(), CommandError> {
    let api: Api<ValkeyCluster> = Api::namespaced(at.client.clone(), &at.namespace);
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let written = api.patch(name, &params, &Patch::Merge(patch)).await;
    written.map_err(|error| CommandError::of(&error, &format!("ValkeyCluster {name} was not changed")))?;
    Ok(())
}
