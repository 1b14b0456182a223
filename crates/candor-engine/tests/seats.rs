//! Seats: properties for any topology before and after with any roles in between, and the changes that users make.

use std::collections::{BTreeMap, BTreeSet};

use candor_engine::model::ShardIndex;
use candor_engine::seats::{Ordinal, Role, Seating, Seats, Shape, seat};
use proptest::prelude::*;

const OWNER: Role = Role::Primary { slots: true };
const EMPTY: Role = Role::Primary { slots: false };

fn shape(primaries: u32, replicas: u32) -> Shape {
    Shape {
        primaries,
        replicas,
        extra: false,
    }
}

fn follows(of: Ordinal) -> Role {
    Role::Replica { of, in_sync: true }
}

fn seats(pairs: &[(Ordinal, u32)]) -> Seats {
    pairs
        .iter()
        .map(|(ordinal, shard)| (*ordinal, ShardIndex(*shard)))
        .collect()
}

fn fresh(shape: Shape) -> Seats {
    seat(shape, &Seats::new(), &BTreeMap::new()).memory
}

#[test]
fn a_new_cluster_seats_primaries_on_the_lowest_ordinals_and_replicas_behind_them() {
    let made = seat(shape(3, 1), &Seats::new(), &BTreeMap::new());
    assert_eq!(made.seats, seats(&[(0, 0), (1, 1), (2, 2), (3, 0), (4, 1), (5, 2)]));
    assert!(made.draining.is_empty() && made.leaving.is_empty());
}

#[test]
fn more_primaries_get_new_ordinals_and_no_member_moves() {
    let observed = [(0, OWNER), (1, OWNER), (2, OWNER)].into();
    let made = seat(shape(5, 0), &fresh(shape(3, 0)), &observed);
    assert_eq!(made.seats, seats(&[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]));
    assert!(made.draining.is_empty());
}

#[test]
fn fewer_primaries_drain_the_highest_ordinals() {
    let observed = (0..5).map(|ordinal| (ordinal, OWNER)).collect();
    let made = seat(shape(3, 0), &fresh(shape(5, 0)), &observed);
    assert_eq!(made.seats, seats(&[(0, 0), (1, 1), (2, 2)]));
    assert_eq!(made.draining, seats(&[(3, 3), (4, 4)]));
    assert_eq!(made.leaving, BTreeSet::from([3, 4]));
}

#[test]
fn six_primaries_become_three_with_replicas_once_their_shards_are_drained() {
    let before = fresh(shape(6, 0));
    let all: BTreeMap<_, _> = (0..6).map(|ordinal| (ordinal, OWNER)).collect();
    let made = seat(shape(3, 1), &before, &all);
    assert_eq!(made.draining, seats(&[(3, 3), (4, 4), (5, 5)]));
    assert_eq!(made.memory, before, "an ordinal that owns slots stays where it is");
    assert!(made.leaving.is_empty());
    let drained = (0..6)
        .map(|ordinal| (ordinal, if ordinal < 3 { OWNER } else { EMPTY }))
        .collect();
    let made = seat(shape(3, 1), &made.memory, &drained);
    assert_eq!(made.memory, fresh(shape(3, 1)));
    assert!(made.draining.is_empty());
}

#[test]
fn three_with_replicas_become_four_after_failovers_that_left_the_primaries_on_high_ordinals() {
    let before = fresh(shape(3, 1));
    let observed = [
        (0, follows(3)),
        (1, follows(4)),
        (2, follows(5)),
        (3, OWNER),
        (4, OWNER),
        (5, OWNER),
    ];
    let made = seat(shape(4, 0), &before, &observed.into());
    // The primary on 3 stays. The replicas of the removed primaries stay and become primaries. Ordinal 0 has no seat
    // in its shard any more.
    assert_eq!(made.seats, seats(&[(0, 3), (1, 1), (2, 2), (3, 0)]));
    assert_eq!(made.draining, seats(&[(4, 1), (5, 2)]));
    assert_eq!(made.leaving, BTreeSet::from([4, 5]));
}

#[test]
fn two_primaries_become_one_with_three_replicas() {
    let made = seat(shape(1, 3), &fresh(shape(2, 0)), &[(0, OWNER), (1, OWNER)].into());
    assert_eq!(made.seats, seats(&[(0, 0), (1, 0), (2, 0), (3, 0)]));
    assert_eq!(made.draining, seats(&[(1, 1)]));
}

#[test]
fn a_leaving_primary_fails_over_to_a_replica_that_remains() {
    let before = fresh(shape(3, 1));
    let observed = [
        (0, follows(3)),
        (1, OWNER),
        (2, OWNER),
        (3, OWNER),
        (4, follows(1)),
        (5, follows(2)),
    ];
    let made = seat(shape(3, 0), &before, &observed.into());
    assert_eq!(made.seats, seats(&[(0, 0), (1, 1), (2, 2)]));
    assert_eq!(made.draining, seats(&[(3, 0)]));
}

#[test]
fn a_primary_that_a_user_demoted_keeps_its_seat() {
    let before = fresh(shape(3, 1));
    let observed = [
        (0, follows(1)),
        (1, OWNER),
        (2, OWNER),
        (3, OWNER),
        (4, follows(1)),
        (5, follows(2)),
    ];
    assert_eq!(seat(shape(3, 1), &before, &observed.into()).seats, before);
    let alone = [(0, follows(1)), (1, OWNER), (2, OWNER)];
    let before = fresh(shape(3, 0));
    assert_eq!(seat(shape(3, 0), &before, &alone.into()).seats, before);
}

#[test]
fn a_missing_member_keeps_its_seat_and_is_not_taken_for_drained() {
    let before = fresh(shape(4, 0));
    let made = seat(shape(4, 0), &before, &[(0, OWNER), (2, OWNER), (3, OWNER)].into());
    assert_eq!(made.seats, before);
    let made = seat(shape(3, 0), &before, &[(0, OWNER), (1, OWNER), (2, OWNER)].into());
    assert_eq!(made.draining, seats(&[(3, 3)]), "it may own slots");
}

#[test]
fn an_adopted_cluster_is_seated_as_its_servers_report() {
    let observed = [
        (0, OWNER),
        (1, follows(5)),
        (2, OWNER),
        (3, follows(0)),
        (4, follows(2)),
        (5, OWNER),
    ];
    let made = seat(shape(3, 1), &Seats::new(), &observed.into());
    assert_eq!(made.seats, seats(&[(0, 0), (1, 1), (2, 2), (3, 0), (4, 2), (5, 1)]));
    assert!(made.draining.is_empty() && made.leaving.is_empty());
}

#[test]
fn the_extra_server_of_an_upgrade_is_alone_in_its_shard_and_is_drained_at_the_end() {
    let extra = Shape {
        extra: true,
        ..shape(3, 1)
    };
    for before in [Seats::new(), fresh(shape(3, 1))] {
        let made = seat(extra, &before, &BTreeMap::new());
        assert_eq!((made.seats.len(), made.seats[&6]), (7, ShardIndex(3)));
    }
    let made = seat(extra, &fresh(shape(3, 1)), &BTreeMap::new());
    let mut observed: BTreeMap<_, _> = (0..3).map(|ordinal| (ordinal, OWNER)).collect();
    observed.extend((3..6).map(|ordinal| (ordinal, follows(ordinal - 3))));
    observed.insert(6, OWNER);
    let ended = seat(shape(3, 1), &made.memory, &observed);
    assert_eq!((ended.draining, ended.leaving), (seats(&[(6, 3)]), BTreeSet::from([6])));
}

#[test]
fn hibernation_forgets_no_seat() {
    let before = fresh(shape(3, 1));
    let asleep = seat(shape(0, 1), &before, &BTreeMap::new());
    assert!(asleep.seats.is_empty() && asleep.draining.is_empty());
    assert_eq!(asleep.memory, before);
}

/// Any role for any ordinal; replicas follow any other ordinal.
fn roles() -> impl Strategy<Value = BTreeMap<Ordinal, Role>> {
    let role = prop_oneof![
        3 => Just(OWNER),
        1 => Just(EMPTY),
        3 => (0..14_u32, any::<bool>()).prop_map(|(of, in_sync)| Role::Replica { of, in_sync }),
    ];
    prop::collection::btree_map(0..14_u32, role, 0..14)
}

fn shapes() -> impl Strategy<Value = Shape> {
    (0..6_u32, 0..3_u32, any::<bool>()).prop_map(|(primaries, replicas, extra)| Shape {
        primaries,
        replicas,
        extra,
    })
}

/// A sequence of topologies, each with different roles.
fn lives() -> impl Strategy<Value = Vec<(Shape, BTreeMap<Ordinal, Role>)>> {
    prop::collection::vec((shapes(), roles()), 1..6)
}

fn count(made: &Seating, shard: ShardIndex) -> u32 {
    number(made.seats.values().filter(|one| **one == shard).count())
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_laws_of_seats_hold_for_every_life(life in lives()) {
        let mut memory = Seats::new();
        for (shape, observed) in life {
            let made = seat(shape, &memory, &observed);
            // Exactly the desired number of seats, on the lowest ordinals, every shard full.
            let ordinals: Vec<_> = made.seats.keys().copied().collect();
            prop_assert_eq!(ordinals, (0..shape.seats()).collect::<Vec<_>>());
            for shard in 0..shape.primaries {
                prop_assert_eq!(count(&made, ShardIndex(shard)), shape.replicas + 1);
            }
            for (ordinal, before) in &memory {
                let Some(role) = observed.get(ordinal) else { continue };
                // A primary with slots changes its seat only after it is drained, and its place is remembered.
                if *role == OWNER && shape.primaries > 0 {
                    let moved = made.seats.get(ordinal) != Some(before);
                    prop_assert_eq!(moved, made.draining.contains_key(ordinal));
                    prop_assert_eq!(made.memory.get(ordinal), Some(before));
                    // It moves only if its shard is not desired, if it is removed, or if primaries with slots take all
                    // seats of its shard.
                    let rivals = made.seats.iter().filter(|(other, shard)| {
                        *shard == before && observed.get(other) == Some(&OWNER)
                    });
                    let full = number(rivals.count()) > shape.replicas;
                    // The last ordinal during an upgrade is the extra server and has its own shard.
                    let regular = shape.primaries * (shape.replicas + 1);
                    if before.0 < shape.primaries && *ordinal < regular && !full {
                        prop_assert!(!moved, "{ordinal} moved out of {before}: {made:?}");
                    }
                }
            }
            // Only an ordinal that may own slots drains, and an ordinal that is removed has no seat.
            for ordinal in made.draining.keys() {
                prop_assert!(matches!(observed.get(ordinal), Some(&OWNER) | None));
            }
            for ordinal in &made.leaving {
                prop_assert!(!made.seats.contains_key(ordinal));
            }
            // Running it again changes nothing.
            let again = seat(shape, &made.memory, &observed);
            prop_assert_eq!((&again.seats, &again.draining, &again.memory), (&made.seats, &made.draining, &made.memory));
            memory = made.memory;
        }
    }

    /// A replica in sync loses its seat only to a primary with slots or to another replica in sync.
    #[test]
    fn a_replica_in_sync_is_replaced_only_by_those_with_data(before in shapes(), after in shapes(), observed in roles()) {
        let memory = fresh(before);
        let made = seat(after, &memory, &observed);
        for (ordinal, role) in &observed {
            let Role::Replica { of, in_sync: true } = role else { continue };
            let (Some(own), Some(followed)) = (memory.get(ordinal), memory.get(of)) else { continue };
            let regular = after.primaries * (after.replicas + 1);
            if own != followed || own.0 >= after.primaries || *ordinal >= regular {
                continue;
            }
            if made.seats.get(ordinal) == Some(own) {
                continue;
            }
            if observed.get(of) != Some(&OWNER) {
                continue;
            }
            let with_data = made.seats.iter().filter(|(_, shard)| *shard == own).filter(|(other, _)| {
                matches!(observed.get(other), Some(&OWNER | Role::Replica { in_sync: true, .. }) | None)
            });
            prop_assert_eq!(number(with_data.count()), after.replicas + 1, "{} lost its seat: {:?}", ordinal, made);
        }
    }
}
