//! Secrets that clusters refer to: heard of by their metadata, read when they are needed and have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt};

use crate::cache::ClusterKey;
use crate::objects::referenced_secrets;
use crate::watching::Caches;

/// Whether a cluster names this Secret.
pub fn refers(cluster: &ValkeyCluster, secret: &str) -> bool {
    referenced_secrets(cluster).contains(secret)
}

/// What was read, by namespace and name, with the version it was read at.
#[derive(Default)]
pub struct Contents {
    read: Mutex<HashMap<(String, String), Secret>>,
}

impl Contents {
    /// The Secrets that a cluster refers to; those that do not exist are left out.
    pub async fn of(
        &self,
        client: &Client,
        caches: &Caches,
        key: &ClusterKey,
        cluster: &ValkeyCluster,
    ) -> Result<BTreeMap<String, Secret>, kube::Error> {
        let mut found = BTreeMap::new();
        for name in referenced_secrets(cluster) {
            // A person may have put our label on a Secret of their own.
            if let Some(secret) = caches.secrets.get(key, &name) {
                found.insert(name, Secret::clone(&secret));
                continue;
            }
            let Some(there) = caches.foreign_secrets.get_in(&key.namespace, &name) else {
                self.lock().remove(&(key.namespace.clone(), name));
                continue;
            };
            let at = (key.namespace.clone(), name.clone());
            let known = self
                .lock()
                .get(&at)
                .filter(|known| known.resource_version() == there.resource_version())
                .cloned();
            let secret = match known {
                Some(secret) => Some(secret),
                None => {
                    Api::<Secret>::namespaced(client.clone(), &key.namespace)
                        .get_opt(&name)
                        .await?
                }
            };
            if let Some(secret) = secret {
                self.lock().insert(at, secret.clone());
                found.insert(name, secret);
            }
        }
        Ok(found)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Secret>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
