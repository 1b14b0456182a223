//! `candor doctor`: whether the installation can work, and what to mend where it cannot.

mod definitions;
mod operator;
mod rights;

use std::error::Error;

use candor_api::ValkeyCluster;
use clap::Args;
use futures::{StreamExt, stream};
use kube::ResourceExt;
use kube_status::tree::Tone;
use serde::Serialize;

use super::connect::{Connected, Connection};
use super::errors::CommandError;
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
    let clusters = at.clusters(false).await;
    let reported = |cluster: &ValkeyCluster| {
        cluster
            .status
            .as_ref()
            .is_some_and(|status| !status.conditions.is_empty())
    };
    let reported = clusters.as_ref().is_ok_and(|all| all.iter().any(reported));
    findings.push(operator::check(at, operator, reported).await);
    findings.extend(judge(at, clusters.as_deref()).await);
    Ok(findings)
}

fn kubernetes(version: &str, minor: u32, server: &str) -> Finding {
    if minor < OLDEST_KUBERNETES {
        let remedy = format!("Candor's definitions need Kubernetes 1.{OLDEST_KUBERNETES} or newer");
        return Finding::new(Verdict::Failed, "Kubernetes", format!("{version} at {server}"), remedy);
    }
    Finding::ok("Kubernetes", format!("{version} at {server}"))
}

/// How the clusters of the namespace are, and whether their servers can be reached from here.
async fn judge(at: &Connected, clusters: Result<&[ValkeyCluster], &CommandError>) -> Vec<Finding> {
    let clusters = match clusters {
        Ok(clusters) => clusters,
        // That is a finding already.
        Err(CommandError::NoDefinition(_)) => return Vec::new(),
        Err(error) => return vec![Finding::new(Verdict::Warning, "clusters", first_line(error), "")],
    };
    let looks = clusters.iter().map(|cluster| look(at, cluster.name_any()));
    let mut findings: Vec<Finding> = stream::iter(looks).buffered(AT_ONCE).collect().await;
    if findings.is_empty() {
        findings.push(Finding::ok("clusters", format!("none in namespace {}", at.namespace)));
    }
    findings
}

fn first_line(error: &CommandError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// How one cluster is.
async fn look(at: &Connected, name: String) -> Finding {
    let wish = Wish {
        servers: true,
        ..Wish::default()
    };
    match Picture::take(at, &name, &wish).await {
        Ok(picture) => cluster(&picture),
        Err(error) => Finding::new(Verdict::Warning, &format!("cluster {name}"), first_line(&error), ""),
    }
}

/// What a picture of a cluster comes to. Ready is not all: data may be lost, and a paused cluster heals nothing.
fn cluster(picture: &Picture) -> Finding {
    let answer = Answer::of(&picture.cluster, &picture.operator, picture.now);
    let mut found = format!(
        "{} ({} of {} servers answer from here)",
        answer.sentence,
        picture.servers.len(),
        picture.pods.len()
    );
    for aside in &answer.asides {
        found.extend([" ", aside]);
    }
    let verdict = match answer.tone {
        Tone::Good if answer.asides.is_empty() => Verdict::Ok,
        Tone::Error => Verdict::Failed,
        _ => Verdict::Warning,
    };
    Finding::new(
        verdict,
        &format!("cluster {}", picture.cluster.name_any()),
        found,
        answer.person,
    )
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
    use crate::commands::status::fixtures;

    #[test]
    fn a_cluster_is_ok_only_when_nothing_must_be_said_of_it() {
        let screen = Screen {
            width: Some(100),
            colour: false,
            wide: false,
        };
        let findings: Vec<Finding> = fixtures::states().iter().map(|(_, picture)| cluster(picture)).collect();
        insta::assert_snapshot!(draw(&findings, &screen));
        for ((state, _), finding) in fixtures::states().iter().zip(&findings) {
            let ok = finding.verdict == Verdict::Ok;
            assert_eq!(ok, *state == "healthy", "{state}: {finding:?}");
        }
    }

    #[test]
    fn findings_say_what_to_do() {
        let findings = [
            kubernetes("v1.34.1", 34, "https://127.0.0.1:6443/"),
            kubernetes("v1.20.0", 20, "https://127.0.0.1:6443/"),
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
