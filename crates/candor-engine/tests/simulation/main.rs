//! Exhaustive exploration of small clusters: every interleaving of the operator's steps, operator crashes, server
//! faults and spec changes. From every reachable state the cluster converges to the newest spec, and data is lost only
//! if every copy of it is lost.

mod world;

use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::io::Write as _;

use candor_engine::plan::Stage;
use world::World;

/// A hasher that takes eight bytes at a time: a slot set is 2 KiB, and a world has dozens of them.
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mixed = (self.0 ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ (mixed >> 29);
        }
    }
}

fn key(world: &World) -> u64 {
    let mut hasher = Mix(1);
    world.hash(&mut hasher);
    hasher.finish()
}

/// Runs undisturbed reconciles until the cluster matches the spec.
fn converges(start: &World, known: &mut HashSet<u64>) {
    let mut world = start.clone();
    let mut path = vec![key(&world)];
    for _ in 0..80 {
        if path.last().is_some_and(|last| known.contains(last)) {
            known.extend(path);
            return;
        }
        world.thaw();
        if world.turn(.., true) == Stage::Healthy && world.is_as_desired() {
            world.check_data();
            world.check_rest();
            known.extend(path);
            return;
        }
        world.tick();
        world.check();
        path.push(key(&world));
    }
    panic!("does not come to an end: {world:#?}\nplan: {:#?}", world.plan());
}

/// Explores every reachable state, breadth first.
fn explore(name: &str, start: World) -> usize {
    let mut observed = HashSet::from([key(&start)]);
    let mut known = HashSet::new();
    let mut queue = VecDeque::from([start]);
    while let Some(world) = queue.pop_front() {
        world.check();
        world.check_report();
        converges(&world, &mut known);
        // Only new states are queued: a world is large.
        queue.extend(world.successors().into_iter().filter(|next| observed.insert(key(next))));
    }
    // Bypasses the test harness, which captures the output of passing tests.
    let _ = writeln!(
        std::io::stderr(),
        "{name}: {} states explored, every one converges",
        observed.len()
    );
    observed.len()
}

#[test]
fn a_cluster_is_created_whatever_is_interrupted() {
    assert!(explore("create 2x1", World::new(2, 1)) > 20);
}

#[test]
fn a_member_dies_while_the_cluster_is_created() {
    assert!(explore("create 1x1 with a death", World::new(1, 1).with_deaths(1)) > 50);
}

#[test]
fn a_primary_dies_at_any_moment() {
    assert!(explore("one death in 2x1", World::formed(2, 1).with_deaths(1)) > 20);
}

#[test]
fn a_primary_dies_where_the_others_can_vote() {
    assert!(explore("one death in 3x1", World::formed(3, 1).with_deaths(1)) > 100);
}

#[test]
fn two_members_die_at_any_two_moments() {
    assert!(explore("two deaths in 1x1", World::formed(1, 1).with_deaths(2)) > 50);
}

#[test]
fn a_partitioned_member_is_never_replaced_by_another_server_at_its_address() {
    assert!(explore("a partition in 2x1", World::formed(2, 1).with_cuts(1)) > 50);
    let world = World::formed(1, 1).with_cuts(1).with_deaths(1);
    assert!(explore("a partition and a death in 1x1", world) > 100);
    assert!(explore("a partition in 2x0", World::formed(2, 0).with_cuts(1)) > 20);
}

#[test]
fn a_spec_changes_at_any_moment() {
    let world = World::formed(2, 1).with_specs(&[(3, 1), (1, 1), (2, 0)], 1);
    assert!(explore("one change of 2x1", world) > 100);
}

#[test]
fn a_spec_changes_while_the_cluster_is_created() {
    let world = World::new(2, 0).with_specs(&[(1, 0), (3, 0)], 1);
    assert!(explore("create 2x0, changed to 1x0 or 3x0", world) > 100);
    let world = World::new(2, 1).with_specs(&[(1, 1)], 1);
    assert!(explore("create 2x1, changed to 1x1", world) > 100);
}

#[test]
fn a_scale_is_reverted_at_any_moment() {
    let world = World::formed(2, 0).with_specs(&[(3, 0), (2, 0)], 2);
    assert!(explore("a scale of 2x0, reverted", world) > 100);
}

#[test]
fn a_roll_is_interrupted_at_any_moment() {
    assert!(explore("a roll of 2x1", World::formed(2, 1).with_roll()) > 50);
}

#[test]
fn a_member_dies_during_a_rolling_update() {
    assert!(
        explore(
            "a roll with a death in 1x1",
            World::formed(1, 1).with_deaths(1).with_roll()
        ) > 50
    );
}

#[test]
fn moves_fail_at_any_moment_and_the_spec_is_reverted() {
    let world = World::formed(2, 0).with_specs(&[(3, 0), (2, 0)], 2).with_failures(2);
    assert!(explore("failing moves of 2x0, reverted", world) > 100);
}

#[test]
fn a_manual_slot_migration_is_overtaken_by_another_spec() {
    let world = World::formed(2, 0).with_legacy_moves().with_specs(&[(1, 0), (3, 0)], 1);
    assert!(explore("legacy moves of 2x0, overtaken", world) > 50);
}

#[test]
fn a_member_dies_while_slots_move() {
    let world = World::formed(1, 1).with_specs(&[(2, 1)], 1).with_deaths(1);
    assert!(explore("a scale of 1x1 with a death", world) > 100);
}

#[test]
fn a_member_dies_during_a_manual_slot_migration() {
    let world = World::formed(2, 1).with_legacy_moves().with_deaths(1);
    assert!(explore("legacy moves of 2x1 with a death", world) > 50);
}

#[test]
fn with_volumes_nothing_is_ever_lost() {
    let world = World::formed(2, 1).with_volumes().with_deaths(2);
    assert!(explore("two deaths in 2x1 with volumes", world) > 100);
}

#[test]
fn a_volume_that_a_scale_in_left_is_met_again() {
    let world = World::formed(2, 0)
        .with_volumes()
        .with_specs(&[(1, 0), (2, 0)], 2)
        .with_deaths(1);
    assert!(explore("a scale of 2x0 with volumes, reverted, and a death", world) > 100);
}

#[test]
fn a_failover_is_requested_at_any_moment() {
    assert!(explore("a request in 2x1", World::formed(2, 1).with_requests(1)) > 10);
}

#[test]
fn a_member_dies_during_a_requested_failover() {
    let world = World::formed(2, 1).with_requests(1).with_deaths(1);
    assert!(explore("a request and a death in 2x1", world) > 100);
}

#[test]
fn a_failover_is_requested_while_the_spec_changes() {
    let world = World::formed(1, 1).with_requests(1).with_specs(&[(2, 1), (1, 0)], 1);
    assert!(explore("a request and a change of 1x1", world) > 100);
}

#[test]
fn a_failover_is_requested_during_a_rolling_update() {
    assert!(
        explore(
            "a request in a roll of 1x1",
            World::formed(1, 1).with_requests(1).with_roll()
        ) > 50
    );
}

#[test]
fn gossip_is_late_while_a_member_dies() {
    let world = World::formed(1, 1).with_lags(1).with_deaths(1);
    assert!(explore("one death in 1x1 and late gossip", world) > 100);
}

#[test]
fn gossip_is_late_while_a_cluster_is_scaled() {
    let world = World::formed(2, 0).with_lags(1).with_specs(&[(3, 0), (1, 0)], 1);
    assert!(explore("one change of 2x0 and late gossip", world) > 100);
}

#[test]
fn gossip_is_late_while_replicas_come_and_go() {
    let world = World::formed(1, 1).with_lags(1).with_specs(&[(1, 2), (1, 0)], 1);
    assert!(explore("one change of 1x1 and late gossip", world) > 100);
}

#[test]
fn gossip_is_late_in_a_roll() {
    let world = World::formed(1, 1).with_lags(1).with_roll();
    assert!(explore("a roll of 1x1 and late gossip", world) > 100);
}

#[test]
fn gossip_is_late_while_a_cluster_is_created() {
    assert!(explore("create 1x1 and late gossip", World::new(1, 1).with_lags(1)) > 100);
}

#[test]
fn an_acknowledged_failover_that_is_not_performed_is_sent_again() {
    let world = World::formed(1, 1).with_requests(1).with_unperformed_failovers(2);
    assert!(explore("a request in 1x1, acknowledged and not performed", world) > 50);
    let world = World::formed(1, 1)
        .with_roll()
        .with_unperformed_failovers(1)
        .with_deaths(1);
    assert!(explore("a roll of 1x1 with an unperformed failover and a death", world) > 100);
}

#[test]
fn the_secret_with_the_credentials_is_deleted_at_any_moment() {
    let world = World::new(1, 1).with_deleted_secrets(1);
    assert!(explore("create 1x1 and a deleted Secret", world) > 50);
    let world = World::formed(1, 1).with_deleted_secrets(1).with_deaths(1);
    assert!(explore("one death in 1x1 and a deleted Secret", world) > 100);
    let world = World::formed(1, 1).with_deleted_secrets(2).with_specs(&[(2, 1)], 1);
    assert!(explore("a scale of 1x1 and two deleted Secrets", world) > 100);
}

#[test]
fn the_first_of_several_steps_is_lost() {
    assert!(explore("create 2x1 and lost steps", World::new(2, 1).with_slips(2)) > 100);
    let world = World::formed(2, 1).with_slips(1).with_specs(&[(3, 1), (1, 1)], 1);
    assert!(explore("one change of 2x1 and a lost step", world) > 100);
    let world = World::formed(2, 1).with_slips(1).with_deaths(1);
    assert!(explore("one death in 2x1 and a lost step", world) > 100);
}
