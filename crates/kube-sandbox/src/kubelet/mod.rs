//! Pods as local processes: what a kubelet does, without a container engine.
//!
//! | what | where |
//! |---|---|
//! | configuration, image names, the files that `make setup` created for them | `config`, `images`, `cache` |
//! | loopback addresses | `address` |
//! | which pods there are; the state and the life of a pod; the life of a container | `pods`, `pod`, `worker`, `container`, `backoff` |
//! | status, its writing, events | `status`, `report`, `events` |
//! | environment and the downward API; volumes | `env`, `fields`, `volumes` |
//! | the private root and the processes in it | `create`, `folder`, `rootfs`, `launch`, `process` |
//! | probes and hooks | `probe`, `http`, `hooks` |
//! | logs, exec, terminals | `logs`, `exec`, `terminal` |
//! | nodes and leases | `node` |
//! | what a test can make go wrong | `faults`, `network` |
//!
//! Not as on a real node: limits of memory and processors are not enforced, so nothing is ever `OOMKilled`; all pods
//! share the host's network, each with its own loopback address; an ordinary user's pods all run as that user
//! (in a user namespace that shows it as root), so `runAsUser` and `fsGroup` only count when the sandbox is root's.

mod address;
mod backoff;
mod cache;
mod config;
mod container;
mod create;
mod env;
mod events;
mod exec;
mod faults;
mod fields;
mod folder;
mod hooks;
mod http;
mod images;
mod launch;
mod logs;
mod network;
mod node;
mod pod;
mod pods;
mod probe;
mod process;
mod report;
mod rootfs;
mod status;
mod terminal;
mod volumes;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

pub use address::{AddressError, Subnet};
pub use cache::{CacheError, cached};
pub use config::{BackoffConfig, KubeletConfig, NodeConfig};
pub use faults::FaultError;
pub use images::{Image, ImageBind, ImageError, ImageMap, Program};
pub use launch::LaunchError;

pub use crate::pod_access::{ContainerRef, ExecProcess, ExecRequest, LogOptions, PodAccess};

use events::Recorder;
use folder::Folder;
use launch::Launcher;
use pod::Context;
use pods::Pods;

/// Why a kubelet could not start.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    /// The host allows no processes with private mounts.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// No loopback range is free.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The folder for pods could not be made.
    #[error("the folder for pods could not be made in {place}; give another with `data`")]
    Folder {
        /// Where.
        place: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A node could not be registered.
    #[error("the node {name} could not be registered")]
    Node {
        /// Which.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
}

/// Runs the pods of all simulated nodes. When it is dropped, every process is killed and every folder removed.
#[derive(Debug)]
pub struct Kubelet {
    context: Arc<Context>,
    pods: Arc<Pods>,
    folder: Option<Folder>,
}

impl Kubelet {
    /// Registers the nodes and begins to run the pods that are bound to them.
    pub async fn start(client: kube::Client, config: KubeletConfig) -> Result<Self, KubeletError> {
        let launcher = Launcher::start().await?;
        let place = config.data.clone().unwrap_or_else(std::env::temp_dir);
        let folder = Folder::create(&place);
        let folder = folder.map_err(|source| KubeletError::Folder { place, source })?;
        let (recorder, write_events) = Recorder::new(client.clone());
        let context = Arc::new(Context {
            client,
            config,
            subnet: Subnet::claim()?,
            launcher,
            recorder,
            folder: folder.path().to_owned(),
            faults: faults::FaultBoard::default(),
            firewall: network::Firewall::default(),
            stopped: CancellationToken::new(),
        });
        let pods = Arc::new(Pods::default());
        let kubelet = Self {
            context: context.clone(),
            pods: pods.clone(),
            folder: Some(folder),
        };
        let stopped = context.stopped.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(write_events).await });
        node::register(&context).await?;
        tokio::spawn(node::renew_leases(context.clone()));
        tokio::spawn(pods::follow_objects(context.clone(), pods.clone()));
        tokio::spawn(pods::follow_pods(context, pods));
        Ok(kubelet)
    }

    /// The loopback range of this sandbox.
    pub fn subnet(&self) -> &Subnet {
        &self.context.subnet
    }

    /// Kills every process and waits until the folders are gone.
    pub async fn stop(mut self) {
        self.kill_all();
        let wait = async {
            while !self.pods.all().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), wait).await;
        if let Some(folder) = self.folder.take() {
            let _ = tokio::task::spawn_blocking(move || drop(folder)).await;
        }
    }

    fn kill_all(&self) {
        self.context.stopped.cancel();
        for pod in self.pods.all() {
            for launched in pod.views().values().filter_map(|view| view.launched.as_ref()) {
                launched.handle.signal(rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.kill_all();
    }
}
