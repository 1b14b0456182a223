//! `candor report`: an archive for a bug report: objects, events, logs, server facts, without secrets.

mod logs;
mod redact;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::PathBuf;

use candor_api::redkey::{COMPONENT_LABEL, REDIS};
use candor_operator::kinds::redkey::objects::names as redkey_names;
use candor_operator::objects::{self, labels, names};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Event, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use valkey_admin::client::Node;

use super::cluster::{Address, ClusterRef, Kind, Object};
use super::connect::{Connected, Connection};
use super::describe::{self, typed};
use super::errors::CommandError;
use super::output::{Screen, bytes, print};
use super::servers;
use super::snapshot::{Include, Snapshot};
use super::status::screen::Report as Status;
use redact::Redactor;

/// An archive for a bug report: objects, events, logs, server facts; every secret redacted.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor report shop --file shop.tar.gz && tar tzf shop.tar.gz")]
pub struct Report {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// Where to write it; candor-NAME-TIME.tar.gz if not given.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    at: Connection,
}

/// A file of the archive.
pub struct Entry {
    /// Its path there.
    pub path: String,
    /// Its content.
    pub text: String,
}

impl Report {
    /// Writes the archive.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let now = Timestamp::now();
        let stamp = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let file = self
            .file
            .unwrap_or_else(|| PathBuf::from(format!("candor-{}-{stamp}.tar.gz", self.name.name)));
        let cluster = at.resolve(&self.name).await?;
        let Collected { entries, unread } = Box::pin(collect(&at, &cluster)).await?;
        let folder = format!("candor-{}-{stamp}", cluster.name);
        let failed = |error: std::io::Error| CommandError::File {
            path: file.display().to_string(),
            message: error.to_string(),
        };
        let packed = pack(&entries, &folder, now).map_err(failed)?;
        std::fs::write(&file, &packed).map_err(failed)?;
        let size = bytes(packed.len() as u64);
        let redacted = redaction(&unread);
        print(&format!(
            "{} with {} files, {size}. {redacted} Look through it before you send it:\n  tar xzf {0} -O | less\n",
            file.display(),
            entries.len(),
        ))
    }
}

/// What was collected.
struct Collected {
    entries: Vec<Entry>,
    /// The Secrets that could not be read, and why.
    unread: Vec<String>,
}

/// Which redaction can be promised.
fn redaction(unread: &[String]) -> String {
    match unread {
        [] => "Secrets are redacted.".to_owned(),
        some => format!(
            "NOT fully redacted: what these Secrets hold could not be searched for in logs and other texts, because they \
             could not be read: {}.",
            some.join("; ")
        ),
    }
}

/// Everything, redacted. A note replaces what cannot be fetched.
async fn collect(at: &Connected, cluster: &ClusterRef) -> Result<Collected, CommandError> {
    let include = Include {
        servers: true,
        ..Include::default()
    };
    let snapshot = Snapshot::take(at, cluster, &include).await?;
    let (secrets, unread) = secrets(at, &snapshot.object).await;
    let redactor = Redactor::new(&secrets);
    let mut entries = Vec::new();
    if !unread.is_empty() {
        entries.push(entry("NOT-FULLY-REDACTED.txt", redaction(&unread) + "\n"));
    }
    let helpers = helper_pods(at, cluster).await;
    let status = Status::of(&snapshot);
    let screen = Screen {
        width: Some(160),
        colour: false,
        wide: true,
    };
    entries.push(entry("status.txt", redactor.text(&status.draw(&screen))));
    let version = at
        .client
        .apiserver_version()
        .await
        .map(|info| info.git_version)
        .unwrap_or_default();
    entries.push(entry(
        "versions.txt",
        format!("candor {}\nkubernetes {version}\n", env!("CARGO_PKG_VERSION")),
    ));
    let mut objects = vec![snapshot.object.value()];
    objects.extend(snapshot.nodes.iter().map(typed));
    objects.extend(snapshot.pods.iter().chain(&helpers).map(typed));
    objects.extend(secrets.iter().map(typed));
    objects.extend(parts(at, cluster).await);
    for object in objects {
        let text = |field: &str| {
            object
                .pointer(field)
                .and_then(Value::as_str)
                .unwrap_or("unknown")
                .to_owned()
        };
        let path = format!("objects/{}-{}.yaml", text("/kind"), text("/metadata/name"));
        let clean = redactor.object(object);
        entries.push(entry(
            &path,
            serde_norway::to_string(&clean).unwrap_or_else(|error| error.to_string()),
        ));
    }
    entries.push(entry("events.txt", redactor.text(&events(at).await)));
    let pods = [snapshot.pods.clone(), helpers].concat();
    entries.extend(logs::of_pods(at, &pods, &redactor).await);
    entries.extend(logs::of_operator(at, &snapshot.operator, &redactor).await);
    entries.extend(facts(at, &snapshot, &redactor).await);
    Ok(Collected { entries, unread })
}

/// The objects that the operator made for the cluster.
async fn parts(at: &Connected, cluster: &ClusterRef) -> Vec<Value> {
    let (workloads, shared, rest) = futures::join!(
        async {
            let (one, two, three) = futures::join!(
                list::<Deployment>(at, cluster),
                list::<StatefulSet>(at, cluster),
                list::<ReplicaSet>(at, cluster)
            );
            [one, two, three].concat()
        },
        async {
            let (one, two) = futures::join!(list::<Service>(at, cluster), list::<ConfigMap>(at, cluster));
            [one, two].concat()
        },
        async {
            let (one, two) = futures::join!(
                list::<PersistentVolumeClaim>(at, cluster),
                list::<PodDisruptionBudget>(at, cluster)
            );
            [one, two].concat()
        },
    );
    [workloads, shared, rest].concat()
}

fn entry(path: &str, text: String) -> Entry {
    Entry {
        path: path.to_owned(),
        text,
    }
}

/// The cluster's Secrets, and those that could not be read. One that does not exist hides nothing.
async fn secrets(at: &Connected, cluster: &Object) -> (Vec<Secret>, Vec<String>) {
    let api: Api<Secret> = Api::namespaced(at.client.clone(), &at.namespace);
    let names = secret_names(cluster);
    let found = join_all(names.iter().map(|name| api.get_opt(name))).await;
    let (mut secrets, mut unread) = (Vec::new(), Vec::new());
    for (name, one) in names.iter().zip(found) {
        match one {
            Ok(secret) => secrets.extend(secret),
            Err(kube::Error::Api(status)) => unread.push(format!("{name} ({})", status.message)),
            Err(error) => unread.push(format!("{name} ({error})")),
        }
    }
    (secrets, unread)
}

/// The Secrets that the spec names, and the operator's own.
fn secret_names(cluster: &Object) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let name = cluster.name();
    match cluster {
        Object::Valkey(cluster) => {
            all.extend(objects::referenced_secrets(cluster));
            all.extend([
                names::acl_secret(&name),
                names::system_secret(&name),
                names::users_secret(&name),
            ]);
        }
        Object::Redkey(cluster) => {
            all.extend(cluster.spec.auth.as_ref().and_then(|auth| auth.secret.clone()));
            all.insert(redkey_names::robin(&name));
        }
    }
    all
}

/// Pods that are no members: preflight pods, and Robin.
async fn helper_pods(at: &Connected, cluster: &ClusterRef) -> Vec<Pod> {
    let selector = match cluster.kind {
        Kind::ValkeyCluster => format!("{}={}", labels::PREFLIGHT_OF, cluster.name),
        Kind::RedkeyCluster => format!("{},{COMPONENT_LABEL}!={REDIS}", cluster.kind.selector(&cluster.name)),
    };
    let api: Api<Pod> = Api::namespaced(at.client.clone(), &at.namespace);
    let found = api.list(&ListParams::default().labels(&selector)).await;
    found.map(|found| found.items).unwrap_or_default()
}

/// The objects of a kind, or why they could not be listed.
async fn list<K>(at: &Connected, cluster: &ClusterRef) -> Vec<Value>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let found = describe::list::<K>(at, cluster).await;
    found.unwrap_or_else(|error| {
        vec![json!({"kind": K::kind(&()), "metadata": {"name": "not-listed"}, "error": error.to_string()})]
    })
}

/// Every event of the namespace, the oldest first: events of other objects may explain a problem.
async fn events(at: &Connected) -> String {
    let api: Api<Event> = Api::namespaced(at.client.clone(), &at.namespace);
    let mut events = match api.list(&ListParams::default()).await {
        Ok(list) => list.items,
        Err(error) => return format!("not listed: {error}\n"),
    };
    events.sort_by_key(super::snapshot::happened);
    let line = |event: &Event| {
        let about = &event.involved_object;
        format!(
            "{} {} {}/{} {} x{}: {}\n",
            super::snapshot::happened(event)
                .map(|at| at.to_string())
                .unwrap_or_default(),
            event.type_.as_deref().unwrap_or_default(),
            about.kind.as_deref().unwrap_or_default(),
            about.name.as_deref().unwrap_or_default(),
            event.reason.as_deref().unwrap_or_default(),
            super::snapshot::times(event),
            event.message.as_deref().unwrap_or_default()
        )
    };
    events.iter().map(line).collect()
}

/// What every server that can be reached reports of itself and of the others.
async fn facts(at: &Connected, snapshot: &Snapshot, redactor: &Redactor) -> Vec<Entry> {
    let nodes = match servers::reach(at, &snapshot.object, &snapshot.pods).await {
        Ok(nodes) => nodes,
        Err(message) => return vec![entry("servers/not-queried.txt", message)],
    };
    let ask = nodes.iter().map(|(member, node)| async move {
        let mut text = String::new();
        for command in [&["INFO"][..], &["CLUSTER", "INFO"], &["CLUSTER", "NODES"]] {
            text.extend(["> ", &command.join(" "), "\n", &raw(node, command).await, "\n"]);
        }
        (format!("servers/{member}.txt"), text)
    });
    let replies = join_all(ask).await;
    replies
        .into_iter()
        .map(|(path, text)| entry(&path, redactor.text(&text)))
        .collect()
}

/// A server's reply as it is.
async fn raw(node: &Node, command: &[&str]) -> String {
    let mut asked = redis::cmd(command[0]);
    asked.arg(&command[1..]);
    let answer = node.ask(&asked).await.map_err(|error| error.to_string());
    let text = answer.and_then(|reply| reply.text("it").map_err(|error| error.to_string()));
    let text = text.unwrap_or_else(|error| format!("no reply: {error}\n"));
    text.replace("\r\n", "\n")
}

/// The archive, all in one folder.
fn pack(entries: &[Entry], folder: &str, now: Timestamp) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(entry.text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(u64::try_from(now.as_second()).unwrap_or(0));
        archive.append_data(&mut header, format!("{folder}/{}", entry.path), entry.text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}
