//! Removes a member in a scale-in: its workload, and its volume claim according to the reclaim policy.

use candor_api::ValkeyCluster;
use candor_api::valkey::DRAINED;
use candor_api::valkey::spec::ReclaimPolicy;
use candor_engine::model::MemberRef;
use candor_engine::outcome::{Change, Failure, ObjectKind};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::and;
use super::apply::{delete, message};
use super::ownership::Owner;
use crate::objects::names;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};

/// Deletes a member. The plan has confirmed that it owns no slots. Its volume claim is annotated as drained before the
/// workload is deleted; the claim itself is deleted only if the reclaim policy is `Delete`.
pub(super) async fn delete_member(
    context: &Context,
    key: &ClusterKey,
    cluster: &ValkeyCluster,
    at: MemberRef,
) -> Result<Vec<Change>, Failure> {
    let caches = &context.caches;
    let name = names::claim(&key.name, at);
    let claim = Owner::of(context, key).get(&caches.claims, &name);
    if let Some(claim) = &claim {
        mark_drained(context, key, claim).await?;
    }
    let workload = names::workload(&key.name, at);
    let deployment = delete(context, &caches.deployments, key, ObjectKind::Deployment, &workload).await;
    let mut changes = and(Vec::new(), deployment)?;
    let set = delete(context, &caches.stateful_sets, key, ObjectKind::StatefulSet, &workload).await;
    changes = and(changes, set)?;
    let node = names::node(&key.name, at);
    let valkey_node = delete(context, &caches.valkey_nodes, key, ObjectKind::ValkeyNode, &node).await;
    changes = and(changes, valkey_node)?;
    let policy = cluster
        .spec
        .persistence
        .as_ref()
        .and_then(|persistence| persistence.reclaim_policy);
    if claim.is_some() && policy == Some(ReclaimPolicy::Delete) {
        let volume = delete(context, &caches.claims, key, ObjectKind::Claim, &name).await;
        changes = and(changes, volume)?;
    }
    Ok(changes)
}

async fn mark_drained(context: &Context, key: &ClusterKey, claim: &PersistentVolumeClaim) -> Result<(), Failure> {
    if claim.annotations().contains_key(DRAINED) {
        return Ok(());
    }
    annotate(context, key, claim, json!(Timestamp::now().to_string())).await
}

/// Removes the drained annotation: the member is in use again, and its volume may hold data from now on.
pub(super) async fn reuse_volume(context: &Context, key: &ClusterKey, at: MemberRef) -> Result<Vec<Change>, Failure> {
    let name = names::claim(&key.name, at);
    if let Some(claim) = Owner::of(context, key).get(&context.caches.claims, &name) {
        annotate(context, key, &claim, serde_json::Value::Null).await?;
    }
    Ok(Vec::new())
}

/// Sets or removes the drained annotation of a volume claim.
async fn annotate(
    context: &Context,
    key: &ClusterKey,
    claim: &PersistentVolumeClaim,
    mark: serde_json::Value,
) -> Result<(), Failure> {
    let api: Api<PersistentVolumeClaim> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": claim.uid(),
        "annotations": {(DRAINED): mark},
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&claim.name_any(), &params, &Patch::Merge(patch)).await {
        Ok(marked) => {
            context.caches.claims.put(marked);
            Ok(())
        }
        Err(error) => Err(Failure::of_object(ObjectKind::Claim, true, message(&error))),
    }
}
