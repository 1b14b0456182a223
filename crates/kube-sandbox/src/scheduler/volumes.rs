//! The claims of a pod: bound ones tie it to where their volume can be, unbound ones may choose. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use super::cluster::{Cluster, Place};
use super::selectors;

/// The annotation with the node of a claim's first consumer. The scheduler writes it for the provisioner.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

const ZONES: [&str; 4] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// Why a node is out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// A volume cannot be reached from it.
    NodeAffinity,
    /// A volume is in another zone.
    Zone,
    /// A claim names a volume that is not there.
    NoVolume,
    /// No volume could be bound or made for it.
    NoMatch,
    /// A claim that only one pod may use is in use.
    InUse,
}

/// The claims a pod names, by their names.
pub fn claim_names(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes
        .into_iter()
        .flatten()
        .filter_map(|volume| {
            let named = volume
                .persistent_volume_claim
                .as_ref()
                .map(|claim| claim.claim_name.clone());
            let own = || {
                volume
                    .ephemeral
                    .as_ref()
                    .map(|_| format!("{}-{}", pod.name_any(), volume.name))
            };
            named.or_else(own)
        })
        .collect()
}

/// Whether claim and volume belong to each other for good.
pub fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound") && !volume_name(claim).is_empty()
}

/// Whether a claim of the pod is being bound to a volume for this node.
pub fn are_being_bound(cluster: &Cluster, pod: &Pod, node: &str) -> bool {
    let namespace = pod.namespace().unwrap_or_default();
    let claims = claim_names(pod).into_iter();
    let mut claims = claims.filter_map(|name| cluster.claims.get(&(namespace.clone(), name)));
    claims.any(|claim| {
        let lives = claim.metadata.deletion_timestamp.is_none();
        let chosen = claim
            .annotations()
            .get(SELECTED_NODE)
            .is_some_and(|chosen| chosen == node);
        lives && chosen && !is_bound(claim)
    })
}

fn volume_name(claim: &PersistentVolumeClaim) -> &str {
    claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_deref())
        .unwrap_or_default()
}

/// A pod's claims, sorted by what they still need.
#[derive(Debug, Default)]
pub struct Claims {
    bound: Vec<Arc<PersistentVolumeClaim>>,
    /// Unbound ones that wait for the pod's node.
    pub waiting: Vec<Arc<PersistentVolumeClaim>>,
}

impl Claims {
    /// Reads them; the error says why the pod cannot be placed anywhere yet.
    pub fn of(cluster: &Cluster, pod: &Pod) -> Result<Self, String> {
        let namespace = pod.namespace().unwrap_or_default();
        let mut claims = Self::default();
        let mut immediate = false;
        for name in claim_names(pod) {
            let Some(claim) = cluster.claims.get(&(namespace.clone(), name.clone())) else {
                return Err(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if claim.metadata.deletion_timestamp.is_some() {
                return Err(format!("persistentvolumeclaim \"{name}\" is being deleted"));
            }
            if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Lost") {
                let volume = volume_name(claim);
                return Err(format!(
                    "persistentvolumeclaim \"{name}\" bound to non-existent persistentvolume \"{volume}\""
                ));
            }
            if is_bound(claim) {
                claims.bound.push(claim.clone());
            } else if waits(cluster, claim) {
                claims.waiting.push(claim.clone());
            } else {
                immediate = true;
            }
        }
        if immediate {
            return Err("pod has unbound immediate PersistentVolumeClaims".into());
        }
        Ok(claims)
    }

    /// Whether they can be used from a node.
    pub fn check(&self, cluster: &Cluster, pod: &Pod, place: &Place) -> Result<(), Rejection> {
        for claim in &self.bound {
            let volume = cluster.volumes.get(volume_name(claim)).ok_or(Rejection::NoVolume)?;
            if !reaches(volume, &place.node) {
                return Err(Rejection::NodeAffinity);
            }
            if in_other_zone(volume, &place.node) {
                return Err(Rejection::Zone);
            }
            let single = claim
                .spec
                .as_ref()
                .and_then(|spec| spec.access_modes.clone())
                .unwrap_or_default();
            if single.iter().any(|mode| mode == "ReadWriteOncePod") && in_use(cluster, pod, &claim.name_any()) {
                return Err(Rejection::InUse);
            }
        }
        for claim in &self.waiting {
            let chosen = claim.annotations().get(SELECTED_NODE);
            if chosen.is_some_and(|node| *node != place.node.name_any()) || !can_provide(cluster, claim, &place.node) {
                return Err(Rejection::NoMatch);
            }
        }
        Ok(())
    }
}

fn waits(cluster: &Cluster, claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    // A claim that names its volume is bound by the volume controller, wherever the pod goes.
    let class = spec
        .and_then(|spec| spec.storage_class_name.as_ref())
        .and_then(|name| cluster.classes.get(name));
    volume_name(claim).is_empty()
        && class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
}

/// Whether a volume can be used from a node.
pub fn reaches(volume: &PersistentVolume, node: &Node) -> bool {
    let affinity = volume.spec.as_ref().and_then(|spec| spec.node_affinity.as_ref());
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.is_none_or(|selector| selectors::selector_matches(selector, node))
}

fn in_other_zone(volume: &PersistentVolume, node: &Node) -> bool {
    ZONES.iter().any(|key| {
        let (Some(volume), Some(node)) = (volume.labels().get(*key), node.labels().get(*key)) else {
            return false;
        };
        volume.split("__").all(|zone| zone != node)
    })
}

fn in_use(cluster: &Cluster, pod: &Pod, claim: &str) -> bool {
    let others = cluster.places.iter().flat_map(|place| &place.pods);
    others.into_iter().any(|other| {
        other.namespace() == pod.namespace()
            && other.uid() != pod.uid()
            && claim_names(other).iter().any(|name| name == claim)
    })
}

/// Whether a free volume or the class's provisioner can serve the claim on a node.
fn can_provide(cluster: &Cluster, claim: &PersistentVolumeClaim, node: &Node) -> bool {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
    let Some(class) = class.and_then(|name| cluster.classes.get(name)) else {
        return false;
    };
    let free = |volume: &&Arc<PersistentVolume>| {
        let spec = volume.spec.as_ref();
        let available = volume.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Available");
        available
            && spec.and_then(|spec| spec.storage_class_name.as_ref()) == class.metadata.name.as_ref()
            && reaches(volume, node)
    };
    if cluster.volumes.values().any(|volume| free(&volume)) {
        return true;
    }
    if class.provisioner == "kubernetes.io/no-provisioner" {
        return false;
    }
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    topologies.is_empty()
        || topologies.iter().any(|term| {
            term.match_label_expressions.iter().flatten().all(|one| {
                node.labels()
                    .get(&one.key)
                    .is_some_and(|value| one.values.contains(value))
            })
        })
}
