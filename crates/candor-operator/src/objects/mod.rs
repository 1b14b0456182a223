//! Kubernetes objects from a spec: pure functions, no client. The same spec gives the same bytes.
//!
//! | you look for | it is in |
//! |---|---|
//! | what all members share: Services, configuration, Secrets, budget | [`shared()`] |
//! | one member's workload, volume and window | [`member()`], [`member_beside`], [`node()`] |
//! | its pod: containers, probes, volumes, security, scheduling | `pod`, `containers`, `probes`, `security`, `scheduling` |
//! | the pod that is tried before a roll | [`trial()`]; the room it asks for: `room` |
//! | `valkey.conf` and who owns which key | `config` |
//! | which keys need a restart, and the servers' defaults | [`server_keys`] |
//! | users as ACL rules | `acl` |
//! | what running servers are told, and whether they did it | [`settings()`], [`agrees`] |
//! | the scripts that run in pods | `scripts/` |
//! | names, labels, annotations | [`names`], [`labels`] |
//! | what can be wrong with a spec | [`Problem`] |

mod acl;
mod agreement;
mod config;
mod containers;
pub(crate) mod hash;
mod kept;
pub mod labels;
pub(crate) mod merge;
pub mod names;
mod passwords;
mod pod;
mod probes;
mod problem;
mod quantity;
mod room;
mod scheduling;
mod security;
mod server_defaults;
pub mod server_keys;
mod settings;
mod shape;
mod shared;
#[cfg(test)]
mod tests;
mod trial;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use valkey_admin::Version;

pub use acl::{migrator, operator};
pub use agreement::agrees;
pub use config::tls_secret;
pub use containers::{METRICS, SERVER};
pub use kept::member_beside;
pub use passwords::{EXPORTER, MIGRATOR, OPERATOR, REPLICATION, SystemPasswords};
pub use problem::Problem;
pub(crate) use quantity::whole;
pub use settings::{Remembered, Settings, settings};
pub use shared::{SharedObject, keep_users, passwords_of_pods, shared, system_secret};
#[cfg(test)]
pub(crate) use tests::violations;
pub use trial::trial;
pub use workload::{MemberObjects, WorkloadObject, member, node, workload_type};

/// Where servers listen; their bus is 10000 above.
pub const PORT: u16 = 6379;
/// Where metrics are served.
pub const EXPORTER_PORT: u16 = 9121;

/// Everything objects are made from.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The cluster.
    pub cluster: &'a ValkeyCluster,
    /// The server's image: the spec's, or the one that was chosen when the spec named none.
    pub image: &'a str,
    /// The metrics container's image when the spec names none.
    pub exporter_image: &'a str,
    /// The passwords of the operator's own users.
    pub passwords: &'a SystemPasswords,
    /// The Secrets that the spec names, by name, as far as they are there: see [`referenced_secrets`].
    pub secrets: &'a BTreeMap<String, Secret>,
    /// The servers', when known; the lowest while they differ.
    pub version: Option<Version>,
    /// What was set before: [`Remembered::from_config_map`].
    pub remembered: &'a Remembered,
}

/// The Secrets that a spec names: users' passwords and the certificates.
pub fn referenced_secrets(cluster: &ValkeyCluster) -> BTreeSet<String> {
    let open = |user: &&candor_api::valkey::spec::User| user.nopass != Some(true) && user.resetpass != Some(true);
    let of_user = |user: &candor_api::valkey::spec::User| {
        let named = user.password_secret.as_ref().and_then(|secret| secret.name.clone());
        named.unwrap_or_else(|| names::users_secret(&cluster.name_any()))
    };
    let users = cluster.spec.users.iter().filter(open).map(of_user);
    users.chain(config::tls_secret(cluster).map(str::to_owned)).collect()
}
