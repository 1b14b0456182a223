//! `candor doctor`: whether the installation can work, and what to mend where it cannot.

mod definitions;
mod rights;

use std::error::Error;

use clap::Args;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use kube::ResourceExt;
use kube_status::tree::Tone;
use serde::Serialize;

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::liveness::{self, Liveness};
use super::output::{Format, Screen, print, print_data, wrap};
use super::picture::{Picture, Wish};
use super::status::answer::Answer;

/// CEL rules in definitions are stable since then.
const OLDEST_KUBERNETES: u32 = 29;
/// How many clusters are looked at side by side: one whose servers are silent holds up no other.
const AT_ONCE: usize = 8;

/// Checks the installation: API server, definitions, rights, operator, clusters.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor doctor -n shop")]
pub struct Doctor {
    /// The namespace of the operator's lease; everywhere if not given.
    #[arg(long, value_name = "NAME")]
    operator_namespace: Option<String>,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub verdict: Verdict,
    /// What was checked.
    pub what: String,
    /// What was found.
    pub found: String,
    /// What to do about it; empty: nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warning,
    /// It cannot work so.
    Failed,
}

impl Finding {
    fn new(verdict: Verdict, what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            verdict,
            what: what.to_owned(),
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, what, found, "")
    }
}

impl Doctor {
    /// Checks, and fails if something cannot work.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let findings = examine(&at, self.operator_namespace.as_deref()).await?;
        if !print_data(&findings, self.output)? {
            print(&draw(&findings, &Screen::of_stdout(self.output)))?;
        }
        let failed = findings
            .iter()
            .filter(|finding| finding.verdict == Verdict::Failed)
            .count();
        if failed > 0 {
            return Err(CommandError::Usage(format!("{failed} of {} checks failed", findings.len())).into());
        }
        Ok(())
    }
}

async fn examine(at: &Connected, operator: Option<&str>) -> Result<Vec<Finding>, CommandError> {
    let version = at.client.apiserver_version().await;
    let version = version.map_err(|error| CommandError::of(&error, "the API server's version"))?;
    let minor = version.minor.trim_end_matches('+').parse().unwrap_or(0);
    let mut findings = vec![
        Finding::ok("candor", format!("version {}", env!("CARGO_PKG_VERSION"))),
        kubernetes(&version.git_version, minor, &at.server),
    ];
    findings.extend(definitions::all(&at.client).await);
    findings.extend(rights::all(at).await);
    findings.push(operator_lives(
        &liveness::look(&at.client, operator, &at.namespace, Timestamp::now()).await,
    ));
    findings.extend(clusters(at).await);
    Ok(findings)
}

fn kubernetes(version: &str, minor: u32, server: &str) -> Finding {
    if minor < OLDEST_KUBERNETES {
        let remedy = format!("Candor's definitions need Kubernetes 1.{OLDEST_KUBERNETES} or newer");
        return Finding::new(Verdict::Failed, "Kubernetes", format!("{version} at {server}"), remedy);
    }
    Finding::ok("Kubernetes", format!("{version} at {server}"))
}

fn operator_lives(liveness: &Liveness) -> Finding {
    match liveness {
        Liveness::Alive { holder, lease } => Finding::ok("operator", format!("{holder} holds the lease {lease}")),
        Liveness::Gone { .. } => Finding::new(
            Verdict::Failed,
            "operator",
            liveness.words(Timestamp::now()).unwrap_or_default(),
            "look at its pods and log, or start one: candor operator --lease-namespace NAMESPACE",
        ),
        Liveness::NoLease | Liveness::Unknown { .. } => Finding::new(
            Verdict::Warning,
            "operator",
            liveness.words(Timestamp::now()).unwrap_or_default(),
            "",
        ),
    }
}

/// How the clusters of the namespace are, and whether their servers can be reached from here.
async fn clusters(at: &Connected) -> Vec<Finding> {
    let Ok(clusters) = at.clusters(false).await else {
        return Vec::new();
    };
    let looks = clusters.iter().map(|cluster| look(at, cluster.name_any()));
    let mut findings: Vec<Finding> = stream::iter(looks).buffered(AT_ONCE).collect().await;
    if findings.is_empty() {
        findings.push(Finding::ok("clusters", format!("none in namespace {}", at.namespace)));
    }
    findings
}

/// How one cluster is.
async fn look(at: &Connected, name: String) -> Finding {
    let what = format!("cluster {name}");
    let wish = Wish {
        servers: true,
        ..Wish::default()
    };
    let picture = match Picture::take(at, &name, &wish).await {
        Ok(picture) => picture,
        Err(error) => return Finding::new(Verdict::Warning, &what, error.to_string(), ""),
    };
    let answer = Answer::of(&picture.cluster, &picture.operator, picture.now);
    let found = format!(
        "{} ({} of {} servers answer from here)",
        answer.sentence,
        picture.servers.len(),
        picture.pods.len()
    );
    match answer.tone {
        Tone::Good => Finding::ok(&what, found),
        _ => Finding::new(Verdict::Warning, &what, found, answer.person),
    }
}

fn draw(findings: &[Finding], screen: &Screen) -> String {
    let mut out = String::new();
    for finding in findings {
        let (mark, tone) = match finding.verdict {
            Verdict::Ok => ("ok  ", Tone::Good),
            Verdict::Warning => ("warn", Tone::Warning),
            Verdict::Failed => ("FAIL", Tone::Error),
        };
        let room = screen.width.map(|room| room.saturating_sub(6).max(10));
        let text = format!("{}: {}", finding.what, finding.found);
        for (place, line) in wrap(&text, room, 2).into_iter().enumerate() {
            let lead = if place == 0 {
                screen.paint(mark, tone)
            } else {
                "    ".to_owned()
            };
            out.extend([lead.as_str(), "  ", &line, "\n"]);
        }
        if !finding.remedy.is_empty() {
            for line in wrap(&format!("-> {}", finding.remedy), room, 3) {
                out.extend(["      ", &line, "\n"]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_say_what_to_do() {
        let findings = [
            kubernetes("v1.34.1", 34, "https://127.0.0.1:6443/"),
            kubernetes("v1.20.0", 20, "https://127.0.0.1:6443/"),
            operator_lives(&Liveness::NoLease),
            Finding::new(
                Verdict::Failed,
                "definition x",
                "is not installed",
                "kubectl apply -f deploy/crds",
            ),
        ];
        let screen = Screen {
            width: Some(80),
            colour: false,
            wide: false,
        };
        insta::assert_snapshot!(draw(&findings, &screen));
    }
}
