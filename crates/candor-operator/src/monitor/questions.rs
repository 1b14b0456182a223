//! The commands that the monitor sends to a member, and how replies become facts.

use std::sync::LazyLock;

use candor_engine::observation::{Applied, Facts, MemoryUse};
use redis::cmd;
use tokio::time::Instant;
use valkey_admin::info::{ClusterInfo, Info};
use valkey_admin::migrations::{self, Migration};
use valkey_admin::role::{Link, Role};
use valkey_admin::{ClusterNodes, ParseError, Reply, shards};

use super::following::Following;

/// One query: packed commands that are sent together.
pub(super) struct Question {
    pub(super) packed: Vec<u8>,
    pub(super) answers: usize,
}

impl Question {
    fn of(commands: &[&[&str]]) -> Self {
        let pack = |message: &&[&str]| cmd(message[0]).arg(&message[1..]).get_packed_command();
        Self {
            packed: commands.iter().flat_map(pack).collect(),
            answers: commands.len(),
        }
    }
}

const ROLE: &[&str] = &["ROLE"];
const CLUSTER_INFO: &[&str] = &["CLUSTER", "INFO"];
const PERSISTENCE: &[&str] = &["INFO", "persistence"];
/// A primary that rejects writes because of a disk error also rejects PING with this error.
const PING: &[&str] = &["PING"];
const INFO: &[&str] = &["INFO", "server", "replication", "persistence", "memory", "keyspace"];
const NODES: &[&str] = &["CLUSTER", "NODES"];
/// Which nodes a server takes for members of one shard.
const SHARDS: &[&str] = &["CLUSTER", "SHARDS"];
const TIMEOUT: &[&str] = &["CONFIG", "GET", "cluster-node-timeout"];
const MIGRATIONS: &[&str] = &["CLUSTER", "GETSLOTMIGRATIONS"];

/// The probe: only values that change when something is wrong.
pub(super) static PROBE: LazyLock<Question> = LazyLock::new(|| Question::of(&[ROLE, CLUSTER_INFO, PERSISTENCE]));
/// The full query. It begins with the commands of a probe.
pub(super) static WHOLE: LazyLock<Question> =
    LazyLock::new(|| Question::of(&[ROLE, CLUSTER_INFO, PERSISTENCE, PING, INFO, NODES, TIMEOUT, SHARDS]));
/// The full query of a server that migrates slots by pushing them.
pub(super) static WHOLE_OF_PUSHING: LazyLock<Question> = LazyLock::new(|| {
    Question::of(&[
        ROLE,
        CLUSTER_INFO,
        PERSISTENCE,
        PING,
        INFO,
        NODES,
        TIMEOUT,
        SHARDS,
        MIGRATIONS,
    ])
});

/// Why replies yield no facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The server is alive but cannot reply right now: LOADING, BUSY, MASTERDOWN.
    Busy(String),
    /// The server rejects the operator's user, or sends an undecodable reply.
    Wrong(String),
}

impl From<ParseError> for Unusable {
    fn from(error: ParseError) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// Classifies a server's error as busy or wrong.
fn usable(reply: &Reply) -> Result<&Reply, Unusable> {
    match reply {
        Reply::Error(message) if valkey_admin::reply::is_alive(message) => Err(Unusable::Busy(message.clone())),
        Reply::Error(message) => Err(Unusable::Wrong(message.clone())),
        other => Ok(other),
    }
}

/// The parts of a reply that trigger a reconcile when they change. Replication offsets are left out: they always
/// change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outline {
    role: Option<Part>,
    cluster: Option<ClusterInfo>,
    disk: Disk,
    busy: bool,
}

/// Failed disk operations of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Disk {
    log_failed: bool,
    save_failed: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Primary { followers: Vec<(String, u16)> },
    Replica { primary: (String, u16), link: Link },
}

impl Outline {
    /// Evaluates the replies to a probe. If the server is too busy to reply, its last reply stays valid.
    pub(super) fn next(&self, replies: &[Reply], observation: &mut Following, now: Instant) -> Result<Self, Unusable> {
        let role = not_busy(usable(&replies[0]).and_then(|reply| Ok(Role::parse(reply)?)))?;
        let cluster = not_busy(usable(&replies[1]).and_then(|reply| {
            let text = reply.text("CLUSTER INFO")?;
            Ok(ClusterInfo::parse(&text)?)
        }))?;
        let disk = not_busy(usable(&replies[2]).and_then(|reply| {
            let text = reply.text("INFO")?;
            Ok(Disk {
                log_failed: text.contains("aof_last_write_status:err"),
                save_failed: text.contains("rdb_last_bgsave_status:err"),
            })
        }))?;
        if let Some(role) = &role {
            observation.probe(role, now);
        }
        Ok(Self {
            busy: cluster.is_none(),
            role: role.map(Part::from).or_else(|| self.role.clone()),
            cluster: cluster.or(self.cluster),
            disk: disk.unwrap_or(self.disk),
        })
    }
}

/// The error that a server replies to PING if it cannot write to its disk.
fn disk_failed(ping: &Reply) -> Option<String> {
    match ping {
        Reply::Error(message) if message.starts_with("MISCONF") => Some(message.clone()),
        _ => None,
    }
}

fn not_busy<T>(answer: Result<T, Unusable>) -> Result<Option<T>, Unusable> {
    match answer {
        Ok(known) => Ok(Some(known)),
        Err(Unusable::Busy(_)) => Ok(None),
        Err(wrong) => Err(wrong),
    }
}

impl From<Role> for Part {
    fn from(role: Role) -> Self {
        match role {
            Role::Primary { followers, .. } => {
                let mut followers: Vec<_> = followers.into_iter().map(|one| (one.host, one.port)).collect();
                followers.sort_unstable();
                Self::Primary { followers }
            }
            Role::Replica { host, port, link, .. } => Self::Replica {
                primary: (host, port),
                // A replica without its primary cycles through these states. This is not a change.
                link: match link {
                    Link::Connect | Link::Connecting | Link::None => Link::None,
                    told => told,
                },
            },
        }
    }
}

/// Decodes the replies to [`WHOLE`] or [`WHOLE_OF_PUSHING`].
pub(super) fn facts(replies: &[Reply], observation: &mut Following) -> Result<Box<Facts>, Unusable> {
    let cluster = ClusterInfo::parse(&usable(&replies[1])?.text("CLUSTER INFO")?)?;
    let info = Info::parse(&usable(&replies[4])?.text("INFO")?)?;
    let mut map = ClusterNodes::parse(&usable(&replies[5])?.text("CLUSTER NODES")?)?;
    // A server that rejects the command is too old to have shards of its own idea.
    if let Ok(shards) = shards::parse(&replies[7]) {
        map.group(&shards);
    }
    let timeout = usable(&replies[6])?.pairs("CONFIG GET")?;
    let timeout = timeout.first().map(|(_, value)| value.int("CONFIG GET")).transpose()?;
    let id = map.myself().map(|me| me.id);
    let id = id.ok_or_else(|| ParseError::new("CLUSTER NODES", "a line of its own", "none"))?;
    let was_in_sync = observation.whole(&info);
    Ok(Box::new(Facts {
        id,
        map,
        ok: cluster.ok,
        loading: info.loading,
        in_sync: info.in_sync(),
        was_in_sync,
        keys: info.keys,
        memory: MemoryUse {
            used: info.used_memory.unwrap_or(0),
            limit: info.max_memory.unwrap_or(0),
        },
        offset: info.offset.unwrap_or(0),
        node_timeout: timeout.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(0),
        version: info.version,
        link_down: info.upstream.as_ref().is_some_and(|up| !up.link_up),
        run_id: info.run_id.unwrap_or_default(),
        migrations: replies.get(8).map_or_else(Vec::new, remembered),
        config: Applied::default(),
        users: Applied::default(),
        certificate: Applied::default(),
        // Replicas of older versions reply to PING even if their disk fails.
        disk_failed: disk_failed(&replies[3]).or(info.log_failed.then(|| "aof_last_write_status:err".to_owned())),
    }))
}

/// The text of `INFO` in the replies to a full query.
pub(super) fn info_text(replies: &[Reply]) -> Option<String> {
    replies.get(4)?.text("INFO").ok()
}

/// The slot migrations that a server remembers. A server that does not know the command remembers none.
fn remembered(reply: &Reply) -> Vec<Migration> {
    usable(reply)
        .ok()
        .and_then(|reply| migrations::parse(reply).ok())
        .unwrap_or_default()
}
