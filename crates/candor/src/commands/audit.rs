//! `candor audit NAME`: whether a cluster's status is true, seen from outside, until Ctrl-C or for a time.

use std::error::Error;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use candor_audit::{Audit as Figures, Auditor, ClusterRef, Options, Outcome, Unreached};
use clap::Args;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use tokio::signal::unix::{SignalKind, signal};

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, print, print_data};

/// The variable that holds the password. It is no option: a command line can be read by everybody on the machine.
const PASSWORD: &str = "CANDOR_PASSWORD";

/// Writes canaries over all slots of a cluster, asks its servers, and compares with its status.
///
/// It writes keys: at most one for each of the 16384 slots, named candor-audit-NUMBER:{TAG}, a few bytes each. At the
/// end, by Ctrl-C or after --for, it reads them back and removes them, and says if any could not be removed. With
/// --rate 0 it writes none.
///
/// It then reports for how long status said Ready while it was not so, how long a slot took no write, how many
/// acknowledged writes are gone, and a verdict in one sentence. It judges only the members that it can reach and that
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
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// Canaries a second; 0 writes none and only compares what the servers say.
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

/// The audit ran, and nothing could be judged.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotJudged(String);

impl Audit {
    /// Audits until it is told to end.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let mut terminate = signal(SignalKind::terminate())?;
        let limit = self.seconds.map(Duration::try_from_secs_f64).transpose()?;
        let at = self.at.connect().await?;
        // That there is one: an audit of nothing would find nothing, and say that all is well.
        at.cluster(&self.name).await?;
        let options = Options {
            rate: self.rate,
            password: self.password(&at).await?,
            // Servers before 6 know no users, and `default` is whom they mean.
            user: Some(self.user.clone()).filter(|user| user != "default"),
        };
        let cluster = ClusterRef {
            namespace: at.namespace,
            name: self.name.clone(),
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
                    writeln!(text, "{:>12}  {}", change.at.to_string(), change.words)?;
                }
            }
            print(&text)?;
        }
        match audit.verdict.outcome {
            Outcome::True => Ok(()),
            Outcome::NotJudged => Err(NotJudged(advice(&audit)).into()),
            Outcome::FalseReady | Outcome::WritesLost => Err(Found(audit.verdict.sentence).into()),
        }
    }

    /// The password, from wherever it was said to be.
    async fn password(&self, at: &Connected) -> Result<Option<String>, CommandError> {
        if let Some(named) = &self.password_secret {
            let (name, key) = named.split_once('/').unwrap_or((named, &self.user));
            return Ok(Some(of_secret(at, name, key).await?));
        }
        if let Some(path) = &self.password_file {
            let text = std::fs::read_to_string(path).map_err(|error| CommandError::File {
                path: path.display().to_string(),
                words: error.to_string(),
            })?;
            return Ok(Some(without_line_end(&text).to_owned()));
        }
        Ok(std::env::var(PASSWORD).ok().filter(|password| !password.is_empty()))
    }
}

/// What is said before it begins.
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
    let value = secret.data.unwrap_or_default().remove(key);
    let text = value.and_then(|value| String::from_utf8(value.0).ok());
    let text = text.as_deref().map(without_line_end).filter(|text| !text.is_empty());
    let missing = || {
        CommandError::Usage(format!(
            "Secret {}/{name} has no text under the key {key:?}",
            at.namespace
        ))
    };
    text.map(str::to_owned).ok_or_else(missing)
}

/// Editors and `echo` leave a line end.
fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// What to do where nothing could be judged.
fn advice(audit: &Figures) -> String {
    let sentence = &audit.verdict.sentence;
    let next = match audit.truth.not_judged.first().map(|one| &one.why) {
        Some(Unreached::LoginRejected(_)) => {
            "Name a user that may log in with --user, and its password with --password-secret, --password-file or CANDOR_PASSWORD"
        }
        Some(_) => "Run it where the pods' addresses can be reached: on a node, or in a pod of the cluster",
        None => "See what may be read, and whether there are pods: candor doctor",
    };
    format!("{sentence}\n{next}")
}
