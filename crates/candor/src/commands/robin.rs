//! `candor robin`: the agent of one `RedkeyCluster`, until it is told to end.

use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;

use candor_operator::kinds::redkey::robin::agent::{Planning, RobinSettings, run};
use clap::Args;
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

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
    /// Runs until it is told to end.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = CancellationToken::new();
        let ended = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            ended.cancel();
        });
        let settings = RobinSettings {
            config: self.config,
            credentials: self.credentials,
            address: self.address,
        };
        let client = Client::try_default().await?;
        Ok(run(client, settings, Planning::default(), stop).await?)
    }
}
