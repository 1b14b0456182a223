//! `candor operator`: the controllers, until a signal ends them.

use std::error::Error;
use std::net::SocketAddr;

use candor_operator::runtime::{lease, limits};
use candor_operator::{LeaseSettings, Settings};
use clap::Args;
use kube::Client;

/// The operator. Example: `candor operator --watch-namespaces shop,billing`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor operator --watch-namespaces shop,billing --lease-namespace candor")]
pub struct Operator {
    /// Namespaces to watch; all if not given.
    #[arg(long, value_delimiter = ',', value_name = "A,B", env = "CANDOR_WATCH_NAMESPACES")]
    watch_namespaces: Vec<String>,
    /// Observes, plans and says in the log what would be done; changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, value_name = "ADDRESS", env = "CANDOR_HEALTH_ADDRESS", value_parser = super::exporter::socket)]
    health_address: Option<SocketAddr>,
    /// The namespace of the lease by which one of several operators acts; without it this one takes itself for the only one.
    #[arg(long, value_name = "NAMESPACE", env = "CANDOR_LEASE_NAMESPACE")]
    lease_namespace: Option<String>,
    /// The lease's name.
    #[arg(long, value_name = "NAME", default_value = "candor-operator")]
    lease_name: String,
    /// Who this operator is in the lease and in events; the pod's name in a cluster, else the host name and a random part.
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    identity: Option<String>,
    /// The image of the metrics exporter beside every server.
    #[arg(long, value_name = "IMAGE", env = "CANDOR_IMAGE", default_value = "candor:latest")]
    exporter_image: String,
    /// How many members one cluster may have, shards times their members; a spec that asks for more is rejected.
    #[arg(long, value_name = "N", env = "CANDOR_MAX_MEMBERS", default_value_t = limits::MAX_MEMBERS,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(limits::HIGHEST_MAX_MEMBERS)))]
    max_members: u32,
}

impl Operator {
    /// Runs until a signal ends it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let stop = super::until_signal()?;
        let identity = match self.identity.filter(|identity| !identity.is_empty()) {
            Some(identity) => identity,
            None => unique_identity()?,
        };
        let lease = match self.lease_namespace {
            Some(namespace) => Some(LeaseSettings {
                client: Client::try_default().await?,
                namespace,
                name: self.lease_name,
                identity,
                timing: lease::Timing::default(),
            }),
            None => None,
        };
        let settings = Settings {
            namespaces: self.watch_namespaces,
            dry_run: self.dry_run,
            health: self.health_address,
            lease,
            exporter_image: self.exporter_image,
            max_members: self.max_members,
            ..Settings::default()
        };
        let client = Client::try_default().await?;
        Ok(candor_operator::run(client, settings, stop).await?)
    }
}

fn unique_identity() -> Result<String, Box<dyn Error>> {
    let system = rustix::system::uname();
    let identity = lease::unique_identity(&system.nodename().to_string_lossy());
    identity.map_err(|_| "the system gives no random numbers: name this operator with --identity".into())
}
