//! Parser for `CLUSTER SHARDS`: shards with their slots and nodes, in the view of one node.

use serde::{Deserialize, Serialize};

use crate::info::RoleKind;
use crate::slot::{Slot, SlotRange, SlotSet};
use crate::{NodeId, ParseError, Reply};

const COMMAND: &str = "CLUSTER SHARDS";

/// Health of a node, in the view of the node that replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Health {
    /// Online.
    Online,
    /// Failed.
    Failed,
    /// Loads its dataset or runs a full sync.
    Loading,
}

/// One node of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardNode {
    /// Its id.
    pub id: NodeId,
    /// Its plain-text port, if it has one.
    pub port: Option<u16>,
    /// Its TLS port, if it has one.
    pub tls_port: Option<u16>,
    /// Its address.
    pub ip: String,
    /// Preferred endpoint for clients.
    pub endpoint: String,
    /// Its announced hostname.
    pub hostname: Option<String>,
    /// Primary or replica.
    pub role: RoleKind,
    /// Its replication offset.
    pub offset: u64,
    /// Its health.
    pub health: Health,
}

/// One shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The slots that it owns.
    pub slots: SlotSet,
    /// Its nodes.
    pub nodes: Vec<ShardNode>,
}

/// Parses the reply, in RESP2 or RESP3 form.
pub fn parse(reply: &Reply) -> Result<Vec<Shard>, ParseError> {
    reply.items(COMMAND)?.iter().map(shard).collect()
}

fn shard(reply: &Reply) -> Result<Shard, ParseError> {
    let mut shard = Shard {
        slots: SlotSet::new(),
        nodes: Vec::new(),
    };
    for (key, value) in reply.pairs(COMMAND)? {
        match key.as_str() {
            "slots" => shard.slots = slots(value.items(COMMAND)?)?,
            "nodes" => shard.nodes = value.items(COMMAND)?.iter().map(node).collect::<Result<_, _>>()?,
            _ => {}
        }
    }
    Ok(shard)
}

fn slots(bounds: &[Reply]) -> Result<SlotSet, ParseError> {
    let slot = |reply: &Reply| {
        let number = reply.int(COMMAND)?;
        u16::try_from(number)
            .ok()
            .and_then(Slot::new)
            .ok_or_else(|| ParseError::new(COMMAND, "a slot", number))
    };
    if !bounds.len().is_multiple_of(2) {
        return Err(ParseError::new(COMMAND, "first and last slots in turn", bounds.len()));
    }
    let range = |pair: &[Reply]| {
        let (first, last) = (slot(&pair[0])?, slot(&pair[1])?);
        SlotRange::new(first, last).ok_or_else(|| ParseError::new(COMMAND, "first before last", first))
    };
    bounds.chunks_exact(2).map(range).collect()
}

fn node(reply: &Reply) -> Result<ShardNode, ParseError> {
    let pairs = reply.pairs(COMMAND)?;
    let get = |field: &str| pairs.iter().find(|(key, _)| key == field).map(|(_, value)| *value);
    let need = |field: &'static str| get(field).ok_or_else(|| ParseError::new(COMMAND, field, "no such field"));
    let text = |field: &'static str| match get(field) {
        None | Some(Reply::Nil) => Ok(String::new()),
        Some(value) => value.text(COMMAND),
    };
    let port = |field: &'static str| match get(field) {
        None | Some(Reply::Nil) => Ok(None),
        Some(value) => {
            let number = value.int(COMMAND)?;
            u16::try_from(number)
                .map(Some)
                .map_err(|_| ParseError::new(COMMAND, "a port", number))
        }
    };
    Ok(ShardNode {
        id: need("id")?.text(COMMAND)?.parse()?,
        port: port("port")?,
        tls_port: port("tls-port")?,
        ip: text("ip")?,
        endpoint: text("endpoint")?,
        hostname: Some(text("hostname")?).filter(|name| !name.is_empty()),
        role: match need("role")?.text(COMMAND)?.as_str() {
            "master" | "primary" => RoleKind::Primary,
            "slave" | "replica" => RoleKind::Replica,
            other => return Err(ParseError::new(COMMAND, "master or replica", other)),
        },
        offset: u64::try_from(need("replication-offset")?.int(COMMAND)?).unwrap_or(0),
        health: match need("health")?.text(COMMAND)?.as_str() {
            "online" => Health::Online,
            "fail" | "failed" => Health::Failed,
            "loading" => Health::Loading,
            other => return Err(ParseError::new(COMMAND, "online, fail or loading", other)),
        },
    })
}
