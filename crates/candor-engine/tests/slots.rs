//! Properties of the slot planner.

use std::collections::BTreeMap;

use candor_engine::model::ShardIndex;
use candor_engine::slots::{SlotMove, by_count, fewest, rebalance};
use proptest::prelude::*;
use valkey_admin::{Slot, SlotRange, SlotSet};

fn even(shards: u32) -> BTreeMap<ShardIndex, SlotSet> {
    (0..shards)
        .map(|i| (ShardIndex(i), SlotRange::of_shard(i, shards).unwrap().into()))
        .collect()
}

fn after(owners: &BTreeMap<ShardIndex, SlotSet>, moves: &[SlotMove]) -> BTreeMap<ShardIndex, SlotSet> {
    let mut result = owners.clone();
    for one in moves {
        let from = result.get_mut(&one.from).unwrap();
        assert_eq!(
            from.intersection(&one.slots),
            one.slots,
            "only what is there moves, and once"
        );
        *from = from.difference(&one.slots);
        let to = result.entry(one.to).or_default();
        *to = to.union(&one.slots);
    }
    result
}

fn moved(moves: &[SlotMove]) -> usize {
    moves.iter().map(|one| one.slots.len()).sum()
}

#[test]
fn an_even_cluster_moves_nothing() {
    for shards in [1, 2, 3, 5, 7, 30, 1000] {
        assert_eq!(rebalance(&even(shards), shards, &by_count), []);
    }
}

#[test]
fn three_to_five_moves_what_two_new_shards_need_and_stays_in_few_ranges() {
    let owners = even(3);
    let moves = rebalance(&owners, 5, &by_count);
    assert_eq!(moved(&moves), 6552 + 1);
    let result = after(&owners, &moves);
    let ranges: usize = result.values().map(|slots| slots.ranges().len()).sum();
    assert!(ranges <= 7, "{result:?}");
}

#[test]
fn a_drain_spreads_over_all_that_remain() {
    let moves = rebalance(&even(5), 3, &by_count);
    for from in [3, 4] {
        assert!(moves.iter().any(|one| one.from == ShardIndex(from)));
    }
    let receivers: std::collections::BTreeSet<_> = moves.iter().map(|one| one.to.0).collect();
    assert_eq!(receivers.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn out_and_back_gives_an_even_cluster() {
    let out = after(&even(3), &rebalance(&even(3), 5, &by_count));
    let back = after(&out, &rebalance(&out, 3, &by_count));
    let sizes: Vec<usize> = (0..3).map(|i| back[&ShardIndex(i)].len()).collect();
    assert!(
        sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1,
        "{sizes:?}"
    );
}

#[test]
fn heavy_slots_are_balanced_by_weight_on_request() {
    let owners = even(2);
    // All keys are in the first 1000 slots.
    let heavy = |slot: Slot| if slot.get() < 1000 { 100 } else { 0 };
    let result = after(&owners, &rebalance(&owners, 2, &heavy));
    let of = |i| result[&ShardIndex(i)].iter().map(heavy).sum::<u64>();
    assert_eq!((of(0), of(1)), (50_000, 50_000));
}

/// Any owners: every slot belongs to one of `shards`, with a few random cuts.
fn any_owners() -> impl Strategy<Value = BTreeMap<ShardIndex, SlotSet>> {
    (1u32..12, proptest::collection::vec((0u16..16384, 0u32..12), 0..40)).prop_map(|(shards, mut cuts)| {
        cuts.push((0, 0));
        cuts.sort_unstable();
        cuts.dedup_by_key(|cut| cut.0);
        let mut owners: BTreeMap<ShardIndex, SlotSet> = BTreeMap::new();
        for (place, (start, owner)) in cuts.iter().enumerate() {
            let end = cuts.get(place + 1).map_or(16383, |next| next.0 - 1);
            let range = SlotRange::new(Slot::new(*start).unwrap(), Slot::new(end).unwrap()).unwrap();
            owners.entry(ShardIndex(owner % shards)).or_default().extend([range]);
        }
        owners
    })
}

proptest! {
    #[test]
    fn the_fewest_slots_move_and_the_result_is_even(owners in any_owners(), shards in 1u32..16) {
        let moves = rebalance(&owners, shards, &by_count);
        prop_assert_eq!(moved(&moves), fewest(&owners, shards));
        let result = after(&owners, &moves);
        let all = result.values().fold(SlotSet::new(), |all, slots| all.union(slots));
        prop_assert!(all.is_full());
        let sizes: Vec<usize> = (0..shards).map(|i| result.get(&ShardIndex(i)).map_or(0, SlotSet::len)).collect();
        prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
        prop_assert!(result.iter().all(|(shard, slots)| shard.0 < shards || slots.is_empty()));
        prop_assert!(moves.iter().all(|one| one.from != one.to));
        prop_assert_eq!(rebalance(&result, shards, &by_count), vec![]);
    }

}

proptest! {
    // Weights split the slots into thousands of pieces: each case is expensive.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_drained_shard_is_empty_whatever_the_weights(owners in any_owners(), shards in 1u32..8, seed in 0u64..1000) {
        let weight = |slot: Slot| (u64::from(slot.get()) * 2_654_435_761 + seed) % 7;
        let moves = rebalance(&owners, shards, &weight);
        let result = after(&owners, &moves);
        prop_assert!(result.iter().all(|(shard, slots)| shard.0 < shards || slots.is_empty()));
    }
}
