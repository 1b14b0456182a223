//! Volume claims. Claim templates of a `StatefulSet` cannot be changed: a difference is an error that a person must
//! resolve. Claims of servers that are gone for good are deleted if `deletePVC` says so.

use candor_api::RedkeyCluster;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt;

use super::observe::{DRAINED, Observed, claims};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The parts of a claim that the spec sets.
#[derive(PartialEq)]
struct Claim {
    size: Option<String>,
    class: Option<String>,
    modes: Option<Vec<String>>,
}

impl Claim {
    fn of(set: &StatefulSet) -> Option<Self> {
        let templates = set.spec.as_ref()?.volume_claim_templates.as_ref()?;
        let spec = templates.first()?.spec.as_ref()?;
        let requests = spec
            .resources
            .as_ref()
            .and_then(|resources| resources.requests.as_ref());
        Some(Self {
            size: requests.and_then(|all| all.get("storage")).map(|size| size.0.clone()),
            class: spec.storage_class_name.clone(),
            modes: spec.access_modes.clone(),
        })
    }
}

/// The claims of servers that are gone for good, if `deletePVC` is set: of those that gave up their slots and left, and
/// of all servers of a cluster without any.
pub(super) fn removed_claims(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    observed: &Observed,
) -> Vec<String> {
    if cluster.spec.delete_pvc != Some(true) || cluster.spec.ephemeral {
        return Vec::new();
    }
    let Some(set) = observed.set.as_ref().filter(|set| !set.leaving) else {
        return Vec::new();
    };
    // Status forgets the servers first: a cluster that wakes without its volumes must not look as if it had lost data.
    let forgotten = cluster.status.as_ref().is_none_or(|status| status.topology.is_empty());
    let asleep = cluster.spec.primaries == 0 && set.replicas == 0 && forgotten;
    let left = |ordinal: u32, claim: &PersistentVolumeClaim| {
        let runs = observed
            .members
            .get(&ordinal)
            .is_some_and(|member| member.pod.is_some());
        let desired = ordinal < set.replicas || i64::from(ordinal) < i64::from(cluster.spec.nodes());
        let leaving = claim.metadata.deletion_timestamp.is_some();
        !runs && !desired && !leaving && (asleep || claim.annotations().contains_key(DRAINED))
    };
    let claims = claims(context, key).into_iter();
    claims
        .filter(|(ordinal, claim)| left(*ordinal, claim))
        .map(|(_, claim)| claim.name_any())
        .collect()
}

/// What to report if the live claim template differs from the desired one. A spec without a class gets the default one.
pub(super) fn difference(live: &StatefulSet, desired: &StatefulSet) -> Option<String> {
    let (now, desired) = (Claim::of(live), Claim::of(desired));
    let differs = match (&now, &desired) {
        (Some(now), Some(desired)) => {
            let class = desired.class.is_some() && now.class != desired.class;
            now.size != desired.size || now.modes != desired.modes || class
        }
        (None, None) => false,
        _ => true,
    };
    differs.then(|| {
        format!(
            "the volume claims of StatefulSet {} cannot be changed: size, class or access mode of the spec differ from \
             them",
            live.name_any()
        )
    })
}
