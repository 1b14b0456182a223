//! Writes that update the cache before the next reconcile.

use std::fmt::Debug;
use std::sync::Arc;

use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::cache::{Cache, Cached};
use super::work::Error;

/// Writes objects of one kind in one place.
pub struct Writer<'a, K> {
    api: Api<K>,
    cache: &'a Cache<K>,
}

/// The field manager of all controllers, as in a real cluster.
const MANAGER: &str = "kube-controller-manager";

impl<'a, K: Cached + Serialize + Debug> Writer<'a, K> {
    /// A writer for a kind without namespaces, or for the namespace the API was made for.
    pub fn new(api: Api<K>, cache: &'a Cache<K>) -> Self {
        Self { api, cache }
    }

    fn params() -> PostParams {
        PostParams {
            field_manager: Some(MANAGER.into()),
            ..PostParams::default()
        }
    }

    /// Creates.
    pub async fn create(&self, object: &K) -> Result<Arc<K>, Error> {
        Ok(self.cache.wrote(self.api.create(&Self::params(), object).await?))
    }

    /// Replaces metadata and spec; a stale version is a conflict.
    pub async fn replace(&self, object: &K) -> Result<Arc<K>, Error> {
        let answer = self.api.replace(&object.name_any(), &Self::params(), object).await?;
        Ok(self.cache.wrote(answer))
    }

    /// Replaces the status; a stale version is a conflict.
    pub async fn replace_status(&self, object: &K) -> Result<Arc<K>, Error> {
        let answer = self
            .api
            .replace_status(&object.name_any(), &Self::params(), object)
            .await?;
        Ok(self.cache.wrote(answer))
    }

    /// Changes some fields by a merge patch.
    pub async fn merge(&self, name: &str, patch: &Value) -> Result<Arc<K>, Error> {
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        Ok(self
            .cache
            .wrote(self.api.patch(name, &params, &Patch::Merge(patch)).await?))
    }

    /// Changes some fields of the status by a strategic patch (lists merge by their keys).
    pub async fn strategic_status(&self, name: &str, patch: &Value) -> Result<Arc<K>, Error> {
        let params = PatchParams {
            field_manager: Some(MANAGER.into()),
            ..PatchParams::default()
        };
        let answer = self.api.patch_status(name, &params, &Patch::Strategic(patch)).await?;
        Ok(self.cache.wrote(answer))
    }

    /// Sets the finalizers to the given ones.
    pub async fn set_finalizers(&self, object: &K, finalizers: &[String]) -> Result<Arc<K>, Error> {
        let patch = json!({"metadata": {
            "finalizers": if finalizers.is_empty() { Value::Null } else { json!(finalizers) },
            "resourceVersion": object.resource_version(), "uid": object.uid(),
        }});
        self.merge(&object.name_any(), &patch).await
    }

    /// Deletes this object (its uid is a precondition). An object that is gone already is not an error.
    pub async fn delete(&self, object: &K) -> Result<(), Error> {
        self.delete_with(object, DeleteParams::default()).await
    }

    /// Deletes this object with the given options.
    pub async fn delete_with(&self, object: &K, mut params: DeleteParams) -> Result<(), Error> {
        params.preconditions = Some(Preconditions {
            uid: object.uid(),
            resource_version: None,
        });
        match self.api.delete(&object.name_any(), &params).await {
            Ok(answer) => {
                // A server answers with the object also when it is gone at once; only finalizers or a grace
                // period keep it.
                let kept = answer.left().filter(|answer| {
                    let meta = answer.meta();
                    meta.deletion_timestamp.is_some()
                        && (meta.deletion_grace_period_seconds.unwrap_or_default() > 0
                            || !answer.finalizers().is_empty())
                });
                match kept {
                    Some(answer) => drop(self.cache.wrote(answer)),
                    None => self.cache.removed(object),
                }
                Ok(())
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// A writer in a namespace.
impl<'a, K> Writer<'a, K>
where
    K: Cached + Serialize + DeserializeOwned + Debug + Resource<Scope = k8s_openapi::NamespaceResourceScope>,
{
    /// A writer for one namespace.
    pub fn within(client: &kube::Client, namespace: &str, cache: &'a Cache<K>) -> Self {
        Self::new(Api::namespaced(client.clone(), namespace), cache)
    }
}
