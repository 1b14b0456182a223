//! Parser for `CLUSTER NODES`: the cluster map of one node.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::shards::Shard;
use crate::slot::{Slot, SlotRange, SlotSet};
use crate::{Epoch, NodeId, ParseError};

const COMMAND: &str = "CLUSTER NODES";
/// The auxiliary field for the shard of a node.
const SHARD: &str = "shard-id";

/// Flags of a node, in the view of the node that replied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools)] // flags of the protocol, each independent of the others
pub struct Flags {
    /// The node that was asked.
    pub myself: bool,
    /// May own slots.
    pub primary: bool,
    /// Replicates a primary.
    pub replica: bool,
    /// Suspected by the node that replied (PFAIL).
    pub suspected: bool,
    /// Failed, by a majority of primaries (FAIL).
    pub failed: bool,
    /// Handshake in progress.
    pub handshake: bool,
    /// Its address is unknown.
    pub no_address: bool,
    /// A replica that must not be promoted.
    pub no_failover: bool,
}

impl Flags {
    fn parse(text: &str) -> Self {
        let mut flags = Self::default();
        for flag in text.split(',') {
            match flag {
                "myself" => flags.myself = true,
                "master" | "primary" => flags.primary = true,
                "slave" | "replica" => flags.replica = true,
                "fail?" => flags.suspected = true,
                "fail" => flags.failed = true,
                "handshake" => flags.handshake = true,
                "noaddr" => flags.no_address = true,
                "nofailover" => flags.no_failover = true,
                // `noflags`, and flags of newer servers.
                _ => {}
            }
        }
        flags
    }
}

/// A slot that is being migrated, as marked at the node that replied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mark {
    /// `[slot->-id]`: it migrates to another node.
    Migrating {
        /// The slot.
        slot: Slot,
        /// The destination.
        to: NodeId,
    },
    /// `[slot-<-id]`: it is imported from another node.
    Importing {
        /// The slot.
        slot: Slot,
        /// The source.
        from: NodeId,
    },
}

/// The announced address of a node. The host is empty if the node does not know its address yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// An IPv4 address, an IPv6 address without brackets, a name, or empty.
    pub host: String,
    /// Port for clients.
    pub port: u16,
    /// Port of the cluster bus; absent in replies of very old servers.
    pub bus_port: Option<u16>,
    /// The announced hostname.
    pub hostname: Option<String>,
    /// `shard-id` and other fields after the hostname.
    pub aux: Vec<(String, String)>,
}

impl Address {
    /// Parses `10.0.0.1:6379@16379,name,shard-id=…`. An IPv6 address has no brackets there: the port is after the last
    /// colon.
    fn parse(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new(COMMAND, "ip:port@cport[,hostname[,key=value…]]", text);
        let mut parts = text.split(',');
        let (host, behind) = parts.next().unwrap_or_default().rsplit_once(':').ok_or_else(wrong)?;
        let (port, bus_port) = match behind.split_once('@') {
            Some((port, bus)) => (port, Some(bus.parse().map_err(|_| wrong())?)),
            None => (behind, None),
        };
        let mut address = Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: port.parse().map_err(|_| wrong())?,
            bus_port,
            ..Self::default()
        };
        for part in parts {
            match part.split_once('=') {
                Some((key, value)) => address.aux.push((key.to_owned(), value.to_owned())),
                None if !part.is_empty() => address.hostname = Some(part.to_owned()),
                None => {}
            }
        }
        Ok(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// One line of `CLUSTER NODES`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeEntry {
    /// Its id.
    pub id: NodeId,
    /// Its address.
    pub address: Address,
    /// Its flags.
    pub flags: Flags,
    /// The primary that it replicates.
    pub primary: Option<NodeId>,
    /// Unix time in milliseconds of the oldest unanswered ping; 0 is none.
    pub ping_sent: u64,
    /// Unix time in milliseconds of the last pong.
    pub pong_received: u64,
    /// Its configuration epoch.
    pub epoch: Epoch,
    /// Whether the link from the node that replied is up.
    pub linked: bool,
    /// The slots that it owns.
    pub slots: SlotSet,
    /// The slots that are being migrated; only on the line of the node that replied.
    pub marks: Vec<Mark>,
}

impl NodeEntry {
    fn parse(line: &str) -> Result<Self, ParseError> {
        let mut fields = line.split_ascii_whitespace();
        let mut field = |expected| fields.next().ok_or_else(|| ParseError::new(COMMAND, expected, line));
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| ParseError::new(COMMAND, "a number", text))
        };
        let mut entry = Self {
            id: field("an id")?.parse()?,
            address: Address::parse(field("an address")?)?,
            flags: Flags::parse(field("flags")?),
            primary: match field("a primary's id or -")? {
                "-" => None,
                id => Some(id.parse()?),
            },
            ping_sent: number(field("the time of a ping")?)?,
            pong_received: number(field("the time of a pong")?)?,
            epoch: Epoch(number(field("an epoch")?)?),
            linked: match field("a link state")? {
                "connected" => true,
                "disconnected" => false,
                other => return Err(ParseError::new(COMMAND, "connected or disconnected", other)),
            },
            slots: SlotSet::new(),
            marks: Vec::new(),
        };
        for part in fields {
            match part.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                Some(mark) => entry.marks.push(parse_mark(mark)?),
                None => entry.slots.extend([part.parse::<SlotRange>()?]),
            }
        }
        Ok(entry)
    }

    /// What stands for its shard; absent until [`ClusterNodes::group`] has recorded it.
    pub fn shard(&self) -> Option<&str> {
        self.aux(SHARD)
    }

    /// Returns the value of an auxiliary field such as `shard-id`.
    pub fn aux(&self, key: &str) -> Option<&str> {
        self.address
            .aux
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, value)| value.as_str())
    }
}

fn parse_mark(text: &str) -> Result<Mark, ParseError> {
    if let Some((slot, to)) = text.split_once("->-") {
        Ok(Mark::Migrating {
            slot: slot.parse()?,
            to: to.parse()?,
        })
    } else if let Some((slot, from)) = text.split_once("-<-") {
        Ok(Mark::Importing {
            slot: slot.parse()?,
            from: from.parse()?,
        })
    } else {
        Err(ParseError::new(COMMAND, "slot->-id or slot-<-id", text))
    }
}

/// The cluster map of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterNodes(pub Vec<NodeEntry>);

impl ClusterNodes {
    /// Records which nodes belong to one shard, in the view of the same node. `CLUSTER NODES` does not contain it, and
    /// older versions of `CLUSTER SHARDS` do not contain a shard's id: the smallest id of its nodes stands for it.
    pub fn group(&mut self, shards: &[Shard]) {
        for shard in shards {
            let Some(first) = shard.nodes.iter().map(|node| node.id).min() else {
                continue;
            };
            for entry in &mut self.0 {
                if shard.nodes.iter().any(|node| node.id == entry.id) {
                    entry.address.aux.retain(|(key, _)| key != SHARD);
                    entry.address.aux.push((SHARD.to_owned(), first.to_string()));
                }
            }
        }
    }

    /// Parses the reply. One malformed line fails all of it: in half a map, nodes would appear to be missing.
    ///
    /// ```
    /// # use valkey_admin::ClusterNodes;
    /// let text = "07c37dfeb235213a872192d90877d0cd55635b91 127.0.0.1:30004@31004,,shard-id=69bc myself,master - 0 0 1 connected 0-5460";
    /// let map = ClusterNodes::parse(text)?;
    /// assert_eq!(map.myself().map(|me| me.slots.to_string()), Some("0-5460".to_owned()));
    /// # Ok::<(), valkey_admin::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        text.lines()
            .filter(|line| !line.trim().is_empty())
            .map(NodeEntry::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The node that was asked.
    pub fn myself(&self) -> Option<&NodeEntry> {
        self.0.iter().find(|node| node.flags.myself)
    }

    /// Returns a node by its id.
    pub fn get(&self, id: NodeId) -> Option<&NodeEntry> {
        self.0.iter().find(|node| node.id == id)
    }

    /// The primaries.
    pub fn primaries(&self) -> impl Iterator<Item = &NodeEntry> {
        self.0.iter().filter(|node| node.flags.primary)
    }

    /// All slots that have an owner.
    pub fn covered(&self) -> SlotSet {
        self.0.iter().fold(SlotSet::new(), |all, node| all.union(&node.slots))
    }
}
