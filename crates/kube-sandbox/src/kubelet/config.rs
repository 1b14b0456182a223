//! The configuration of a kubelet.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::images::ImageMap;

/// One simulated node. All of them run on this host; they differ only for the scheduler.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node's name, also its `kubernetes.io/hostname`.
    pub name: String,
    /// Becomes the label `topology.kubernetes.io/zone`.
    pub zone: Option<String>,
    /// Further labels.
    pub labels: BTreeMap<String, String>,
    /// Processors offered to the scheduler, such as `8`.
    pub cpu: String,
    /// Memory offered to the scheduler, such as `16Gi`.
    pub memory: String,
    /// How many pods fit.
    pub pods: u32,
}

impl NodeConfig {
    /// A node of 8 processors and 16 GiB for 110 pods, as far as the scheduler knows.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            zone: None,
            labels: BTreeMap::new(),
            cpu: "8".into(),
            memory: "16Gi".into(),
            pods: 110,
        }
    }

    /// The same node in a zone.
    #[must_use]
    pub fn in_zone(mut self, zone: impl Into<String>) -> Self {
        self.zone = Some(zone.into());
        self
    }
}

/// How long to wait before trying again: doubling from `base` up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffConfig {
    /// The first wait.
    pub base: Duration,
    /// The longest wait.
    pub max: Duration,
}

/// The configuration of a [`Kubelet`](super::Kubelet).
#[derive(Clone, Debug)]
pub struct KubeletConfig {
    /// The simulated nodes.
    pub nodes: Vec<NodeConfig>,
    /// Which image is which local installation.
    pub images: ImageMap,
    /// Where pods keep their folders. A fresh folder below it is made and removed again;
    /// by default in the system's folder for temporary files.
    pub data: Option<PathBuf>,
    /// How long after a change of a `ConfigMap` or `Secret` its volumes follow.
    /// A real kubelet takes up to a minute and a half.
    pub volume_refresh: Duration,
    /// Restarts of a container that ends: 10 s doubling to 5 min on a real node.
    pub restart_backoff: BackoffConfig,
    /// Pulls of an image that does not exist: 10 s doubling to 5 min on a real node.
    pub pull_backoff: BackoffConfig,
    /// Where pods find the API server: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`.
    pub api_address: Option<SocketAddr>,
}

impl Default for KubeletConfig {
    /// One node named `sandbox-0`, and the times of a real node apart from the volumes, which follow after 1 s.
    fn default() -> Self {
        let real = BackoffConfig {
            base: Duration::from_secs(10),
            max: Duration::from_secs(300),
        };
        Self {
            nodes: vec![NodeConfig::new("sandbox-0")],
            images: ImageMap::default(),
            data: None,
            volume_refresh: Duration::from_secs(1),
            restart_backoff: real,
            pull_backoff: real,
            api_address: None,
        }
    }
}
