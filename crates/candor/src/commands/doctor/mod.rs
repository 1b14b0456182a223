//! `candor doctor`: whether the installation can work, and what to repair where it cannot.

mod crds;
mod operator;
mod permissions;
mod redkey;

use std::error::Error;

use clap::Args;
use futures::{StreamExt, stream};
use kube_status::tree::Tone;
use serde::Serialize;

use super::cluster::answer::Answer;
use super::cluster::fetch::{self, Listed};
use super::cluster::{ClusterRef, Kind, Object};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data, wrap};
use super::snapshot::{Include, Snapshot};

/// The first minor version in which CEL rules of CRDs are stable.
const OLDEST_KUBERNETES: u32 = 29;
/// How many clusters are checked at once: one with servers that do not respond does not delay the others.
const AT_ONCE: usize = 8;

/// Checks the installation: API server, CRDs, permissions, operator, clusters.
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

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    #[serde(rename = "verdict")]
    pub level: Level,
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
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and a user should know.
    Warning,
    /// It cannot work like this.
    Failed,
}

impl Finding {
    fn new(level: Level, what: &str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            level,
            what: what.to_owned(),
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    fn ok(what: &str, found: impl Into<String>) -> Self {
        Self::new(Level::Ok, what, found, "")
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
        let failed = findings.iter().filter(|finding| finding.level == Level::Failed).count();
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
    findings.extend(crds::all(&at.client).await);
    findings.extend(permissions::all(at).await);
    let clusters = at.clusters(false).await;
    let objects = clusters.as_ref().map_or(&[][..], |listed| listed.objects.as_slice());
    let reported = objects.iter().any(|object| !object.view().conditions.is_empty());
    findings.push(operator::check(at, operator, reported).await);
    if objects.iter().any(|object| object.kind() == Kind::RedkeyCluster) {
        findings.extend(redkey::other_operator(at).await);
    }
    findings.extend(judge(at, clusters.as_ref()).await);
    Ok(findings)
}

fn kubernetes(version: &str, minor: u32, server: &str) -> Finding {
    if minor < OLDEST_KUBERNETES {
        let remedy = format!("Candor's CRDs need Kubernetes 1.{OLDEST_KUBERNETES} or newer");
        return Finding::new(Level::Failed, "Kubernetes", format!("{version} at {server}"), remedy);
    }
    Finding::ok("Kubernetes", format!("{version} at {server}"))
}

/// How the clusters of the namespace are, and whether their servers can be reached from here.
async fn judge(at: &Connected, clusters: Result<&Listed, &CommandError>) -> Vec<Finding> {
    let listed = match clusters {
        Ok(listed) => listed,
        // The missing CRD is a finding already.
        Err(CommandError::NoDefinition(_)) => return Vec::new(),
        Err(error) => return vec![Finding::new(Level::Warning, "clusters", error.first_line(), "")],
    };
    let mut named: Vec<(String, ClusterRef)> = fetch::names(&listed.objects)
        .into_iter()
        .zip(listed.objects.iter().map(Object::reference))
        .collect();
    named.sort_by(|(_, one), (_, other)| (&one.name, one.kind).cmp(&(&other.name, other.kind)));
    let checks = named.into_iter().map(|(name, cluster)| check(at, name, cluster));
    let mut findings: Vec<Finding> = stream::iter(checks).buffered(AT_ONCE).collect().await;
    if findings.is_empty() {
        findings.push(Finding::ok("clusters", format!("none in namespace {}", at.namespace)));
    }
    let unreadable = |note: &String| Finding::new(Level::Warning, "clusters", note.clone(), "");
    findings.extend(listed.notes.iter().map(unreadable));
    findings
}

/// How one cluster is.
async fn check(at: &Connected, name: String, cluster: ClusterRef) -> Finding {
    let include = Include {
        servers: true,
        ..Include::default()
    };
    let what = format!("cluster {name}");
    match Snapshot::take(at, &cluster, &include).await {
        Ok(snapshot) => finding(&what, &snapshot),
        Err(error) => Finding::new(Level::Warning, &what, error.first_line(), ""),
    }
}

/// The finding from a snapshot. Ready is not enough: data may be lost, and a paused cluster is not healed.
fn finding(what: &str, snapshot: &Snapshot) -> Finding {
    let answer = Answer::of(&snapshot.cluster(), &snapshot.operator, snapshot.now);
    let mut found = format!(
        "{} ({} of {} servers answer from here)",
        answer.text(),
        snapshot.servers.len(),
        snapshot.pods.len()
    );
    for aside in &answer.asides {
        found.extend([" ", aside]);
    }
    let level = match answer.tone {
        Tone::Good if answer.asides.is_empty() => Level::Ok,
        Tone::Error => Level::Failed,
        _ => Level::Warning,
    };
    // What can be done about a cluster that is well is no remedy.
    let remedy = if level == Level::Ok {
        String::new()
    } else {
        answer.person
    };
    Finding::new(level, what, found, remedy)
}

fn draw(findings: &[Finding], screen: &Screen) -> String {
    let mut out = String::new();
    for finding in findings {
        let (mark, tone) = match finding.level {
            Level::Ok => ("ok  ", Tone::Good),
            Level::Warning => ("warn", Tone::Warning),
            Level::Failed => ("FAIL", Tone::Error),
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
    use crate::commands::status::{fixtures, redkey_fixtures};

    #[test]
    fn a_cluster_is_ok_only_when_nothing_is_wrong_with_it() {
        let screen = Screen {
            width: Some(100),
            colour: false,
            wide: false,
        };
        let states = [fixtures::states(), redkey_fixtures::states()].concat();
        let findings: Vec<Finding> = states
            .iter()
            .map(|(_, snapshot)| finding(&format!("cluster {}", snapshot.object.name()), snapshot))
            .collect();
        insta::assert_snapshot!(draw(&findings, &screen));
        for ((state, _), finding) in states.iter().zip(&findings) {
            let ok = finding.level == Level::Ok;
            let well = ["healthy", "redkey_ready", "redkey_hibernated"].contains(state);
            assert_eq!(ok, well, "{state}: {finding:?}");
        }
    }

    #[test]
    fn findings_say_what_to_do() {
        let findings = [
            kubernetes("v1.34.1", 34, "https://127.0.0.1:6443/"),
            kubernetes("v1.20.0", 20, "https://127.0.0.1:6443/"),
            Finding::new(
                Level::Failed,
                "CRD x",
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
