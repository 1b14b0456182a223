//! Shell completion and man pages. Shells ask the program itself (`source <(COMPLETE=bash candor)`), so that names of
//! clusters complete too.

use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use candor_api::valkey::status::MemberRole;
use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::cluster::{Object, fetch};
use super::connect::Connection;
use super::errors::CommandError;
use super::output::print;

/// A user waits for the cursor to move.
const PATIENCE: Duration = Duration::from_secs(1);

/// Man pages, one for every command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  candor man > candor.1          the program itself
  candor man --folder man1       a page for every word")]
pub struct Man {
    /// Where a page for every word is written; without it the program's own is printed.
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Man {
    /// Writes them.
    pub fn run(self) -> Result<(), Box<dyn Error>> {
        let command = super::command(None);
        let Some(folder) = self.folder else {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            return print(&String::from_utf8_lossy(&page));
        };
        let failed = |error: std::io::Error| CommandError::File {
            path: folder.display().to_string(),
            message: error.to_string(),
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(command, &folder).map_err(failed)?;
        Ok(())
    }
}

/// kubectl asks a program of this name what may follow `kubectl candor ...`: the last word is the one being typed. One
/// candidate a line, and at the end that files are none; nothing when we are called by another name.
pub fn for_kubectl(words: impl Iterator<Item = OsString>) -> Option<String> {
    const NAME: &str = "kubectl_complete-candor";
    /// Cobra's word for "no files".
    const NO_FILES: &str = ":4";
    let words: Vec<OsString> = words.collect();
    let called = words.first().and_then(|path| Path::new(path).file_stem()?.to_str());
    if called != Some(NAME) {
        return None;
    }
    let typing = words.len().saturating_sub(1).max(1);
    let mut command = super::command(None);
    let found = clap_complete::engine::complete(&mut command, words, typing, None).unwrap_or_default();
    let lines = found.iter().filter(|one| !one.is_hide_set()).map(|one| {
        let value = one.get_value().to_string_lossy();
        let help = one.get_help().map(ToString::to_string).unwrap_or_default();
        match help.lines().next() {
            Some(first) if !first.is_empty() => format!("{value}\t{first}\n"),
            _ => format!("{value}\n"),
        }
    });
    Some(lines.chain([format!("{NO_FILES}\n")]).collect())
}

/// Completes the names of clusters.
pub fn clusters() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
        let typed = typed.to_string_lossy();
        candidates(&typed, &clusters_here().unwrap_or_default())
            .into_iter()
            .map(CompletionCandidate::new)
            .collect::<Vec<_>>()
    })
}

/// Completes the shards of the cluster that the line names.
pub fn shards() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
        let words: Vec<String> = std::env::args().collect();
        of_cluster(
            &typed.to_string_lossy(),
            shards_of(&words, &clusters_here().unwrap_or_default()),
        )
    })
}

/// Completes the replicas of the cluster, and of the shard if one is named, that the line names.
pub fn members() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
        let words: Vec<String> = std::env::args().collect();
        of_cluster(
            &typed.to_string_lossy(),
            replicas_of(&words, &clusters_here().unwrap_or_default()),
        )
    })
}

fn of_cluster(typed: &str, all: Vec<String>) -> Vec<CompletionCandidate> {
    let fits = all.into_iter().filter(|one| one.starts_with(typed));
    fits.map(CompletionCandidate::new).collect()
}

/// The cluster that a line names.
fn named<'a>(words: &[String], clusters: &'a [Object]) -> Option<&'a Object> {
    let is_named = |one: &&Object| words.contains(&one.name()) || words.contains(&one.address());
    clusters.iter().find(is_named)
}

fn shards_of(words: &[String], clusters: &[Object]) -> Vec<String> {
    let slots = named(words, clusters).map(|cluster| cluster.view().slots);
    slots
        .into_iter()
        .flatten()
        .map(|shard| shard.shard.to_string())
        .collect()
}

fn replicas_of(words: &[String], clusters: &[Object]) -> Vec<String> {
    let value = |pair: &[String]| match pair {
        [flag, value] if flag == "--shard" => value.parse::<u32>().ok(),
        _ => None,
    };
    let shard = words.windows(2).find_map(value);
    let members = named(words, clusters).map(|cluster| cluster.view().members);
    let members = members.into_iter().flatten();
    members
        .filter(|one| one.role == Some(MemberRole::Replica) && (shard.is_none() || one.shard == shard))
        .map(|one| one.id.to_string())
        .collect()
}

/// What may follow: names, and with a kind once the user has begun to type one.
fn candidates(typed: &str, clusters: &[Object]) -> Vec<String> {
    let mut all = if typed.contains('/') {
        clusters.iter().map(Object::address).collect()
    } else {
        fetch::names(clusters)
    };
    all.retain(|one| one.starts_with(typed));
    all
}

/// The clusters of the namespace that is being typed. Errors are not reported at this place.
fn clusters_here() -> Option<Vec<Object>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let asked = async {
        let at = Connection::from_words(std::env::args()).connect().await.ok()?;
        Some(at.clusters(false).await.ok()?.objects)
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.ok()? })
}

#[cfg(test)]
mod tests {
    use candor_api::{RedkeyCluster, RedkeyClusterSpec, ValkeyCluster, ValkeyClusterSpec};

    use super::*;

    #[test]
    fn shards_and_replicas_of_the_named_cluster_complete() {
        let all = [crate::commands::status::fixtures::healthy().object];
        let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(shards_of(&line("candor failover shop --shard"), &all), ["0", "1", "2"]);
        assert_eq!(
            replicas_of(&line("candor failover vkc/shop --to"), &all),
            ["0-1", "1-1", "2-1"]
        );
        assert_eq!(replicas_of(&line("candor failover shop --shard 1 --to"), &all), ["1-1"]);
        assert_eq!(
            shards_of(&line("candor failover other --shard"), &all),
            Vec::<String>::new()
        );
    }

    #[test]
    fn names_complete_and_shared_names_with_their_kind() {
        let valkey = |name: &str| Object::Valkey(Box::new(ValkeyCluster::new(name, ValkeyClusterSpec::default())));
        let redkey = |name: &str| Object::Redkey(Box::new(RedkeyCluster::new(name, RedkeyClusterSpec::default())));
        let all = [valkey("shop"), redkey("shop"), redkey("sales"), valkey("bank")];
        for (typed, found) in [
            ("s", vec!["sales"]),
            ("", vec!["vkc/shop", "rkcl/shop", "sales", "bank"]),
            ("rk", vec!["rkcl/shop"]),
            ("rkcl/", vec!["rkcl/shop", "rkcl/sales"]),
            ("vkc/b", vec!["vkc/bank"]),
            ("x", vec![]),
        ] {
            assert_eq!(candidates(typed, &all), found, "{typed}");
        }
    }
}
