//! Finalizers: volume claims are deleted with the cluster if `deletePVC` is set. Finalizers of other operators are
//! removed, because nothing else would remove them.

use candor_api::RedkeyCluster;
use candor_api::redkey::{DELETE_PVC_FINALIZER, HONOURED_FINALIZERS};
use candor_engine::outcome::ObjectKind;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::objects::names;
use super::observe::claims;
use crate::act::apply::delete;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::{Context, MANAGER};

/// Whether volume claims are deleted with the cluster.
fn deletes_claims(cluster: &RedkeyCluster) -> bool {
    cluster.spec.delete_pvc == Some(true) && !cluster.spec.ephemeral
}

/// Adds or removes the finalizer of a live cluster; returns whether it was written.
pub async fn hold(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster) -> Result<bool, kube::Error> {
    let held = cluster.finalizers().iter().any(|one| one == DELETE_PVC_FINALIZER);
    if held == deletes_claims(cluster) {
        return Ok(false);
    }
    let mut finalizers: Vec<String> = cluster.finalizers().to_vec();
    finalizers.retain(|one| one != DELETE_PVC_FINALIZER);
    if deletes_claims(cluster) {
        finalizers.push(DELETE_PVC_FINALIZER.to_owned());
    }
    write(context, key, cluster, &finalizers).await?;
    Ok(true)
}

/// Cleans up a cluster that is being deleted; returns whether it is done.
pub async fn leave(context: &Context, key: &ClusterKey, cluster: &RedkeyCluster) -> Result<bool, String> {
    if cluster.finalizers().iter().any(|one| one == DELETE_PVC_FINALIZER) && deletes_claims(cluster) {
        let caches = &context.caches;
        let failed = |failure: candor_engine::outcome::Failure| failure.message;
        let set = delete(context, &caches.stateful_sets, key, ObjectKind::StatefulSet, &key.name).await;
        set.map_err(failed)?;
        // Robin's pod leaves with its Deployment, which the cluster owns: waiting for it would never end.
        let servers = caches.pods.list(key);
        if servers
            .iter()
            .any(|pod| names::ordinal(&key.name, &pod.name_any()).is_some())
        {
            return Ok(false);
        }
        for claim in claims(context, key).into_values() {
            let gone = delete(context, &caches.claims, key, ObjectKind::Claim, &claim.name_any()).await;
            gone.map_err(failed)?;
        }
    }
    let ours = |one: &String| one == DELETE_PVC_FINALIZER || HONOURED_FINALIZERS.contains(&one.as_str());
    let others: Vec<String> = cluster.finalizers().iter().filter(|one| !ours(one)).cloned().collect();
    if others.len() < cluster.finalizers().len() {
        let written = write(context, key, cluster, &others).await;
        written.map_err(|error| crate::act::apply::message(&error))?;
    }
    Ok(true)
}

/// Writes the finalizers of exactly the observed version.
async fn write(
    context: &Context,
    key: &ClusterKey,
    cluster: &RedkeyCluster,
    finalizers: &[String],
) -> Result<(), kube::Error> {
    let api: Api<RedkeyCluster> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({"metadata": {
        "uid": cluster.uid(),
        "resourceVersion": cluster.resource_version(),
        "finalizers": finalizers,
    }});
    let params = PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    };
    match api.patch(&key.name, &params, &Patch::Merge(patch)).await {
        Ok(newer) => {
            if newer.metadata.deletion_timestamp.is_none() {
                context.caches.redkeys.put(newer);
            }
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}
