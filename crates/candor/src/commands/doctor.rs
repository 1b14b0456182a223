//! `candor doctor`: whether the installation can work, and what to mend where it cannot.

use std::error::Error;

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
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
    findings.extend(definitions(&at.client).await);
    findings.extend(rights(at).await);
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

/// Whether the definitions are there and are those of this program.
async fn definitions(client: &Client) -> Vec<Finding> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let mut findings = Vec::new();
    for ours in candor_api::crds::all() {
        let name = ours.name_any();
        let what = format!("definition {name}");
        findings.push(match api.get_opt(&name).await {
            Ok(Some(theirs)) => definition(&what, &ours, &theirs),
            Ok(None) => Finding::new(
                Verdict::Failed,
                &what,
                "is not installed",
                "kubectl apply -f deploy/crds",
            ),
            Err(error) => Finding::new(
                Verdict::Warning,
                &what,
                format!(
                    "cannot be looked at: {}",
                    CommandError::of(&error, "definitions")
                        .to_string()
                        .lines()
                        .next()
                        .unwrap_or_default()
                ),
                "",
            ),
        });
    }
    findings
}

/// Every field that this program knows must be in the installed schema.
fn definition(what: &str, ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Finding {
    let conditions = theirs.status.as_ref().and_then(|status| status.conditions.as_ref());
    let established =
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"));
    if !established {
        return Finding::new(
            Verdict::Failed,
            what,
            "is not established yet",
            "kubectl describe crd tells why",
        );
    }
    let missing = missing_fields(
        &serde_json::to_value(&ours.spec.versions).unwrap_or_default(),
        &serde_json::to_value(&theirs.spec.versions).unwrap_or_default(),
    );
    match missing.first() {
        None => Finding::ok(what, "installed"),
        Some(first) => Finding::new(
            Verdict::Failed,
            what,
            format!(
                "is older than this program: {first} is missing{}",
                if missing.len() > 1 { " and more" } else { "" }
            ),
            "kubectl apply -f deploy/crds",
        ),
    }
}

/// Properties of one schema that another has not, by path.
fn missing_fields(ours: &serde_json::Value, theirs: &serde_json::Value) -> Vec<String> {
    fn walk(ours: &serde_json::Value, theirs: Option<&serde_json::Value>, path: &str, missing: &mut Vec<String>) {
        let Some(fields) = ours.get("properties").and_then(serde_json::Value::as_object) else {
            if let Some(items) = ours.get("items") {
                walk(items, theirs.and_then(|one| one.get("items")), path, missing);
            }
            return;
        };
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match theirs.and_then(|one| one.get("properties")?.get(name)) {
                Some(known) => walk(field, Some(known), &path, missing),
                None => missing.push(path),
            }
        }
    }
    let mut missing = Vec::new();
    let schema = |versions: &serde_json::Value| {
        versions
            .pointer("/0/schema/openAPIV3Schema")
            .cloned()
            .unwrap_or_default()
    };
    walk(&schema(ours), Some(&schema(theirs)), "", &mut missing);
    missing
}

/// What the words of this program do, and the rights they need.
const RIGHTS: &[(&str, &str, &[&str], &str)] = &[
    (
        "valkey.io",
        "valkeyclusters",
        &["get", "list", "watch"],
        "status, describe, plan",
    ),
    ("valkey.io", "valkeyclusters", &["patch"], "pause, resume, restart"),
    ("valkey.io", "valkeynodes", &["list"], "status, describe"),
    ("", "pods", &["list"], "status, describe"),
    ("", "events", &["list"], "status, events, history"),
    ("", "secrets", &["get"], "lag, keys and memory in status"),
    ("apps", "deployments", &["list"], "describe"),
    ("apps", "statefulsets", &["list"], "describe"),
    ("", "persistentvolumeclaims", &["list"], "describe"),
    (
        "coordination.k8s.io",
        "leases",
        &["list"],
        "whether an operator is alive",
    ),
];

async fn rights(at: &Connected) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut allowed = 0;
    for (group, resource, verbs, purpose) in RIGHTS {
        for verb in *verbs {
            match may(at, group, resource, verb).await {
                Ok(true) => allowed += 1,
                Ok(false) => findings.push(Finding::new(
                    Verdict::Warning,
                    &format!("right to {verb} {resource}"),
                    format!("is missing in namespace {}: needed for {purpose}", at.namespace),
                    format!(
                        "kubectl create role candor-{resource} -n {} --verb={verb} --resource={}",
                        at.namespace,
                        if group.is_empty() {
                            (*resource).to_owned()
                        } else {
                            format!("{resource}.{group}")
                        }
                    ),
                )),
                Err(error) => {
                    findings.push(Finding::new(Verdict::Warning, "rights", error.to_string(), ""));
                    return findings;
                }
            }
        }
    }
    findings.insert(
        0,
        Finding::ok(
            "your rights",
            format!(
                "{allowed} of {} in namespace {}",
                allowed + findings.len(),
                at.namespace
            ),
        ),
    );
    findings
}

async fn may(at: &Connected, group: &str, resource: &str, verb: &str) -> Result<bool, CommandError> {
    let api: Api<SelfSubjectAccessReview> = Api::all(at.client.clone());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: Some(at.namespace.clone()),
                group: Some(group.to_owned()),
                resource: Some(resource.to_owned()),
                verb: Some(verb.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = api.create(&PostParams::default(), &review).await;
    let answer = answer.map_err(|error| CommandError::of(&error, "rights cannot be asked for"))?;
    Ok(answer.status.is_some_and(|status| status.allowed))
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
    let mut findings = Vec::new();
    for cluster in &clusters {
        let what = format!("cluster {}", cluster.name_any());
        let wish = Wish {
            servers: true,
            ..Wish::default()
        };
        let Ok(picture) = Picture::take(at, &cluster.name_any(), &wish).await else {
            continue;
        };
        let answer = Answer::of(&picture.cluster, &picture.operator, picture.now);
        let reached = format!(
            "{} of {} servers answer from here",
            picture.servers.len(),
            picture.pods.len()
        );
        findings.push(match answer.tone {
            Tone::Good => Finding::ok(&what, format!("{} ({reached})", answer.sentence)),
            _ => Finding::new(
                Verdict::Warning,
                &what,
                format!("{} ({reached})", answer.sentence),
                answer.person,
            ),
        });
    }
    if findings.is_empty() {
        findings.push(Finding::ok("clusters", format!("none in namespace {}", at.namespace)));
    }
    findings
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

    #[test]
    fn an_older_definition_is_found_out_by_what_it_lacks() {
        let ours = candor_api::crds::all().remove(0);
        let mut theirs = ours.clone();
        theirs.status =
            serde_json::from_value(serde_json::json!({"conditions": [{"type": "Established", "status": "True"}]}))
                .unwrap();
        assert_eq!(definition("d", &ours, &theirs).verdict, Verdict::Ok);
        let mut text = serde_json::to_value(&theirs).unwrap();
        let fields = text
            .pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties")
            .unwrap();
        fields.as_object_mut().unwrap().remove("paused");
        let older = serde_json::from_value(text).unwrap();
        let finding = definition("d", &ours, &older);
        assert_eq!(
            (finding.verdict, finding.found.as_str()),
            (Verdict::Failed, "is older than this program: .spec.paused is missing")
        );
        theirs.status = None;
        assert_eq!(definition("d", &ours, &theirs).found, "is not established yet");
    }
}
