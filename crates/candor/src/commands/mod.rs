//! The words of the program, one module each, and what they share:
//!
//! | you look for | it is in |
//! |---|---|
//! | kubectl's flags and the client | [`connect`] |
//! | everything that is known of a cluster, fetched | [`picture`], [`servers`], [`liveness`] |
//! | errors with what to do next | [`errors`] |
//! | that something changed | [`news`] |
//! | tables, colours, widths, formats | [`table`], [`output`] |
//! | that nothing of others acts on the terminal | [`clean`] |

mod audit;
mod clean;
pub mod completion;
mod connect;
mod describe;
mod docs;
mod doctor;
mod errors;
mod events;
mod exporter;
mod failover;
mod history;
mod install;
mod liveness;
mod news;
mod operator;
pub mod output;
#[cfg(all(test, feature = "sandbox"))]
mod pages;
mod picture;
mod plan;
mod report;
mod robin;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(test)]
mod screens;
mod servers;
mod status;
mod table;
mod top;
mod wishes;

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kube_status::tree::use_colour;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

/// Valkey and Redis clusters on Kubernetes, and the truth about them.
#[derive(Debug, Parser)]
#[command(name = "candor", version, about)]
pub struct Program {
    #[command(subcommand)]
    word: Word,
}

#[derive(Debug, Subcommand)]
enum Word {
    /// How clusters are: the answer first, then why.
    Status(status::Status),
    /// A cluster with its members, workloads, pods and volumes, as a tree.
    Describe(describe::Describe),
    /// A cluster as it lives: slots, load, memory, lag, events.
    Top(top::Top),
    /// What would happen, step by step; nothing is changed.
    Plan(plan::Plan),
    /// What was told of a cluster, the newest last.
    Events(events::Events),
    /// When a cluster was in which state, why, and for how long.
    History(history::History),
    /// The operator looks and tells, and changes nothing.
    Pause(wishes::Pause),
    /// The operator goes on.
    Resume(wishes::Resume),
    /// A replica becomes the primary of its shard, with the old primary's help.
    Failover(failover::Failover),
    /// Replaces every member, one by one, replicas first.
    Restart(wishes::Restart),
    /// Checks the installation: API server, definitions, rights, operator, clusters.
    Doctor(doctor::Doctor),
    /// The operator into a Kubernetes, or its manifests.
    Install(install::Install),
    /// An archive for a bug report; every secret redacted.
    Report(report::Report),
    /// The controllers that create, heal, scale, upgrade and delete clusters.
    Operator(operator::Operator),
    /// The agent of one RedkeyCluster, which talks to its servers.
    Robin(robin::Robin),
    /// A server's figures for Prometheus, beside every server.
    Exporter(exporter::Exporter),
    /// A Kubernetes on this machine, in this process, for trying and testing. Never for production.
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Sandbox),
    /// Whether a cluster's status is true: canaries over all slots, compared with what status says.
    Audit(audit::Audit),
    /// Conditions, reasons, advice and events as tables, from their declarations in the code.
    Docs(docs::Docs),
    /// Man pages. Completion: `source <(COMPLETE=bash candor)`; also zsh, fish, elvish, powershell.
    Man(completion::Man),
}

impl Program {
    /// What was typed; help and mistakes end the process.
    pub fn from_arguments() -> Self {
        let matches = command(std::env::args_os().next().as_deref()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The runtime that it runs on. One thread is enough for an agent, which runs in every cluster and must be small.
    pub fn runtime(&self) -> std::io::Result<Runtime> {
        match self.word {
            Word::Robin(_) => Builder::new_current_thread().enable_all().build(),
            _ => Runtime::new(),
        }
    }

    /// Does what was asked.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        // The logs of an operator and of an agent tell what they did; other commands log only problems.
        let usual = if matches!(self.word, Word::Operator(_) | Word::Robin(_)) {
            "info"
        } else {
            "warn,kube=off,tower=off"
        };
        tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_from_env("CANDOR_LOG").unwrap_or_else(|_| EnvFilter::new(usual)))
            .with_ansi(use_colour(
                std::io::stderr().is_terminal(),
                std::env::var_os("NO_COLOR").as_deref(),
            ))
            .with_writer(std::io::stderr)
            .init();
        match self.word {
            Word::Status(status) => status.run().await,
            Word::Describe(describe) => describe.run().await,
            Word::Top(top) => top.run().await,
            Word::Plan(plan) => plan.run().await,
            Word::Events(events) => events.run().await,
            Word::History(history) => history.run().await,
            Word::Pause(pause) => pause.run().await,
            Word::Resume(resume) => resume.run().await,
            Word::Failover(failover) => failover.run().await,
            Word::Restart(restart) => restart.run().await,
            Word::Doctor(doctor) => doctor.run().await,
            Word::Install(install) => install.run().await,
            Word::Report(report) => Box::pin(report.run()).await,
            Word::Operator(operator) => operator.run().await,
            Word::Robin(robin) => robin.run().await,
            Word::Exporter(exporter) => exporter.run().await,
            #[cfg(feature = "sandbox")]
            Word::Sandbox(sandbox) => sandbox.run().await,
            Word::Audit(audit) => audit.run().await,
            Word::Docs(docs) => docs.run(),
            Word::Man(man) => man.run(),
        }
    }
}

/// The program under the name it was called by: kubectl finds its plugins by the name of their file.
pub fn command(called: Option<&OsStr>) -> clap::Command {
    let command = Program::command();
    let name = called.and_then(|path| Path::new(path).file_stem()?.to_str());
    if name == Some("kubectl-candor") {
        command.name("kubectl-candor").bin_name("kubectl candor")
    } else {
        command
    }
}

/// 1, and 2 for an audit that could judge nothing: that is no finding.
pub fn exit_code(error: &(dyn Error + 'static)) -> ExitCode {
    if error.is::<audit::NotJudged>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

/// An error with its causes, each said once.
pub fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !words.contains(&said) {
            // Writing into a String cannot fail.
            let _ = write!(words, ": {said}");
        }
        cause = next.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_fit_together() {
        command(None).debug_assert();
    }

    #[test]
    fn called_by_kubectl_it_speaks_as_kubectl_does() {
        let help = |called: &str| command(Some(OsStr::new(called))).render_help().to_string();
        assert!(help("/usr/bin/kubectl-candor").contains("Usage: kubectl candor"));
        assert!(help("candor").contains("Usage: candor"));
    }

    #[test]
    fn every_word_has_an_example() {
        for word in command(None).get_subcommands_mut() {
            let help = word.render_long_help().to_string();
            assert!(help.contains("Example"), "{} has none:\n{help}", word.get_name());
        }
    }
}
