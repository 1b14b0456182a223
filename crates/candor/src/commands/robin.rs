//! `candor robin`: the agent of one `RedkeyCluster`, until a signal ends it.

use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;

use candor_operator::kinds::redkey::robin::agent::{Planning, RobinSettings, run};
use clap::Args;
use kube::Client;

/// The agent. The operator starts it with these arguments.
/// Example: `candor robin --config=application-configmap.yml --credentials=secret --address=10.0.0.7`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor robin --config=application-configmap.yml --credentials=secret --address=10.0.0.7")]
pub struct Robin {
    /// The file with its configuration.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The folder with its token, certificate and key, and the servers' password.
    #[arg(long, value_name = "FOLDER")]
    credentials: PathBuf,
    /// The pod's address; the HTTP API is served on its port 8080, the operator's TLS on 8443.
    #[arg(long, value_name = "IP", env = "POD_IP")]
    address: IpAddr,
}

impl Robin {
    /// Runs until a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let stop = super::until_signal()?;
        let settings = RobinSettings {
            config: self.config,
            credentials: self.credentials,
            address: self.address,
        };
        let client = Client::try_default().await?;
        Ok(run(client, settings, Planning::default(), stop).await?)
    }
}
