//! `candor describe`: a cluster with everything it consists of, as a tree.

use std::error::Error;

use candor_api::ValkeyNode;
use candor_api::redkey::COMPONENT_LABEL;
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

use super::cluster::{Address, ClusterRef, Kind, Object, is_true};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data, some};
use super::status::facts::aligned;

/// A cluster with its members, workloads, pods and volumes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor describe shop                         what is well is grouped, what is not is shown
  candor describe shop --show-conditions all   every condition of every object")]
pub struct Describe {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
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
    /// Those that report a problem or an operation.
    #[default]
    Matter,
    /// All, and nothing is grouped.
    All,
    /// None.
    None,
}

/// The objects of a cluster, as they were read.
#[derive(Clone, Debug, Serialize)]
pub struct Objects {
    /// The kind of the cluster.
    #[serde(skip)]
    pub kind: Kind,
    /// The cluster itself.
    pub cluster: Value,
    /// The same, decoded.
    #[serde(skip)]
    pub object: Object,
    /// Everything else.
    pub others: Vec<Value>,
}

impl Describe {
    /// Prints the tree.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        let objects = fetch(&at, &cluster).await?;
        if print_data(&objects, self.output)? {
            return Ok(());
        }
        let screen = Screen::of_stdout(self.output);
        print(&draw(&objects, Timestamp::now(), self.show_conditions, &screen)?)
    }
}

async fn fetch(at: &Connected, cluster: &ClusterRef) -> Result<Objects, CommandError> {
    let object = at.cluster(cluster).await?;
    let nodes = async {
        match cluster.kind {
            Kind::ValkeyCluster => list::<ValkeyNode>(at, cluster).await,
            Kind::RedkeyCluster => Ok(Vec::new()),
        }
    };
    let (nodes, deployments, sets, pods, claims) = futures::join!(
        nodes,
        list::<Deployment>(at, cluster),
        list::<StatefulSet>(at, cluster),
        list::<Pod>(at, cluster),
        list::<PersistentVolumeClaim>(at, cluster),
    );
    let others = [nodes?, deployments?, sets?, pods?, claims?].concat();
    Ok(Objects {
        kind: cluster.kind,
        cluster: object.value(),
        object,
        others,
    })
}

/// All objects of a kind that belong to a cluster.
pub async fn list<K>(at: &Connected, cluster: &ClusterRef) -> Result<Vec<Value>, CommandError>
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + Serialize
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(at.client.clone(), &at.namespace);
    let ours = ListParams::default().labels(&cluster.kind.selector(&cluster.name));
    let found = api.list(&ours).await;
    let found = found.map_err(|error| CommandError::of(&error, &K::kind(&())))?;
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
    let facts = facts(&objects.object, screen);
    Ok(format!("{facts}\n{}", view.render(&tree(objects)?)))
}

/// What `kubectl get -o wide` shows, one line each.
fn facts(object: &Object, screen: &Screen) -> String {
    let cluster = object.view();
    let units = some(cluster.shards.into(), cluster.kind.unit());
    let lost = is_true(&cluster, "DataLost").map_or("no", |lost| lost.message.as_str());
    let facts = [
        ("Image", object.image().unwrap_or("not chosen yet").to_owned()),
        ("Ready", format!("{} of {units}", cluster.ready_shards)),
        ("Paused", if cluster.paused { "yes" } else { "no" }.to_owned()),
        ("Data lost", lost.to_owned()),
    ];
    let lines = facts
        .iter()
        .flat_map(|(label, text)| aligned(label, text, screen.width));
    lines.map(|line| line + "\n").collect()
}

/// The cluster and below it its parts, each with what belongs to it: a `ValkeyNode` with its workload, pod and volume;
/// the servers' `StatefulSet` with its pods and volumes; Robin's Deployment with its pod. Labels say what belongs
/// together, because a `ValkeyNode` owns nothing and a Deployment does not own its pods itself.
fn tree(objects: &Objects) -> Result<Node, Box<dyn Error>> {
    let bad = objects.kind.negative();
    let read = |value: &Value| Node::read(value, &bad);
    let mut root = read(&objects.cluster)?;
    let mut others: Vec<(Option<Part>, &Value)> = objects
        .others
        .iter()
        .map(|value| (part(objects.kind, value), value))
        .collect();
    others.sort_by_key(|(part, value)| (part.clone(), rank(value)));
    let mut parts: Vec<(Option<Part>, Node)> = Vec::new();
    for (part, value) in others {
        let node = read(value)?;
        match parts.iter_mut().find(|(known, _)| *known == part && part.is_some()) {
            // A pod is shown below its workload.
            Some((_, first)) if node.kind == "Pod" => {
                match first.children.iter_mut().find(|child| child.kind != "Pod") {
                    Some(workload) => workload.children.push(node),
                    None => first.children.push(node),
                }
            }
            Some((_, first)) => first.children.push(node),
            None => parts.push((part, node)),
        }
    }
    root.children.extend(parts.into_iter().map(|(_, node)| node));
    Ok(root)
}

/// What an object is a part of: a member by shard and place, or a component.
type Part = (u32, u32, String);

fn part(kind: Kind, value: &Value) -> Option<Part> {
    let labels = value.pointer("/metadata/labels")?;
    match kind {
        Kind::ValkeyCluster => {
            let member = labels::member_of(&serde_json::from_value(labels.clone()).ok()?)?;
            Some((member.shard.0, member.node, String::new()))
        }
        Kind::RedkeyCluster => Some((0, 0, labels.get(COMPONENT_LABEL)?.as_str()?.to_owned())),
    }
}

fn rank(value: &Value) -> u8 {
    match value.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValkeyNode" => 0,
        "Deployment" | "StatefulSet" => 1,
        "Pod" => 2,
        _ => 3,
    }
}
