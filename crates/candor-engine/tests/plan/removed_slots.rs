//! Slots that were removed by hand, and servers that still know the owner they had.

use candor_engine::attempts::Attempts;
use candor_engine::memory::Memory;
use candor_engine::plan::{Stage, plan};
use candor_engine::step::Step;
use valkey_admin::SlotSet;

use crate::scene::{Scene, at, id};

/// The slots that the map of a member gives to another.
fn slots_of(scene: &mut Scene, map: (u32, u32), owner: (u32, u32)) -> &mut SlotSet {
    let owner = id(at(owner.0, owner.1));
    let entries = &mut scene.facts(at(map.0, map.1)).map.0;
    &mut entries.iter_mut().find(|entry| entry.id == owner).unwrap().slots
}

/// A cluster in which slot 16383 was removed at every member but those that are named.
fn removed_but_at(believers: &[(u32, u32)]) -> (Scene, SlotSet) {
    let mut scene = Scene::healthy(3, 1);
    let removed: SlotSet = "16383".parse().unwrap();
    let members: Vec<_> = scene.desired().members().collect();
    for member in members {
        let map = (member.shard.0, member.node);
        if !believers.contains(&map) {
            let slots = slots_of(&mut scene, map, (2, 0));
            *slots = slots.difference(&removed);
            scene.facts(member).ok = false;
        }
    }
    (scene, removed)
}

#[test]
fn a_removed_slot_returns_to_its_owner_even_when_another_server_still_knows_it_as_the_owner() {
    for believers in [&[][..], &[(1, 0)], &[(0, 0), (0, 1), (1, 0), (1, 1), (2, 1)]] {
        let (scene, slots) = removed_but_at(believers);
        let decided = scene.plan();
        assert_eq!(decided.stage, Stage::Uncovered { slots: 1 }, "{believers:?}");
        let member = at(2, 0);
        assert!(
            decided.steps.contains(&Step::AddSlots { member, slots }),
            "{believers:?}"
        );
    }
}

#[test]
fn a_slot_that_is_removed_while_the_cluster_is_formed_is_assigned_again() {
    let (scene, slots) = removed_but_at(&[(1, 0)]);
    let memory = Memory::default();
    let decided = plan(
        &scene.desired(),
        &scene.observed,
        &memory,
        &Attempts::default(),
        scene.now,
    );
    let member = at(2, 0);
    assert!(decided.steps.contains(&Step::AddSlots { member, slots }), "{decided:?}");
}

#[test]
fn a_removed_slot_is_still_remembered_as_its_owners() {
    for believers in [&[][..], &[(1, 0)]] {
        let (scene, removed) = removed_but_at(believers);
        let memory = scene.memory();
        let after = memory.after(&scene.desired(), &scene.observed, &scene.plan());
        let of_owner = &after.topology[&at(2, 0).shard].slots;
        assert_eq!(of_owner.intersection(&removed), removed, "{believers:?}");
    }
}

#[test]
fn a_removed_slot_that_another_shard_took_is_not_remembered() {
    let (mut scene, removed) = removed_but_at(&[]);
    let slots = slots_of(&mut scene, (1, 0), (1, 0));
    *slots = slots.union(&removed);
    let after = scene.memory().after(&scene.desired(), &scene.observed, &scene.plan());
    let of_owner = &after.topology[&at(2, 0).shard].slots;
    assert!(of_owner.intersection(&removed).is_empty());
}

#[test]
fn a_slot_that_changed_its_owner_between_two_observations_is_not_free() {
    // The source was asked after the move, the destination before it: each names the other.
    let (mut scene, moved) = removed_but_at(&[(1, 0)]);
    for map in [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)] {
        let slots = slots_of(&mut scene, map, (1, 0));
        *slots = slots.union(&moved);
    }
    assert_eq!(scene.plan().stage, Stage::Uncovered { slots: 0 });
}
