//! A spec that asks for fewer shards while the members of the first one still join.

use candor_engine::attempts::Attempts;
use candor_engine::memory::Memory;
use candor_engine::plan::{Stage, plan};
use candor_engine::step::Step;

use crate::scene::{Scene, at, id};

/// Four shards were asked for, now three are. Three have their slots; the fourth member was met and has not answered the
/// meeting yet.
fn shrunk() -> (Scene, Memory) {
    let mut scene = Scene::new(3, 0);
    scene.create();
    scene.start();
    scene.join();
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.cluster.spec.shards = 3;
    let before = Memory::default();
    let decided = plan(
        &scene.desired(),
        &scene.observed,
        &before,
        &Attempts::default(),
        scene.now,
    );
    assert!(decided.steps.contains(&Step::DeleteMember(at(3, 0))), "{decided:?}");
    let after = before.after(&scene.desired(), &scene.observed, &decided);
    (scene, after)
}

fn decide(scene: &Scene, memory: &Memory) -> (Stage, Vec<Step>) {
    let (desired, attempts) = (scene.desired(), Attempts::default());
    let decided = plan(&desired, &scene.observed, memory, &attempts, scene.now);
    (decided.stage, decided.steps)
}

#[test]
fn a_member_that_joins_while_it_is_removed_is_forgotten_before_the_cluster_counts_as_formed() {
    let (mut scene, memory) = shrunk();
    let mut late = scene.facts(at(3, 0)).map.0[0].clone();
    late.flags.myself = false;
    late.linked = true;
    scene.observed.members.remove(&at(3, 0));
    scene.facts(at(0, 0)).map.0.push(late);
    let (stage, steps) = decide(&scene, &memory);
    assert_eq!(stage, Stage::Forgetting);
    let (at, node) = (at(0, 0), id(at(3, 0)));
    assert_eq!(steps, [Step::Forget { at, node }]);
    scene.facts(at).map.0.pop();
    assert_eq!(decide(&scene, &memory).0, Stage::Healthy);
}

#[test]
fn a_cluster_with_an_unfinished_handshake_does_not_count_as_formed() {
    let (mut scene, memory) = shrunk();
    let mut late = scene.facts(at(3, 0)).map.0[0].clone();
    (late.flags.myself, late.flags.handshake) = (false, true);
    late.id = id(at(9, 9));
    scene.observed.members.remove(&at(3, 0));
    scene.facts(at(0, 0)).map.0.push(late);
    assert_eq!(decide(&scene, &memory), (Stage::Joining, Vec::new()));
}
