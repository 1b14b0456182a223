//! Which slots go where: the fewest moves that balance a cluster.
//!
//! The minimum number of slots to move is the sum of what shards have beyond their share. Shares differ by one where
//! 16384 cannot be divided evenly. The larger shares go to the shards that have most slots, so that no slot moves for
//! the remainder alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use valkey_admin::{Slot, SlotRange, SlotSet, slot::SLOTS};

use crate::model::ShardIndex;

/// Slots that move from one shard to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotMove {
    /// The shard that owns them.
    pub from: ShardIndex,
    /// The shard that gets them.
    pub to: ShardIndex,
    /// Which slots.
    pub slots: SlotSet,
}

/// The weight of a slot: 1 each, or its keys, or its bytes.
pub type Weight<'a> = &'a dyn Fn(Slot) -> u64;

/// Every slot has the same weight.
pub fn by_count(_: Slot) -> u64 {
    1
}

/// The moves that balance the slots of `owners` over the shards below `shards`. Shards beyond are drained, over all
/// shards that remain. Slots without an owner are not handled here.
pub fn rebalance(owners: &BTreeMap<ShardIndex, SlotSet>, shards: u32, weight: Weight<'_>) -> Vec<SlotMove> {
    let kept = |shard: &ShardIndex| shard.0 < shards;
    let mut held: BTreeMap<ShardIndex, SlotSet> = (0..shards).map(|i| (ShardIndex(i), SlotSet::new())).collect();
    held.extend(owners.iter().map(|(shard, slots)| (*shard, slots.clone())));
    let shares = shares(&held, shards, weight);
    let mut spare: Vec<(ShardIndex, SlotRange)> = Vec::new();
    for (shard, slots) in &held {
        let share = if kept(shard) {
            shares.get(shard).copied().unwrap_or(0)
        } else {
            0
        };
        spare.extend(surplus(slots, share, weight).into_iter().map(|range| (*shard, range)));
    }
    let mut load: BTreeMap<ShardIndex, u64> = shares.keys().map(|to| (*to, weigh(&held[to], weight))).collect();
    let mut moves: BTreeMap<(ShardIndex, ShardIndex), SlotSet> = BTreeMap::new();
    let mut give = |from: ShardIndex, to: ShardIndex, range: SlotRange, load: &mut BTreeMap<ShardIndex, u64>| {
        *load.entry(to).or_default() += range.slots().map(weight).sum::<u64>();
        moves.entry((from, to)).or_default().extend([range]);
    };
    for (to, share) in &shares {
        while let Some(lack) = share.checked_sub(load[to]).filter(|lack| *lack > 0) {
            let Some((from, range)) = nearest(&mut spare, &held[to], lack, weight) else {
                break;
            };
            give(from, *to, range, &mut load);
        }
    }
    // Weights leave remainders that fit in no share. Slots that must leave a drained shard go to the lightest shard.
    for (from, range) in spare.into_iter().filter(|(from, _)| !kept(from)) {
        for slot in range.slots() {
            if let Some(to) = load
                .iter()
                .min_by_key(|(shard, heavy)| (**heavy, **shard))
                .map(|(to, _)| *to)
            {
                give(from, to, slot.into(), &mut load);
            }
        }
    }
    moves
        .into_iter()
        .map(|((from, to), slots)| SlotMove { from, to, slots })
        .collect()
}

fn weigh(slots: &SlotSet, weight: Weight<'_>) -> u64 {
    slots.iter().map(weight).sum()
}

/// The desired weight of each remaining shard; the remainder goes to the heaviest shards.
fn shares(held: &BTreeMap<ShardIndex, SlotSet>, shards: u32, weight: Weight<'_>) -> BTreeMap<ShardIndex, u64> {
    let total: u64 = held.values().map(|slots| weigh(slots, weight)).sum();
    let count = u64::from(shards).max(1);
    let (base, remainder) = (total / count, total % count);
    let mut by_size: Vec<ShardIndex> = (0..shards).map(ShardIndex).collect();
    by_size.sort_by_key(|shard| (Reverse(weigh(&held[shard], weight)), *shard));
    by_size
        .into_iter()
        .zip(0..)
        .map(|(shard, place)| (shard, base + u64::from(place < remainder)))
        .collect()
}

/// The slots that a shard gives away: whole small ranges first, then the tail of the largest, so that the rest stays
/// contiguous where possible. A slot stays if losing it would bring the shard below its share.
fn surplus(slots: &SlotSet, share: u64, weight: Weight<'_>) -> Vec<SlotRange> {
    let mut over = weigh(slots, weight).saturating_sub(share);
    if share == 0 {
        return slots.ranges();
    }
    let mut ranges = slots.ranges();
    ranges.sort_by_key(|range| (range.count(), range.first()));
    let mut given = SlotSet::new();
    for range in ranges {
        for slot in range.slots().rev() {
            let heavy = weight(slot);
            if heavy > over {
                break;
            }
            over -= heavy;
            // A slot without weight stays: moving it would not change the balance.
            if heavy > 0 {
                given.insert(slot);
            }
        }
    }
    given.ranges()
}

/// The next range for a shard that lacks this weight: a range adjacent to its own slots, else the first one, cut to
/// size.
fn nearest(
    spare: &mut Vec<(ShardIndex, SlotRange)>,
    has: &SlotSet,
    lack: u64,
    weight: Weight<'_>,
) -> Option<(ShardIndex, SlotRange)> {
    let touches = |range: &SlotRange| {
        let before = range.first().get().checked_sub(1).and_then(Slot::new);
        let after = Slot::new(range.last().get() + 1);
        [before, after].into_iter().flatten().any(|slot| has.contains(slot))
    };
    let place = spare.iter().position(|(_, range)| touches(range)).unwrap_or(0);
    let (from, range) = *spare.get(place)?;
    let mut last = None;
    let mut taken = 0;
    for slot in range.slots() {
        let heavy = weight(slot);
        if taken + heavy > lack {
            break;
        }
        taken += heavy;
        last = Some(slot);
    }
    let piece = SlotRange::new(range.first(), last?)?;
    match Slot::new(piece.last().get() + 1).and_then(|next| SlotRange::new(next, range.last())) {
        Some(rest) => spare[place].1 = rest,
        None => drop(spare.remove(place)),
    }
    Some((from, piece))
}

/// The minimum number of slots that must move, for any plan.
pub fn fewest(owners: &BTreeMap<ShardIndex, SlotSet>, shards: u32) -> usize {
    let total: usize = owners.values().map(SlotSet::len).sum();
    let count = shards.max(1) as usize;
    let (base, remainder) = (total / count, total % count);
    let mut sizes: Vec<usize> = (0..shards)
        .map(|i| owners.get(&ShardIndex(i)).map_or(0, SlotSet::len))
        .collect();
    sizes.sort_unstable_by_key(|size| Reverse(*size));
    let beyond = sizes
        .iter()
        .zip(0..)
        .map(|(size, place)| size.saturating_sub(base + usize::from(place < remainder)));
    let drained = owners
        .iter()
        .filter(|(shard, _)| shard.0 >= shards)
        .map(|(_, slots)| slots.len());
    beyond.chain(drained).sum::<usize>().min(usize::from(SLOTS))
}
