//! The objects of a `RedkeyCluster`, built by pure functions from its spec. The same spec gives the same bytes.
//!
//! | topic | module |
//! |---|---|
//! | the servers: `StatefulSet`, its pod, its claims | `servers`, `pod` |
//! | Service, `ConfigMap`, `PodDisruptionBudget` | `shared` |
//! | Robin: Deployment, `ServiceAccount`, Role, `RoleBinding` | `robin` |
//! | Robin's configuration | [`robin_config`] |
//! | Robin's token and certificate, and the servers' password | [`credentials`] |
//! | `spec.override` and `robin.template`, and the fields that they cannot change | `overrides` |
//! | what is kept of a `StatefulSet` of the existing operator | `adopted_template` |
//! | labels and names | [`names`] |
//! | the scripts that run in pods | `../scripts`, and those of `ValkeyCluster` |

mod adopted_template;
pub mod credentials;
pub mod names;
mod overrides;
mod pod;
mod robin;
pub mod robin_config;
mod servers;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use candor_api::RedkeyCluster;
use candor_api::redkey::status::ClusterStatus;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::config::Merged;
pub use adopted_template::{ADOPTED, Kept, adopted, is_current, is_theirs};
pub use credentials::RobinCredentials;
pub use servers::revision;

/// Client port of the servers. The cluster bus port is 10000 higher.
pub const PORT: u16 = 6379;
/// Robin's port for plain HTTP.
pub const ROBIN_PORT: u16 = 8080;
/// Robin's TLS port for the operator, with the certificate of its Secret.
pub const ROBIN_TLS_PORT: u16 = 8443;

/// Annotation of a server's pod and its `StatefulSet`: the [`revision`] of the spec that the template was built from.
pub const REVISION: &str = "redkey.inditex.dev/revision";

/// Everything that objects are built from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The cluster.
    pub cluster: &'a RedkeyCluster,
    /// Its configuration.
    pub config: &'a Merged,
    /// Robin's token and certificate.
    pub credentials: &'a RobinCredentials,
    /// The image that runs Robin.
    pub robin_image: &'a str,
    /// Number of pods in the `StatefulSet`. An operation may change it before or after the spec changes.
    pub replicas: i32,
    /// The status that a restarted Robin starts from.
    pub status: ClusterStatus,
    /// What is kept of a `StatefulSet` that the existing operator made.
    pub kept: Option<&'a Kept>,
}

impl Inputs<'_> {
    /// The labels that select the servers. All of their pods have them, also those of the existing operator.
    fn server_selector(&self) -> BTreeMap<String, String> {
        let kept = self.kept.map(|kept| kept.selector.clone());
        kept.unwrap_or_else(|| names::server_selector(&self.cluster.name_any()))
    }
}

/// The volumes of Robin's pod that no other pod has.
pub(super) fn robin_volumes() -> [&'static str; 2] {
    robin::VOLUMES
}

/// Why objects cannot be built from a spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A preserved part of the spec has a value of the wrong type.
    #[error("{field}: {reason}; write it as Kubernetes does")]
    Shape {
        /// Which part.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

/// A part of the spec that has no effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// A field of `spec.override` that the operator owns, or that Kubernetes does not know.
    OverrideIgnored {
        /// Its path, such as `spec.override.statefulSet.spec.replicas`.
        field: String,
        /// Why.
        reason: &'static str,
    },
    /// The image or the command of the container `robin` in `spec.robin.template`.
    RobinReplaced {
        /// Its path.
        field: String,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OverrideIgnored { field, reason } => write!(out, "{field} is ignored: {reason}"),
            Self::RobinReplaced { field } => write!(out, "{field} is replaced: Robin is part of the operator"),
        }
    }
}

/// Every object of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// The servers.
    pub stateful_set: StatefulSet,
    /// The Service with the ready servers.
    pub service: Service,
    /// The configuration and the scripts.
    pub config_map: ConfigMap,
    /// Limits evictions. None: no `PodDisruptionBudget` of this name may exist.
    pub budget: Option<PodDisruptionBudget>,
    /// The agent.
    pub robin: RobinObjects,
    /// Parts of the spec that have no effect, for events.
    pub notes: Vec<Note>,
}

/// The objects of the agent.
#[derive(Clone, Debug, PartialEq)]
pub struct RobinObjects {
    /// Its pod.
    pub deployment: Deployment,
    /// The desired state that a restarted Robin starts from.
    pub config_map: ConfigMap,
    /// Its token and certificate, and the servers' password.
    pub secret: Secret,
    /// Its service account.
    pub service_account: ServiceAccount,
    /// The permissions of the service account.
    pub role: Role,
    /// Binds the role to the service account.
    pub role_binding: RoleBinding,
}

/// Builds every object.
pub fn build(inputs: &Inputs<'_>) -> Result<Objects, BuildError> {
    let mut notes = Vec::new();
    let stateful_set = servers::stateful_set(inputs, &mut notes)?;
    let service = shared::service(inputs, &mut notes)?;
    let robin = robin::objects(inputs, &mut notes)?;
    notes.sort();
    notes.dedup();
    Ok(Objects {
        stateful_set,
        service,
        config_map: shared::config_map(inputs)?,
        budget: shared::budget(inputs)?,
        robin,
        notes,
    })
}

/// Decodes an object that was built as JSON.
fn typed<T: DeserializeOwned>(field: &'static str, value: Value) -> Result<T, BuildError> {
    serde_json::from_value(value).map_err(|error| BuildError::Shape {
        field,
        reason: error.to_string(),
    })
}
