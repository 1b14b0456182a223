//! `candor plan`: what would happen, step by step. The operator's own planner, driven forward in memory; nothing is
//! changed.

mod ask;
mod file;
mod risks;
mod story;
#[cfg(test)]
mod tests;
mod world;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use candor_api::ValkeyCluster;
use candor_api::valkey::status::{MemberRole, State};
use candor_engine::kinds::valkey;
use candor_engine::model::ShardIndex;
use candor_engine::observation::{About, Problem};
use candor_operator::objects::{self, Inputs, Remembered, SystemPasswords};
use clap::Args;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::connect::{Connected, Connection};
use super::errors::CommandError;
use super::output::{Format, Screen, print, print_data, some, wrap};
use super::picture::{Picture, Wish};
use story::Story;
pub(super) use story::Weights;
use world::{Change, World};

/// What would happen, step by step; nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor plan shop --shards 5        if it had five shards
  candor plan shop --replicas 2      ... two replicas each
  candor plan -f shop.yaml           if this file were applied: the API server is asked first, by a dry run
  candor plan -f shop.yaml -o json   the same, for programs")]
pub struct Plan {
    /// The cluster; with --file the one that the file names.
    #[arg(required_unless_present = "file", conflicts_with = "file", add = super::completion::clusters())]
    name: Option<String>,
    /// A file with one or more manifests.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// This many shards.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..=1000))]
    shards: Option<i32>,
    /// This many replicas of each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=16))]
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
                for manifest in &found.clusters {
                    plans.push(self.of_manifest(&at, manifest).await?);
                }
                (plans, found.others)
            }
            (None, Some(name)) => (vec![self.of_name(&at, name).await?], Vec::new()),
            // The parser asks for one of them.
            (None, None) => return Ok(()),
        };
        if self.output == Format::Json || self.output == Format::Yaml {
            let stories: Vec<Story> = plans.iter().map(Planned::story).collect();
            match stories.as_slice() {
                [one] => print_data(one, self.output)?,
                all => print_data(&all, self.output)?,
            };
            return Ok(());
        }
        let screen = Screen::of_stdout(self.output);
        let mut texts: Vec<String> = plans.iter().map(|one| one.draw(&screen)).collect();
        if !others.is_empty() {
            let words = format!("Not planned, because it is no ValkeyCluster: {}", others.join(", "));
            texts.push(wrap(&words, screen.width, 2).join("\n") + "\n");
        }
        print(&texts.join("\n"))
    }

    /// The cluster of a manifest, as the API server would have it.
    async fn of_manifest(&self, at: &Connected, manifest: &Value) -> Result<Planned, CommandError> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let mut at = at.clone();
        at.namespace = text("/metadata/namespace").unwrap_or(at.namespace);
        let name = text("/metadata/name").unwrap_or_default();
        let picture = match Picture::take(&at, &name, &wish()).await {
            Ok(taken) => Some(taken),
            // It would be made from nothing.
            Err(CommandError::NoCluster { .. }) => None,
            Err(error) => return Err(error),
        };
        let mut manifest = manifest.clone();
        if let Some(spec) = manifest.get_mut("spec").and_then(Value::as_object_mut) {
            spec.extend(self.shape());
        }
        let wished = ask::applied(&at, &manifest, picture.as_ref().map(|picture| &picture.cluster)).await?;
        Ok(Planned { picture, wished })
    }

    /// A cluster that is there, with another number of shards or replicas.
    async fn of_name(&self, at: &Connected, name: &str) -> Result<Planned, CommandError> {
        let picture = Picture::take(at, name, &wish()).await?;
        if self.shape().is_empty() {
            return Err(CommandError::Usage(
                "say what shall be: --shards N, --replicas N, or -f FILE".to_owned(),
            ));
        }
        let wished = ask::changed(at, name, json!({"spec": self.shape()})).await?;
        Ok(Planned {
            picture: Some(picture),
            wished,
        })
    }

    /// The numbers that were given by hand.
    fn shape(&self) -> Map<String, Value> {
        let given = [("shards", self.shards), ("replicas", self.replicas)];
        given
            .into_iter()
            .filter_map(|(name, number)| Some((name.to_owned(), json!(number?))))
            .collect()
    }
}

/// A cluster as it is, if it is, and as it would be.
struct Planned {
    picture: Option<Picture>,
    wished: ValkeyCluster,
}

impl Planned {
    fn now(&self) -> Option<&ValkeyCluster> {
        self.picture.as_ref().map(|picture| &picture.cluster)
    }

    fn weights(&self) -> Weights {
        self.picture.as_ref().map(weights).unwrap_or_default()
    }

    fn story(&self) -> Story {
        tell(self.now(), &self.wished, &self.weights())
    }

    fn draw(&self, screen: &Screen) -> String {
        draw(self.now(), &self.wished, &self.weights(), screen)
    }
}

/// What would happen, as people read it.
pub(super) fn draw(now: Option<&ValkeyCluster>, wished: &ValkeyCluster, weights: &Weights, screen: &Screen) -> String {
    let mut head = wrap(&heading(now, wished), screen.width, 2);
    head.extend(
        now.and_then(first)
            .iter()
            .flat_map(|words| wrap(words, screen.width, 2)),
    );
    format!("{}\n\n{}", head.join("\n"), tell(now, wished, weights).draw(screen))
}

/// What is not well now: it comes before everything that is planned here.
fn first(now: &ValkeyCluster) -> Option<String> {
    let status = now.status.as_ref()?;
    let state = status.state.filter(|state| *state != State::Ready)?;
    (now.metadata.deletion_timestamp.is_none()).then(|| {
        format!(
            "It is {state:?} now ({}): that comes first, and this is the plan for when it is whole.",
            status.reason
        )
    })
}

fn wish() -> Wish {
    Wish {
        servers: true,
        ..Wish::default()
    }
}

fn heading(now: Option<&ValkeyCluster>, wished: &ValkeyCluster) -> String {
    let shape = |cluster: &ValkeyCluster| {
        let replicas = cluster.spec.replicas.unwrap_or(0);
        format!(
            "{} with {} each",
            some(cluster.spec.shards.into(), "shard"),
            some(replicas.into(), "replica")
        )
    };
    let (namespace, name) = (wished.namespace().unwrap_or_default(), wished.name_any());
    match now {
        Some(now) if shape(now) == shape(wished) => format!(
            "{namespace}/{name} stays at {}. Nothing is changed by asking.",
            shape(wished)
        ),
        Some(now) => format!(
            "{namespace}/{name} from {} to {}. Nothing is changed by asking.",
            shape(now),
            shape(wished)
        ),
        None => format!(
            "{namespace}/{name} is new: {}. Nothing is changed by asking.",
            shape(wished)
        ),
    }
}

/// What each shard weighs, as far as its primary could be asked.
pub(super) fn weights(picture: &Picture) -> Weights {
    let primaries = picture.servers.iter().filter(|(_, info)| info.upstream.is_none());
    primaries
        .filter_map(|(at, info)| Some((at.shard, info.used_memory?)))
        .collect()
}

/// What would happen to a cluster as status has it if it were wished so.
pub fn tell(now: Option<&ValkeyCluster>, wished: &ValkeyCluster, weights: &Weights) -> Story {
    let mut wished = wished.clone();
    let status = now.and_then(|now| now.status.clone()).unwrap_or_default();
    // What was chosen before stays chosen: an image that the spec does not name.
    wished.status = now.and_then(|now| now.status.clone());
    let wanted = valkey::wanted(&wished);
    let before = now.map_or_else(|| wanted.clone(), valkey::wanted);
    let change = now.map_or_else(
        || Change {
            objects: true,
            ..Change::default()
        },
        |now| change(now, &wished),
    );
    let mut world = World::new(&before, wanted, valkey::memory(&status), change);
    let primaries: BTreeMap<ShardIndex, _> = status
        .topology
        .iter()
        .filter_map(|shard| {
            let head = shard
                .members
                .iter()
                .find(|member| member.role == Some(MemberRole::Primary))?;
            Some((ShardIndex(u32::try_from(shard.shard).ok()?), head.node_id.parse().ok()?))
        })
        .collect();
    world.promote(&primaries);
    let (looks, end) = world.run();
    let mut story = Story::of(&looks, &end, weights);
    if !story.steps.is_empty() {
        story.risks = risks::risks(&wished, &story.sum);
    }
    if wished.spec.paused == Some(true) {
        let name = wished.name_any();
        story.stands = Some(format!("{name} is paused; let it go on with: candor resume {name}"));
    }
    if now.is_some_and(|now| now.metadata.deletion_timestamp.is_some()) {
        story = Story::default();
        story.stands = Some("it is being deleted".to_owned());
    }
    story
}

/// What a new spec changes besides shards and replicas, by making both specs' objects and comparing them.
fn change(now: &ValkeyCluster, wished: &ValkeyCluster) -> Change {
    let mut change = Change::default();
    // Any passwords do: they are the same on both sides.
    let same = || "same".to_owned();
    let passwords = SystemPasswords {
        operator: same(),
        exporter: same(),
        replication: same(),
        migrator: same(),
    };
    let (secrets, remembered) = (BTreeMap::new(), Remembered::default());
    let inputs = |cluster| Inputs {
        cluster,
        image: valkey::image(cluster),
        exporter_image: "candor",
        passwords: &passwords,
        secrets: &secrets,
        version: None,
        remembered: &remembered,
    };
    let (old, new) = (inputs(now), inputs(wished));
    let wanted = valkey::wanted(wished);
    let before = valkey::wanted(now);
    for at in wanted.members().filter(|at| before.wants(*at)) {
        match (objects::member(&old, at), objects::member(&new, at)) {
            (Ok(one), Ok(other)) if one.workload.template_hash() != other.workload.template_hash() => {
                change.outdated.insert(at);
            }
            (_, Err(problem)) => {
                change.problems = vec![Problem {
                    about: About::Configuration,
                    words: problem.to_string(),
                }];
                break;
            }
            _ => {}
        }
    }
    // Users need Secrets that are not looked at here: their part of the spec says enough.
    change.settings = now.spec.config != wished.spec.config || now.spec.users != wished.spec.users;
    change.objects = change.settings || !change.outdated.is_empty();
    let size = |cluster: &ValkeyCluster| cluster.spec.persistence.as_ref().map(|volume| volume.size.clone());
    change.volumes = size(now).is_some() && size(now) != size(wished);
    change
}
