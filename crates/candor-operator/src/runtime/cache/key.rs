//! The key of a cluster, from the objects that belong to it.

use std::fmt;

use candor_api::ValkeyCluster;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::{ClusterKey, ClusterKind};
use crate::objects::labels;

impl ClusterKey {
    /// The key of a cluster.
    pub fn of(cluster: &ValkeyCluster) -> Self {
        Self {
            kind: ClusterKind::Valkey,
            namespace: cluster.namespace().unwrap_or_default(),
            name: cluster.name_any(),
        }
    }

    /// The cluster that an object belongs to according to its label.
    pub fn by_label(meta: &ObjectMeta) -> Option<Self> {
        Self::by_valkey_label(meta).or_else(|| Self::by_redkey_label(meta))
    }

    /// The `ValkeyCluster` that an object belongs to.
    pub fn by_valkey_label(meta: &ObjectMeta) -> Option<Self> {
        Self::by(meta, ClusterKind::Valkey, labels::CLUSTER)
    }

    /// The `RedkeyCluster` that an object belongs to.
    pub fn by_redkey_label(meta: &ObjectMeta) -> Option<Self> {
        Self::by(meta, ClusterKind::Redkey, candor_api::redkey::CLUSTER_LABEL)
    }

    /// The cluster that a preflight pod belongs to.
    pub fn of_preflight(meta: &ObjectMeta) -> Option<Self> {
        let redkey = || Self::by(meta, ClusterKind::Redkey, labels::REDKEY_PREFLIGHT_OF);
        Self::by(meta, ClusterKind::Valkey, labels::PREFLIGHT_OF).or_else(redkey)
    }

    fn by(meta: &ObjectMeta, kind: ClusterKind, label: &str) -> Option<Self> {
        Some(Self {
            kind,
            namespace: meta.namespace.clone()?,
            name: meta.labels.as_ref()?.get(label)?.clone(),
        })
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ClusterKind::Valkey => write!(f, "{}/{}", self.namespace, self.name),
            ClusterKind::Redkey => write!(f, "rkcl {}/{}", self.namespace, self.name),
        }
    }
}
