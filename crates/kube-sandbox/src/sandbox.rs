//! The library's front door: start a whole Kubernetes, use it, drop it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::tls::{Authority, TlsError};
use crate::server::{Api, listen, tls};
use crate::{controllers, scheduler};

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The port is taken or forbidden.
    #[error("listening on {address}: choose another port, or 0 for any")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Certificates could not be made.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The kubeconfig could not be written.
    #[error("writing the kubeconfig to {}", path.display())]
    Kubeconfig {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The system gave no randomness for keys.
    #[error("making the key that signs service-account tokens: the system has no randomness")]
    Randomness,
    /// The client of the sandbox could not be made.
    #[error("making a client of the sandbox")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a sandbox is made of.
#[derive(Clone, Debug)]
pub struct Builder {
    port: u16,
    kubeconfig: Option<PathBuf>,
    nodes: usize,
    zones: Vec<String>,
    controllers: bool,
    kubelet: bool,
    images: Option<PathBuf>,
    volume_refresh: Duration,
    request_log: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            port: 0,
            kubeconfig: None,
            nodes: 1,
            zones: Vec::new(),
            controllers: true,
            kubelet: true,
            images: None,
            volume_refresh: Duration::from_secs(1),
            request_log: false,
        }
    }
}

impl Builder {
    /// The port on loopback; 0, the default, takes any that is free.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Also write the kubeconfig to a file.
    #[must_use]
    pub fn kubeconfig(mut self, path: impl Into<PathBuf>) -> Self {
        self.kubeconfig = Some(path.into());
        self
    }

    /// How many nodes; 1 unless said otherwise.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// The zones the nodes are spread over, in turn.
    #[must_use]
    pub fn zones(mut self, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// Whether the controllers and the scheduler run; they do unless said otherwise.
    #[must_use]
    pub fn controllers(mut self, run: bool) -> Self {
        self.controllers = run;
        self
    }

    /// Whether pods run as processes; they do unless said otherwise.
    #[must_use]
    pub fn kubelet(mut self, run: bool) -> Self {
        self.kubelet = run;
        self
    }

    /// The file that maps image names to local installations.
    #[must_use]
    pub fn images(mut self, path: impl Into<PathBuf>) -> Self {
        self.images = Some(path.into());
        self
    }

    /// How long after a change of a `ConfigMap` or Secret its volumes follow. Real clusters take about a minute.
    #[must_use]
    pub fn volume_refresh(mut self, delay: Duration) -> Self {
        self.volume_refresh = delay;
        self
    }

    /// Whether every request is logged (target `kube_sandbox::requests`, level info).
    #[must_use]
    pub fn request_log(mut self, log: bool) -> Self {
        self.request_log = log;
        self
    }

    /// Starts everything; when this returns the API server answers.
    pub async fn start(self) -> Result<Sandbox, StartError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let failed = |source| StartError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let authority = Authority::new()?;
        let admin = authority.client("admin", &["system:masters"])?;
        let kubeconfig = tls::kubeconfig(address, &authority, &admin, "admin");
        if let Some(path) = &self.kubeconfig {
            std::fs::write(path, &kubeconfig).map_err(|source| StartError::Kubeconfig {
                path: path.clone(),
                source,
            })?;
        }
        let api = Api::new().map_err(|_| StartError::Randomness)?;
        api.log_requests(self.request_log);
        api.bootstrap(address, &authority.pem());
        let stop = CancellationToken::new();
        let config = authority.server()?;
        tokio::spawn(listen::serve(api.clone(), listener, config, stop.clone()));
        if self.controllers {
            let manager = api.client_as("system:kube-controller-manager", &["system:masters"]);
            tokio::spawn(controllers::run(manager, stop.clone()));
            let scheduler = api.client_as("system:kube-scheduler", &["system:masters"]);
            tokio::spawn(scheduler::run(scheduler, stop.clone()));
        }
        let client = client(&kubeconfig).await?;
        Ok(Sandbox {
            api,
            address,
            kubeconfig,
            client,
            authority,
            stop,
        })
    }
}

async fn client(kubeconfig: &str) -> Result<kube::Client, StartError> {
    let failed = |e: Box<dyn std::error::Error + Send + Sync>| StartError::Client(e);
    let parsed = kube::config::Kubeconfig::from_yaml(kubeconfig).map_err(|e| failed(Box::new(e)))?;
    let config = kube::Config::from_custom_kubeconfig(parsed, &kube::config::KubeConfigOptions::default())
        .await
        .map_err(|e| failed(Box::new(e)))?;
    kube::Client::try_from(config).map_err(|e| failed(Box::new(e)))
}

/// A running Kubernetes. Dropping it ends everything it started.
pub struct Sandbox {
    api: Api,
    address: SocketAddr,
    kubeconfig: String,
    client: kube::Client,
    authority: Authority,
    stop: CancellationToken,
}

impl Sandbox {
    /// A sandbox with the defaults.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// Choose first, then start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client over HTTPS as the administrator.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client inside this process, without sockets, as a given user.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> kube::Client {
        self.api.client_as(user, groups)
    }

    /// The API server itself.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The administrator's kubeconfig, as YAML.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// A kubeconfig for another user, known by a client certificate.
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<String, StartError> {
        let identity = self.authority.client(user, groups)?;
        Ok(tls::kubeconfig(self.address, &self.authority, &identity, user))
    }

    /// Where the API server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
