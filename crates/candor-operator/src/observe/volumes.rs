//! Reads the state of members' volumes.

use std::collections::BTreeMap;
use std::sync::Arc;

use candor_api::ValkeyCluster;
use candor_api::valkey::DRAINED;
use candor_engine::model::MemberRef;
use candor_engine::observation::{Claim, Volume};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::act::deletion::deletes_volumes;
use crate::act::ownership::Owner;
use crate::objects::{labels, names, whole};
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};

type Quantities = BTreeMap<String, Quantity>;

/// The volume claims of a cluster, by member. A copy with the same labels but another name is not included.
pub(crate) fn claims(context: &Context, key: &ClusterKey) -> BTreeMap<MemberRef, Arc<PersistentVolumeClaim>> {
    let claims = Owner::of(context, key).list(&context.caches.claims);
    let members = claims.into_iter().filter_map(|claim| {
        let at = labels::member_of(claim.labels())?;
        Some((at, claim)).filter(|(at, claim)| claim.name_any() == names::claim(&key.name, *at))
    });
    members.collect()
}

/// The owner references that a claim should have, or `None` if it has them already. The cluster's own reference is
/// present exactly if volumes are deleted with the cluster; other references stay. Garbage collection only considers
/// owner references, and in a foreground deletion it does not wait for the operator.
pub(crate) fn other_owners(claim: &PersistentVolumeClaim, cluster: &ValkeyCluster) -> Option<Vec<OwnerReference>> {
    let uid = cluster.uid().unwrap_or_default();
    let (ours, others): (Vec<_>, Vec<_>) = claim.owner_references().iter().cloned().partition(|one| one.uid == uid);
    let desired: Vec<_> = labels::owner(cluster)
        .filter(|_| deletes_volumes(cluster))
        .into_iter()
        .collect();
    let differs = ours != desired && !is_leaving(claim);
    differs.then(|| others.into_iter().chain(desired).collect())
}

/// Writes owner references to exactly the observed resource version of a claim.
pub(crate) async fn set_owners(
    context: &Context,
    key: &ClusterKey,
    claim: &PersistentVolumeClaim,
    owners: &[OwnerReference],
) -> Result<PersistentVolumeClaim, kube::Error> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": claim.uid(),
        "resourceVersion": claim.resource_version(),
        "ownerReferences": owners,
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let written = api.patch(&claim.name_any(), &params, &Patch::Merge(patch)).await?;
    context.caches.claims.put(written.clone());
    Ok(written)
}

fn is_leaving(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
}

/// What a volume may contain; a volume that is being deleted counts as missing.
pub(crate) fn volume(claim: &PersistentVolumeClaim) -> Volume {
    if is_leaving(claim) {
        Volume::None
    } else if claim.annotations().contains_key(DRAINED) {
        Volume::Drained
    } else {
        Volume::Kept
    }
}

/// The state of a claim compared with the desired one.
pub(crate) fn claim(live: &PersistentVolumeClaim, desired: Option<&PersistentVolumeClaim>) -> Claim {
    let phase = live.status.as_ref().and_then(|status| status.phase.as_deref());
    let conditions = live.status.as_ref().and_then(|status| status.conditions.as_ref());
    let says = |kind: &str| conditions.and_then(|all| all.iter().find(|one| one.type_ == kind && one.status == "True"));
    match phase {
        // Only the pod that uses the claim still holds it: the claim is deleted with that pod and then created again.
        _ if is_leaving(live) => Claim::Pending(format!("volume claim {} is being deleted", live.name_any())),
        Some("Lost") => Claim::Failed(format!("volume claim {} lost its volume", live.name_any())),
        Some("Bound") => match desired {
            Some(desired) if asked(desired) > asked(live) => Claim::TooSmall,
            _ if says("Resizing").is_some() || says("FileSystemResizePending").is_some() => Claim::Resizing,
            _ if given(live).is_some_and(|given| Some(given) < asked(live)) => Claim::Resizing,
            _ => Claim::Bound,
        },
        _ => {
            let class = live.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
            let class = class.map_or(String::new(), |class| format!(" (StorageClass {class})"));
            Claim::Pending(format!("volume claim {} is not bound yet{class}", live.name_any()))
        }
    }
}

fn storage(quantities: Option<&Quantities>) -> Option<u128> {
    quantities.and_then(|all| whole(&all.get("storage")?.0))
}

fn requests(claim: &PersistentVolumeClaim) -> Option<&Quantities> {
    claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()
}

/// The requested size in bytes. Bytes are compared, never the text: the API server stores 1024Mi as 1Gi.
fn asked(claim: &PersistentVolumeClaim) -> Option<u128> {
    storage(requests(claim))
}

/// The actual capacity in bytes.
fn given(claim: &PersistentVolumeClaim) -> Option<u128> {
    storage(claim.status.as_ref()?.capacity.as_ref())
}

/// The desired claim, with at least its current size: a retained claim may be larger than the desired one, and claims
/// cannot shrink.
pub(crate) fn not_smaller(
    desired: &PersistentVolumeClaim,
    live: Option<&PersistentVolumeClaim>,
) -> PersistentVolumeClaim {
    let mut claim = desired.clone();
    let larger = live.filter(|live| asked(live) >= asked(desired)).and_then(requests);
    let resources = claim.spec.as_mut().and_then(|spec| spec.resources.as_mut());
    if let (Some(larger), Some(resources)) = (larger, resources) {
        resources.requests = Some(larger.clone());
    }
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(request: &str, capacity: &str) -> PersistentVolumeClaim {
        serde_json::from_value(serde_json::json!({
            "spec": {"resources": {"requests": {"storage": request}}},
            "status": {"phase": "Bound", "capacity": {"storage": capacity}},
        }))
        .unwrap()
    }

    #[test]
    fn sizes_are_compared_by_what_they_are_and_no_volume_shrinks() {
        let table = [
            ("1024Mi", of("1Gi", "1Gi"), Claim::Bound),
            ("1.5Gi", of("1536Mi", "1536Mi"), Claim::Bound),
            ("1Gi", of("1Gi", "1100Mi"), Claim::Bound),
            ("2Gi", of("1Gi", "1Gi"), Claim::TooSmall),
            ("2Gi", of("2Gi", "1Gi"), Claim::Resizing),
            ("1Gi", of("5Gi", "5Gi"), Claim::Bound),
        ];
        for (size, live, stands) in table {
            let desired = of(size, "0");
            assert_eq!(claim(&live, Some(&desired)), stands, "{size} beside {live:?}");
            let sent = not_smaller(&desired, Some(&live));
            assert!(asked(&sent) >= asked(&live), "{size} beside {live:?}");
            assert!(asked(&sent) >= asked(&desired));
        }
        assert_eq!(not_smaller(&of("1Gi", "0"), None), of("1Gi", "0"));
    }
}
