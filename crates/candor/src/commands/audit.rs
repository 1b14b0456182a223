//! `candor audit NAME`: whether a cluster's status is true, observed from outside, until Ctrl-C or for a time.

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use candor_audit::{Audit as Figures, Auditor, ClusterRef, Options, Outcome, Unreached};
use clap::Args;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::signal::unix::{SignalKind, signal};

use super::cluster::{Address, Kind};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, print, print_data};
use super::servers;

/// The variable that holds the password. It is no option: every user of the host can read a command line.
const PASSWORD: &str = "CANDOR_PASSWORD";

/// Writes canaries over all slots of a cluster, asks its servers, and compares with its status.
///
/// It writes keys: at most one for each of the 16384 slots, named candor-audit-NUMBER:{TAG}, a few bytes each. At the
/// end, by Ctrl-C or after --for, it reads them back and removes them, and says if any could not be removed. With
/// --rate 0 it writes none.
///
/// It then reports for how long status said Ready while the cluster was not ready, how long a slot took no write, how many
/// acknowledged writes are lost, and a verdict in one sentence. It judges only the members that it can reach and that
/// accept its login, so it must run where the pods' addresses can be reached.
///
/// It exits with 1 when a write was lost or status said Ready beyond its deadlines, and with 2 when nothing could be
/// judged.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor audit shop --for 60                    a minute of writes, compared with what status says
  candor audit shop --rate 0 --for 60 -o json   nothing is written; for programs
  candor audit shop --user app                  as user app, with the password that the spec gives it

The user needs INFO, CLUSTER INFO, CLUSTER NODES, SETBIT, GET and UNLINK on keys candor-audit-*.")]
pub struct Audit {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// Canaries a second; 0 writes none and only compares what the servers report.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    rate: u32,
    /// Ends after so many seconds; without it Ctrl-C ends it.
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<f64>,
    /// The ACL user to log in as; without a password option it gets the one that the spec gives it.
    #[arg(long, value_name = "NAME", default_value = "default")]
    user: String,
    /// The Secret with the user's password, in the cluster's namespace; the key is the user's name if not given. The
    /// variable `CANDOR_PASSWORD` holds a password too.
    #[arg(long, value_name = "NAME[/KEY]", conflicts_with = "password_file")]
    password_secret: Option<String>,
    /// A file with the user's password.
    #[arg(long, value_name = "FILE", env = "CANDOR_PASSWORD_FILE")]
    password_file: Option<PathBuf>,
    /// How to write it; wide also prints what changed when.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    /// Also prints what changed when.
    #[arg(long)]
    story: bool,
    #[command(flatten)]
    at: Connection,
}

/// The audit found a false status or a lost write.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Found(String);

/// The audit could judge nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotJudged(String);

impl Audit {
    /// Audits until a signal or the time limit ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let limit = self.seconds.map(Duration::try_from_secs_f64).transpose()?;
        let at = self.at.connect().await?;
        // Without a cluster the audit would find nothing wrong.
        let found = at.resolve(&self.name).await?;
        let options = Options {
            rate: self.rate,
            password: self.password(&at).await?,
            // Servers before 6 have no users, only the one that is `default` now.
            user: Some(self.user.clone()).filter(|user| user != "default"),
        };
        let cluster = ClusterRef {
            kind: match found.kind {
                Kind::ValkeyCluster => candor_audit::Kind::ValkeyCluster,
                Kind::RedkeyCluster => candor_audit::Kind::RedkeyCluster,
            },
            namespace: at.namespace,
            name: found.name,
        };
        let auditor = Auditor::start(at.client, cluster, options).await?;
        eprintln!("{}", beginning(self.rate));
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
                text.push('\n');
                for change in &audit.truth.story {
                    writeln!(text, "{:>12}  {}", change.at.to_string(), change.text)?;
                }
            }
            print(&text)?;
        }
        match audit.result.outcome {
            Outcome::True => Ok(()),
            Outcome::NotJudged => Err(NotJudged(advice(&audit)).into()),
            Outcome::FalseReady | Outcome::WritesLost => Err(Found(audit.result.sentence).into()),
        }
    }

    /// The password from the options.
    async fn password(&self, at: &Connected) -> Result<Option<String>, CommandError> {
        if let Some(named) = &self.password_secret {
            let (name, key) = named.split_once('/').unwrap_or((named, &self.user));
            return Ok(Some(of_secret(at, name, key).await?));
        }
        if let Some(path) = &self.password_file {
            let text = std::fs::read_to_string(path).map_err(|error| CommandError::File {
                path: path.display().to_string(),
                message: error.to_string(),
            })?;
            return Ok(Some(servers::without_line_end(&text).to_owned()));
        }
        Ok(std::env::var(PASSWORD).ok().filter(|password| !password.is_empty()))
    }
}

/// What is printed at the start.
fn beginning(rate: u32) -> String {
    let writes = match rate {
        0 => "it writes no keys",
        _ => "it writes at most one key a slot (candor-audit-*) and removes them at the end",
    };
    format!("auditing; {writes}; Ctrl-C ends it and shows the figures")
}

async fn of_secret(at: &Connected, name: &str, key: &str) -> Result<String, CommandError> {
    let api: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    let what = format!("reading Secret {}/{name}", at.namespace);
    let secret = api.get(name).await.map_err(|error| CommandError::of(&error, &what))?;
    let text = servers::password(&secret, key);
    let missing = || {
        CommandError::Usage(format!(
            "Secret {}/{name} has no text under the key {key:?}",
            at.namespace
        ))
    };
    text.ok_or_else(missing)
}

/// What to do where nothing could be judged.
fn advice(audit: &Figures) -> String {
    let sentence = &audit.result.sentence;
    let next = match audit.truth.not_judged.first().map(|one| &one.why) {
        Some(Unreached::LoginRejected(_)) => {
            "Name a user that may log in with --user, and its password with --password-secret, --password-file or CANDOR_PASSWORD"
        }
        Some(_) => "Run it where the pods' addresses can be reached: on a node, or in a pod of the cluster",
        None => "See what may be read, and whether there are pods: candor doctor",
    };
    format!("{sentence}\n{next}")
}
