//! What is known of the servers' configuration keys: which of them a running server does not take.

/// Keys that count only at the start, in any of the generations. A key that one generation takes at run time and
/// another does not is here too: a restart is right for both.
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

/// Whether a running server takes the key by `CONFIG SET`. A key nobody knows counts as live, so that the server
/// itself says what it thinks of it, without a restart.
pub fn live(key: &str) -> bool {
    !AT_START.contains(&key)
}

/// What a server has a key at when nobody sets it; none when that is not known.
pub fn default_of(_key: &str, _version: Option<valkey_admin::Version>) -> Option<&'static str> {
    None
}
