//! `candor audit NAME`: whether a cluster's status is true, seen from outside, until Ctrl-C or for a time.

use std::error::Error;
use std::io::Write;
use std::time::Duration;

use candor_audit::{Auditor, ClusterRef, Options};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

/// Writes canaries over all slots of a cluster, asks its servers, and compares with its status.
///
/// At the end, by Ctrl-C or after --for, it says for how long status said Ready while it was not so, how long a slot
/// took no write, and how many acknowledged writes are gone; then it removes its canaries. It exits with 1 when a write
/// was lost or status said Ready beyond its deadlines. It must run where the pods' addresses can be reached.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor audit my-cluster --for 60")]
pub struct Audit {
    /// The ValkeyCluster.
    name: String,
    /// Its namespace; by default that of the kubeconfig.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Canaries a second; 0 writes none and only compares what the servers say.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    rate: u32,
    /// Ends after so many seconds; without it Ctrl-C ends it.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// A table, or everything that was found as JSON.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Also tells what changed when.
    #[arg(long)]
    story: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Table,
    Json,
}

/// The audit ran, and what it found is not as promised.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Found(String);

impl Audit {
    /// Audits until it is told to end.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let limit = self.seconds.map(Duration::try_from_secs_f64).transpose()?;
        let client = kube::Client::try_default().await?;
        let namespace = self.namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        let name = self.name;
        let options = Options {
            rate: self.rate,
            ..Options::default()
        };
        let auditor = Auditor::start(client, ClusterRef { namespace, name }, options).await?;
        eprintln!("auditing; Ctrl-C ends it and shows the figures");
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = over => {}
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        let audit = auditor.finish().await;
        let mut out = std::io::stdout();
        match self.output {
            Output::Json => writeln!(out, "{}", serde_json::to_string_pretty(&audit)?)?,
            Output::Table => write!(out, "{audit}")?,
        }
        if self.story && matches!(self.output, Output::Table) {
            for change in &audit.truth.story {
                writeln!(out, "{:>12}  {}", change.at.to_string(), change.words)?;
            }
        }
        let beyond = audit.truth.beyond();
        if audit.writes.lost > 0 {
            return Err(Found(format!("{} acknowledged writes are gone", audit.writes.lost)).into());
        }
        if beyond > Duration::ZERO {
            let words = format!(
                "status said Ready for {:.3} s beyond the deadlines",
                beyond.as_secs_f64()
            );
            return Err(Found(words).into());
        }
        Ok(())
    }
}
