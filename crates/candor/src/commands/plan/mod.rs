//! `candor plan`: what would happen, step by step; nothing is changed.
//!
//! | topic | module |
//! |---|---|
//! | the preview and how it is printed | `preview`, `risks` |
//! | a `ValkeyCluster`: the operator's own planner, run in memory | `valkey`, `steps`, `world` |
//! | a `RedkeyCluster`: its operations, from the documented sequences | `redkey` |
//! | manifests in files, and what the API server would store for them | `file`, `ask` |

mod ask;
mod file;
mod preview;
mod redkey;
mod risks;
mod steps;
#[cfg(test)]
mod tests;
mod valkey;
mod world;

use std::error::Error;
use std::path::PathBuf;

use candor_engine::model::ShardIndex;
use clap::Args;
use serde_json::{Map, Value, json};

use super::cluster::{Address, Cluster, ClusterRef, Kind, Object};
use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data, some, wrap};
use super::snapshot::{Include, Snapshot};
pub(super) use preview::{Preview, Weights};

/// What would happen, step by step; nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor plan shop --shards 5           if it had five shards
  candor plan shop --replicas 2         ... two replicas each
  candor plan rkcl/shop --primaries 5   the same for a RedkeyCluster
  candor plan -f shop.yaml              if this file were applied: the API server is asked first, by a dry run
  candor plan -f shop.yaml -o json      the same, for programs")]
pub struct Plan {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME; with --file the one that the file names.
    #[arg(required_unless_present = "file", conflicts_with = "file", add = super::completion::clusters())]
    name: Option<Address>,
    /// A file with one or more manifests.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// This many shards, each with a primary.
    #[arg(long, visible_alias = "primaries", value_name = "N", value_parser = clap::value_parser!(i32).range(0..=1000))]
    shards: Option<i32>,
    /// This many replicas of each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=100))]
    replicas: Option<i32>,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

impl Plan {
    /// Prints it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let (plans, others) = match (&self.file, &self.name) {
            (Some(path), _) => {
                let found = file::read(path)?;
                let mut plans = Vec::new();
                for (kind, manifest) in &found.clusters {
                    plans.push(self.of_manifest(&at, *kind, manifest).await?);
                }
                (plans, found.others)
            }
            (None, Some(name)) => (vec![self.of_name(&at, name).await?], Vec::new()),
            // The parser asks for one of them.
            (None, None) => return Ok(()),
        };
        if self.output == Format::Json || self.output == Format::Yaml {
            let previews: Vec<Preview> = plans.iter().map(Planned::preview).collect();
            match previews.as_slice() {
                [one] => print_data(one, self.output)?,
                all => print_data(&all, self.output)?,
            };
            return Ok(());
        }
        let screen = Screen::of_stdout(self.output);
        let mut texts: Vec<String> = plans.iter().map(|one| one.draw(&screen)).collect();
        if !others.is_empty() {
            let text = format!("Not planned, because they are no clusters: {}", others.join(", "));
            texts.push(wrap(&text, screen.width, 2).join("\n") + "\n");
        }
        print(&texts.join("\n"))
    }

    /// The cluster of a manifest, as the API server would store it.
    async fn of_manifest(&self, at: &Connected, kind: Kind, manifest: &Value) -> Result<Planned, CommandError> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let mut at = at.clone();
        at.namespace = text("/metadata/namespace").unwrap_or(at.namespace);
        let cluster = ClusterRef {
            kind,
            name: text("/metadata/name").unwrap_or_default(),
        };
        let snapshot = match Snapshot::take(&at, &cluster, &include()).await {
            Ok(taken) => Some(taken),
            // It would be created.
            Err(CommandError::NoCluster { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut manifest = manifest.clone();
        if let Some(spec) = manifest.get_mut("spec").and_then(Value::as_object_mut) {
            spec.extend(self.shape(kind));
        }
        let now = snapshot.as_ref().map(|snapshot| &snapshot.object);
        let desired = ask::applied(&at, &cluster, &manifest, now).await?;
        Ok(Planned { snapshot, desired })
    }

    /// An existing cluster, with another number of shards or replicas.
    async fn of_name(&self, at: &Connected, name: &Address) -> Result<Planned, CommandError> {
        let cluster = at.resolve(name).await?;
        let snapshot = Snapshot::take(at, &cluster, &include()).await?;
        let shape = self.shape(cluster.kind);
        if shape.is_empty() {
            return Err(CommandError::Usage(
                "name the change: --shards N, --replicas N, or -f FILE".to_owned(),
            ));
        }
        let desired = ask::changed(at, &cluster, json!({"spec": shape})).await?;
        Ok(Planned {
            snapshot: Some(snapshot),
            desired,
        })
    }

    /// The numbers that were given as options.
    fn shape(&self, kind: Kind) -> Map<String, Value> {
        let (shards, replicas) = kind.shape_fields();
        let given = [(shards, self.shards), (replicas, self.replicas)];
        given
            .into_iter()
            .filter_map(|(name, number)| Some((name.to_owned(), json!(number?))))
            .collect()
    }
}

/// A cluster as it is, if it exists, and as it would be.
struct Planned {
    snapshot: Option<Snapshot>,
    desired: Object,
}

impl Planned {
    fn now(&self) -> Option<&Object> {
        self.snapshot.as_ref().map(|snapshot| &snapshot.object)
    }

    fn weights(&self) -> Weights {
        self.snapshot.as_ref().map(weights).unwrap_or_default()
    }

    fn preview(&self) -> Preview {
        preview(self.now(), &self.desired, &self.weights())
    }

    fn draw(&self, screen: &Screen) -> String {
        draw(self.now(), &self.desired, &self.weights(), screen)
    }
}

/// What would happen.
pub(super) fn preview(now: Option<&Object>, desired: &Object, weights: &Weights) -> Preview {
    match desired {
        Object::Valkey(desired) => {
            let now = now.and_then(|now| match now {
                Object::Valkey(now) => Some(now.as_ref()),
                Object::Redkey(_) => None,
            });
            valkey::preview(now, desired, weights)
        }
        Object::Redkey(desired) => {
            let now = now.and_then(|now| match now {
                Object::Redkey(now) => Some(now.as_ref()),
                Object::Valkey(_) => None,
            });
            redkey::preview(now, desired, weights)
        }
    }
}

/// What would happen, as text.
pub(super) fn draw(now: Option<&Object>, desired: &Object, weights: &Weights, screen: &Screen) -> String {
    let (before, after) = (now.map(Object::view), desired.view());
    let mut head = wrap(&heading(before.as_ref(), &after), screen.width, 2);
    let first = before.as_ref().and_then(first);
    head.extend(first.iter().flat_map(|text| wrap(text, screen.width, 2)));
    let preview = preview(now, desired, weights);
    format!("{}\n\n{}", head.join("\n"), preview.draw(screen))
}

/// What is wrong now: the operator repairs it before everything that is planned here.
pub(super) fn first(now: &Cluster) -> Option<String> {
    let differs = !now.state.is_empty() && now.state != "Ready" && now.deleting.is_none();
    differs.then(|| {
        format!(
            "It is {} now ({}): that comes first, and this is the plan for when it is complete.",
            now.state, now.reason
        )
    })
}

fn include() -> Include {
    Include {
        servers: true,
        ..Include::default()
    }
}

pub(super) fn heading(now: Option<&Cluster>, desired: &Cluster) -> String {
    let shape = |cluster: &Cluster| {
        format!(
            "{} with {} each",
            some(cluster.shards.into(), cluster.kind.unit()),
            some(cluster.replicas.into(), "replica")
        )
    };
    let name = format!("{}/{}", desired.namespace, desired.name);
    let change = match now {
        Some(now) if shape(now) == shape(desired) => format!("{name} stays at {}.", shape(desired)),
        Some(now) => format!("{name} from {} to {}.", shape(now), shape(desired)),
        None => format!("{name} is new: {}.", shape(desired)),
    };
    format!("{change} This is a preview: nothing is changed.")
}

/// The size of each shard, as far as its primary could be queried.
pub(super) fn weights(snapshot: &Snapshot) -> Weights {
    let cluster = snapshot.cluster();
    let shard = |id| cluster.members.iter().find(|member| member.id == id)?.shard;
    let primaries = snapshot.servers.iter().filter(|(_, info)| info.upstream.is_none());
    primaries
        .filter_map(|(id, info)| Some((ShardIndex(shard(*id)?), info.used_memory?)))
        .collect()
}
