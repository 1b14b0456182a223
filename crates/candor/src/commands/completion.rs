//! Shell completion and man pages. Shells ask the program itself (`source <(COMPLETE=bash candor)`), so that names of
//! clusters complete too.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use kube::ResourceExt;

use super::connect::Connection;
use super::errors::CommandError;
use super::output::print;

/// A person waits for the cursor to move.
const PATIENCE: Duration = Duration::from_secs(1);

/// Man pages, one for every word.
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
            words: error.to_string(),
        };
        std::fs::create_dir_all(&folder).map_err(failed)?;
        clap_mangen::generate_to(command, &folder).map_err(failed)?;
        Ok(())
    }
}

/// Completes the names of clusters.
pub fn clusters() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &std::ffi::OsStr| {
        let typed = typed.to_string_lossy();
        let names = names().unwrap_or_default();
        let fitting = names.into_iter().filter(|name| name.starts_with(&*typed));
        fitting.map(CompletionCandidate::new).collect::<Vec<_>>()
    })
}

/// The clusters of the namespace that is being typed. Nothing that goes wrong is worth a word at this place.
fn names() -> Option<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    let asked = async {
        let at = Connection::from_words(std::env::args()).connect().await.ok()?;
        let clusters = at.clusters(false).await.ok()?;
        Some(clusters.iter().map(ResourceExt::name_any).collect())
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await.ok()? })
}
