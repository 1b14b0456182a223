//! `candor plan`: what would happen, step by step. The operator's own planner, driven forward in memory; nothing is
//! changed.

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

use super::connect::Connection;
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
  candor plan -f shop.yaml           if this file were applied
  candor plan -f shop.yaml -o json   the same, for programs")]
pub struct Plan {
    /// The cluster; with --file the one that the file names.
    #[arg(required_unless_present = "file", conflicts_with = "file", add = super::completion::clusters())]
    name: Option<String>,
    /// A manifest.
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
        let mut wished = self.file.as_ref().map(|path| read(path)).transpose()?;
        let mut at = self.at.connect().await?;
        let mut picture = None;
        if let Some(cluster) = &wished {
            if let Some(namespace) = cluster.namespace() {
                at.namespace = namespace;
            }
            match Picture::take(&at, &cluster.name_any(), &wish()).await {
                Ok(taken) => picture = Some(taken),
                // It would be made from nothing.
                Err(CommandError::NoCluster { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(name) = &self.name {
            let taken = Picture::take(&at, name, &wish()).await?;
            if self.shards.is_none() && self.replicas.is_none() {
                return Err(
                    CommandError::Usage("say what shall be: --shards N, --replicas N, or -f FILE".to_owned()).into(),
                );
            }
            wished = Some(taken.cluster.clone());
            picture = Some(taken);
        }
        let Some(mut wished) = wished else { return Ok(()) };
        wished.spec.shards = self.shards.unwrap_or(wished.spec.shards);
        wished.spec.replicas = self.replicas.or(wished.spec.replicas);
        wished.metadata.namespace.get_or_insert_with(|| at.namespace.clone());
        let now = picture.as_ref().map(|picture| &picture.cluster);
        let weights = picture.as_ref().map(weights).unwrap_or_default();
        if print_data(&tell(now, &wished, &weights), self.output)? {
            return Ok(());
        }
        print(&draw(now, &wished, &weights, &Screen::of_stdout(self.output)))
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

fn read(path: &std::path::Path) -> Result<ValkeyCluster, CommandError> {
    let failed = |words: String| CommandError::File {
        path: path.display().to_string(),
        words,
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let cluster: ValkeyCluster =
        serde_saphyr::from_str(&text).map_err(|error| failed(format!("this is no ValkeyCluster: {error}")))?;
    if cluster.metadata.name.is_none() {
        return Err(failed("metadata.name is missing".to_owned()));
    }
    Ok(cluster)
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
    for at in wanted.members().filter(|at| valkey::wanted(now).wants(*at)) {
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
