//! `candor sandbox`: a Kubernetes in this process, until Ctrl-C.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use kube_sandbox::kubelet::{Image, ImageBind, Program, cached};
use tokio::signal::unix::{SignalKind, signal};

use super::output::print;

/// A Kubernetes on this host. Example: `candor sandbox --nodes 3 --zones a,b,c`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor sandbox --nodes 3 --zones a,b,c")]
pub struct Sandbox {
    /// How many nodes.
    #[arg(long, default_value_t = 1, value_name = "N")]
    nodes: usize,
    /// The zones the nodes are spread over, in turn.
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    zones: Vec<String>,
    /// The port on loopback; 0 takes any that is free.
    #[arg(long, default_value_t = 0, value_name = "P")]
    port: u16,
    /// Where the kubeconfig is written.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Which image stands for which local installation; by default the file that `make setup` wrote.
    #[arg(long, value_name = "FILE")]
    images: Option<PathBuf>,
    /// Seconds until the volumes of a changed `ConfigMap` or `Secret` follow; real clusters take up to 90.
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS")]
    volume_refresh: f64,
    /// Writes every request to stderr.
    #[arg(long)]
    log_requests: bool,
}

impl Sandbox {
    /// Starts it and serves until a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let started = Instant::now();
        // Before anything starts, so that no signal finds it half-way.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let folder = tempfile::Builder::new().prefix("candor-sandbox-").tempdir()?;
        let kubeconfig = self.kubeconfig.unwrap_or_else(|| folder.path().join("kubeconfig"));
        let mut builder = kube_sandbox::Sandbox::builder()
            .nodes(self.nodes)
            .zones(self.zones)
            .port(self.port)
            .kubeconfig(&kubeconfig)
            .volume_refresh(std::time::Duration::try_from_secs_f64(self.volume_refresh)?)
            .request_log(self.log_requests);
        if let Some(own) = own_image() {
            builder = builder.image(own);
        }
        if let Some(images) = self.images.or_else(|| cached("images.yaml").ok()) {
            builder = builder.images(images);
        }
        let sandbox = builder.start().await?;
        let path = std::path::absolute(&kubeconfig)?;
        print(&format!(
            "A sandbox, not for production, ready after {} ms on https://{}. In another terminal:\n\n    \
             export KUBECONFIG={}\n\nCtrl-C ends it.\n",
            started.elapsed().as_millis(),
            sandbox.address(),
            path.display()
        ))?;
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        drop(sandbox);
        Ok(())
    }
}

/// This program as an image: what runs the operator and the exporter in a pod is the very file that runs here.
fn own_image() -> Option<Image> {
    let program = std::env::current_exe().ok()?;
    let inside = PathBuf::from("/opt/candor/candor");
    Some(Image {
        r#match: "*candor:*".to_owned(),
        binds: vec![ImageBind {
            source: program.to_str()?.to_owned(),
            target: inside.clone(),
        }],
        entrypoint: vec!["candor".to_owned()],
        programs: vec![Program {
            name: "candor".to_owned(),
            path: inside,
            ..Program::default()
        }],
        ..Image::default()
    })
}
