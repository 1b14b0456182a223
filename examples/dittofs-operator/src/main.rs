//! The operator as a program.

use std::sync::Arc;

use clap::Parser;
use dittofs_operator::conditions::CONTROLLER;
use dittofs_operator::controller::Context;
use dittofs_operator::watches;
use jiff::Timestamp;
use kube::Client;
use kube_status::events::EventPublisher;

/// Runs DittoFS servers.
#[derive(Parser)]
struct Arguments {
    /// The only namespace to watch; all by default.
    #[arg(long, env = "WATCH_NAMESPACE")]
    namespace: Option<String>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let client = Client::try_default().await?;
    let events = EventPublisher::builder(CONTROLLER).start(client.clone());
    let context = Context::new(client, Arc::new(events), Arc::new(Timestamp::now));
    let mut stop = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        () = watches::run(context, arguments.namespace.as_deref()) => {}
        _ = tokio::signal::ctrl_c() => {}
        _ = stop.recv() => {}
    }
    Ok(())
}
