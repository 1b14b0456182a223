//! The caches of all watched kinds, and which of them have been listed.

use candor_api::{RedkeyCluster, ValkeyCluster, ValkeyNode};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::core::PartialObjectMeta;

use crate::observe::pods::TerminatedPods;
use crate::runtime::cache::{Cache, ClusterKind};

/// The caches of all watched kinds.
#[derive(Clone)]
pub struct Caches {
    /// The clusters, including the operator's own status writes.
    pub clusters: Cache<ValkeyCluster>,
    /// The other kind of clusters.
    pub redkeys: Cache<RedkeyCluster>,
    /// The `ValkeyNode` objects of members.
    pub valkey_nodes: Cache<ValkeyNode>,
    /// Workloads without volumes.
    pub deployments: Cache<Deployment>,
    /// Workloads with volumes.
    pub stateful_sets: Cache<StatefulSet>,
    /// Members' pods.
    pub pods: Cache<Pod>,
    /// Members' pods that terminated before they were deleted.
    pub terminated: TerminatedPods,
    /// Preflight pods.
    pub preflights: Cache<Pod>,
    /// Members' volume claims.
    pub claims: Cache<PersistentVolumeClaim>,
    /// Services of the clusters.
    pub services: Cache<Service>,
    /// The ConfigMap of each cluster.
    pub configs: Cache<ConfigMap>,
    /// The operator's own Secrets: passwords and ACL files.
    pub secrets: Cache<Secret>,
    /// The PodDisruptionBudget of each cluster.
    pub budgets: Cache<PodDisruptionBudget>,
    /// Metadata of all other Secrets: a change is noticed by the watch, and the content is read when it is needed.
    pub foreign_secrets: Cache<PartialObjectMeta<Secret>>,
    /// Service accounts of Robin.
    pub service_accounts: Cache<ServiceAccount>,
    /// The permissions of Robin.
    pub roles: Cache<Role>,
    /// Bindings of Robin's permissions.
    pub role_bindings: Cache<RoleBinding>,
    /// Nodes, to decide whether the reported status of their pods can be trusted.
    pub nodes: Cache<Node>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            clusters: Cache::of_namespaces(),
            redkeys: Cache::of_namespaces(),
            service_accounts: Cache::of_clusters(),
            roles: Cache::of_clusters(),
            role_bindings: Cache::of_clusters(),
            valkey_nodes: Cache::of_clusters(),
            deployments: Cache::of_clusters().packed(),
            stateful_sets: Cache::of_clusters().packed(),
            pods: Cache::of_clusters().packed(),
            terminated: TerminatedPods::default(),
            preflights: Cache::of_preflights(),
            claims: Cache::of_clusters(),
            services: Cache::of_clusters(),
            configs: Cache::of_clusters(),
            secrets: Cache::of_clusters(),
            budgets: Cache::of_clusters(),
            foreign_secrets: Cache::of_namespaces(),
            nodes: Cache::of_namespaces(),
        }
    }
}

impl Caches {
    /// Waits until everything that a reconcile needs has been listed once. Nodes are not included: an operator that is
    /// restricted to some namespaces may never list them.
    pub async fn ready(&self) {
        self.clusters.ready().await;
        self.valkey_nodes.ready().await;
        self.deployments.ready().await;
        self.stateful_sets.ready().await;
        self.pods.ready().await;
        self.preflights.ready().await;
        self.claims.ready().await;
        self.services.ready().await;
        self.configs.ready().await;
        self.secrets.ready().await;
        self.budgets.ready().await;
        self.foreign_secrets.ready().await;
    }

    /// Whether everything that a reconcile of a `RedkeyCluster` needs has been listed once.
    pub fn has_redkeys(&self) -> bool {
        let kind = ClusterKind::Redkey;
        self.redkeys.has_listed(ClusterKind::Valkey)
            && self.deployments.has_listed(kind)
            && self.stateful_sets.has_listed(kind)
            && self.pods.has_listed(kind)
            && self.preflights.has_listed(kind)
            && self.claims.has_listed(kind)
            && self.services.has_listed(kind)
            && self.configs.has_listed(kind)
            && self.secrets.has_listed(kind)
            && self.budgets.has_listed(kind)
            && self.service_accounts.has_listed(kind)
            && self.roles.has_listed(kind)
            && self.role_bindings.has_listed(kind)
    }

    /// The kinds that have not been listed yet.
    pub fn missing(&self) -> Vec<&'static str> {
        [
            ("valkeyclusters", self.clusters.is_ready()),
            ("valkeynodes", self.valkey_nodes.is_ready()),
            ("deployments", self.deployments.is_ready()),
            ("statefulsets", self.stateful_sets.is_ready()),
            ("pods", self.pods.is_ready() && self.preflights.is_ready()),
            ("persistentvolumeclaims", self.claims.is_ready()),
            ("services", self.services.is_ready()),
            ("configmaps", self.configs.is_ready()),
            ("secrets", self.secrets.is_ready() && self.foreign_secrets.is_ready()),
            ("poddisruptionbudgets", self.budgets.is_ready()),
        ]
        .into_iter()
        .filter(|(_, ready)| !ready)
        .map(|(kind, _)| kind)
        .collect()
    }
}
