//! The commands of the program, one module each, and what they share:
//!
//! | you look for | it is in |
//! |---|---|
//! | kubectl's flags and the client | [`connect`] |
//! | clusters of both kinds, as screens show them | [`cluster`] |
//! | everything that is known of a cluster, fetched | [`snapshot`], [`servers`], [`liveness`] |
//! | the objects around the members; in which zones primaries run | [`surroundings`], [`placement`] |
//! | errors with what to do next | [`errors`] |
//! | change notifications | [`changes`] |
//! | tables, colours, widths, formats | [`table`], [`output`] |
//! | control characters in text of others | [`clean`] |

mod audit;
mod changes;
mod clean;
mod cli;
mod cluster;
pub mod completion;
mod connect;
mod describe;
mod docs;
#[cfg(all(test, feature = "sandbox"))]
mod docs_tests;
mod doctor;
mod errors;
mod events;
mod exec;
mod exporter;
mod failover;
mod history;
mod install;
mod liveness;
mod operator;
pub mod output;
mod placement;
mod plan;
mod report;
mod requests;
mod robin;
#[cfg(feature = "sandbox")]
mod sandbox;
#[cfg(test)]
mod screens;
mod servers;
mod snapshot;
mod status;
mod surroundings;
mod table;
mod top;
mod web;

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use kube_status::tree::use_colour;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Valkey and Redis clusters on Kubernetes, and the truth about them.
#[derive(Debug, Parser)]
#[command(name = "candor", version, about)]
pub struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows how clusters are: the answer first, then why.
    Status(status::Status),
    /// A cluster with its members, workloads, pods and volumes, as a tree.
    Describe(describe::Describe),
    /// A live view of a cluster: slots, load, memory, lag, events.
    Top(top::Top),
    /// A page with a live picture of every cluster, for a browser.
    Web(web::Web),
    /// What would happen, step by step; nothing is changed.
    Plan(plan::Plan),
    /// The events of a cluster, the newest last.
    Events(events::Events),
    /// When a cluster was in which state, why, and for how long.
    History(history::History),
    /// The operator reports status but makes no changes.
    Pause(requests::Pause),
    /// The operator makes changes again.
    Resume(requests::Resume),
    /// A replica becomes the primary of its shard, with the old primary's help.
    Failover(failover::Failover),
    /// A valkey-cli shell in the pod of a member, logged in.
    Cli(cli::Cli),
    /// Replaces every member, one by one, replicas first.
    Restart(requests::Restart),
    /// Checks the installation: API server, CRDs, permissions, operator, clusters.
    Doctor(doctor::Doctor),
    /// Installs the operator, or prints its manifests.
    Install(install::Install),
    /// An archive for a bug report; every secret redacted.
    Report(report::Report),
    /// The controllers that create, heal, scale, upgrade and delete clusters.
    Operator(operator::Operator),
    /// The agent of one RedkeyCluster, which talks to its servers.
    #[command(hide = true)]
    Robin(robin::Robin),
    /// A server's figures for Prometheus, beside every server.
    #[command(hide = true)]
    Exporter(exporter::Exporter),
    /// A Kubernetes on this host, in this process, for development and tests. Never for production.
    #[cfg(feature = "sandbox")]
    Sandbox(sandbox::Sandbox),
    /// Checks whether a cluster's status is true: canaries over all slots, compared with the reported status.
    Audit(audit::Audit),
    /// Conditions, reasons, advice and events as tables, from their declarations in the code.
    #[command(hide = true)]
    Docs(docs::Docs),
    /// Man pages. Completion: `source <(COMPLETE=bash candor)`; also zsh, fish, elvish, powershell.
    #[command(hide = true)]
    Man(completion::Man),
}

impl Program {
    /// Parses the arguments; help and errors end the process.
    pub fn from_arguments() -> Self {
        let matches = command(std::env::args_os().next().as_deref()).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// The runtime that it runs on. One thread is enough for an agent, which runs in every cluster and must be small, and for
    /// the page, which mostly waits.
    pub fn runtime(&self) -> std::io::Result<Runtime> {
        match self.command {
            Command::Robin(_) | Command::Web(_) => Builder::new_current_thread().enable_all().build(),
            _ => Runtime::new(),
        }
    }

    /// Runs the command.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        // The logs of an operator and of an agent tell what they did; other commands log only problems.
        let usual = if matches!(self.command, Command::Operator(_) | Command::Robin(_)) {
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
        match self.command {
            Command::Status(status) => status.run().await,
            Command::Describe(describe) => describe.run().await,
            Command::Top(top) => top.run().await,
            Command::Web(web) => web.run().await,
            Command::Plan(plan) => plan.run().await,
            Command::Events(events) => events.run().await,
            Command::History(history) => history.run().await,
            Command::Pause(pause) => pause.run().await,
            Command::Resume(resume) => resume.run().await,
            Command::Failover(failover) => Box::pin(failover.run()).await,
            Command::Cli(cli) => cli.run().await,
            Command::Restart(restart) => restart.run().await,
            Command::Doctor(doctor) => doctor.run().await,
            Command::Install(install) => install.run().await,
            Command::Report(report) => Box::pin(report.run()).await,
            Command::Operator(operator) => operator.run().await,
            Command::Robin(robin) => robin.run().await,
            Command::Exporter(exporter) => exporter.run().await,
            #[cfg(feature = "sandbox")]
            Command::Sandbox(sandbox) => sandbox.run().await,
            Command::Audit(audit) => audit.run().await,
            Command::Docs(docs) => docs.run(),
            Command::Man(man) => man.run(),
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

/// 1, and 2 for an audit that could judge nothing, which is not a finding.
pub fn exit_code(error: &(dyn Error + 'static)) -> ExitCode {
    if error.is::<audit::NotJudged>() {
        ExitCode::from(2)
    } else {
        ExitCode::FAILURE
    }
}

/// An error with its causes, each mentioned once.
pub fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !message.contains(&text) {
            // Writing into a String cannot fail.
            let _ = write!(message, ": {text}");
        }
        cause = next.source();
    }
    message
}

/// A token that SIGINT or SIGTERM cancels.
fn until_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let stop = CancellationToken::new();
    let ended = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        ended.cancel();
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_consistent() {
        command(None).debug_assert();
    }

    #[test]
    fn as_a_plugin_the_usage_names_kubectl() {
        let help = |called: &str| command(Some(OsStr::new(called))).render_help().to_string();
        assert!(help("/usr/bin/kubectl-candor").contains("Usage: kubectl candor"));
        assert!(help("candor").contains("Usage: candor"));
    }

    #[test]
    fn every_command_has_an_example() {
        for word in command(None).get_subcommands_mut() {
            let help = word.render_long_help().to_string();
            assert!(help.contains("Example"), "{} has none:\n{help}", word.get_name());
        }
    }
}
