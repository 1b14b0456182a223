//! Names of things: shards, members, and what is wanted of them.

use std::fmt;

use valkey_admin::{NodeId, Version};

/// Which shard, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardIndex(pub u32);

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which member: its shard and its place there. Places are not roles: any member may be the primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberRef {
    /// Its shard.
    pub shard: ShardIndex,
    /// Its place, from 0.
    pub node: u32,
}

impl fmt::Display for MemberRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.shard, self.node)
    }
}

impl std::str::FromStr for MemberRef {
    type Err = NoMember;
    fn from_str(text: &str) -> Result<Self, NoMember> {
        let parts = text.split_once('-');
        let read = parts.and_then(|(shard, node)| Some((shard.parse().ok()?, node.parse().ok()?)));
        let (shard, node) = read.ok_or_else(|| NoMember(text.to_owned()))?;
        Ok(Self {
            shard: ShardIndex(shard),
            node,
        })
    }
}

/// Text that names no member.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no member: expected shard and place, such as 0-1")]
pub struct NoMember(pub String);

/// A failover that a person asks for. It names the primary that shall give way by its id, so that asking twice is
/// asking once: when another is the primary, it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Of which shard.
    pub shard: ShardIndex,
    /// Who shall give way.
    pub from: NodeId,
    /// Who shall take over; the best replica where nobody is named.
    pub to: Option<MemberRef>,
}

impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard, self.from)?;
        self.to.map_or(Ok(()), |to| write!(f, "/{to}"))
    }
}

impl std::str::FromStr for Handover {
    type Err = NoHandover;
    fn from_str(text: &str) -> Result<Self, NoHandover> {
        let mut parts = text.split('/');
        let shard = parts.next().and_then(|shard| shard.parse().ok()).map(ShardIndex);
        let from = parts.next().and_then(|id| id.parse().ok());
        let to = parts.next().map(str::parse::<MemberRef>).transpose().ok();
        match (shard, from, to, parts.next()) {
            (Some(shard), Some(from), Some(to), None) => Ok(Self { shard, from, to }),
            _ => Err(NoHandover(text.to_owned())),
        }
    }
}

/// Text that asks for no failover.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no failover: expected shard and node id of its primary, such as 0/<40 hex digits>")]
pub struct NoHandover(pub String);

/// What a person wants, in the engine's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// How many shards.
    pub shards: u32,
    /// How many replicas each has.
    pub replicas: u32,
    /// Look and tell, change nothing.
    pub paused: bool,
    /// The node timeout that servers shall run with, in milliseconds.
    pub node_timeout: u64,
    /// Members have volumes.
    pub persistence: bool,
    /// What the wanted image says it is, as far as its tag tells.
    pub version: Option<Version>,
    /// A person insists on a version that the data may not go back to.
    pub downgrade: bool,
    /// The annotation by which a user insists on it.
    pub downgrade_annotation: &'static str,
    /// A failover that a person asks for.
    pub failover: Option<Result<Handover, NoHandover>>,
}

impl Wanted {
    /// Every member there shall be.
    pub fn members(&self) -> impl Iterator<Item = MemberRef> + '_ {
        let places = move |shard| {
            (0..=self.replicas).map(move |node| MemberRef {
                shard: ShardIndex(shard),
                node,
            })
        };
        (0..self.shards).flat_map(places)
    }

    /// Whether a member is among them.
    pub fn wants(&self, member: MemberRef) -> bool {
        member.shard.0 < self.shards && member.node <= self.replicas
    }
}
