//! Parsers for `INFO` and `CLUSTER INFO`: lines of `key:value`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ParseError;
use crate::ids::{Epoch, Family, Version};

/// The lines of a reply. Unknown keys are retained: newer servers add keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lines<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Lines<'a> {
    fn parse(text: &'a str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
        Self(lines.filter_map(|line| line.split_once(':')).collect())
    }

    fn number<T: std::str::FromStr>(&self, command: &'static str, key: &'static str) -> Result<Option<T>, ParseError> {
        match self.0.get(key) {
            Some(text) => text.parse().map(Some).map_err(|_| ParseError::new(command, key, text)),
            None => Ok(None),
        }
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| *value != "0")
    }
}

/// Primary or replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoleKind {
    /// Owns, or may own, slots.
    Primary,
    /// Replicates a primary.
    Replica,
}

/// State of a replica's link to its primary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upstream {
    /// The primary's host as configured.
    pub host: String,
    /// The primary's port.
    pub port: u16,
    /// Whether the link is up.
    pub link_up: bool,
    /// Whether a full copy is being received.
    pub syncing: bool,
    /// Seconds since the last byte was received.
    pub last_io_seconds: Option<i64>,
    /// Seconds since the link went down.
    pub down_since_seconds: Option<i64>,
}

/// The fields of `INFO` that the operator uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// Family and version; absent if the section was not requested.
    pub version: Option<Version>,
    /// A new value for every process.
    pub run_id: Option<String>,
    /// Seconds since the process started.
    pub uptime_seconds: Option<u64>,
    /// Primary or replica.
    pub role: Option<RoleKind>,
    /// Whether the dataset is being loaded.
    pub loading: bool,
    /// Whether the last write to the append-only file failed.
    pub log_failed: bool,
    /// The link to the primary; only for a replica.
    pub upstream: Option<Upstream>,
    /// Number of connected replicas.
    pub connected_replicas: u32,
    /// Replication offset: written (primary) or received (replica).
    pub offset: Option<u64>,
    /// Bytes.
    pub used_memory: Option<u64>,
    /// Bytes; 0 is no limit.
    pub max_memory: Option<u64>,
    /// Keys in all databases.
    pub keys: u64,
    /// Commands per second, as the server counts them.
    pub ops_per_second: Option<u64>,
    /// Connections of clients.
    #[serde(default)]
    pub clients: Option<u64>,
    /// Reads that found their key, since the process started.
    #[serde(default)]
    pub hits: Option<u64>,
    /// Reads that did not find their key, since the process started.
    #[serde(default)]
    pub misses: Option<u64>,
}

impl Info {
    /// Parses `INFO`, or any of its sections.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        const COMMAND: &str = "INFO";
        let lines = Lines::parse(text);
        let role = match lines.0.get("role") {
            Some(&("master" | "primary")) => Some(RoleKind::Primary),
            Some(&("slave" | "replica")) => Some(RoleKind::Replica),
            Some(other) => return Err(ParseError::new(COMMAND, "role:master or role:slave", other)),
            None => None,
        };
        // `slave_repl_offset` is what a replica has received; `master_repl_offset` is what a node has written, which
        // both roles report.
        let own = lines.number(COMMAND, "master_repl_offset")?;
        let followed = lines.number(COMMAND, "slave_repl_offset")?;
        Ok(Self {
            version: version(&lines)?,
            run_id: lines.0.get("run_id").map(|id| (*id).to_owned()),
            uptime_seconds: lines.number(COMMAND, "uptime_in_seconds")?,
            role,
            loading: lines.flag("loading"),
            log_failed: lines.0.get("aof_last_write_status") == Some(&"err"),
            upstream: match role {
                Some(RoleKind::Replica) => Some(upstream(&lines)?),
                _ => None,
            },
            connected_replicas: lines.number(COMMAND, "connected_slaves")?.unwrap_or(0),
            offset: if role == Some(RoleKind::Replica) {
                followed.or(own)
            } else {
                own
            },
            used_memory: lines.number(COMMAND, "used_memory")?,
            max_memory: lines.number(COMMAND, "maxmemory")?,
            keys: keys(&lines)?,
            ops_per_second: lines.number(COMMAND, "instantaneous_ops_per_sec")?,
            clients: lines.number(COMMAND, "connected_clients")?,
            hits: lines.number(COMMAND, "keyspace_hits")?,
            misses: lines.number(COMMAND, "keyspace_misses")?,
        })
    }

    /// Whether this is a replica with its link up and no full sync in progress: it has everything that its primary
    /// acknowledged, except for what is in flight.
    pub fn in_sync(&self) -> bool {
        self.upstream.as_ref().is_some_and(|up| up.link_up && !up.syncing) && !self.loading
    }
}

/// Valkey reports `redis_version:7.2.4` for compatibility; `server_name` and `valkey_version` are its real version.
fn version(lines: &Lines<'_>) -> Result<Option<Version>, ParseError> {
    if let Some(valkey) = lines.0.get("valkey_version") {
        return Version::parse(Family::Valkey, valkey).map(Some);
    }
    // Valkey 7.2 has no `valkey_version`.
    let family = if lines.0.get("server_name") == Some(&"valkey") {
        Family::Valkey
    } else {
        Family::Redis
    };
    lines
        .0
        .get("redis_version")
        .map(|text| Version::parse(family, text))
        .transpose()
}

fn upstream(lines: &Lines<'_>) -> Result<Upstream, ParseError> {
    const COMMAND: &str = "INFO replication";
    Ok(Upstream {
        host: lines.0.get("master_host").copied().unwrap_or_default().to_owned(),
        port: lines.number(COMMAND, "master_port")?.unwrap_or(0),
        link_up: lines.0.get("master_link_status") == Some(&"up"),
        syncing: lines.flag("master_sync_in_progress"),
        last_io_seconds: lines
            .number(COMMAND, "master_last_io_seconds_ago")?
            .filter(|&s: &i64| s >= 0),
        down_since_seconds: lines
            .number(COMMAND, "master_link_down_since_seconds")?
            .filter(|&s: &i64| s >= 0),
    })
}

/// A replica that its primary reports as online: it has completed its full sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnlineReplica {
    /// Its address, as the primary knows it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Seconds since its last acknowledgement. A replica acknowledges every second.
    pub lag_seconds: u64,
}

/// The online replicas in a primary's `INFO replication` (`slave0:ip=…,port=…,state=online,offset=…,lag=…`). A line
/// that cannot be parsed counts as a replica that is not online.
pub fn online_replicas(text: &str) -> Vec<OnlineReplica> {
    let lines = Lines::parse(text);
    let numbered = |name: &str| {
        let number = name.strip_prefix("slave");
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let replica = |line: &str| {
        let fields: BTreeMap<&str, &str> = line.split(',').filter_map(|field| field.split_once('=')).collect();
        let online = fields.get("state") == Some(&"online");
        Some(OnlineReplica {
            host: (*fields.get("ip")?).to_owned(),
            port: fields.get("port")?.parse().ok()?,
            lag_seconds: fields.get("lag")?.parse().ok()?,
        })
        .filter(|_| online)
    };
    let replicas = lines.0.iter().filter(|(name, _)| numbered(name));
    replicas.filter_map(|(_, line)| replica(line)).collect()
}

/// Sums the keys of all databases (`db0:keys=12,expires=0,…`).
fn keys(lines: &Lines<'_>) -> Result<u64, ParseError> {
    let mut total = 0u64;
    for (name, value) in &lines.0 {
        if name
            .strip_prefix("db")
            .is_none_or(|n| n.is_empty() || !n.bytes().all(|b| b.is_ascii_digit()))
        {
            continue;
        }
        let count = value.split(',').find_map(|part| part.strip_prefix("keys="));
        let count = count.and_then(|text| text.parse::<u64>().ok());
        total = total.saturating_add(count.ok_or_else(|| ParseError::new("INFO keyspace", "keys=number", value))?);
    }
    Ok(total)
}

/// The fields of `CLUSTER INFO`: the cheapest check of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterInfo {
    /// `cluster_state:ok`: this node serves commands.
    pub ok: bool,
    /// Slots that have an owner.
    pub slots_assigned: u16,
    /// Of those, owned by a node that is neither suspected nor failed.
    pub slots_ok: u16,
    /// Owned by a suspected node (PFAIL).
    pub slots_suspected: u16,
    /// Owned by a failed node (FAIL).
    pub slots_failed: u16,
    /// Number of nodes in the map.
    pub known_nodes: u32,
    /// Number of primaries that own slots.
    pub size: u32,
    /// The largest known epoch.
    pub current_epoch: Epoch,
    /// The epoch of this node.
    pub my_epoch: Epoch,
}

impl ClusterInfo {
    /// Parses `CLUSTER INFO`; all supported servers reply with all of these fields.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        const COMMAND: &str = "CLUSTER INFO";
        fn need<T: std::str::FromStr>(lines: &Lines<'_>, key: &'static str) -> Result<T, ParseError> {
            lines
                .number(COMMAND, key)?
                .ok_or_else(|| ParseError::new(COMMAND, key, "no such line"))
        }
        let lines = Lines::parse(text);
        Ok(Self {
            ok: match lines.0.get("cluster_state") {
                Some(&"ok") => true,
                Some(&"fail") => false,
                other => {
                    return Err(ParseError::new(
                        COMMAND,
                        "cluster_state:ok or fail",
                        other.unwrap_or(&"nothing"),
                    ));
                }
            },
            slots_assigned: need(&lines, "cluster_slots_assigned")?,
            slots_ok: need(&lines, "cluster_slots_ok")?,
            slots_suspected: need(&lines, "cluster_slots_pfail")?,
            slots_failed: need(&lines, "cluster_slots_fail")?,
            known_nodes: need(&lines, "cluster_known_nodes")?,
            size: need(&lines, "cluster_size")?,
            current_epoch: Epoch(need(&lines, "cluster_current_epoch")?),
            my_epoch: Epoch(need(&lines, "cluster_my_epoch")?),
        })
    }
}
