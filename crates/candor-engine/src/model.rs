//! Names: shards, members, and their desired state.

use std::collections::BTreeSet;
use std::fmt;

use valkey_admin::{NodeId, Version};

/// The index of a shard, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardIndex(pub u32);

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The reference to a member: its shard and its place there. Places are not roles: any member may be the primary.
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

/// A failover that a user requests. It names the current primary by its node id, so the request is idempotent: it is
/// done as soon as the shard has another primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverRequest {
    /// The shard.
    pub shard: ShardIndex,
    /// The primary to replace.
    pub from: NodeId,
    /// The replica to promote; if none is named, the best replica.
    pub to: Option<MemberRef>,
}

impl fmt::Display for FailoverRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.shard, self.from)?;
        self.to.map_or(Ok(()), |to| write!(f, "/{to}"))
    }
}

impl std::str::FromStr for FailoverRequest {
    type Err = NoFailoverRequest;
    fn from_str(text: &str) -> Result<Self, NoFailoverRequest> {
        let mut parts = text.split('/');
        let shard = parts.next().and_then(|shard| shard.parse().ok()).map(ShardIndex);
        let from = parts.next().and_then(|id| id.parse().ok());
        let to = parts.next().map(str::parse::<MemberRef>).transpose().ok();
        match (shard, from, to, parts.next()) {
            (Some(shard), Some(from), Some(to), None) => Ok(Self { shard, from, to }),
            _ => Err(NoFailoverRequest(text.to_owned())),
        }
    }
}

/// Text that is not a valid failover request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no failover: expected shard and node id of its primary, such as 0/<40 hex digits>")]
pub struct NoFailoverRequest(pub String);

/// Where slots go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotGoal {
    /// Evenly to all desired shards.
    #[default]
    Even,
    /// They stay where they are.
    Keep,
    /// Away from one member: to a replica of its shard by a planned failover, or to another shard.
    Vacate {
        /// The member that gives up its slots.
        member: MemberRef,
        /// The shard that gets them if no other member of its own shard can.
        to: Option<ShardIndex>,
    },
}

/// Which members may be replaced to match their template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Roll {
    /// All of them, one by one.
    #[default]
    All,
    /// Only this one, and only while it owns no slots.
    Only(MemberRef),
    /// None.
    Never,
}

/// The desired state, in the engine's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// How many shards.
    pub shards: u32,
    /// How many replicas each has.
    pub replicas: u32,
    /// Which members; none: the places from 0 to `replicas` of every shard.
    pub seats: Option<BTreeSet<MemberRef>>,
    /// Where slots go.
    pub slots: SlotGoal,
    /// Which members may be replaced.
    pub roll: Roll,
    /// Report status, make no changes.
    pub paused: bool,
    /// The desired node timeout of the servers, in milliseconds.
    pub node_timeout: u64,
    /// Members have volumes.
    pub persistence: bool,
    /// The version of the desired image, as far as its tag names one.
    pub version: Option<Version>,
    /// The user allows a downgrade to a version that may not be able to read the data.
    pub downgrade: bool,
    /// The annotation with which a user allows the downgrade.
    pub downgrade_annotation: &'static str,
    /// A failover that the user requests.
    pub failover: Option<Result<FailoverRequest, NoFailoverRequest>>,
}

impl Desired {
    /// Every desired member.
    pub fn members(&self) -> impl Iterator<Item = MemberRef> + '_ {
        let places = move |shard| {
            (0..=self.replicas).map(move |node| MemberRef {
                shard: ShardIndex(shard),
                node,
            })
        };
        let shards = if self.seats.is_some() { 0 } else { self.shards };
        let seated = self.seats.iter().flatten().copied();
        seated.chain((0..shards).flat_map(places))
    }

    /// Whether a member is desired.
    pub fn includes(&self, member: MemberRef) -> bool {
        match &self.seats {
            Some(seats) => seats.contains(&member),
            None => member.shard.0 < self.shards && member.node <= self.replicas,
        }
    }
}
