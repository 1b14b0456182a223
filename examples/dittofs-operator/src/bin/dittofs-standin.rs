//! A stand-in for the DittoFS server: its command line and its health pages, and nothing of NFS.
//!
//! It can be made to fail: `POST /stand-in/ready/fail` and `/stand-in/ready/recover`, the same with `live`. The
//! configuration it was started with is at `/stand-in/config`.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
enum Command {
    /// Serves until it is ended.
    Start {
        /// The configuration.
        #[arg(long)]
        config: PathBuf,
        /// Where NFS would be served.
        #[arg(long)]
        nfs_port: u16,
        /// Where the health pages are served.
        #[arg(long)]
        api_port: u16,
        /// The address to listen on.
        #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
        bind: IpAddr,
    },
}

struct Health {
    live: AtomicBool,
    ready: AtomicBool,
    config: String,
}

type Shared = State<Arc<Health>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Command::Start {
        config, api_port, bind, ..
    } = Command::parse();
    let health = Arc::new(Health {
        live: AtomicBool::new(true),
        ready: AtomicBool::new(true),
        config: std::fs::read_to_string(config)?,
    });
    let pages = Router::new()
        .route("/health", get(async |State(health): Shared| answer(&health.live)))
        .route(
            "/health/ready",
            get(async |State(health): Shared| answer(&health.ready)),
        )
        .route(
            "/health/stores",
            get(async |State(health): Shared| answer(&health.ready)),
        )
        .route(
            "/stand-in/config",
            get(async |State(health): Shared| health.config.clone()),
        )
        .route("/stand-in/{part}/{request}", post(turn))
        .with_state(health);
    let listener = tokio::net::TcpListener::bind((bind, api_port)).await?;
    println!("listening on {}", listener.local_addr()?);
    let mut ended = signal(SignalKind::terminate())?;
    let ended = async move {
        ended.recv().await;
    };
    axum::serve(listener, pages).with_graceful_shutdown(ended).await?;
    Ok(())
}

fn answer(part: &AtomicBool) -> (StatusCode, &'static str) {
    if part.load(Ordering::Relaxed) {
        (StatusCode::OK, "healthy\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "set to fail\n")
    }
}

async fn turn(State(health): Shared, Path((part, request)): Path<(String, String)>) -> StatusCode {
    let part = match part.as_str() {
        "live" => &health.live,
        "ready" => &health.ready,
        _ => return StatusCode::NOT_FOUND,
    };
    match request.as_str() {
        "fail" => part.store(false, Ordering::Relaxed),
        "recover" => part.store(true, Ordering::Relaxed),
        _ => return StatusCode::NOT_FOUND,
    }
    StatusCode::NO_CONTENT
}
