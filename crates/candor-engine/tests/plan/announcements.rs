//! A member that knows a primary and not its slots: the primary announces them.

use candor_engine::attempts::Attempts;
use candor_engine::plan::{Plan, Stage, plan};
use candor_engine::step::Step;
use valkey_admin::SlotSet;

use crate::scene::{Scene, at, done, id};

fn announced(plan: &Plan) -> Vec<Step> {
    let steps = plan.steps.iter().cloned();
    steps.filter(|step| matches!(step, Step::Announce { .. })).collect()
}

/// A healthy cluster in which member 1-1 has not heard what the primary of shard 2 owns.
fn blind() -> Scene {
    let mut scene = Scene::healthy(3, 1);
    let map = &mut scene.facts(at(1, 1)).map.0;
    let entry = map.iter_mut().find(|entry| entry.id == id(at(2, 0))).unwrap();
    entry.slots = SlotSet::new();
    scene
}

#[test]
fn a_primary_announces_slots_that_a_member_does_not_know_and_only_those() {
    assert_eq!(announced(&Scene::healthy(3, 1).plan()), []);
    let mut scene = blind();
    let step = Step::Announce {
        at: at(2, 0),
        to: at(1, 1),
    };
    let decided = scene.plan();
    assert_eq!(decided.stage, Stage::Uncovered { slots: 0 });
    assert_eq!(announced(&decided), [step]);
    // During a handshake the announcement would be lost.
    let map = &mut scene.facts(at(1, 1)).map.0;
    let entry = map.iter_mut().find(|entry| entry.id == id(at(2, 0))).unwrap();
    entry.flags.handshake = true;
    assert_eq!(announced(&scene.plan()), []);
}

#[test]
fn an_announcement_is_given_time_before_it_is_repeated() {
    let scene = blind();
    let (desired, memory) = (scene.desired(), scene.memory());
    let mut attempts = Attempts::default();
    let decide = |attempts: &Attempts, now| plan(&desired, &scene.observed, &memory, attempts, now);
    let first = decide(&attempts, scene.now);
    let mut outcomes: Vec<_> = announced(&first)
        .into_iter()
        .map(|step| done(step, Vec::new()))
        .collect();
    attempts.record(&scene.observed, &first, &mut outcomes, scene.now);
    assert_eq!(announced(&decide(&attempts, scene.now)), []);
    let later = scene.now + jiff::SignedDuration::from_secs(1);
    assert_eq!(announced(&decide(&attempts, later)).len(), 1);
}
