//! Starts a whole Kubernetes and ends it.

#[cfg(feature = "kubelet")]
mod pods;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
#[cfg(feature = "kubelet")]
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "kubelet")]
use crate::kubelet::{ImageError, Kubelet, KubeletError};
use crate::server::tls::{Authority, TlsError};
use crate::server::{Api, listen, tls};
#[cfg(feature = "controllers")]
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
    /// Pods cannot run here.
    #[cfg(feature = "kubelet")]
    #[error(transparent)]
    Kubelet(#[from] KubeletError),
    /// The image file cannot be used.
    #[cfg(feature = "kubelet")]
    #[error(transparent)]
    Images(#[from] ImageError),
    /// The client of the sandbox could not be made.
    #[error("making a client of the sandbox")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a sandbox is made of.
#[derive(Clone, Debug)]
pub struct Builder {
    port: u16,
    kubeconfig: Option<PathBuf>,
    request_log: bool,
    #[cfg(feature = "controllers")]
    controllers: bool,
    #[cfg(feature = "kubelet")]
    pods: pods::Options,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            port: 0,
            kubeconfig: None,
            request_log: false,
            #[cfg(feature = "controllers")]
            controllers: true,
            #[cfg(feature = "kubelet")]
            pods: pods::Options::default(),
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

    /// Also write the kubeconfig to a file. It holds the administrator's key, so only its owner can read it.
    #[must_use]
    pub fn kubeconfig(mut self, path: impl Into<PathBuf>) -> Self {
        self.kubeconfig = Some(path.into());
        self
    }

    /// Whether the controllers and the scheduler run. They do by default.
    #[cfg(feature = "controllers")]
    #[must_use]
    pub fn controllers(mut self, run: bool) -> Self {
        self.controllers = run;
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
            write_private(path, &kubeconfig).map_err(|source| StartError::Kubeconfig {
                path: path.clone(),
                source,
            })?;
        }
        let api = Api::new().map_err(|_| StartError::Randomness)?;
        api.log_requests(self.request_log);
        api.bootstrap(address, &authority.pem());
        let stop = CancellationToken::new();
        let config = authority.server()?;
        let limits = listen::Limits::default();
        tokio::spawn(listen::serve(api.clone(), listener, config, limits, stop.clone()));
        #[cfg(feature = "controllers")]
        if self.controllers {
            let manager = api.client_as("system:kube-controller-manager", &["system:masters"]);
            tokio::spawn(controllers::run(manager, stop.clone()));
            let scheduler = api.client_as("system:kube-scheduler", &["system:masters"]);
            tokio::spawn(scheduler::run(scheduler, stop.clone()));
        }
        #[cfg(feature = "kubelet")]
        let kubelet = self.pods.start(&api, address).await?;
        let client = client(&kubeconfig).await?;
        Ok(Sandbox {
            api,
            address,
            kubeconfig,
            client,
            authority,
            stop,
            #[cfg(feature = "kubelet")]
            kubelet,
        })
    }
}

/// Writes a file with mode 0600, whatever mode a file of that name had.
///
/// The file is complete and private before it gets its name, so no other user can open it earlier.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    // `tempfile` creates files with mode 0600.
    let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
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
    #[cfg(feature = "kubelet")]
    kubelet: Option<Arc<Kubelet>>,
}

impl Sandbox {
    /// A sandbox with the defaults.
    pub async fn start() -> Result<Self, StartError> {
        Self::builder().start().await
    }

    /// The API server alone, without controllers, scheduler and kubelet: nothing writes but its clients.
    pub async fn bare() -> Result<Self, StartError> {
        let builder = Self::builder();
        #[cfg(feature = "controllers")]
        let builder = builder.controllers(false);
        #[cfg(feature = "kubelet")]
        let builder = builder.kubelet(false);
        builder.start().await
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

    /// What runs the pods, for faults; absent when the sandbox was built without it.
    #[cfg(feature = "kubelet")]
    pub fn kubelet(&self) -> Option<&Arc<Kubelet>> {
        self.kubelet.as_ref()
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_file_replaces_one_that_others_could_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let opened = std::fs::File::open(&path).unwrap();
        write_private(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        // A file that was opened before stays as it was.
        assert_eq!(std::io::read_to_string(opened).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}
