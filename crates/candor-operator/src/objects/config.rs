//! `valkey.conf`: keys that the operator sets, keys that the spec sets, and which of them takes precedence.

use std::collections::BTreeMap;

use candor_api::ValkeyCluster;

use super::{PORT, Problem, quantity, server_keys};

/// Keys that only the operator sets, with the alternative for users. All `tls-*` and `cluster-announce-*` keys belong
/// to them too.
const OWNED: &[(&str, &str)] = &[
    ("aclfile", "users are set under users"),
    ("cluster-config-file", "remove it"),
    ("cluster-enabled", "remove it"),
    ("cluster-port", "remove it: the bus is on port 16379"),
    ("daemonize", "remove it: the server is the container's process"),
    ("dir", "remove it: the data is in /data"),
    ("include", "remove it: write the keys themselves"),
    ("masterauth", "remove it: members have a user of their own"),
    ("masteruser", "remove it: members have a user of their own"),
    ("pidfile", "remove it"),
    ("port", "remove it: servers listen on port 6379"),
    ("primaryauth", "remove it: members have a user of their own"),
    ("primaryuser", "remove it: members have a user of their own"),
    ("replicaof", "remove it: the operator makes replicas"),
    (
        "requirepass",
        "put the password into a Secret and name the user default under users",
    ),
    ("slaveof", "remove it: the operator makes replicas"),
    ("supervised", "remove it: the server is the container's process"),
    ("user", "users are set under users"),
];

/// Keys with a list of words as their value. Any other value that contains a space is one word and is quoted.
const LISTS: &[&str] = &[
    "bind",
    "bind-source-addr",
    "client-output-buffer-limit",
    "latency-tracking-info-percentiles",
    "loadmodule",
    "oom-score-adj-values",
    "rename-command",
    "save",
];

/// Paths inside a pod.
pub(super) const CONFIG_FOLDER: &str = "/config";
pub(super) const USERS_FOLDER: &str = "/config/users";
pub(super) const DATA_FOLDER: &str = "/data";
pub(super) const TLS_FOLDER: &str = "/tls";

/// Keys with their values.
pub(super) type Keys = BTreeMap<String, String>;

/// Whether members store their data on volumes.
pub(super) fn persistent(cluster: &ValkeyCluster) -> bool {
    cluster.spec.persistence.is_some()
}

/// The Secret with the certificates, if the cluster uses TLS.
pub fn tls_secret(cluster: &ValkeyCluster) -> Option<&str> {
    let tls = cluster.spec.networking.as_ref()?.tls.as_ref()?;
    Some(&tls.certificates.server.secret_name)
}

/// Values that the operator sets unless the spec sets the key.
fn defaults(cluster: &ValkeyCluster) -> Keys {
    let kept = persistent(cluster);
    let mut keys: Keys = [
        // The operator handles a crash before this timeout, and a stalled server must not cause a failover.
        ("cluster-node-timeout", "5000"),
        // Without volumes a replica holds the only remaining copy of a shard, so its age does not matter.
        ("cluster-replica-validity-factor", if kept { "10" } else { "0" }),
        ("cluster-allow-replica-migration", "no"),
        ("repl-diskless-sync-delay", "0"),
        // If a new replica loads from a file, it is in sync up to two seconds later: the server waits for two
        // one-second timers.
        ("repl-diskless-load", "on-empty-db"),
        // Without this setting, a replica with a full disk terminates with an assertion failure. With it, the replica
        // retains the unwritten data in memory until it can write again.
        ("replica-ignore-disk-write-errors", "yes"),
        ("protected-mode", "no"),
        ("appendonly", if kept { "yes" } else { "no" }),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    if !kept {
        // A server must never load the file of an earlier full synchronization as its data.
        keys.insert("save".to_owned(), String::new());
        keys.insert("rdb-del-sync-files".to_owned(), "yes".to_owned());
    }
    if let Some(limit) = memory_limit(cluster) {
        keys.insert("maxmemory".to_owned(), (limit / 4 * 3).to_string());
    }
    keys
}

fn memory_limit(cluster: &ValkeyCluster) -> Option<u128> {
    let limit = cluster.spec.resources.as_ref()?.limits.get("memory")?;
    quantity::whole(&limit.0)
}

/// The operator's defaults, overridden by the keys of the spec. The keys of the spec are validated here.
pub(super) fn free(cluster: &ValkeyCluster) -> Result<Keys, Problem> {
    let mut keys = defaults(cluster);
    for (written, value) in &cluster.spec.config {
        let key = written.to_ascii_lowercase();
        check(written, &key, value)?;
        keys.insert(key, value.trim().to_owned());
    }
    Ok(keys)
}

fn check(written: &str, key: &str, value: &str) -> Result<(), Problem> {
    let at = format!("spec.config[{written:?}]");
    let owned = OWNED
        .iter()
        .find(|(owned, _)| *owned == key)
        .map(|(_, instead)| *instead);
    let prefixed = key.starts_with("tls-").then_some("TLS is set under networking.tls");
    let announced = key
        .starts_with("cluster-announce-")
        .then_some("remove it: members announce their pods' addresses");
    if let Some(instead) = owned.or(prefixed).or(announced) {
        return Err(Problem::shape(at, format!("the operator owns this key; {instead}")));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(plain) {
        return Err(Problem::shape(
            at,
            "not the name of a configuration key: letters, digits, - _ and . only",
        ));
    }
    // A line end inside a value would add a second key that bypasses every check.
    if value.trim().chars().any(char::is_control) {
        return Err(Problem::shape(
            at,
            "the value has a line end or another control character; write it on one line",
        ));
    }
    Ok(())
}

/// Keys that only the operator sets.
fn owned(cluster: &ValkeyCluster) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("cluster-enabled", "yes".to_owned()),
        ("cluster-config-file", "nodes.conf".to_owned()),
        ("dir", DATA_FOLDER.to_owned()),
        ("aclfile", format!("{USERS_FOLDER}/users.acl")),
        ("include", format!("{USERS_FOLDER}/replication.conf")),
    ];
    if tls_secret(cluster).is_some() {
        lines.extend([
            ("port", "0".to_owned()),
            ("tls-port", PORT.to_string()),
            ("tls-replication", "yes".to_owned()),
            ("tls-cluster", "yes".to_owned()),
            ("tls-ca-cert-file", format!("{TLS_FOLDER}/ca.crt")),
            ("tls-cert-file", format!("{TLS_FOLDER}/tls.crt")),
            ("tls-key-file", format!("{TLS_FOLDER}/tls.key")),
            // Clients authenticate as ACL users. The server verifies a client certificate only if the client presents
            // one.
            ("tls-auth-clients", "optional".to_owned()),
        ]);
    } else {
        lines.push(("port", PORT.to_string()));
    }
    lines
}

/// The whole file. The operator's lines come last, because the last line of a key takes effect.
pub(super) fn file(cluster: &ValkeyCluster) -> Result<String, Problem> {
    let free = free(cluster)?;
    let free = free.iter().map(|(key, value)| line(key, value));
    let owned = owned(cluster);
    let owned = owned.iter().map(|(key, value)| line(key, value));
    Ok(free.chain(owned).collect())
}

fn line(key: &str, value: &str) -> String {
    let quoted = value.starts_with(['"', '\'']);
    let list = LISTS.contains(&key);
    if value.is_empty() || (!quoted && !list && value.contains(char::is_whitespace)) {
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{key} \"{escaped}\"\n")
    } else {
        format!("{key} {value}\n")
    }
}

/// The keys that take effect only after a restart.
pub(super) fn at_start(cluster: &ValkeyCluster) -> Result<Keys, Problem> {
    let mut keys = free(cluster)?;
    keys.retain(|key, _| !server_keys::live(key));
    Ok(keys)
}

/// The keys that a running server accepts with `CONFIG SET`.
pub(super) fn at_run_time(cluster: &ValkeyCluster) -> Result<Keys, Problem> {
    let mut keys = free(cluster)?;
    keys.retain(|key, _| server_keys::live(key));
    for value in keys.values_mut() {
        // `CONFIG SET` takes the value without the quotes of the file.
        if let Some(inner) = unquoted(value) {
            *value = inner;
        }
    }
    Ok(keys)
}

fn unquoted(value: &str) -> Option<String> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains('"')).then(|| inner.replace("\\\\", "\\"))
}
