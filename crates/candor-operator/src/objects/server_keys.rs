//! Facts about the servers' configuration keys: which of them need a restart, and their default values.

use valkey_admin::Version;
use valkey_admin::ids::Family;

use super::server_defaults::{NEWEST, OLDER};

/// Keys that take effect only at start in at least one server version. If another version accepts such a key at run
/// time, a restart is still correct for both.
const AT_START: &[&str] = &[
    "aclfile",
    "always-show-logo",
    "aof-rewrite-cpulist",
    "aof_rewrite_cpulist",
    "appenddirname",
    "appendfilename",
    "bgsave-cpulist",
    "bgsave_cpulist",
    "bio-cpulist",
    "bio_cpulist",
    "cluster-config-file",
    "cluster-databases",
    "cluster-enabled",
    "cluster-port",
    "daemonize",
    "databases",
    "dbfilename",
    "dir",
    "disable-thp",
    "enable-debug-command",
    "enable-module-command",
    "enable-protected-configs",
    "hash-seed",
    "include",
    "io-threads",
    "io-threads-do-reads",
    "loadmodule",
    "logfile",
    "mptcp",
    "pidfile",
    "rdbchecksum",
    "rdma-bind",
    "rdma-completion-vector",
    "rdma-rx-size",
    "rename-command",
    "repl-mptcp",
    "replicaof",
    "server-cpulist",
    "server_cpulist",
    "set-proc-title",
    "slaveof",
    "socket-mark-id",
    "supervised",
    "syslog-enabled",
    "syslog-facility",
    "syslog-ident",
    "tcp-backlog",
    "unixsocket",
    "unixsocketgroup",
    "unixsocketperm",
    "user",
];

/// Whether a running server accepts the key with `CONFIG SET`. An unknown key counts as live, so that the server
/// itself rejects it without a restart.
pub fn live(key: &str) -> bool {
    AT_START.binary_search(&key).is_err()
}

/// The default value of a key, or None if it is unknown. Without a version, the default of the newest version.
pub fn default_of(key: &str, version: Option<Version>) -> Option<&'static str> {
    let older = version.is_some_and(|version| version.family == Family::Redis || version.major < 8);
    let find = |table: &[(&'static str, &'static str)]| {
        let found = table.binary_search_by_key(&key, |(known, _)| known);
        found.ok().map(|index| table[index].1)
    };
    older.then(|| find(OLDER)).flatten().or_else(|| find(NEWEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_speak_of_different_keys() {
        assert!(AT_START.is_sorted());
        assert!(NEWEST.is_sorted_by_key(|(key, _)| *key));
        assert!(OLDER.is_sorted_by_key(|(key, _)| *key));
        for (key, _) in NEWEST.iter().chain(OLDER) {
            assert!(live(key), "{key} needs a restart, so nobody asks for its default");
        }
    }

    #[test]
    fn a_default_depends_on_the_generation() {
        let version = |family, major| Version {
            family,
            major,
            minor: 0,
            patch: 0,
        };
        let table = [
            ("repl-backlog-size", Some(version(Family::Redis, 7)), Some("1048576")),
            ("repl-backlog-size", Some(version(Family::Valkey, 7)), Some("1048576")),
            ("repl-backlog-size", Some(version(Family::Valkey, 9)), Some("10485760")),
            ("repl-backlog-size", None, Some("10485760")),
            ("maxmemory-policy", Some(version(Family::Redis, 7)), Some("noeviction")),
            ("no-such-key", None, None),
        ];
        for (key, version, default) in table {
            assert_eq!(default_of(key, version), default, "{key} {version:?}");
        }
    }
}
