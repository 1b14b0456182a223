//! What all controllers share: the client, the caches, the recorder, and the few settings.

use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Client;

use super::runtime::{Cache, Recorder, Resources, Sink};

/// Settings that the API server does not have.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where dynamically provisioned volumes get their folders.
    pub volumes: PathBuf,
}

/// One cache for every kind that the controllers use.
macro_rules! caches {
    ($($field:ident: $kind:ty = $group:literal / $plural:literal,)*) => {
        /// What is known of the cluster.
        #[derive(Default)]
        pub struct Caches {
            $(#[doc = $plural] pub $field: Arc<Cache<$kind>>,)*
        }

        impl Caches {
            /// The cache that follows a resource, if any does.
            pub fn sink(&self, group: &str, plural: &str) -> Option<Arc<dyn Sink>> {
                match (group, plural) {
                    $(($group, $plural) => Some(self.$field.clone()),)*
                    _ => None,
                }
            }

            /// Kinds the server does not have are complete from the start.
            pub fn settle_absent(&self, served: impl Fn(&str, &str) -> bool) {
                $(if !served($group, $plural) { self.$field.is_empty_for_good(); })*
            }

            /// Ends when every cache has its first list.
            pub async fn synced(&self) {
                $(self.$field.synced().await;)*
            }
        }
    };
}

caches! {
    pods: Pod = "" / "pods",
    nodes: Node = "" / "nodes",
    leases: Lease = "coordination.k8s.io" / "leases",
    namespaces: Namespace = "" / "namespaces",
    service_accounts: ServiceAccount = "" / "serviceaccounts",
    services: Service = "" / "services",
    endpoints: Endpoints = "" / "endpoints",
    slices: EndpointSlice = "discovery.k8s.io" / "endpointslices",
    deployments: Deployment = "apps" / "deployments",
    replica_sets: ReplicaSet = "apps" / "replicasets",
    stateful_sets: StatefulSet = "apps" / "statefulsets",
    daemon_sets: DaemonSet = "apps" / "daemonsets",
    jobs: Job = "batch" / "jobs",
    revisions: ControllerRevision = "apps" / "controllerrevisions",
    claims: PersistentVolumeClaim = "" / "persistentvolumeclaims",
    volumes: PersistentVolume = "" / "persistentvolumes",
    classes: StorageClass = "storage.k8s.io" / "storageclasses",
    budgets: PodDisruptionBudget = "policy" / "poddisruptionbudgets",
}

/// What every controller needs.
#[derive(Clone)]
pub struct Plane {
    /// To the API server.
    pub client: Client,
    /// What is known.
    pub caches: Arc<Caches>,
    /// Which resources the server has.
    pub resources: Arc<Resources>,
    /// For events.
    pub recorder: Recorder,
    /// From outside.
    pub settings: Arc<Settings>,
}
