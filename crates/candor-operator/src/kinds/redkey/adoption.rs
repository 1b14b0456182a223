//! Takes over the objects of the existing operator: its `StatefulSet`, its Robin, and later its pod template.

use std::sync::Arc;

use candor_api::redkey::{COMPONENT_LABEL, ROBIN};
use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::api::{ListParams, Patch};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use super::act::params;
use super::objects::{ADOPTED, REVISION, names, robin_volumes};
use super::observe::Observed;
use crate::act::apply::{delete, message};
use crate::act::ownership::Owner;
use crate::observe::pods;
use crate::runtime::cache::ClusterKey;
use crate::runtime::context::Context;

/// The first write to a `StatefulSet` of the existing operator: no edit restarts a server any more, and its template
/// counts as what the spec asks for. Only the observed version is written, so that nothing is taken over that another
/// operator has changed meanwhile.
pub(super) async fn take_over(
    context: &Context,
    key: &ClusterKey,
    observed: &Observed,
) -> Result<Option<Change>, Failure> {
    let Some(live) = Owner::of(context, key).get(&context.caches.stateful_sets, &key.name) else {
        return Ok(None);
    };
    let Some(kept) = observed
        .kept
        .as_ref()
        .filter(|_| !live.annotations().contains_key(REVISION))
    else {
        return Ok(None);
    };
    let patch = json!({
        "metadata": {
            "uid": live.uid(),
            "resourceVersion": live.resource_version(),
            "annotations": {(REVISION): kept.adopted, (ADOPTED): kept.adopted},
            "ownerReferences": owners(context, key, &live),
        },
        "spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}},
    });
    let api: Api<StatefulSet> = Api::namespaced(context.client.clone(), &key.namespace);
    match api.patch(&key.name, &params(), &Patch::Merge(patch)).await {
        Ok(newer) => {
            context.caches.stateful_sets.put(newer);
            tracing::info!(cluster = %key, "StatefulSet of the existing operator taken over");
            let (kind, name, did) = (ObjectKind::StatefulSet, key.name.clone(), Did::Adopted);
            Ok(Some(Change { kind, name, did }))
        }
        Err(error) => Err(Failure::of_object(ObjectKind::StatefulSet, true, message(&error))),
    }
}

/// The owner references with the cluster as controller.
fn owners(context: &Context, key: &ClusterKey, live: &StatefulSet) -> Value {
    let mut owners = live.owner_references().to_vec();
    let cluster = context.caches.redkeys.get_in(&key.namespace, &key.name);
    let ours = cluster.and_then(|cluster| cluster.controller_owner_ref(&()));
    if let Some(mut ours) = ours.filter(|ours| owners.iter().all(|one| one.uid != ours.uid)) {
        ours.block_owner_deletion = None;
        owners.push(ours);
    }
    json!(owners)
}

/// Whether a pod runs the operator's own Robin.
fn is_ours(pod: Option<&PodSpec>) -> bool {
    let volumes = pod.and_then(|spec| spec.volumes.as_ref());
    let [_, credentials] = robin_volumes();
    volumes.is_some_and(|all| all.iter().any(|volume| volume.name == credentials))
}

/// The pods of the existing operator's Robin that may still run. Older ones have another label.
pub(super) fn old_robins(context: &Context, key: &ClusterKey) -> Vec<Arc<Pod>> {
    let prefix = format!("{}-", names::robin(&key.name));
    let mut robins = context.caches.pods.list(key);
    robins.retain(|pod| {
        let labelled = pod.labels().get(COMPONENT_LABEL).is_some_and(|one| one == ROBIN);
        let named = pod.name_any().starts_with(&prefix);
        (labelled || named) && !is_ours(pod.spec.as_ref()) && !pods::is_over(pod)
    });
    robins
}

/// Deletes the Deployment of the existing operator's Robin; returns whether a pod of it may still run. Two Robins would
/// send commands to the same servers.
pub(super) async fn remove_old_robin(context: &Context, key: &ClusterKey) -> Result<bool, Failure> {
    let name = names::robin(&key.name);
    let failed = |error: &kube::Error| Failure::of_object(ObjectKind::Deployment, true, message(error));
    let mut live = context.caches.deployments.get(key, &name);
    if live.is_none() {
        // Its label may be missing: then the watch does not report it.
        let api: Api<Deployment> = Api::namespaced(context.client.clone(), &key.namespace);
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = api.list(&named).await.map_err(|error| failed(&error))?;
        live = found.items.into_iter().next().map(Arc::new);
    }
    let theirs = |live: &Deployment| {
        let spec = live.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        !is_ours(spec)
    };
    if let Some(live) = live.filter(|live| theirs(live)) {
        let cache = &context.caches.deployments;
        if cache.get(key, &name).is_none() {
            return Err(Failure::of_object(
                ObjectKind::Deployment,
                true,
                format!(
                    "Deployment {name} is not labelled as Robin of this cluster: delete it, so that Robin can be started"
                ),
            ));
        }
        if live.metadata.deletion_timestamp.is_none() {
            delete(context, cache, key, ObjectKind::Deployment, &name).await?;
        }
        return Ok(true);
    }
    Ok(!old_robins(context, key).is_empty())
}
