//! Builds Kubernetes objects from a spec with pure functions, without a client. The same spec gives the same bytes.
//!
//! | topic | module or function |
//! |---|---|
//! | objects that all members share: Services, configuration, Secrets, `PodDisruptionBudget` | [`shared()`] |
//! | one member's workload, volume and `ValkeyNode` | `workload`: [`member()`], [`member_beside`], [`node()`] |
//! | the live pod template, retained when only minor parts changed | `retained_template` |
//! | parts of the spec that the API server stores without validation; merging them | `preserved_fields`, `merge` |
//! | its pod: containers, probes, volumes and so on | `pod`, `containers`, `probes`, `security`, `scheduling` |
//! | the preflight pod of a rolling update, and its resource requests | [`preflight()`], `requests` |
//! | `valkey.conf`, and which keys the operator owns | `config` |
//! | which keys need a restart, and the default values of servers | [`server_keys`], `server_defaults` |
//! | users as ACL rules; the operator's own users | `acl`, `system_users` |
//! | settings of running servers, and whether they have taken effect | `live_settings`, `same_value` |
//! | the scripts that run in pods | `scripts/` |
//! | names, labels, annotations | [`names`], [`labels`] |
//! | what can be wrong with a spec | [`Problem`] |

mod acl;
mod config;
mod containers;
pub(crate) mod hash;
pub mod labels;
mod live_settings;
pub(crate) mod merge;
pub mod names;
mod pod;
mod preflight;
mod preserved_fields;
mod probes;
mod problem;
pub(crate) mod quantity;
mod requests;
mod retained_template;
mod same_value;
mod scheduling;
mod security;
mod server_defaults;
pub mod server_keys;
mod shared;
mod system_users;
#[cfg(test)]
mod tests;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use valkey_admin::Version;

pub use acl::{migrator, operator};
pub use config::tls_secret;
pub use containers::{METRICS, SERVER};
pub use live_settings::{Remembered, Settings, settings};
pub use preflight::{preflight, preflight_pod};
pub use problem::Problem;
pub(crate) use quantity::whole;
pub use retained_template::member_beside;
pub use same_value::agrees;
pub use shared::{SharedObject, keep_users, passwords_of_pods, shared, system_secret};
pub use system_users::{EXPORTER, MIGRATOR, OPERATOR, REPLICATION, SystemPasswords};
#[cfg(test)]
pub(crate) use tests::violations;
pub use workload::{MemberObjects, WorkloadObject, member, node, workload_type};

/// Client port of the servers. The cluster bus port is 10000 higher.
pub const PORT: u16 = 6379;
/// Port of the metrics exporter.
pub const EXPORTER_PORT: u16 = 9121;

/// Everything that objects are built from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The cluster.
    pub cluster: &'a ValkeyCluster,
    /// The server image: the image of the spec, or the default that was chosen because the spec names none.
    pub image: &'a str,
    /// The metrics exporter image to use if the spec names none.
    pub exporter_image: &'a str,
    /// The passwords of the operator's own users.
    pub passwords: &'a SystemPasswords,
    /// The existing Secrets that the spec references, by name: see [`referenced_secrets`].
    pub secrets: &'a BTreeMap<String, Secret>,
    /// The version of the servers, if known. The lowest one while they differ.
    pub version: Option<Version>,
    /// The keys that were set before: [`Remembered::from_config_map`].
    pub remembered: &'a Remembered,
}

/// The Secrets that a spec references: passwords of users, and certificates.
pub fn referenced_secrets(cluster: &ValkeyCluster) -> BTreeSet<String> {
    let open = |user: &&candor_api::valkey::spec::User| user.nopass != Some(true) && user.resetpass != Some(true);
    let of_user = |user: &candor_api::valkey::spec::User| {
        let named = user.password_secret.as_ref().and_then(|secret| secret.name.clone());
        named.unwrap_or_else(|| names::users_secret(&cluster.name_any()))
    };
    let users = cluster.spec.users.iter().filter(open).map(of_user);
    users.chain(config::tls_secret(cluster).map(str::to_owned)).collect()
}
