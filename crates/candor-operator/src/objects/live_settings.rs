//! Settings of running servers that need no restart.
//!
//! A key that the spec no longer sets must return to its default, and a server does not report its defaults. The
//! `ConfigMap` therefore has an annotation with every key that was ever set ([`Remembered`]). The operator writes it
//! before it changes any server, and [`settings`] returns a value for each of these keys.

use std::collections::{BTreeMap, BTreeSet};

use candor_api::ValkeyCluster;
use k8s_openapi::api::core::v1::ConfigMap;
use valkey_admin::Capabilities;

use super::labels::SET_BEFORE;
use super::{Inputs, Problem, acl, config, server_keys};

/// Represents the user `default` among the remembered keys. No configuration key contains a slash.
const DEFAULT_USER: &str = "user/default";

/// The desired settings of running servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keys that a running server accepts, with their values.
    pub config: BTreeMap<String, String>,
    /// Every desired user with its complete rules. All other users are deleted, except `default`: it is left unchanged
    /// if it is not listed here.
    pub users: BTreeMap<String, Vec<String>>,
}

/// The keys that were ever set on a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered(BTreeSet<String>);

impl Remembered {
    /// Reads the annotation of the live `ConfigMap`.
    pub fn from_config_map(config_map: Option<&ConfigMap>) -> Self {
        let annotations = config_map.and_then(|found| found.metadata.annotations.as_ref());
        let text = annotations
            .and_then(|all| all.get(SET_BEFORE))
            .map_or("", String::as_str);
        Self(
            text.split(',')
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// Adds the keys that the spec sets now.
    pub(super) fn after(inputs: &Inputs<'_>) -> Self {
        let spec = &inputs.cluster.spec;
        let keys = spec.config.keys().map(|key| key.to_ascii_lowercase());
        let keys = keys.filter(|key| server_keys::live(key));
        let user = spec
            .users
            .iter()
            .any(|user| user.name == "default")
            .then(|| DEFAULT_USER.to_owned());
        let limit = inputs
            .cluster
            .spec
            .resources
            .as_ref()
            .and_then(|resources| resources.limits.get("memory"));
        let derived = limit.map(|_| "maxmemory".to_owned());
        Self(
            inputs
                .remembered
                .0
                .iter()
                .cloned()
                .chain(keys)
                .chain(user)
                .chain(derived)
                .collect(),
        )
    }

    /// Keys that are no longer set and have no known default: only a restart resets them.
    pub fn lost(&self, cluster: &ValkeyCluster) -> Vec<&str> {
        let set = |key: &str| cluster.spec.config.keys().any(|now| now.eq_ignore_ascii_case(key));
        let known = |key: &str| key.contains('/') || server_keys::default_of(key, None).is_some();
        let keys = self.0.iter().map(String::as_str);
        keys.filter(|key| !set(key) && !known(key)).collect()
    }

    /// Removes a key that no server knows. No server ever accepted it, so there is nothing to reset.
    pub fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(super) fn annotation(&self) -> Option<(String, String)> {
        let keys: Vec<&str> = self.0.iter().map(String::as_str).collect();
        (!keys.is_empty()).then(|| (SET_BEFORE.to_owned(), keys.join(",")))
    }
}

/// The desired settings of running servers.
pub fn settings(inputs: &Inputs<'_>) -> Result<Settings, Problem> {
    let mut config = config::at_run_time(inputs.cluster)?;
    let hands_over = inputs
        .version
        .is_some_and(|version| Capabilities::of(version).failover_on_shutdown);
    if hands_over {
        // start.sh sets the same value for servers that know the key.
        config
            .entry("shutdown-on-sigterm".to_owned())
            .or_insert_with(|| "failover".to_owned());
    }
    for key in inputs.remembered.0.iter().filter(|key| !key.contains('/')) {
        if let Some(default) = server_keys::default_of(key, inputs.version) {
            config.entry(key.clone()).or_insert_with(|| default.to_owned());
        }
    }
    let mut users = acl::users(inputs)?;
    if inputs.remembered.0.contains(DEFAULT_USER) {
        users.entry("default".to_owned()).or_insert_with(acl::untouched_default);
    }
    Ok(Settings { config, users })
}
