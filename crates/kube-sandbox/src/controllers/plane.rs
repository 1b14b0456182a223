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
use kube::core::ApiResource;

use super::machine::{Cache, Recorder, Sink};

/// What the controllers cannot find out from the API server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The CA that clients in pods trust (PEM); it goes to every namespace as `kube-root-ca.crt`.
    pub root_ca: Option<String>,
    /// Where dynamically provisioned volumes get their folders.
    pub volumes: PathBuf,
}

/// Every kind the controllers look at.
#[derive(Default)]
#[allow(missing_docs)] // each field is named for its kind
pub struct Caches {
    pub pods: Arc<Cache<Pod>>,
    pub nodes: Arc<Cache<Node>>,
    pub leases: Arc<Cache<Lease>>,
    pub namespaces: Arc<Cache<Namespace>>,
    pub service_accounts: Arc<Cache<ServiceAccount>>,
    pub services: Arc<Cache<Service>>,
    pub endpoints: Arc<Cache<Endpoints>>,
    pub slices: Arc<Cache<EndpointSlice>>,
    pub deployments: Arc<Cache<Deployment>>,
    pub replica_sets: Arc<Cache<ReplicaSet>>,
    pub stateful_sets: Arc<Cache<StatefulSet>>,
    pub daemon_sets: Arc<Cache<DaemonSet>>,
    pub jobs: Arc<Cache<Job>>,
    pub revisions: Arc<Cache<ControllerRevision>>,
    pub claims: Arc<Cache<PersistentVolumeClaim>>,
    pub volumes: Arc<Cache<PersistentVolume>>,
    pub classes: Arc<Cache<StorageClass>>,
    pub budgets: Arc<Cache<PodDisruptionBudget>>,
}

impl Caches {
    /// The cache that follows a resource, if any does.
    pub fn sink(&self, resource: &ApiResource) -> Option<Arc<dyn Sink>> {
        Some(match (resource.group.as_str(), resource.plural.as_str()) {
            ("", "pods") => self.pods.clone(),
            ("", "nodes") => self.nodes.clone(),
            ("coordination.k8s.io", "leases") => self.leases.clone(),
            ("", "namespaces") => self.namespaces.clone(),
            ("", "serviceaccounts") => self.service_accounts.clone(),
            ("", "services") => self.services.clone(),
            ("", "endpoints") => self.endpoints.clone(),
            ("discovery.k8s.io", "endpointslices") => self.slices.clone(),
            ("apps", "deployments") => self.deployments.clone(),
            ("apps", "replicasets") => self.replica_sets.clone(),
            ("apps", "statefulsets") => self.stateful_sets.clone(),
            ("apps", "daemonsets") => self.daemon_sets.clone(),
            ("batch", "jobs") => self.jobs.clone(),
            ("apps", "controllerrevisions") => self.revisions.clone(),
            ("", "persistentvolumeclaims") => self.claims.clone(),
            ("", "persistentvolumes") => self.volumes.clone(),
            ("storage.k8s.io", "storageclasses") => self.classes.clone(),
            ("policy", "poddisruptionbudgets") => self.budgets.clone(),
            _ => return None,
        })
    }
}

/// The ground every controller stands on.
#[derive(Clone)]
pub struct Plane {
    /// To the API server.
    pub client: Client,
    /// What is known.
    pub caches: Arc<Caches>,
    /// For events.
    pub recorder: Recorder,
    /// From outside.
    pub settings: Arc<Settings>,
}
