//! Ownership of objects. The names of a cluster's objects are derived from the cluster's name, so an existing object of
//! such a name may belong to another cluster or to a user. An object belongs to this cluster if an owner reference says
//! so, or if it has no controller and has the cluster's label. Examples of the latter are a retained volume, a Secret
//! from a backup, and objects left by an orphaning deletion. Any other object is never written and never deleted.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::objects::labels::{CLUSTER, PREFLIGHT_OF, REDKEY_PREFLIGHT_OF};
use crate::runtime::cache::{Cache, ClusterKey, ClusterKind};
use crate::runtime::context::Context;

/// Why an object does not belong to this cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// Another object controls it.
    #[error(
        "{object} belongs to {owner} and is left as it is. This cluster needs the name: rename one of them, or delete \
         that {kind} if it is not needed"
    )]
    Controlled {
        /// Its kind and name.
        object: String,
        /// Its kind.
        kind: String,
        /// The kind and name of its owner.
        owner: String,
    },
    /// An earlier cluster of the same name controls it.
    #[error("{0} belongs to a deleted {1} of the same name and is left until it is garbage-collected")]
    Earlier(String, String),
    /// No owner reference and no label assigns it to this cluster.
    #[error(
        "{object} exists, was not made for this cluster and is left as it is. This cluster needs the name: delete or \
         rename that {kind}, or hand it over with the label {label}"
    )]
    Unmarked {
        /// Its kind and name.
        object: String,
        /// Its kind.
        kind: String,
        /// The label that would assign it to this cluster.
        label: String,
    },
}

/// A cluster as the owner of objects.
#[derive(Clone, Debug)]
pub struct Owner {
    key: ClusterKey,
    uid: Option<String>,
}

impl Owner {
    /// The cluster of this key, as it is cached now.
    pub fn of(context: &Context, key: &ClusterKey) -> Self {
        let uid = match key.kind {
            ClusterKind::Valkey => {
                let cluster = context.caches.clusters.get_in(&key.namespace, &key.name);
                cluster.and_then(|cluster| cluster.uid())
            }
            ClusterKind::Redkey => {
                let cluster = context.caches.redkeys.get_in(&key.namespace, &key.name);
                cluster.and_then(|cluster| cluster.uid())
            }
        };
        Self { key: key.clone(), uid }
    }

    /// Whether an object of this cluster's namespace belongs to this cluster.
    pub fn check<K>(&self, kind: &str, object: &K) -> Result<(), Foreign>
    where
        K: ResourceExt,
    {
        let references = object.owner_references();
        if self.uid.is_some() && references.iter().any(|owner| Some(&owner.uid) == self.uid.as_ref()) {
            return Ok(());
        }
        let named = format!("{kind} {}", object.name_any());
        if let Some(owner) = references.iter().find(|owner| owner.controller == Some(true)) {
            return Err(if self.is_earlier(owner) {
                Foreign::Earlier(named, owner.kind.clone())
            } else {
                Foreign::Controlled {
                    object: named,
                    kind: kind.to_owned(),
                    owner: format!("{} {}", owner.kind, owner.name),
                }
            });
        }
        let marked = |label: &str| object.labels().get(label) == Some(&self.key.name);
        let (mark, preflight) = match self.key.kind {
            ClusterKind::Valkey => (CLUSTER, PREFLIGHT_OF),
            ClusterKind::Redkey => (candor_api::redkey::CLUSTER_LABEL, REDKEY_PREFLIGHT_OF),
        };
        if marked(mark) || marked(preflight) {
            return Ok(());
        }
        Err(Foreign::Unmarked {
            object: named,
            kind: kind.to_owned(),
            label: format!("{mark}={}", self.key.name),
        })
    }

    fn is_earlier(&self, owner: &OwnerReference) -> bool {
        let kind = match self.key.kind {
            ClusterKind::Valkey => "ValkeyCluster",
            ClusterKind::Redkey => "RedkeyCluster",
        };
        owner.kind == kind && owner.name == self.key.name
    }

    /// One object of the cluster, unless it belongs to another owner.
    pub fn get<K>(&self, cache: &Cache<K>, name: &str) -> Option<Arc<K>>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        cache.get(&self.key, name).filter(|object| self.owns(&**object))
    }

    /// All objects of the cluster, without those that have its label but another owner.
    pub fn list<K>(&self, cache: &Cache<K>) -> Vec<Arc<K>>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned,
    {
        let mut objects = cache.list(&self.key);
        objects.retain(|object| self.owns(&**object));
        objects
    }

    /// Whether an object belongs to this cluster.
    pub fn owns<K: Resource<DynamicType = ()>>(&self, object: &K) -> bool {
        self.check(&K::kind(&()), object).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;
    use serde_json::{Value, json};

    use super::*;

    fn owner() -> Owner {
        Owner {
            key: ClusterKey {
                kind: crate::runtime::cache::ClusterKind::Valkey,
                namespace: "shop".to_owned(),
                name: "cart".to_owned(),
            },
            uid: Some("1".to_owned()),
        }
    }

    fn service(labels: &Value, owners: &Value) -> Service {
        let metadata = json!({"name": "valkey-cart", "labels": labels, "ownerReferences": owners});
        serde_json::from_value(json!({ "metadata": metadata })).unwrap()
    }

    fn by(kind: &str, name: &str, uid: &str, controller: bool) -> Value {
        json!([{"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, "controller": controller}])
    }

    #[test]
    fn an_object_is_ours_by_owner_reference_or_by_label_where_nothing_else_controls_it() {
        let ours = json!({"valkey.io/cluster": "cart"});
        let none = json!({});
        let table = [
            (&none, by("ValkeyCluster", "cart", "1", true), "ours"),
            (&none, by("ValkeyCluster", "cart", "1", false), "ours"),
            (&ours, json!([]), "ours"),
            (&ours, by("Backup", "nightly", "7", false), "ours"),
            (
                &ours,
                by("ValkeyCluster", "cart-2", "2", true),
                "Service valkey-cart belongs to ValkeyCluster cart-2 and is left as it is",
            ),
            (&ours, by("Release", "web", "7", true), "belongs to Release web and"),
            (
                &ours,
                by("ValkeyCluster", "cart", "0", true),
                "belongs to a deleted ValkeyCluster of the same name",
            ),
            (
                &none,
                json!([]),
                "Service valkey-cart exists, was not made for this cluster",
            ),
            (
                &none,
                by("Backup", "nightly", "7", false),
                "with the label valkey.io/cluster=cart",
            ),
        ];
        for (labels, owners, expected) in table {
            let object = service(labels, &owners);
            let said = owner()
                .check("Service", &object)
                .map_or_else(|why| why.to_string(), |()| "ours".to_owned());
            assert!(said.contains(expected), "{labels} {owners}: {said}");
        }
    }
}
