//! Parser for `ROLE`: the cheapest check of replication.

use serde::{Deserialize, Serialize};

use crate::{ParseError, Reply};

const COMMAND: &str = "ROLE";

/// State of a replica's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// About to connect.
    Connect,
    /// Handshake in progress.
    Connecting,
    /// Full sync in progress.
    Sync,
    /// Connected and in sync.
    Connected,
    /// No link.
    None,
}

/// A replica, as its primary reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follower {
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The offset that it acknowledged.
    pub offset: u64,
}

/// Role of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// A primary.
    Primary {
        /// Its replication offset.
        offset: u64,
        /// Connected replicas.
        followers: Vec<Follower>,
    },
    /// A replica.
    Replica {
        /// The primary's address.
        host: String,
        /// The primary's port.
        port: u16,
        /// State of the link.
        link: Link,
        /// Offset that it has received; absent before the first sync.
        offset: Option<u64>,
    },
}

impl Role {
    /// Parses the reply.
    pub fn parse(reply: &Reply) -> Result<Self, ParseError> {
        let items = reply.items(COMMAND)?;
        let item = |index: usize| {
            items
                .get(index)
                .ok_or_else(|| ParseError::new(COMMAND, "more fields", items.len()))
        };
        match item(0)?.text(COMMAND)?.as_str() {
            "master" | "primary" => {
                let followers = item(2)?
                    .items(COMMAND)?
                    .iter()
                    .map(follower)
                    .collect::<Result<_, _>>()?;
                Ok(Self::Primary {
                    offset: position(item(1)?)?.unwrap_or(0),
                    followers,
                })
            }
            "slave" | "replica" => Ok(Self::Replica {
                host: item(1)?.text(COMMAND)?,
                port: port(item(2)?)?,
                link: link(&item(3)?.text(COMMAND)?)?,
                offset: position(item(4)?)?,
            }),
            other => Err(ParseError::new(COMMAND, "master or slave", other)),
        }
    }
}

fn follower(reply: &Reply) -> Result<Follower, ParseError> {
    match reply.items(COMMAND)? {
        [host, at, offset] => Ok(Follower {
            host: host.text(COMMAND)?,
            port: port(at)?,
            offset: position(offset)?.unwrap_or(0),
        }),
        other => Err(ParseError::new(COMMAND, "host, port, offset", other.len())),
    }
}

fn port(reply: &Reply) -> Result<u16, ParseError> {
    let number = reply.int(COMMAND)?;
    u16::try_from(number).map_err(|_| ParseError::new(COMMAND, "a port", number))
}

/// Parses an offset; -1 means none yet.
fn position(reply: &Reply) -> Result<Option<u64>, ParseError> {
    Ok(u64::try_from(reply.int(COMMAND)?).ok())
}

fn link(text: &str) -> Result<Link, ParseError> {
    match text {
        "connect" => Ok(Link::Connect),
        "connecting" | "handshake" => Ok(Link::Connecting),
        "sync" => Ok(Link::Sync),
        "connected" => Ok(Link::Connected),
        "none" | "unknown" => Ok(Link::None),
        other => Err(ParseError::new(COMMAND, "a link state", other)),
    }
}
