//! What a cluster runs and how clients reach it, in a few lines.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_status::tree::{Tone, since};
use serde::Serialize;

use crate::commands::cluster::{Kind, Object};
use crate::commands::output::{Screen, some, wrap};
use crate::commands::snapshot::Snapshot;
use crate::commands::surroundings::{address, certificate_secret};

/// A certificate that expires earlier than this is shown as a warning.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);

/// What a cluster runs and how clients reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The images that its servers run.
    pub images: Vec<String>,
    /// The versions that its servers report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// The address for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The Secret with the certificate, if servers use TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// When the certificate expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_expires: Option<Timestamp>,
    /// The users of the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
    /// Volume claims that are bound.
    pub volumes_bound: usize,
    /// Volume claims.
    pub volumes: usize,
    /// The sizes of the volumes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volume_sizes: Vec<String>,
    /// The disruption budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// How many pods may be evicted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evictions: Option<i32>,
    /// Restarts of the servers.
    pub restarts: i32,
    #[serde(skip)]
    kind: Option<Kind>,
}

impl Facts {
    /// The facts of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let around = &snapshot.around;
        let size = |claim: &k8s_openapi::api::core::v1::PersistentVolumeClaim| {
            let capacity = claim.status.as_ref()?.capacity.as_ref()?;
            Some(capacity.get("storage")?.0.clone())
        };
        let bound = |claim: &&k8s_openapi::api::core::v1::PersistentVolumeClaim| {
            claim
                .status
                .as_ref()
                .is_some_and(|status| status.phase.as_deref() == Some("Bound"))
        };
        let budget = around.budget.as_ref();
        Self {
            images: distinct(snapshot.pods.iter().filter_map(image)),
            versions: distinct(
                snapshot
                    .servers
                    .values()
                    .filter_map(|info| info.version.map(|version| version.to_string())),
            ),
            address: around.service.as_ref().and_then(address),
            certificate: certificate_secret(&snapshot.object).map(str::to_owned),
            certificate_expires: around.expires,
            users: match &snapshot.object {
                Object::Valkey(cluster) => cluster.spec.users.iter().map(|user| user.name.clone()).collect(),
                Object::Redkey(_) => Vec::new(),
            },
            volumes_bound: around.claims.iter().filter(bound).count(),
            volumes: around.claims.len(),
            volume_sizes: distinct(around.claims.iter().filter_map(size)),
            budget: budget.map(ResourceExt::name_any),
            evictions: budget.and_then(|budget| Some(budget.status.as_ref()?.disruptions_allowed)),
            restarts: snapshot.pods.iter().map(restarts).sum(),
            kind: Some(snapshot.object.kind()),
        }
    }

    /// One line per fact.
    pub fn draw(&self, now: Timestamp, screen: &Screen) -> String {
        let mut out = String::new();
        for (label, text, tone) in self.lines(now) {
            for line in aligned(label, &text, screen.width) {
                out += &tone.map_or(line.clone(), |tone| screen.paint(&line, tone));
                out.push('\n');
            }
        }
        out
    }

    fn lines(&self, now: Timestamp) -> Vec<(&'static str, String, Option<Tone>)> {
        let mut lines = Vec::new();
        if !self.images.is_empty() {
            let versions = match self.versions.as_slice() {
                [] => String::new(),
                versions => format!(" (servers report {})", versions.join(", ")),
            };
            lines.push(("Image", format!("{}{versions}", self.images.join(", ")), None));
        }
        if let Some(address) = &self.address {
            let tls = if self.certificate.is_some() {
                "with TLS"
            } else {
                "without TLS"
            };
            lines.push(("Service", format!("{address}, {tls}"), None));
        }
        if let Some(secret) = &self.certificate {
            lines.push(self.certificate_line(secret, now));
        }
        if self.kind == Some(Kind::ValkeyCluster) && self.address.is_some() {
            let users = match self.users.as_slice() {
                [] => "only the user default, without a password".to_owned(),
                users => users.join(", "),
            };
            lines.push(("Users", users, None));
        }
        if self.volumes > 0 {
            let sizes = self.volume_sizes.join(" or ");
            let tone = (self.volumes_bound < self.volumes).then_some(Tone::Warning);
            lines.push((
                "Volumes",
                format!("{} of {} bound, {sizes} each", self.volumes_bound, self.volumes),
                tone,
            ));
        } else if self.address.is_some() {
            lines.push(("Volumes", "none: data is in memory only".to_owned(), None));
        }
        if let Some((budget, evictions)) = self.budget.as_ref().zip(self.evictions) {
            let text = format!(
                "{} may be evicted now (PodDisruptionBudget {budget})",
                some(evictions.into(), "pod")
            );
            lines.push(("Evictions", text, None));
        }
        if self.restarts > 0 {
            lines.push(("Restarts", some(self.restarts.into(), "restart") + " of servers", None));
        }
        lines
    }

    fn certificate_line(&self, secret: &str, now: Timestamp) -> (&'static str, String, Option<Tone>) {
        let (text, tone) = match self.certificate_expires {
            Some(at) if at <= now => (format!("expired {} ago", since(at, now)), Some(Tone::Error)),
            Some(at) => {
                let tone = (at.duration_since(now) < SOON).then_some(Tone::Warning);
                (format!("expires in {}", since(now, at)), tone)
            }
            None => ("its expiry cannot be read from here".to_owned(), None),
        };
        ("TLS", format!("Secret {secret}, {text}"), tone)
    }
}

/// The columns of a label, with the gap behind it.
pub const LABEL: usize = 11;

/// The text beside its label, or behind it where there is little room.
pub fn aligned(label: &str, text: &str, width: Option<usize>) -> Vec<String> {
    if width.is_some_and(|width| width < 5 * LABEL) {
        return wrap(&format!("{label}: {text}"), width, 2);
    }
    let lines = wrap(text, width.map(|width| width - LABEL), 0);
    let begin = |index: usize| if index == 0 { label } else { "" };
    let lines = lines.iter().enumerate();
    lines
        .map(|(index, line)| format!("{:LABEL$}{line}", begin(index)))
        .collect()
}

/// The image of a member's server.
pub fn image(pod: &Pod) -> Option<String> {
    let containers = &pod.spec.as_ref()?.containers;
    let server = containers
        .iter()
        .find(|one| SERVERS.contains(&one.name.as_str()))
        .or_else(|| containers.first())?;
    server.image.clone()
}

/// How often a member's server was restarted in its pod.
pub fn restarts(pod: &Pod) -> i32 {
    let all = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let server = all
        .into_iter()
        .flatten()
        .find(|one| SERVERS.contains(&one.name.as_str()));
    server.map_or(0, |one| one.restart_count)
}

/// The names of the server's container in both kinds.
const SERVERS: [&str; 2] = ["server", "redis"];

fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    all.collect::<BTreeSet<_>>().into_iter().collect()
}
