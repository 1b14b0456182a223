//! The operator's figures beside a person's own way: kubectl and valkey-cli, on the same machine in the same run.
//!
//! Every row says what must be reached, what was measured, and what a person reaches by hand where that can be done.
//! A miss is printed like everything else; the exit code is non-zero only when a row could not be measured.
//!
//! | you look for | it is in |
//! |---|---|
//! | the rows | [`rows`] |
//! | the Kubernetes and the operator's process | [`stage`] |
//! | one cluster of the operator's, and what its status said when | [`cluster`] |
//! | the person's way | [`by_hand`] |
//! | servers without Kubernetes, for moving slots alone | [`servers`] |
//! | keys: filling, finding again | [`keys`] |
//! | the table and docs/benchmarks.md | [`table`] |

mod by_hand;
mod cluster;
mod keys;
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

/// A row that fails says so with one of these.
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
    /// Only these parts, in their order: 3x1 (all of create, idle, roll, faults, scale), 30x1, movers, many.
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    only: Vec<String>,
    /// A real cluster on this machine instead of the sandbox (`make kube`): clusters are created on it, nothing else is
    /// measured.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// How much of everything.
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

/// Everything that was started is dropped, and so ended, by now.
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
