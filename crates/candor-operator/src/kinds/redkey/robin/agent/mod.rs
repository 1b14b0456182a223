//! The process `candor robin`: observes the servers of one `RedkeyCluster`, publishes what it observes, and drives the
//! servers to the desired state.
//!
//! | topic | module |
//! |---|---|
//! | startup and graceful shutdown | here |
//! | configuration and credentials, as files that change | `files` |
//! | the pods and the `RedkeyCluster` | `kubernetes` |
//! | querying the servers, publishing frames | `observer`, with the passwords of `passwords` |
//! | the rounds in which a [`Driver`] acts | [`driver`], `rounds` |
//! | the driver that carries out the shared plan | `planning` |
//! | requests of the HTTP API | [`requests`], carried out in `by_hand` |
//! | the state behind the HTTP API | `state`; problems and nodes in `check`, metrics in `measure` |
//!
//! # What Robin reads, and when
//!
//! | source | when |
//! |---|---|
//! | servers | the member monitor probes twice a second; all of them are queried when something changes, and in every round |
//! | pods | a watch with the labels of the cluster's servers |
//! | its `RedkeyCluster` | one GET when pods or the configuration change, when the operator asks, and every `interval_seconds` |
//! | files | every two seconds |
//!
//! Robin may only get its `RedkeyCluster`, not watch it. It needs no watch: the operator has one, and asks over the link
//! when Robin should read. While no operator runs, a change of the spec has no effect that Robin could be late for.

mod by_hand;
mod check;
pub mod driver;
mod files;
mod kubernetes;
mod measure;
mod observer;
mod passwords;
pub(in crate::kinds::redkey) mod planning;
pub mod requests;
mod rounds;
mod state;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::RobinState;
use super::link::tls::IdentityError;
use super::link::{Feed, Identity, LinkListener, serve::route};
use super::server;
use crate::kinds::redkey::objects::{ROBIN_PORT, ROBIN_TLS_PORT};
use crate::monitor::{ClusterKey, ClusterKind, Monitor};

pub use driver::{Driven, Driver, Observing, Round};
pub use files::FilesError;
pub use observer::member;
pub use planning::Planning;

use files::{Files, Loaded};
use kubernetes::Kubernetes;
use observer::Observer;
use rounds::Rounds;
use state::Agent;

/// How long the running round may take when the process ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// How Robin is started.
#[derive(Clone, Debug)]
pub struct RobinSettings {
    /// The file `application-configmap.yml`.
    pub config: PathBuf,
    /// The folder with the files of the Secret.
    pub credentials: PathBuf,
    /// The address of the pod. Both ports are served at all of its addresses, so that `kubectl port-forward` reaches
    /// them too, and at this one alone if it is a loopback address, which pods of the sandbox have.
    pub address: IpAddr,
}

/// Why Robin ended.
#[derive(Debug, thiserror::Error)]
pub enum RobinError {
    /// The files could not be read at startup.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The certificate could not be used at startup.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A port could not be served.
    #[error("{0} cannot be served; is the port taken?")]
    Port(SocketAddr, #[source] io::Error),
    /// A task ended: Robin would observe or act no longer.
    #[error("a task ended unexpectedly: Robin ends, so that it is restarted")]
    Task(#[source] Option<tokio::task::JoinError>),
}

/// Runs Robin until `stop`. At the end the running round is finished before the ports are closed: a refused connection
/// proves to the operator that no more commands come from this Robin.
pub async fn run<D: Driver>(
    client: Client,
    settings: RobinSettings,
    driver: D,
    stop: CancellationToken,
) -> Result<(), RobinError> {
    let files = Files::new(&settings);
    let loaded = files.read()?;
    let cluster = &loaded.configuration.redis.cluster;
    let key = ClusterKey {
        kind: ClusterKind::Redkey,
        namespace: cluster.namespace.clone(),
        name: cluster.name.clone(),
    };
    let identity = identity(&loaded)?;
    let address = served_address(settings.address);
    let [http, link] = [ROBIN_PORT, ROBIN_TLS_PORT].map(|port| bind(SocketAddr::new(address, port)));
    let (http, link) = (http.await?, link.await?);

    let (namespace, name, version) = (&key.namespace, &key.name, env!("CARGO_PKG_VERSION"));
    tracing::info!(namespace, name, version, %address, "Robin has started");

    let (trigger, triggers) = unbounded_channel();
    let feed = Feed::default();
    let kubernetes = Kubernetes::new(client, key.clone());
    let observer = Observer::new(key, Monitor::new(trigger), feed.clone(), kubernetes.clone(), loaded);
    let rounds = Rounds::default();
    let agent = Arc::new(Agent::new(driver, observer, rounds, kubernetes));

    let mut tasks = JoinSet::new();
    tasks.spawn(follow_files(agent.clone(), files, identity.clone()));
    tasks.spawn(agent.clone().follow_pods());
    tasks.spawn(agent.clone().follow_cluster());
    tasks.spawn(agent.clone().follow_operator());
    tasks.spawn(agent.clone().observe_forever(triggers));
    let link = LinkListener {
        listener: link,
        identity,
    };
    serve(&mut tasks, &agent, http, link, feed);
    let ended = stop.clone();
    let mut driving = tokio::spawn(async move { agent.drive_forever(&ended).await });
    let result = tokio::select! {
        // The driving task ends by itself when it is stopped, so this is checked first.
        biased;
        () = stop.cancelled() => Ok(()),
        end = tasks.join_next() => Err(RobinError::Task(end.and_then(Result::err))),
        end = &mut driving => Err(RobinError::Task(end.err())),
    };
    if result.is_ok() && tokio::time::timeout(FAREWELL, &mut driving).await.is_err() {
        tracing::warn!("the running round did not end in time");
    }
    driving.abort();
    tasks.shutdown().await;
    result
}

/// Serves the HTTP API on both ports, and the observations on the one with TLS.
fn serve<D: Driver>(tasks: &mut JoinSet<()>, agent: &Arc<Agent<D>>, http: TcpListener, link: LinkListener, feed: Feed) {
    let router = server::router(agent.clone());
    let tokens = agent.clone();
    let both = router.clone().merge(route(feed, move || tokens.tokens()));
    tasks.spawn(async move { log_end("the HTTP API", server::serve(http, router).await) });
    tasks.spawn(async move { log_end("the link", link.serve(both).await) });
}

fn identity(loaded: &Loaded) -> Result<Identity, IdentityError> {
    Identity::new(&loaded.credentials.certificate, &loaded.credentials.private_key)
}

fn served_address(pod: IpAddr) -> IpAddr {
    match pod {
        loopback if loopback.is_loopback() => loopback,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, RobinError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| RobinError::Port(address, error))
}

fn log_end(what: &str, end: io::Result<()>) {
    if let Err(error) = end {
        tracing::error!(%error, "{what} can no longer be served");
    }
}

/// Applies changed files: the token and the password by the agent, the certificate to new connections.
async fn follow_files<D: Driver>(agent: Arc<Agent<D>>, files: Files, identity: Identity) {
    let mut problem = None;
    loop {
        tokio::time::sleep(files::INTERVAL).await;
        let changed = files.changed(&agent.loaded()).and_then(|loaded| {
            let Some(loaded) = loaded else { return Ok(()) };
            let pair = (&loaded.credentials.certificate, &loaded.credentials.private_key);
            identity.replace(pair.0, pair.1).map_err(FilesError::Certificate)?;
            tracing::info!("configuration or credentials have changed");
            agent.apply(loaded);
            Ok(())
        });
        let now = changed.err().map(|error| error.to_string());
        if let Some(error) = now.as_ref().filter(|now| problem.as_ref() != Some(*now)) {
            tracing::warn!(error, "changed files cannot be used; the previous ones stay in use");
        }
        problem = now;
    }
}
