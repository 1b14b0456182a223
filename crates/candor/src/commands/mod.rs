//! The words of the program, one module each.

mod audit;
mod docs;
mod exporter;
mod operator;
mod sandbox;

use std::error::Error;
use std::fmt::Write;

use clap::{Parser, Subcommand};
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
    /// The controllers that create, heal, scale, upgrade and delete clusters.
    Operator(operator::Operator),
    /// A server's figures for Prometheus, beside every server.
    Exporter(exporter::Exporter),
    /// A Kubernetes on this machine, in this process, for trying and testing. Never for production.
    Sandbox(sandbox::Sandbox),
    /// Whether a cluster's status is true: canaries over all slots, compared with what status says.
    Audit(audit::Audit),
    /// Conditions and reasons as tables, from their declarations in the code.
    Docs(docs::Docs),
}

impl Program {
    /// Does what was asked.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        // An operator's log is its story; everybody else speaks only of trouble.
        let usual = if matches!(self.word, Word::Operator(_)) {
            "info"
        } else {
            "warn"
        };
        tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::try_from_env("CANDOR_LOG").unwrap_or_else(|_| EnvFilter::new(usual)))
            .with_writer(std::io::stderr)
            .init();
        match self.word {
            Word::Operator(operator) => operator.run().await,
            Word::Exporter(exporter) => exporter.run().await,
            Word::Sandbox(sandbox) => sandbox.run().await,
            Word::Audit(audit) => audit.run().await,
            Word::Docs(docs) => docs.run(),
        }
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
