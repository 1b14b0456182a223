//! The cluster as one decision sees it: nodes with their pods, and the volumes pods ask for.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;

use super::resources::{self, Amounts};

/// A node and what is on it.
#[derive(Debug)]
pub struct Place {
    /// The node.
    pub node: Arc<Node>,
    /// Its pods that have not ended, those just assigned included.
    pub pods: Vec<Arc<Pod>>,
    /// What it has.
    pub has: Amounts,
    /// What its pods took.
    pub used: Amounts,
}

impl Place {
    /// A label of the node.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.node.labels().get(key).map(String::as_str)
    }
}

/// The input of a decision.
#[derive(Debug, Default)]
pub struct Cluster {
    /// In the order of their names.
    pub places: Vec<Place>,
    /// Labels of the namespaces.
    pub namespaces: HashMap<String, BTreeMap<String, String>>,
    /// By namespace and name.
    pub claims: HashMap<(String, String), Arc<PersistentVolumeClaim>>,
    /// By name.
    pub volumes: HashMap<String, Arc<PersistentVolume>>,
    /// By name.
    pub classes: HashMap<String, Arc<StorageClass>>,
}

impl Cluster {
    /// Assigns pods to their nodes. `assigned` holds the node of pods that are being bound.
    pub fn place(&mut self, nodes: Vec<Arc<Node>>, pods: Vec<Arc<Pod>>, assigned: &HashMap<String, String>) {
        let mut by_node: HashMap<String, Vec<Arc<Pod>>> = HashMap::new();
        for pod in pods {
            let bound = pod
                .spec
                .as_ref()
                .and_then(|spec| spec.node_name.clone())
                .filter(|name| !name.is_empty());
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            let node = bound.or_else(|| assigned.get(pod.metadata.uid.as_deref()?).cloned());
            if let Some(node) = node.filter(|_| !matches!(phase, Some("Succeeded" | "Failed"))) {
                by_node.entry(node).or_default().push(pod);
            }
        }
        self.places = nodes
            .into_iter()
            .map(|node| {
                let pods = by_node.remove(&node.name_any()).unwrap_or_default();
                let mut used = Amounts::default();
                for pod in &pods {
                    used.add(&resources::of_pod(pod));
                }
                Place {
                    has: resources::of_node(&node),
                    node,
                    pods,
                    used,
                }
            })
            .collect();
    }
}
