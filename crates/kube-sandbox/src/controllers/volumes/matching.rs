//! Which claim a volume serves, and what becomes of each. Pure.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;

use crate::controllers::owners;
use crate::quantity::thousandths;
use crate::scheduler::volumes::{SELECTED_NODE, reaches};

/// On a claim that has its volume for good.
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// On what the controller, not the user, bound.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// On a volume that was made for a claim.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// The sandbox's own provisioner: a folder per volume.
pub const PROVISIONER: &str = "kube-sandbox/folder";
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// What a claim needs next.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// It has no class, and there is a default one.
    Class(String),
    /// It waits; an event says for what.
    Wait(&'static str, String),
    /// It cannot go on; a warning says why.
    Trouble(&'static str, String),
    /// This volume is for it.
    Bind(Arc<PersistentVolume>),
    /// A volume has to be made for it.
    Provision(Arc<StorageClass>),
    /// Someone else has to make the volume.
    External(String),
    /// It lost its volume.
    Lost(&'static str, &'static str),
    /// It has its volume.
    Settled(Arc<PersistentVolume>),
}

/// The input of the decision.
pub struct View<'a> {
    /// Every volume.
    pub volumes: &'a [Arc<PersistentVolume>],
    /// Every class.
    pub classes: &'a [Arc<StorageClass>],
    /// The node the scheduler chose for the claim's first consumer.
    pub node: &'a (dyn Fn(&str) -> Option<Arc<Node>> + Sync),
}

/// The storage a claim asks for.
pub fn requested(claim: &PersistentVolumeClaim) -> Option<&Quantity> {
    claim
        .spec
        .as_ref()?
        .resources
        .as_ref()?
        .requests
        .as_ref()?
        .get("storage")
}

/// The storage a volume has.
pub fn capacity(volume: &PersistentVolume) -> Option<&Quantity> {
    volume.spec.as_ref()?.capacity.as_ref()?.get("storage")
}

/// Whether a volume is reserved for a claim.
pub fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let reference = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    reference.is_some_and(|reference| {
        reference.name == claim.metadata.name
            && reference.namespace == claim.metadata.namespace
            && reference
                .uid
                .as_ref()
                .is_none_or(|uid| uid.is_empty() || Some(uid) == claim.metadata.uid.as_ref())
    })
}

/// Whether a volume could serve a claim, regardless of other claims.
fn suits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (Some(offer), Some(request)) = (&volume.spec, &claim.spec) else {
        return false;
    };
    let block = |mode: Option<&String>| mode.is_some_and(|mode| mode == "Block");
    let large = match (
        capacity(volume).and_then(thousandths),
        requested(claim).and_then(thousandths),
    ) {
        (Some(has), Some(requested)) => has >= requested,
        (_, None) => true,
        (None, Some(_)) => false,
    };
    let modes = offer.access_modes.as_deref().unwrap_or_default();
    large
        && volume.metadata.deletion_timestamp.is_none()
        && block(offer.volume_mode.as_ref()) == block(request.volume_mode.as_ref())
        && request.access_modes.iter().flatten().all(|mode| modes.contains(mode))
}

fn class_name(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.spec.as_ref()?.storage_class_name.as_deref()
}

impl View<'_> {
    /// Decides about a claim.
    pub fn next(&self, claim: &PersistentVolumeClaim) -> Next {
        let name = claim
            .spec
            .as_ref()
            .and_then(|spec| spec.volume_name.clone())
            .unwrap_or_default();
        if claim.annotations().contains_key(BIND_COMPLETED) {
            return self.bound(claim, &name);
        }
        if !name.is_empty() {
            return self.chosen_by_user(claim, &name);
        }
        let class = self
            .classes
            .iter()
            .find(|class| Some(class.name_any().as_str()) == class_name(claim));
        if class_name(claim).is_none()
            && let Some(default) = self.default_class()
        {
            return Next::Class(default);
        }
        let delayed = class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"));
        let node = claim
            .annotations()
            .get(SELECTED_NODE)
            .and_then(|name| (self.node)(name));
        if let Some(volume) = self.find(claim, delayed, node.as_deref()) {
            return Next::Bind(volume);
        }
        if delayed && node.is_none() {
            let message = "waiting for first consumer to be created before binding";
            return Next::Wait("WaitForFirstConsumer", message.into());
        }
        match (class, class_name(claim).unwrap_or_default()) {
            (_, "") => {
                let message = "no persistent volumes available for this claim and no storage class is set";
                Next::Wait("FailedBinding", message.into())
            }
            (None, name) => Next::Trouble(
                "ProvisioningFailed",
                format!("storageclass.storage.k8s.io \"{name}\" not found"),
            ),
            (Some(class), _) => match class.provisioner.as_str() {
                PROVISIONER => Next::Provision(class.clone()),
                "kubernetes.io/no-provisioner" => {
                    Next::Wait("FailedBinding", "no persistent volumes available for this claim".into())
                }
                other => Next::External(other.into()),
            },
        }
    }

    fn default_class(&self) -> Option<String> {
        let marked = self
            .classes
            .iter()
            .filter(|class| class.annotations().get(DEFAULT_CLASS).map(String::as_str) == Some("true"));
        let newest = marked.max_by_key(|class| class.metadata.creation_timestamp.as_ref().map(|time| time.0));
        newest.map(|class| class.name_any())
    }

    fn named(&self, name: &str) -> Option<&Arc<PersistentVolume>> {
        self.volumes.iter().find(|volume| volume.name_any() == name)
    }

    fn bound(&self, claim: &PersistentVolumeClaim, name: &str) -> Next {
        if name.is_empty() {
            let message = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!";
            return Next::Lost("ClaimLost", message);
        }
        match self.named(name) {
            None => Next::Lost(
                "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            ),
            Some(volume) if volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none()) => {
                Next::Bind(volume.clone())
            }
            Some(volume) if is_for(volume, claim) => Next::Settled(volume.clone()),
            Some(_) => {
                let message = "Two claims are bound to the same volume, this one is bound incorrectly";
                Next::Lost("ClaimMisbound", message)
            }
        }
    }

    fn chosen_by_user(&self, claim: &PersistentVolumeClaim, name: &str) -> Next {
        match self.named(name) {
            None => Next::Wait("FailedBinding", format!("waiting for volume \"{name}\" to be created")),
            Some(volume) => {
                let free = volume.spec.as_ref().is_none_or(|spec| spec.claim_ref.is_none());
                if !free && !is_for(volume, claim) {
                    let message = format!("volume \"{name}\" already bound to a different claim.");
                    return Next::Trouble("FailedBinding", message);
                }
                if !suits(volume, claim) {
                    let message = format!(
                        "Cannot bind to requested volume \"{name}\": requested PV is too small or its modes differ"
                    );
                    return Next::Trouble("VolumeMismatch", message);
                }
                Next::Bind(volume.clone())
            }
        }
    }

    /// A volume reserved for the claim, else the smallest free one that suits.
    fn find(&self, claim: &PersistentVolumeClaim, delayed: bool, node: Option<&Node>) -> Option<Arc<PersistentVolume>> {
        if let Some(reserved) = self.volumes.iter().find(|volume| is_for(volume, claim)) {
            return suits(reserved, claim).then(|| reserved.clone());
        }
        if delayed && node.is_none() {
            return None;
        }
        let desired = claim.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let desired = desired.map(owners::selector);
        let free = self.volumes.iter().filter(|volume| {
            let Some(spec) = &volume.spec else {
                return false;
            };
            let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
            let class = spec.storage_class_name.as_deref().unwrap_or_default();
            spec.claim_ref.is_none()
                && phase == Some("Available")
                && class == class_name(claim).unwrap_or_default()
                && suits(volume, claim)
                && desired
                    .as_ref()
                    .is_none_or(|selector| owners::matches(selector.as_ref(), &***volume))
                && node.is_none_or(|node| reaches(volume, node))
        });
        free.min_by_key(|volume| (capacity(volume).and_then(thousandths), volume.name_any()))
            .cloned()
    }
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
