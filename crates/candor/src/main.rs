//! The program `candor`. Each command is a module of [`commands`]. Called as `kubectl-candor`, it is the kubectl
//! plugin `candor`.

mod commands;
mod exporter;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Answers a shell's request for completions and exits; the completions use a separate runtime.
    clap_complete::CompleteEnv::with_factory(|| commands::command(std::env::args_os().next().as_deref())).complete();
    if let Some(answer) = commands::completion::for_kubectl(std::env::args_os()) {
        print!("{answer}");
        return ExitCode::SUCCESS;
    }
    let program = commands::Program::from_arguments();
    let runtime = match program.runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no threads can be started: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(program.run()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if commands::output::is_enough(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            commands::output::print_error(&format!("error: {}", commands::chain(error.as_ref())));
            commands::exit_code(error.as_ref())
        }
    }
}
