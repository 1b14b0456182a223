//! Writes and deletes objects: server-side apply with one field manager, only if something differs.

use std::fmt::Debug;

use candor_engine::outcome::{Change, Did, Failure, ObjectKind};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::act::ownership::Owner;
use crate::runtime::cache::{Cache, ClusterKey};
use crate::runtime::context::{Context, MANAGER};

/// An object that can be applied.
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

/// Whether the object exists and matches the desired state.
pub fn is_right<K: Object>(context: &Context, cache: &Cache<K>, key: &ClusterKey, desired: &K) -> bool {
    cache
        .get(key, &desired.name_any())
        .is_some_and(|live| context.shapes.fits(desired, &*live))
}

/// Applies one object. Sends nothing if the live object already matches the desired one. An object that does not belong
/// to this cluster is never changed, even if the cache is outdated: the write carries the uid of the object that was
/// checked.
pub async fn apply<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    desired: &K,
) -> Result<Option<Change>, Failure> {
    let name = desired.name_any();
    let cached = cache.get(key, &name);
    if cached
        .as_ref()
        .is_some_and(|live| context.shapes.fits(desired, &**live))
    {
        return Ok(None);
    }
    let failed = |error: &kube::Error| Failure::of_object(kind, cached.is_some(), message(error));
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let owner = Owner::of(context, key);
    let mut before = match &cached {
        Some(live) => Some(Before::of(&owner, kind, &**live)?),
        None => Before::look_up(&owner, kind, &api, &name).await?,
    };
    let answer = match send(&api, desired, before.as_ref()).await {
        // The object was replaced or deleted after it was checked: read it again and retry once.
        Err(kube::Error::Api(status)) if status.code == 409 => {
            before = Before::look_up(&owner, kind, &api, &name).await?;
            send(&api, desired, before.as_ref()).await
        }
        answer => answer,
    };
    let answer = answer.map_err(|error| failed(&error))?;
    context.shapes.applied(desired, &answer);
    let same = before
        .as_ref()
        .is_some_and(|before| before.version == answer.resource_version());
    let did = if before.is_some() { Did::Updated } else { Did::Created };
    cache.put(answer);
    tracing::info!(cluster = %key, object = name, ?kind, ?did, "object applied");
    Ok((!same).then_some(Change { kind, name, did }))
}

/// Creates an object with content that cannot be made again. An object that another request has created stays as it
/// is, because servers may already have its content, and no later step runs. A damaged object in the cache is written over.
pub async fn create<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    desired: &K,
) -> Result<Option<Change>, Failure> {
    let name = desired.name_any();
    if cache.get(key, &name).is_some() {
        return apply(context, cache, key, kind, desired).await;
    }
    let failed = |error: kube::Error| Failure::of_object(kind, false, message(&error));
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let params = PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    };
    match api.create(&params, desired).await {
        Ok(made) => {
            cache.put(made);
            let did = Did::Created;
            Ok(Some(Change { kind, name, did }))
        }
        Err(kube::Error::Api(status)) if status.code == 409 => {
            let there = api.get(&name).await.map_err(failed)?;
            let checked = Owner::of(context, key).check(&K::kind(&()), &there);
            checked.map_err(|foreign| Failure::of_object(kind, true, foreign.to_string()))?;
            cache.put(there);
            Err(Failure::unanswered(format!(
                "{name} exists already: the next reconcile reads it"
            )))
        }
        Err(error) => Err(failed(error)),
    }
}

/// An existing object that belongs to this cluster.
struct Before {
    uid: Option<String>,
    version: Option<String>,
}

impl Before {
    fn of<K: Resource<DynamicType = ()>>(owner: &Owner, kind: ObjectKind, live: &K) -> Result<Self, Failure> {
        let checked = owner.check(&K::kind(&()), live);
        checked.map_err(|foreign| Failure::of_object(kind, true, foreign.to_string()))?;
        Ok(Self {
            uid: live.uid(),
            version: live.resource_version(),
        })
    }

    /// Reads from the API server: the caches only contain objects with a cluster's label.
    async fn look_up<K: Object>(
        owner: &Owner,
        kind: ObjectKind,
        api: &Api<K>,
        name: &str,
    ) -> Result<Option<Self>, Failure> {
        let named = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = api.list_metadata(&named).await;
        let found = found.map_err(|error| Failure::of_object(kind, false, message(&error)))?;
        let Some(live) = found.items.into_iter().next() else {
            return Ok(None);
        };
        let checked = owner.check(&K::kind(&()), &live);
        checked.map_err(|foreign| Failure::of_object(kind, true, foreign.to_string()))?;
        Ok(Some(Self {
            uid: live.metadata.uid,
            version: live.metadata.resource_version,
        }))
    }
}

/// Applies over the object that was checked and over no other. If there was none, the apply is not forced: fields that
/// another manager sets meanwhile cause a conflict.
async fn send<K: Object>(api: &Api<K>, desired: &K, before: Option<&Before>) -> Result<K, kube::Error> {
    let mut sent = desired.clone();
    sent.meta_mut().uid = before.and_then(|before| before.uid.clone());
    let params = PatchParams::apply(MANAGER);
    let params = if before.is_some() { params.force() } else { params };
    api.patch(&desired.name_any(), &params, &Patch::Apply(&sent)).await
}

/// Deletes one object of this cluster. The uid is a precondition, so no other object of that name is deleted.
pub async fn delete<K: Object>(
    context: &Context,
    cache: &Cache<K>,
    key: &ClusterKey,
    kind: ObjectKind,
    name: &str,
) -> Result<Option<Change>, Failure> {
    let Some(live) = Owner::of(context, key)
        .get(cache, name)
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
            // Update the cache immediately: an object that still appears to exist would be written and so recreated.
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
        // Already deleted, even if the watch has not reported it yet.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            cache.gone(&live);
            Ok(None)
        }
        // Another object of that name: it does not belong to this cluster.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
        Err(error) => Err(Failure::of_object(kind, true, message(&error))),
    }
}

/// The API server's error message, without the wrapping of `kube::Error`.
pub fn message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
