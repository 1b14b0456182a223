//! Secrets that clusters refer to: their metadata is watched, and their content is read when it is needed and has
//! changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt};

use crate::objects::referenced_secrets;
use crate::runtime::cache::ClusterKey;
use crate::runtime::caches::Caches;

/// Whether a cluster refers to this Secret.
pub fn refers(cluster: &ValkeyCluster, secret: &str) -> bool {
    referenced_secrets(cluster).contains(secret)
}

/// Contents that were read, by the referring cluster and by name. A cluster's entry contains the Secrets that it refers
/// to now. It is removed with the cluster.
#[derive(Default)]
pub struct Contents {
    read: Mutex<HashMap<ClusterKey, BTreeMap<String, Secret>>>,
}

impl Contents {
    /// The Secrets that a cluster refers to by these names, without those that do not exist.
    pub async fn of(
        &self,
        client: &Client,
        caches: &Caches,
        key: &ClusterKey,
        names: BTreeSet<String>,
    ) -> Result<BTreeMap<String, Secret>, kube::Error> {
        let mut found = BTreeMap::new();
        let mut read = BTreeMap::new();
        for name in names {
            // A Secret may have the label of this or another cluster: then it is watched with its content.
            if let Some(secret) = caches.secrets.find_in(&key.namespace, &name) {
                found.insert(name, Secret::clone(&secret));
                continue;
            }
            let Some(there) = caches.foreign_secrets.get_in(&key.namespace, &name) else {
                continue;
            };
            let known = self.known(key, &name);
            let secret = match known.filter(|known| known.resource_version() == there.resource_version()) {
                Some(secret) => Some(secret),
                None => {
                    Api::<Secret>::namespaced(client.clone(), &key.namespace)
                        .get_opt(&name)
                        .await?
                }
            };
            if let Some(secret) = secret {
                read.insert(name.clone(), secret.clone());
                found.insert(name, secret);
            }
        }
        if read.is_empty() {
            self.forget(key);
        } else {
            self.lock().insert(key.clone(), read);
        }
        Ok(found)
    }

    fn known(&self, key: &ClusterKey, name: &str) -> Option<Secret> {
        self.lock().get(key)?.get(name).cloned()
    }

    /// Removes the contents of a deleted cluster.
    pub fn forget(&self, key: &ClusterKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ClusterKey, BTreeMap<String, Secret>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use kube::core::PartialObjectMeta;
    use serde_json::json;

    use super::*;

    /// A mock API server that has a Secret of every name.
    fn client() -> Client {
        let server = tower::service_fn(async |request: axum::http::Request<kube::client::Body>| {
            let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
            let metadata = json!({"name": name, "namespace": "shop", "resourceVersion": "1"});
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}});
            let body = kube::client::Body::from(secret.to_string().into_bytes());
            Ok::<_, std::convert::Infallible>(axum::http::Response::new(body))
        });
        Client::new(server, "shop")
    }

    fn referring(secrets: &[&str]) -> ValkeyCluster {
        let user = |name: &&str| json!({"name": name, "passwordSecret": {"name": name}});
        let users: Vec<_> = secrets.iter().map(user).collect();
        let cluster = json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
            "metadata": {"name": "cart", "namespace": "shop"}, "spec": {"shards": 1, "users": users}});
        serde_json::from_value(cluster).unwrap()
    }

    #[tokio::test]
    async fn contents_are_held_only_while_a_cluster_refers_to_them() {
        let (contents, caches) = (Contents::default(), Caches::default());
        for name in ["one", "two"] {
            let metadata = json!({"name": name, "namespace": "shop", "resourceVersion": "1"});
            let there: PartialObjectMeta<Secret> = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
            caches.foreign_secrets.put(there);
        }
        let key = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".to_owned(),
            name: "cart".to_owned(),
        };
        let held = || contents.lock().values().map(BTreeMap::len).sum::<usize>();
        for (secrets, expected) in [(vec!["one", "two"], 2), (vec!["two"], 1), (vec![], 0), (vec!["one"], 1)] {
            let found = contents
                .of(&client(), &caches, &key, referenced_secrets(&referring(&secrets)))
                .await
                .unwrap();
            assert_eq!((found.len(), held()), (secrets.len(), expected), "{secrets:?}");
        }
        contents.forget(&key);
        assert_eq!(held(), 0);
    }

    #[tokio::test]
    async fn a_secret_with_the_label_of_another_cluster_is_found() {
        let caches = Caches::default();
        let labels = json!({"valkey.io/cluster": "other"});
        let metadata = json!({"name": "shared", "namespace": "shop", "labels": labels, "resourceVersion": "1"});
        caches
            .secrets
            .put(serde_json::from_value(json!({ "metadata": metadata })).unwrap());
        let key = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "shop".to_owned(),
            name: "cart".to_owned(),
        };
        let found = Contents::default()
            .of(&client(), &caches, &key, referenced_secrets(&referring(&["shared"])))
            .await;
        assert!(found.unwrap().contains_key("shared"));
        let elsewhere = ClusterKey {
            kind: crate::runtime::cache::ClusterKind::Valkey,
            namespace: "bank".to_owned(),
            ..key
        };
        let found = Contents::default()
            .of(
                &client(),
                &caches,
                &elsewhere,
                referenced_secrets(&referring(&["shared"])),
            )
            .await;
        assert!(found.unwrap().is_empty(), "a Secret of another namespace");
    }
}
