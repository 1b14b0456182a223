//! `candor describe`: a cluster with everything it consists of, as a tree.

use std::error::Error;

use candor_api::ValkeyNode;
use candor_api::valkey::conditions::ClusterCondition;
use candor_engine::model::MemberRef;
use candor_operator::objects::labels;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::ListParams;
use kube::{Api, Resource};
use kube_status::tree::{Node, Show, View};
use serde::Serialize;
use serde_json::{Value, json};

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data};
use super::status::screen::negative;

/// A cluster with its members, workloads, pods and volumes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor describe shop                         what is well is grouped, what is not is shown
  candor describe shop --show-conditions all   every condition of every object")]
pub struct Describe {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// Which conditions are shown below an object.
    #[arg(long, value_enum, default_value_t, value_name = "WHICH")]
    show_conditions: Which,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

/// Which conditions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// Those that are not good news.
    #[default]
    Matter,
    /// All, and nothing is grouped.
    All,
    /// None.
    None,
}

/// The objects of a cluster, as they were read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Objects {
    /// The cluster itself.
    pub cluster: Value,
    /// Everything else.
    pub others: Vec<Value>,
}

impl Describe {
    /// Prints the tree.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let objects = fetch(&at, &self.name).await?;
        if print_data(&objects, self.output)? {
            return Ok(());
        }
        let screen = Screen::of_stdout(self.output);
        print(&draw(&objects, Timestamp::now(), self.show_conditions, &screen)?)
    }
}

async fn fetch(at: &Connected, name: &str) -> Result<Objects, CommandError> {
    let cluster = at.cluster(name).await?;
    let (nodes, deployments, sets, pods, claims) = futures::join!(
        list::<ValkeyNode>(at, name, "ValkeyNode"),
        list::<Deployment>(at, name, "Deployment"),
        list::<StatefulSet>(at, name, "StatefulSet"),
        list::<Pod>(at, name, "Pod"),
        list::<PersistentVolumeClaim>(at, name, "PersistentVolumeClaim"),
    );
    let others = [nodes?, deployments?, sets?, pods?, claims?].concat();
    Ok(Objects {
        cluster: typed(&cluster),
        others,
    })
}

/// All objects of a kind that belong to a cluster.
async fn list<K>(at: &Connected, cluster: &str, kind: &str) -> Result<Vec<Value>, CommandError>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(at.client.clone(), &at.namespace);
    let ours = ListParams::default().labels(&format!("{}={cluster}", labels::CLUSTER));
    let found = api.list(&ours).await.map_err(|error| CommandError::of(&error, kind))?;
    Ok(found.items.iter().map(typed).collect())
}

/// An object with its kind: lists leave it out.
pub fn typed<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or(Value::Null);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(K::api_version(&())));
        fields.insert("kind".to_owned(), json!(K::kind(&())));
    }
    value
}

/// The tree.
pub(super) fn draw(objects: &Objects, now: Timestamp, which: Which, screen: &Screen) -> Result<String, Box<dyn Error>> {
    let show = match which {
        Which::Matter => Show::WhatMatters,
        Which::All => Show::All,
        Which::None => Show::None,
    };
    let view = View::new(now)
        .colour(screen.colour)
        .show(show)
        .group(which != Which::All);
    let view = match screen.width {
        Some(columns) => view.width(columns),
        None => view,
    };
    Ok(view.render(&tree(objects)?))
}

/// The cluster, its members below it, and below each member what it runs as. A member's window owns nothing, so the
/// labels say what belongs together.
fn tree(objects: &Objects) -> Result<Node, Box<dyn Error>> {
    let bad = negative::<ClusterCondition>();
    let read = |value: &Value| Node::read(value, &bad);
    let mut root = read(&objects.cluster)?;
    let mut others: Vec<(Option<MemberRef>, &Value)> =
        objects.others.iter().map(|value| (member(value), value)).collect();
    others.sort_by_key(|(member, value)| (*member, rank(value)));
    let mut windows: Vec<(Option<MemberRef>, Node)> = Vec::new();
    for (member, value) in others {
        let node = read(value)?;
        match windows
            .iter_mut()
            .find(|(known, _)| *known == member && member.is_some())
        {
            // Below the workload stands its pod.
            Some((_, window)) if node.kind == "Pod" => {
                match window.children.iter_mut().find(|child| child.kind != "Pod") {
                    Some(workload) => workload.children.push(node),
                    None => window.children.push(node),
                }
            }
            Some((_, window)) => window.children.push(node),
            None => windows.push((member, node)),
        }
    }
    root.children.extend(windows.into_iter().map(|(_, node)| node));
    Ok(root)
}

fn member(value: &Value) -> Option<MemberRef> {
    let labels = serde_json::from_value(value.pointer("/metadata/labels")?.clone()).ok()?;
    labels::member_of(&labels)
}

fn rank(value: &Value) -> u8 {
    match value.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValkeyNode" => 0,
        "Deployment" | "StatefulSet" => 1,
        "Pod" => 2,
        _ => 3,
    }
}
