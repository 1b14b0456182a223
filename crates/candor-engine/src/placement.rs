//! Where primaries run: how many in each zone, and which planned failovers would spread them.

use std::collections::BTreeMap;

use crate::model::{MemberRef, ShardIndex};
use crate::observation::{Member, Observation};

/// A member and the zone that it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed<M> {
    /// Its shard.
    pub shard: u32,
    /// The member.
    pub member: M,
    /// The zone of its node; empty if the node has none.
    pub zone: String,
    /// What it can do in its shard.
    pub role: Role,
}

/// The role of a member, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is the primary.
    Primary,
    /// It is in sync: a failover can promote it.
    Candidate,
    /// It cannot be promoted now.
    Other,
}

/// A planned failover that brings a primary into a zone with fewer primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread<M> {
    /// The shard.
    pub shard: u32,
    /// The replica to promote.
    pub to: M,
    /// The zone of the present primary.
    pub from_zone: String,
    /// The zone of that replica.
    pub to_zone: String,
}

/// The number of primaries in every zone that has members.
fn primaries<M>(members: &[Placed<M>]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for member in members.iter().filter(|one| !one.zone.is_empty()) {
        *count.entry(member.zone.clone()).or_insert(0) += usize::from(member.role == Role::Primary);
    }
    count
}

/// The failovers that spread primaries over zones: each takes a primary from a zone that has at least two more than the
/// zone of the replica.
pub fn spread<M: Copy + Ord>(members: &[Placed<M>]) -> Vec<Spread<M>> {
    let mut count = primaries(members);
    let mut left: BTreeMap<u32, Vec<&Placed<M>>> = BTreeMap::new();
    for member in members.iter().filter(|one| !one.zone.is_empty()) {
        left.entry(member.shard).or_default().push(member);
    }
    let mut moves = Vec::new();
    loop {
        let best = left.values().filter_map(|shard| {
            let found = candidate(shard, &count)?;
            let gain = count[&found.from_zone].checked_sub(count[&found.to_zone])?;
            (gain >= 2).then_some((gain, found))
        });
        let Some((_, found)) = best.max_by_key(|(gain, found)| (*gain, std::cmp::Reverse(found.shard))) else {
            return moves;
        };
        *count.entry(found.from_zone.clone()).or_default() -= 1;
        *count.entry(found.to_zone.clone()).or_default() += 1;
        left.remove(&found.shard);
        moves.push(found);
    }
}

/// The replica of a shard in the zone with the fewest primaries.
fn candidate<M: Copy + Ord>(shard: &[&Placed<M>], count: &BTreeMap<String, usize>) -> Option<Spread<M>> {
    let primary = shard.iter().find(|one| one.role == Role::Primary)?;
    let candidates = shard.iter().filter(|one| one.role == Role::Candidate);
    let to = candidates.min_by_key(|one| (count.get(&one.zone), one.member))?;
    Some(Spread {
        shard: primary.shard,
        to: to.member,
        from_zone: primary.zone.clone(),
        to_zone: to.zone.clone(),
    })
}

/// How many primaries run in each zone, if failovers would spread them: `3 in a, 0 in b`.
pub fn piled_up<M: Copy + Ord>(members: &[Placed<M>]) -> Option<String> {
    if spread(members).is_empty() {
        return None;
    }
    let count = primaries(members);
    let zones: Vec<String> = count.iter().map(|(zone, count)| format!("{count} in {zone}")).collect();
    Some(zones.join(", "))
}

/// What the operator knows about the placement of primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// No failover would spread them.
    Spread,
    /// They are piled up, as this message says.
    PiledUp(String),
    /// The node of a member is not known, so its zone is not known either.
    Unknown,
}

impl Placement {
    /// The placement of a cluster's primaries, with the command that spreads them.
    pub fn of(observed: &Observation, namespace: &str, cluster: &str) -> Self {
        let mut pods = observed.members.values().filter_map(|member| member.pod.as_ref());
        if pods.any(|pod| pod.zone.is_none()) {
            return Self::Unknown;
        }
        let primaries: BTreeMap<ShardIndex, MemberRef> = observed
            .members
            .keys()
            .filter_map(|at| Some((at.shard, observed.primary(at.shard)?.0)))
            .collect();
        let placed = |(at, member): (&MemberRef, &Member)| Placed {
            shard: at.shard.0,
            member: *at,
            zone: member.pod.as_ref().and_then(|pod| pod.zone.clone()).unwrap_or_default(),
            role: match member.facts() {
                Some(_) if primaries.get(&at.shard) == Some(at) => Role::Primary,
                Some(facts) if facts.in_sync && member.stays() => Role::Candidate,
                _ => Role::Other,
            },
        };
        let members: Vec<Placed<MemberRef>> = observed.members.iter().map(placed).collect();
        let Some(piled) = piled_up(&members) else {
            return Self::Spread;
        };
        let shards: Vec<String> = spread(&members).iter().map(|one| one.shard.to_string()).collect();
        let failovers = match shards.as_slice() {
            [shard] => format!("a failover of shard {shard} spreads them"),
            shards => format!("failovers of shards {} spread them", shards.join(", ")),
        };
        Self::PiledUp(format!(
            "Primaries are piled up: {piled}; {failovers}: candor failover {cluster} -n {namespace} --spread"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three shards whose primaries and replicas run in these zones.
    fn placed(zones: [(&str, &str); 3]) -> Vec<Placed<(u32, u32)>> {
        let one = |shard, node, zone: &str, role| Placed {
            shard,
            member: (shard, node),
            zone: zone.to_owned(),
            role,
        };
        (0..)
            .zip(zones)
            .flat_map(|(shard, (primary, replica))| {
                [
                    one(shard, 0, primary, Role::Primary),
                    one(shard, 1, replica, Role::Candidate),
                ]
            })
            .collect()
    }

    fn moves(zones: [(&str, &str); 3]) -> Vec<String> {
        let moves = spread(&placed(zones));
        moves
            .iter()
            .map(|one| format!("{} to {}-{} in {}", one.shard, one.to.0, one.to.1, one.to_zone))
            .collect()
    }

    #[test]
    fn primaries_in_one_zone_are_spread_and_spread_ones_stay() {
        assert_eq!(
            moves([("a", "b"), ("a", "c"), ("a", "b")]),
            ["0 to 0-1 in b", "1 to 1-1 in c"]
        );
        assert_eq!(moves([("a", "b"), ("b", "c"), ("c", "a")]), Vec::<String>::new());
        assert_eq!(
            moves([("a", "b"), ("a", "b"), ("b", "a")]),
            Vec::<String>::new(),
            "2 and 1 is as good as it gets"
        );
        assert_eq!(
            moves([("a", "a"), ("a", "a"), ("a", "a")]),
            Vec::<String>::new(),
            "no zone to go to"
        );
        assert_eq!(
            moves([("", ""), ("", ""), ("", "")]),
            Vec::<String>::new(),
            "zones are not known"
        );
    }

    #[test]
    fn a_replica_that_is_not_in_sync_is_not_promoted() {
        let mut all = placed([("a", "b"), ("a", "c"), ("a", "b")]);
        all[1].role = Role::Other;
        let shards: Vec<u32> = spread(&all).iter().map(|one| one.shard).collect();
        assert_eq!(shards, [1, 2]);
    }

    #[test]
    fn the_pile_is_named_with_its_zones() {
        let piled = placed([("a", "b"), ("a", "c"), ("a", "b")]);
        assert_eq!(piled_up(&piled).unwrap(), "3 in a, 0 in b, 0 in c");
        assert_eq!(piled_up(&placed([("a", "b"), ("b", "c"), ("c", "a")])), None);
    }
}
