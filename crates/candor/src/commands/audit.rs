//! `candor audit NAME`: whether a cluster's status is true, seen from outside, until Ctrl-C or for a time.

use std::error::Error;
use std::fmt::Write;
use std::time::Duration;

use candor_audit::{Auditor, ClusterRef, Options};
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::connect::Connection;
use super::output::{Format, print, print_data};

/// Writes canaries over all slots of a cluster, asks its servers, and compares with its status.
///
/// At the end, by Ctrl-C or after --for, it says for how long status said Ready while it was not so, how long a slot
/// took no write, and how many acknowledged writes are gone; then it removes its canaries. It exits with 1 when a write
/// was lost or status said Ready beyond its deadlines. It must run where the pods' addresses can be reached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor audit shop --for 60                    a minute of writes, compared with what status says
  candor audit shop --rate 0 --for 60 -o json   nothing is written; for programs")]
pub struct Audit {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// Canaries a second; 0 writes none and only compares what the servers say.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    rate: u32,
    /// Ends after so many seconds; without it Ctrl-C ends it.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// How to write it; wide also tells what changed when.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    /// Also tells what changed when.
    #[arg(long)]
    story: bool,
    #[command(flatten)]
    at: Connection,
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
        let at = self.at.connect().await?;
        // That there is one: an audit of nothing would find nothing, and say that all is well.
        at.cluster(&self.name).await?;
        let (client, namespace, name) = (at.client, at.namespace, self.name);
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
        if !print_data(&audit, self.output)? {
            let mut text = audit.to_string();
            if self.story || self.output == Format::Wide {
                for change in &audit.truth.story {
                    writeln!(text, "{:>12}  {}", change.at.to_string(), change.words)?;
                }
            }
            print(&text)?;
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
