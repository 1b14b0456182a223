//! Slots that a person removed from their owner (`CLUSTER DELSLOTS`): the shard that had them still has their keys.

use candor_engine::step::Step;
use valkey_admin::{SlotRange, SlotSet};

use crate::scene::{Scene, at, id};
use crate::slot;

/// Removes slot 6000 of shard 1 from the maps of these members.
fn drop_slot(scene: &mut Scene, of: &[u32]) {
    let gone = SlotSet::from(SlotRange::from(slot(6000)));
    for shard in of {
        for entry in &mut scene.facts(at(*shard, 0)).map.0 {
            entry.slots = entry.slots.difference(&gone);
        }
    }
}

#[test]
fn a_dropped_slot_stays_remembered_while_other_maps_are_older() {
    let mut scene = Scene::healthy(3, 0);
    drop_slot(&mut scene, &[1]);
    let memory = scene.memory().after(&scene.desired(), &scene.observed, &scene.plan());
    assert!(memory.topology[&at(1, 0).shard].slots.contains(slot(6000)));
    // Its owner gets it back as soon as nobody attributes it to anybody.
    drop_slot(&mut scene, &[0, 2]);
    let steps = scene.plan().steps;
    let back = |step: &Step| matches!(step, Step::AddSlots { member, .. } if *member == at(1, 0));
    assert!(steps.iter().any(back), "{steps:?}");
}

#[test]
fn a_slot_that_another_shard_took_is_not_remembered() {
    let mut scene = Scene::healthy(3, 0);
    drop_slot(&mut scene, &[0, 1, 2]);
    for entry in &mut scene.facts(at(2, 0)).map.0 {
        if entry.id == id(at(2, 0)) {
            entry.slots = entry.slots.union(&SlotSet::from(SlotRange::from(slot(6000))));
        }
    }
    let memory = scene.memory().after(&scene.desired(), &scene.observed, &scene.plan());
    assert!(!memory.topology[&at(1, 0).shard].slots.contains(slot(6000)));
}
