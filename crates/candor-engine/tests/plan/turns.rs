//! Replacement of members: blank servers, replaced nodes, and the order of a rolling update.

use candor_engine::observation::{Facts, Server, Volume, Workload};
use candor_engine::plan::Stage;
use candor_engine::step::Step;
use valkey_admin::{NodeId, SlotSet};

use crate::scene::{Scene, at, id};

#[test]
fn a_server_that_still_reads_its_dataset_is_not_taken_for_blank() {
    let mut scene = Scene::healthy(1, 1);
    scene.cluster.spec.replicas = Some(2);
    scene.create();
    scene.start();
    let newcomer = at(0, 2);
    let met = |scene: &Scene| {
        let steps = scene.plan().steps;
        steps.iter().any(|step| matches!(step, Step::Meet { .. }))
    };
    assert!(met(&scene));
    scene.facts(newcomer).loading = true;
    assert!(!met(&scene), "its keys are not counted yet");
    scene.member(newcomer).volume = Volume::Drained;
    assert!(!scene.plan().steps.contains(&Step::ReuseVolume(newcomer)));
}

/// Member 0-1 responds with another node id than the one that the other members know.
fn replaced() -> (Scene, NodeId) {
    let mut scene = Scene::healthy(3, 1);
    let old = id(at(0, 1));
    let mut me = scene.facts(at(0, 1)).me().unwrap().clone();
    (me.id, me.primary) = (id(at(9, 1)), None);
    (me.flags.primary, me.flags.replica) = (true, false);
    let map = valkey_admin::ClusterNodes(vec![me.clone()]);
    scene.member(at(0, 1)).server = Server::Up(Box::new(Facts {
        node_timeout: 5000,
        ..Facts::new(me.id, map)
    }));
    (scene, old)
}

fn forgets(scene: &Scene, node: NodeId) -> usize {
    let steps = scene.plan().steps;
    let of_it = |step: &&Step| matches!(step, Step::Forget { node: gone, .. } if *gone == node);
    steps.iter().filter(of_it).count()
}

#[test]
fn a_node_whose_place_another_process_took_is_forgotten_at_once() {
    let (mut scene, old) = replaced();
    assert_eq!(forgets(&scene, old), 5, "by everybody else: {:?}", scene.plan().steps);
    scene.member(at(0, 1)).other_addresses = vec!["10.9.9.9".parse().unwrap()];
    assert_eq!(forgets(&scene, old), 0, "it may still run in the other pod");
}

#[test]
fn a_node_with_replicas_or_slots_is_not_forgotten() {
    let (mut scene, old) = replaced();
    let facts = scene.facts(at(1, 0));
    let entry = facts.map.0.iter_mut().find(|entry| entry.id == old).unwrap();
    entry.slots = "7".parse().unwrap();
    assert_eq!(forgets(&scene, old), 0);
    let (mut scene, old) = replaced();
    let facts = scene.facts(at(2, 1));
    let me = facts.id;
    let me = facts.map.0.iter_mut().find(|entry| entry.id == me).unwrap();
    me.primary = Some(old);
    assert_eq!(forgets(&scene, old), 0);
}

#[test]
fn a_node_that_only_one_member_knows_is_forgotten_when_all_members_respond() {
    let mut scene = Scene::healthy(3, 1);
    let mut ghost = scene.facts(at(0, 0)).map.0[0].clone();
    (ghost.id, ghost.flags.myself, ghost.slots) = (id(at(9, 0)), false, SlotSet::new());
    ghost.linked = false;
    let node = ghost.id;
    scene.facts(at(1, 1)).map.0.push(ghost);
    assert_eq!(forgets(&scene, node), 0, "it may be somebody who lives");
    let known = scene.facts(at(1, 1)).map.0.last_mut().unwrap();
    known.flags.suspected = true;
    assert_eq!(forgets(&scene, node), 1, "nobody else can declare it failed");
    scene.member(at(2, 1)).server = Server::default();
    assert_eq!(forgets(&scene, node), 0, "it may be the member that does not answer");
}

#[test]
fn a_healthy_cluster_with_a_stale_node_in_a_map_is_requeued_soon() {
    let mut scene = Scene::healthy(1, 1);
    assert!(scene.plan().requeue_after.as_secs() > 60);
    let mut stale = scene.facts(at(0, 0)).map.0[0].clone();
    (stale.id, stale.flags.myself, stale.slots) = (id(at(9, 0)), false, SlotSet::new());
    stale.linked = false;
    scene.facts(at(0, 0)).map.0.push(stale);
    let plan = scene.plan();
    assert_eq!((plan.stage, plan.requeue_after.as_secs()), (Stage::Healthy, 1));
}

#[test]
fn the_next_member_of_a_rolling_update_is_reported_before_it_is_restarted() {
    let mut scene = Scene::healthy(3, 1);
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
    }
    let memory = |scene: &Scene| {
        let status = scene.cluster.status.clone().unwrap();
        candor_engine::kinds::valkey::memory(&status)
    };
    assert_eq!(scene.plan().steps, [Step::RollMember(at(0, 1))]);
    assert!(!scene.plan().is_announced(&memory(&scene)));
    scene.reconcile(&[]);
    assert!(scene.plan().is_announced(&memory(&scene)));
    // Then it is another member's turn.
    scene.member(at(0, 1)).workload = Workload::Current;
    assert_eq!(scene.plan().steps, [Step::RollMember(at(1, 1))]);
    assert!(!scene.plan().is_announced(&memory(&scene)));
}
