//! Where primaries run: how many in each zone, and which planned failovers would spread them. Pure.

use std::collections::BTreeMap;

use candor_api::valkey::status::MemberRole;

use super::cluster::MemberId;
use super::status::shards::{Member, Shard};

/// A planned failover that brings a primary into a zone with fewer primaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The shard.
    pub shard: u32,
    /// The replica to promote.
    pub to: MemberId,
    /// The zone of the present primary.
    pub from_zone: String,
    /// The zone of that replica.
    pub to_zone: String,
}

/// The number of primaries in every zone that has members.
pub fn primaries(shards: &[Shard]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for member in shards
        .iter()
        .flat_map(|shard| &shard.members)
        .filter(|one| !one.zone.is_empty())
    {
        let is_primary = member.role == Some(MemberRole::Primary);
        *count.entry(member.zone.clone()).or_insert(0) += usize::from(is_primary);
    }
    count
}

/// The failovers that spread primaries over zones: each takes a primary from a zone that has at least two more than the
/// zone of the replica. Only replicas that are in sync count.
pub fn spread(shards: &[Shard]) -> Vec<Spread> {
    let mut count = primaries(shards);
    let mut left: Vec<&Shard> = shards.iter().collect();
    let mut moves = Vec::new();
    loop {
        let best = left.iter().enumerate().filter_map(|(at, shard)| {
            let found = candidate(shard, &count)?;
            let gain = count[&found.from_zone].checked_sub(count[&found.to_zone])?;
            (gain >= 2).then_some((gain, at, found))
        });
        let Some((_, at, found)) = best.max_by_key(|(gain, at, _)| (*gain, std::cmp::Reverse(*at))) else {
            return moves;
        };
        *count.entry(found.from_zone.clone()).or_default() -= 1;
        *count.entry(found.to_zone.clone()).or_default() += 1;
        left.remove(at);
        moves.push(found);
    }
}

/// The replica of a shard in the zone with the fewest primaries.
fn candidate(shard: &Shard, count: &BTreeMap<String, usize>) -> Option<Spread> {
    let primary = shard.members.iter().find(|one| one.role == Some(MemberRole::Primary))?;
    let in_sync =
        |one: &&Member| one.role == Some(MemberRole::Replica) && one.ready == Some(true) && one.link_up != Some(false);
    let replicas = shard.members.iter().filter(in_sync).filter(|one| !one.zone.is_empty());
    let to = replicas.min_by_key(|one| (count.get(&one.zone), one.member))?;
    (!primary.zone.is_empty()).then(|| Spread {
        shard: shard.shard.unwrap_or_default(),
        to: to.member,
        from_zone: primary.zone.clone(),
        to_zone: to.zone.clone(),
    })
}

/// The primaries of each zone in words, if they could be spread better.
pub fn piled_up(shards: &[Shard]) -> Option<String> {
    let moves = spread(shards);
    if moves.is_empty() {
        return None;
    }
    let zones: Vec<String> = primaries(shards)
        .iter()
        .map(|(zone, count)| format!("{count} in {zone}"))
        .collect();
    Some(format!("primaries are piled up: {}", zones.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::fixtures;
    use crate::commands::status::shards::shards;

    /// Three shards whose primaries and replicas run in these zones.
    fn placed(zones: [(&str, &str); 3]) -> Vec<Shard> {
        let mut all = shards(&fixtures::healthy());
        for (shard, (primary, replica)) in all.iter_mut().zip(zones) {
            primary.clone_into(&mut shard.members[0].zone);
            replica.clone_into(&mut shard.members[1].zone);
        }
        all
    }

    fn moves(zones: [(&str, &str); 3]) -> Vec<String> {
        let moves = spread(&placed(zones));
        moves
            .iter()
            .map(|one| format!("{} to {} in {}", one.shard, one.to, one.to_zone))
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
        all[0].members[1].ready = Some(false);
        let to: Vec<u32> = spread(&all).iter().map(|one| one.shard).collect();
        assert_eq!(to, [1, 2]);
    }

    #[test]
    fn the_pile_is_named_with_its_zones() {
        let piled = placed([("a", "b"), ("a", "c"), ("a", "b")]);
        assert_eq!(
            piled_up(&piled).unwrap(),
            "primaries are piled up: 3 in a, 0 in b, 0 in c"
        );
        assert_eq!(piled_up(&placed([("a", "b"), ("b", "c"), ("c", "a")])), None);
    }
}
