//! The program of the image `candor:tests`: Robin as `candor robin` runs it, built together with the scenarios. With
//! other arguments it stands for an exporter, which no scenario tests, and sleeps.

use std::error::Error;

use candor_operator::kinds::redkey::robin::agent::{Planning, RobinSettings, run};
use kube::Client;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut terminate = signal(SignalKind::terminate())?;
    if arguments.first().map(String::as_str) != Some("robin") {
        terminate.recv().await;
        return Ok(());
    }
    let value = |name: &str| {
        let found = arguments.iter().find_map(|one| one.strip_prefix(name));
        found.ok_or_else(|| format!("{name} is missing"))
    };
    let settings = RobinSettings {
        config: value("--config=")?.into(),
        credentials: value("--credentials=")?.into(),
        address: value("--address=")?.parse()?,
    };
    let stop = CancellationToken::new();
    let ended = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        ended.cancel();
    });
    let client = Client::try_default().await?;
    Ok(run(client, settings, Planning::default(), stop).await?)
}
