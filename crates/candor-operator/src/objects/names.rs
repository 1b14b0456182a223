//! The names of all objects that the operator creates for a cluster.

use candor_engine::model::MemberRef;

/// The headless Service, the `ConfigMap` and the `PodDisruptionBudget`.
pub fn shared(cluster: &str) -> String {
    format!("valkey-{cluster}")
}

/// The Service for clients: only ready members.
pub fn client_service(cluster: &str) -> String {
    format!("valkey-{cluster}-client")
}

/// The Secret with `users.acl` and the other files that a server reads when it starts.
pub fn acl_secret(cluster: &str) -> String {
    format!("internal-{cluster}-acl")
}

/// The Secret with the passwords of the operator's own users.
pub fn system_secret(cluster: &str) -> String {
    format!("internal-{cluster}-system-passwords")
}

/// The Secret that holds the passwords of users that reference no Secret.
pub fn users_secret(cluster: &str) -> String {
    format!("{cluster}-users")
}

/// A member's `ValkeyNode`.
pub fn node(cluster: &str, member: MemberRef) -> String {
    format!("{cluster}-{member}")
}

/// A member's Deployment or `StatefulSet`.
pub fn workload(cluster: &str, member: MemberRef) -> String {
    format!("valkey-{cluster}-{member}")
}

/// The preflight pod of a rolling update.
pub fn preflight(cluster: &str) -> String {
    format!("valkey-{cluster}-trial")
}

/// A member's volume claim.
pub fn claim(cluster: &str, member: MemberRef) -> String {
    format!("valkey-{cluster}-{member}-data")
}
