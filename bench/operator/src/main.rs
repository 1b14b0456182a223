//! Compares the operator with manual work (kubectl and valkey-cli) on the same host in the same run.
//!
//! Every row states the target, the measured figure, and the figure of the manual baseline where there is one. A
//! missed target is printed like any other row; the exit code is non-zero only when a row could not be measured.
//!
//! | you look for | it is in |
//! |---|---|
//! | the rows | [`rows`] |
//! | the Kubernetes cluster and the operator's process | [`stage`] |
//! | one cluster managed by the operator, and its status over time | [`cluster`] |
//! | the manual baseline | [`manual`] |
//! | servers without Kubernetes, for slot migration only | [`servers`] |
//! | keys: writing and counting them | [`keys`] |
//! | the operator's requests to the API server | [`requests`] |
//! | waiting with a deadline | [`wait`] |
//! | the table and docs/benchmarks.md | [`table`] |

mod cluster;
mod keys;
mod manual;
mod requests;
mod rows;
mod servers;
mod stage;
mod table;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

/// The result of a row; the error becomes the row's text.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Measures the operator. Example: `operator-bench --candor target/release/candor --out docs/benchmarks.md`
#[derive(Debug, Parser)]
struct Bench {
    /// The program that is measured: a release build of `candor`.
    #[arg(long, value_name = "FILE")]
    candor: PathBuf,
    /// Where the table is written, besides the terminal.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A hundredth of the keys and a sixth of the idle time: to try the bench itself, not the operator.
    #[arg(long)]
    small: bool,
    /// Only these parts, in their order: 3x1 (all of create, idle, roll, faults, scale), 30x1, redkey, movers, many.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    only: Vec<String>,
    /// A real cluster on this host instead of the sandbox (`make kube`): clusters are created on it, nothing else is
    /// measured.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// The size of each measurement.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    scale_keys: u32,
    shard_keys: u32,
    moved_keys: u32,
    large_shards: u32,
    idle_seconds: u32,
    clusters: u32,
}

impl Sizes {
    const FULL: Self = Self {
        scale_keys: 600_000,
        shard_keys: 100_000,
        moved_keys: 400_000,
        large_shards: 30,
        idle_seconds: 60,
        clusters: 200,
    };
    const SMALL: Self = Self {
        scale_keys: 6_000,
        shard_keys: 1_000,
        moved_keys: 4_000,
        large_shards: 5,
        idle_seconds: 10,
        clusters: 5,
    };
}

/// Everything that was started has been dropped, and therefore stopped, by now.
fn interrupted() -> ExitCode {
    eprintln!("interrupted: nothing is written");
    ExitCode::FAILURE
}

#[tokio::main]
async fn main() -> ExitCode {
    let bench = Bench::parse();
    let requests = requests::Requests::listen();
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        eprintln!("error: the system takes no handler for SIGTERM");
        return ExitCode::FAILURE;
    };
    let measured = tokio::select! {
        table = rows::all(&bench, requests) => table,
        _ = tokio::signal::ctrl_c() => return interrupted(),
        _ = terminate.recv() => return interrupted(),
    };
    println!("{measured}");
    if let Some(path) = &bench.out
        && let Err(error) = std::fs::write(path, measured.page(bench.small))
    {
        eprintln!("error: writing {}: {error}", path.display());
        return ExitCode::FAILURE;
    }
    if measured.complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
