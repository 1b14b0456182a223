//! Commands that are not about the cluster, and where each goes.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Instant;

use valkey_admin::{NodeId, Reply};

use crate::node::{Follow, Node};
use crate::world::{Member, Mode, PORT, State};

/// One connection.
#[derive(Debug, Default)]
pub struct Session {
    /// Who it is; absent: the default user.
    user: Option<String>,
    /// It asked for the newer protocol.
    pub(crate) resp3: bool,
}

/// Options that a running server does not change.
const FIXED: &[&str] = &[
    "aclfile",
    "cluster-config-file",
    "cluster-enabled",
    "cluster-port",
    "daemonize",
    "databases",
    "io-threads",
    "rdma-port",
    "supervised",
    "unixsocket",
];

/// Options of servers with their defaults.
const OPTIONS: &[(&str, &str)] = &[
    ("activedefrag", "no"),
    ("appendfsync", "everysec"),
    ("appendonly", "no"),
    ("cluster-allow-replica-migration", "yes"),
    ("cluster-migration-barrier", "1"),
    ("cluster-node-timeout", "15000"),
    ("cluster-replica-validity-factor", "10"),
    ("cluster-require-full-coverage", "yes"),
    ("databases", "16"),
    ("hz", "10"),
    ("io-threads", "1"),
    ("lazyfree-lazy-eviction", "no"),
    ("maxclients", "10000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("notify-keyspace-events", ""),
    ("protected-mode", "yes"),
    ("rdb-del-sync-files", "no"),
    ("repl-backlog-size", "10485760"),
    ("repl-diskless-load", "disabled"),
    ("repl-diskless-sync-delay", "5"),
    ("repl-timeout", "60"),
    ("replica-ignore-disk-write-errors", "no"),
    ("save", "3600 1 300 100 60 10000"),
    ("shutdown-on-sigterm", "default"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("tcp-keepalive", "300"),
    ("timeout", "0"),
];

/// The memory of a key.
const KEY_BYTES: u64 = 100;

pub(crate) fn ok() -> Reply {
    Reply::from("OK")
}

pub(crate) fn error(message: impl Into<String>) -> Reply {
    Reply::Error(message.into())
}

impl State {
    /// Answers a command, and says whether others will hear of it.
    pub(crate) fn execute(&mut self, ip: IpAddr, session: &mut Session, arguments: &[String]) -> (Reply, bool) {
        let full = self.disks_full;
        let Some(member) = self.members.get_mut(&ip) else {
            return (error("ERR this process is ending"), false);
        };
        let node = &mut member.node;
        let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
        let command = argument(0).to_ascii_uppercase();
        let sub = argument(1).to_ascii_uppercase();
        match command.as_str() {
            "AUTH" => return (auth(node, session, &arguments[1..]), false),
            "HELLO" => return (hello(node, session, &arguments[1..]), false),
            "QUIT" => return (ok(), false),
            _ => {}
        }
        if session.user.is_none() && !node.users.open() {
            return (error("NOAUTH Authentication required."), false);
        }
        let rest = arguments.get(2..).unwrap_or_default();
        match (command.as_str(), sub.as_str()) {
            ("CLUSTER", _) => return self.cluster(ip, &sub, rest),
            ("MIGRATE", _) => return (self.migrate(ip, &arguments[1..]), true),
            _ => {}
        }
        let reply = match (command.as_str(), sub.as_str()) {
            ("PING", _) if full && node.map.primary.is_none() => {
                error("MISCONF Errors writing to the AOF file: No space left on device")
            }
            ("PING", _) => Reply::from("PONG"),
            ("INFO", _) => return (self.info(ip, full), false),
            ("ROLE", _) => self.role(ip),
            ("CONFIG", "GET") => config_get(node, rest),
            ("CONFIG", "SET") => config_set(node, rest),
            ("CONFIG", "RESETSTAT" | "REWRITE")
            | ("CLIENT" | "SELECT" | "ASKING" | "READONLY" | "ACL", "SAVE" | "LOAD")
            | ("CLIENT" | "SELECT" | "ASKING" | "READONLY", _) => ok(),
            ("ACL", "LIST") => node.users.list(),
            ("ACL", "WHOAMI") => Reply::from(session.user.as_deref().unwrap_or("default")),
            ("ACL", "SETUSER") => match rest.split_first() {
                Some((name, rules)) => node.users.set(name, rules).map_or_else(error, |()| ok()),
                None => error("ERR wrong number of arguments for 'acl|setuser' command"),
            },
            ("ACL", "DRYRUN") => match rest.first().filter(|user| node.users.has(user)) {
                Some(_) => ok(),
                None => error(format!("ERR User '{}' not found", argument(2))),
            },
            ("ACL", "DELUSER") => Reply::Int(i64::try_from(node.users.delete(rest)).unwrap_or(0)),
            ("DBSIZE", _) => Reply::Int(i64::try_from(node.total()).unwrap_or(i64::MAX)),
            ("FLUSHALL", _) if node.map.primary.is_some() => {
                error("READONLY You can't write against a read only replica.")
            }
            ("FLUSHALL", _) => {
                node.keys.clear();
                ok()
            }
            ("MEMORY", "USAGE") => Reply::Int(i64::try_from(KEY_BYTES).unwrap_or(i64::MAX)),
            _ => error(format!(
                "ERR unknown command '{}', with args beginning with: '{}'",
                argument(0),
                argument(1)
            )),
        };
        (reply, command == "FLUSHALL")
    }

    /// `INFO`, with the replicas of a primary. A frozen replica acknowledges nothing.
    fn info(&self, ip: IpAddr, full: bool) -> Reply {
        let node = &self.members[&ip].node;
        let mut replicas = String::new();
        for (index, (at, other)) in self.followers(node.map.id).enumerate() {
            let lag = if other.is(Mode::Frozen) { 9 } else { 0 };
            let _ = write!(
                replicas,
                "slave{index}:ip={at},port={PORT},state=online,offset={},lag={lag},type=replica\r\n",
                other.node.offset
            );
        }
        Reply::from(info(node, ip, full, &replicas).as_str())
    }

    /// The members with a link to a primary.
    fn followers(&self, id: NodeId) -> impl Iterator<Item = (&IpAddr, &Member)> {
        let members = self.members.iter();
        members.filter(move |(_, other)| other.node.map.primary == Some(id) && other.node.follow == Follow::Up)
    }

    fn role(&self, ip: IpAddr) -> Reply {
        let number = |number: u64| Reply::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let text = |number: u64| Reply::from(number.to_string().as_str());
        let node = &self.members[&ip].node;
        let Some(primary) = node.map.primary else {
            let followers = self.followers(node.map.id);
            let line = |(at, other): (&IpAddr, &Member)| {
                let fields = [
                    Reply::from(at.to_string().as_str()),
                    text(PORT.into()),
                    text(other.node.offset),
                ];
                Reply::Array(fields.to_vec())
            };
            let followers = followers.map(line).collect();
            return Reply::Array(vec![
                Reply::from("master"),
                number(node.offset),
                Reply::Array(followers),
            ]);
        };
        let (link, offset) = match node.follow {
            Follow::Up => ("connected", number(node.offset)),
            Follow::Copying { .. } => ("sync", Reply::Int(-1)),
            Follow::Down { .. } => ("connect", Reply::Int(-1)),
        };
        let host = node
            .map
            .peers
            .get(&primary)
            .map(|peer| peer.ip.to_string())
            .unwrap_or_default();
        Reply::Array(vec![
            Reply::from("slave"),
            Reply::from(host.as_str()),
            number(PORT.into()),
            Reply::from(link),
            offset,
        ])
    }
}

fn auth(node: &Node, session: &mut Session, arguments: &[String]) -> Reply {
    let (user, password) = match arguments {
        [password] => ("default", password.as_str()),
        [user, password] => (user.as_str(), password.as_str()),
        _ => return error("ERR wrong number of arguments for 'auth' command"),
    };
    if !node.users.admits(user, password) {
        return error("WRONGPASS invalid username-password pair or user is disabled.");
    }
    session.user = Some(user.to_owned());
    ok()
}

fn hello(node: &Node, session: &mut Session, arguments: &[String]) -> Reply {
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument.eq_ignore_ascii_case("AUTH"))
    {
        let refused = auth(node, session, arguments.get(at + 1..at + 3).unwrap_or_default());
        if matches!(refused, Reply::Error(_)) {
            return refused;
        }
    }
    session.resp3 = arguments.first().is_some_and(|version| version == "3");
    let pair = |key: &str, value: Reply| (Reply::from(key), value);
    Reply::Map(vec![
        pair("server", Reply::from("valkey")),
        pair("version", Reply::from(node.version.as_str())),
        pair("proto", Reply::Int(if session.resp3 { 3 } else { 2 })),
        pair("mode", Reply::from("cluster")),
        pair(
            "role",
            Reply::from(if node.map.primary.is_some() {
                "replica"
            } else {
                "master"
            }),
        ),
        pair("modules", Reply::Array(Vec::new())),
    ])
}

fn info(node: &Node, ip: IpAddr, full: bool, replicas: &str) -> String {
    let mut text = format!(
        "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:{}\r\nrun_id:{}\r\ntcp_port:{PORT}\r\n\
         uptime_in_seconds:{}\r\n\r\n# Persistence\r\nloading:0\r\nasync_loading:0\r\naof_last_write_status:{}\r\n\r\n\
         # Replication\r\n",
        node.version,
        node.run_id,
        node.began.elapsed().as_secs(),
        if full { "err" } else { "ok" },
    );
    // Writing into a String cannot fail.
    let _ = match node.map.primary {
        None => write!(text, "role:master\r\n{replicas}master_repl_offset:{}\r\n", node.offset),
        Some(primary) => {
            let host = node.map.peers.get(&primary).map_or(ip, |peer| peer.ip);
            let (status, syncing, offset, down) = match node.follow {
                Follow::Up => ("up", 0, node.offset, None),
                Follow::Copying { .. } => ("down", 1, 1, None),
                Follow::Down { since, can_resync } => ("down", 0, if can_resync { node.offset } else { 1 }, since),
            };
            let down = down.map_or(-1, |since: Instant| {
                i64::try_from(since.elapsed().as_secs()).unwrap_or(0)
            });
            write!(
                text,
                "role:slave\r\nmaster_host:{host}\r\nmaster_port:{PORT}\r\nmaster_link_status:{status}\r\n\
                 master_sync_in_progress:{syncing}\r\nslave_repl_offset:{offset}\r\n\
                 master_link_down_since_seconds:{down}\r\nmaster_repl_offset:{}\r\n",
                node.offset
            )
        }
    };
    let limit = node.config.get("maxmemory").map_or("0", String::as_str);
    let _ = write!(
        text,
        "\r\n# Memory\r\nused_memory:{}\r\nmaxmemory:{}\r\n\r\n# Keyspace\r\n",
        node.total() * KEY_BYTES,
        bytes(limit)
    );
    if node.total() > 0 {
        let _ = write!(text, "db0:keys={},expires=0,avg_ttl=0\r\n", node.total());
    }
    text
}

/// An amount of memory in a configuration file: `1600mb`.
fn bytes(text: &str) -> u64 {
    let text = text.to_ascii_lowercase();
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().unwrap_or(0);
    number
        * match unit {
            "kb" => 1 << 10,
            "mb" => 1 << 20,
            "gb" => 1 << 30,
            _ => 1,
        }
}

fn config_get(node: &Node, patterns: &[String]) -> Reply {
    let mut pairs = Vec::new();
    for pattern in patterns {
        let value = node.config.get(pattern).map(String::as_str);
        let default = || OPTIONS.iter().find(|(key, _)| key == pattern).map(|(_, value)| *value);
        if let Some(value) = value.or_else(default) {
            pairs.push((Reply::from(pattern.as_str()), Reply::from(value.trim_matches('"'))));
        }
    }
    Reply::Map(pairs)
}

fn config_set(node: &mut Node, arguments: &[String]) -> Reply {
    if arguments.is_empty() || !arguments.len().is_multiple_of(2) {
        return error("ERR wrong number of arguments for 'config|set' command");
    }
    for pair in arguments.chunks_exact(2) {
        let key = pair[0].as_str();
        if FIXED.contains(&key) {
            return error(format!(
                "ERR CONFIG SET failed (possibly related to argument '{key}') - can't set immutable config"
            ));
        }
        if !node.config.contains_key(key) && !OPTIONS.iter().any(|(known, _)| *known == key) {
            return error(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{key}'"
            ));
        }
        if key == "cluster-node-timeout" && pair[1].parse::<u64>().is_err() {
            return error(format!(
                "ERR CONFIG SET failed (possibly related to argument '{key}') - argument couldn't be parsed into an integer"
            ));
        }
    }
    for pair in arguments.chunks_exact(2) {
        node.config.insert(pair[0].clone(), pair[1].clone());
    }
    ok()
}
