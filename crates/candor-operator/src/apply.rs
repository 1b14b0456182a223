//! Writing and deleting objects: server-side apply under one name, only where something differs.

use std::fmt::Debug;

use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions, PropagationPolicy};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cache::{Cache, ClusterKey};
use crate::context::{Context, MANAGER};

/// What can be applied.
pub trait Object:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Whether the object is there as wanted.
pub fn is_right<K: Object>(context: &Context, cache: &Cache<K>, key: &ClusterKey, wanted: &K) -> bool {
    cache
        .get(key, &wanted.name_any())
        .is_some_and(|live| context.shapes.fits(wanted, &*live))
}

/// Brings one object to what is wanted; nothing is sent when it is so.
pub async fn apply<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    wanted: &K,
) -> Result<Option<Change>, Failure> {
    let name = wanted.name_any();
    let live = cache.get(key, &name);
    if live.as_ref().is_some_and(|live| context.shapes.fits(wanted, &**live)) {
        return Ok(None);
    }
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PatchParams::apply(MANAGER).force();
    match api.patch(&name, &params, &Patch::Apply(wanted)).await {
        Ok(answer) => {
            context.shapes.applied(wanted, &answer);
            let before = live.map(|live| live.resource_version());
            let same = before
                .as_ref()
                .is_some_and(|before| *before == answer.resource_version());
            let did = if before.is_some() { Did::Updated } else { Did::Created };
            cache.put(answer);
            tracing::info!(cluster = %key, object = name, ?kind, ?did, "object applied");
            Ok((!same).then_some(Change { kind, name, did }))
        }
        Err(error) => Err(Failure::of_object(kind, live.is_some(), words(&error))),
    }
}

/// Deletes one object, and only the very one that is known by its uid.
pub async fn delete<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Change>, Failure> {
    let Some(live) = cache
        .get(key, name)
        .filter(|live| live.meta().deletion_timestamp.is_none())
    else {
        return Ok(None);
    };
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: live.uid(),
            resource_version: None,
        }),
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    match api.delete(name, &params).await {
        Ok(answer) => {
            // Known at once: what is still taken to be there would be written, and so made again.
            match answer.left() {
                Some(leaving) if leaving.meta().deletion_timestamp.is_some() => drop(cache.put(leaving)),
                _ => cache.gone(&live),
            }
            context.shapes.forget(&*live);
            tracing::info!(cluster = %key, object = name, ?kind, "object deleted");
            Ok(Some(Change {
                kind,
                name: name.to_owned(),
                did: Did::Deleted,
            }))
        }
        // Gone already, whether or not the watch has told.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            cache.gone(&live);
            Ok(None)
        }
        // Another object of that name: not ours to delete.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(Failure::of_object(kind, true, words(&error))),
    }
}

/// The API server's own words, without the frame around them.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
