//! A frame: everything that Robin observes at one moment, as one line of JSON.
//!
//! The servers of a cluster hold nearly the same cluster map, so a frame contains every distinct entry once. Without
//! that, the frame of a hundred servers would have ten thousand entries.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use axum::body::Bytes;
use candor_engine::observation::{Facts, Server};
use candor_engine::outcome::Rejected;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use valkey_admin::{ClusterNodes, NodeEntry};

use super::super::api::PROTOCOL;

/// Largest frame, in bytes. The frame of 1500 servers has 12 MB.
pub const FRAME_LIMIT: usize = 32 << 20;
/// Largest sum of all cluster maps of a frame, in bytes of their entries. A short line cannot fill the memory of the
/// operator by repeating a long entry.
const MAPS_LIMIT: usize = 1 << 30;

/// What Robin observes at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The version of the protocol.
    pub protocol: u32,
    /// Robin's own version.
    pub version: String,
    /// The generation of the `RedkeyCluster` that Robin's last plan was made for.
    pub generation: Option<i64>,
    /// Whether that plan was empty: the servers are as this generation desires.
    pub plan_empty: bool,
    /// Commands of that plan that servers reject again and again.
    pub rejected: Vec<Rejected>,
    /// The servers, by ordinal.
    pub servers: BTreeMap<u32, ObservedServer>,
}

/// What Robin observes of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedServer {
    /// The uid of its pod: a pod that is recreated under the same name has another uid.
    pub pod_uid: String,
    /// The address that Robin queried. None if the pod has none, or if its server is over.
    pub ip: Option<IpAddr>,
    /// Its state. The times of pings and pongs in its cluster map are left out: they always change.
    pub server: Server,
    /// Why there is no usable reply, if the server or the network gave a reason.
    pub trouble: Option<String>,
    /// It rejects Robin's password.
    pub rejects_login: bool,
}

/// Why bytes are not a frame, or why a frame cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The frame is too large.
    #[error("a frame is larger than {FRAME_LIMIT} bytes")]
    TooLarge,
    /// The maps of the frame are too large.
    #[error("the cluster maps of a frame are larger than {MAPS_LIMIT} bytes")]
    MapsTooLarge,
    /// The frame has another version of the protocol.
    #[error("a frame has protocol {0} instead of {PROTOCOL}")]
    Protocol(u32),
    /// The frame is not the JSON that is expected.
    #[error("a frame cannot be decoded")]
    Malformed(#[from] serde_json::Error),
    /// A server refers to an entry that the frame does not contain.
    #[error("a frame refers to entry {0} of {1}")]
    NoEntry(u32, usize),
}

impl Frame {
    /// A frame of this version of Robin.
    pub fn new(servers: BTreeMap<u32, ObservedServer>) -> Self {
        Self {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            generation: None,
            plan_empty: false,
            rejected: Vec::new(),
            servers,
        }
    }

    /// Whether Robin's plan for this generation is empty.
    pub fn confirms(&self, generation: i64) -> bool {
        self.plan_empty && self.generation == Some(generation)
    }

    /// Whether the operator should reconcile because of this frame. Offsets, key counts and the memory in use always
    /// change, so only the first key counts.
    pub fn differs_from(&self, before: &Self) -> bool {
        self.steady() != before.steady()
    }

    fn steady(&self) -> Self {
        let mut steady = self.clone();
        for observed in steady.servers.values_mut() {
            if let Server::Up(facts) = &mut observed.server {
                (facts.keys, facts.offset, facts.memory.used) = (facts.keys.min(1), 0, 0);
            }
        }
        steady
    }

    /// The frame as one line.
    pub fn encode(&self) -> Result<Bytes, FrameError> {
        let mut entries = Entries::default();
        let mut servers = BTreeMap::new();
        for (ordinal, observed) in &self.servers {
            servers.insert(*ordinal, WireServer::of(observed, &mut entries)?);
        }
        let wire = Wire {
            protocol: self.protocol,
            version: self.version.clone(),
            generation: self.generation,
            plan_empty: self.plan_empty,
            rejected: self.rejected.clone(),
            entries: entries.list,
            servers,
        };
        let mut line = serde_json::to_vec(&wire)?;
        line.push(b'\n');
        if line.len() > FRAME_LIMIT {
            return Err(FrameError::TooLarge);
        }
        Ok(line.into())
    }

    /// Decodes a line. The protocol is checked first, because everything else may differ in another one.
    pub fn decode(line: &[u8]) -> Result<Self, FrameError> {
        if line.len() > FRAME_LIMIT {
            return Err(FrameError::TooLarge);
        }
        let head: Head = serde_json::from_slice(line)?;
        if head.protocol != PROTOCOL {
            return Err(FrameError::Protocol(head.protocol));
        }
        let wire: Wire = serde_json::from_slice(line)?;
        let sizes: Vec<usize> = wire.entries.iter().map(|raw| raw.get().len()).collect();
        let entries: Vec<NodeEntry> = wire
            .entries
            .iter()
            .map(|raw| serde_json::from_str(raw.get()))
            .collect::<Result<_, _>>()?;
        let mut left = MAPS_LIMIT;
        let mut servers = BTreeMap::new();
        for (ordinal, server) in wire.servers {
            for at in &server.map {
                let size = sizes.get(*at as usize).copied();
                let size = size.ok_or(FrameError::NoEntry(*at, entries.len()))?;
                left = left.checked_sub(size).ok_or(FrameError::MapsTooLarge)?;
            }
            servers.insert(ordinal, server.observed(&entries));
        }
        Ok(Self {
            protocol: wire.protocol,
            version: wire.version,
            generation: wire.generation,
            plan_empty: wire.plan_empty,
            rejected: wire.rejected,
            servers,
        })
    }
}

/// The field that a frame of every protocol has.
#[derive(Deserialize)]
struct Head {
    protocol: u32,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    protocol: u32,
    version: String,
    generation: Option<i64>,
    plan_empty: bool,
    #[serde(default)]
    rejected: Vec<Rejected>,
    /// The distinct entries of all cluster maps.
    entries: Vec<Box<RawValue>>,
    servers: BTreeMap<u32, WireServer>,
}

#[derive(Serialize, Deserialize)]
struct WireServer {
    pod_uid: String,
    ip: Option<IpAddr>,
    /// With an empty cluster map.
    server: Server,
    /// The entries of its cluster map, as indices.
    map: Vec<u32>,
    trouble: Option<String>,
    rejects_login: bool,
}

impl WireServer {
    fn of(observed: &ObservedServer, entries: &mut Entries) -> Result<Self, FrameError> {
        let (server, map) = match &observed.server {
            Server::Up(facts) => {
                let map = facts.map.0.iter().map(|entry| entries.index(entry));
                let map = map.collect::<Result<_, _>>()?;
                (Server::Up(Box::new(without_map(facts))), map)
            }
            other => (other.clone(), Vec::new()),
        };
        Ok(Self {
            pod_uid: observed.pod_uid.clone(),
            ip: observed.ip,
            server,
            map,
            trouble: observed.trouble.clone(),
            rejects_login: observed.rejects_login,
        })
    }

    /// Its indices are valid.
    fn observed(mut self, entries: &[NodeEntry]) -> ObservedServer {
        if let Server::Up(facts) = &mut self.server {
            let map = self.map.iter().filter_map(|at| entries.get(*at as usize));
            facts.map = ClusterNodes(map.cloned().collect());
        }
        ObservedServer {
            pod_uid: self.pod_uid,
            ip: self.ip,
            server: self.server,
            trouble: self.trouble,
            rejects_login: self.rejects_login,
        }
    }
}

fn without_map(facts: &Facts) -> Facts {
    Facts {
        map: ClusterNodes::default(),
        ..facts.clone()
    }
}

/// The distinct entries of a frame.
#[derive(Default)]
struct Entries {
    list: Vec<Box<RawValue>>,
    known: HashMap<String, u32>,
}

impl Entries {
    fn index(&mut self, entry: &NodeEntry) -> Result<u32, FrameError> {
        let untimed = NodeEntry {
            ping_sent: 0,
            pong_received: 0,
            ..entry.clone()
        };
        let text = serde_json::to_string(&untimed)?;
        if let Some(at) = self.known.get(&text) {
            return Ok(*at);
        }
        let at = u32::try_from(self.list.len()).map_err(|_| FrameError::TooLarge)?;
        self.list.push(RawValue::from_string(text.clone())?);
        self.known.insert(text, at);
        Ok(at)
    }
}
