//! The program `candor`: one word, one task. Each word is a module of [`commands`].

mod commands;
mod exporter;

use clap::Parser;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let program = commands::Program::parse();
    match program.run().await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", commands::chain(error.as_ref()));
            std::process::ExitCode::FAILURE
        }
    }
}
