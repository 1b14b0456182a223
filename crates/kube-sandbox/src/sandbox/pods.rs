//! The nodes and pods of a sandbox: options of its kubelet.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Builder, StartError};
use crate::kubelet::{Image, ImageMap, Kubelet, KubeletConfig, NodeConfig};
use crate::server::Api;

#[derive(Clone, Debug)]
pub(super) struct Options {
    run: bool,
    nodes: usize,
    zones: Vec<String>,
    images: Option<PathBuf>,
    more_images: Vec<Image>,
    volume_refresh: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            run: true,
            nodes: 1,
            zones: Vec::new(),
            images: None,
            more_images: Vec::new(),
            volume_refresh: Duration::from_secs(1),
        }
    }
}

impl Builder {
    /// Whether pods run as processes. They do by default.
    #[must_use]
    pub fn kubelet(mut self, run: bool) -> Self {
        self.pods.run = run;
        self
    }

    /// How many nodes; 1 by default.
    #[must_use]
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.pods.nodes = nodes;
        self
    }

    /// The zones the nodes are spread over, in turn.
    #[must_use]
    pub fn zones(mut self, zones: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.pods.zones = zones.into_iter().map(Into::into).collect();
        self
    }

    /// The file that maps image names to local installations.
    #[must_use]
    pub fn images(mut self, path: impl Into<PathBuf>) -> Self {
        self.pods.images = Some(path.into());
        self
    }

    /// One more image. It takes precedence over those of the file.
    #[must_use]
    pub fn image(mut self, image: Image) -> Self {
        self.pods.more_images.push(image);
        self
    }

    /// How long after a change of a `ConfigMap` or Secret its volumes follow. Real clusters take about a minute.
    #[must_use]
    pub fn volume_refresh(mut self, delay: Duration) -> Self {
        self.pods.volume_refresh = delay;
        self
    }
}

impl Options {
    /// Starts the kubelet, unless the sandbox runs without one.
    pub(super) async fn start(&self, api: &Api, address: SocketAddr) -> Result<Option<Arc<Kubelet>>, StartError> {
        if !self.run {
            return Ok(None);
        }
        let node = |index: usize| {
            let node = NodeConfig::new(format!("sandbox-{index}"));
            match self.zones.len() {
                0 => node,
                zones => node.in_zone(&self.zones[index % zones]),
            }
        };
        let of_file = self.images.as_deref().map(ImageMap::load).transpose()?;
        let images = self.more_images.iter().cloned();
        let config = KubeletConfig {
            nodes: (0..self.nodes).map(node).collect(),
            images: images.fold(of_file.unwrap_or_default(), ImageMap::with),
            volume_refresh: self.volume_refresh,
            api_address: Some(address),
            ..KubeletConfig::default()
        };
        let client = api.client_as("system:kubelet", &["system:masters"]);
        let kubelet = Arc::new(Kubelet::start(client, config).await?);
        api.set_pod_access(kubelet.access());
        Ok(Some(kubelet))
    }
}
