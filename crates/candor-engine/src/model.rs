//! Names of things: shards, members, and what is wanted of them.

use std::fmt;

use valkey_admin::Version;

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
