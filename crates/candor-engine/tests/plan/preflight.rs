//! The preflight pod, which validates a change before members are restarted with it.

use candor_engine::observation::{Applied, Preflight, Trouble, Workload};
use candor_engine::plan::Stage;
use candor_engine::step::Step;

use crate::scene::{Scene, at};

/// A 3x1 cluster in which every member must be replaced.
fn outdated(preflight: Preflight) -> Scene {
    let mut scene = Scene::healthy(3, 1);
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
    }
    scene.observed.preflight = preflight;
    scene
}

fn missing() -> Preflight {
    Preflight::Missing {
        template: "new".to_owned(),
    }
}

fn no_image() -> Trouble {
    Trouble::NotStarting("pod valkey-c-trial: no such image".to_owned())
}

fn rejected(stale: bool) -> Preflight {
    let trouble = no_image();
    Preflight::Rejected { trouble, stale }
}

#[test]
fn no_member_is_restarted_before_the_preflight_succeeded() {
    let table = [
        (Preflight::Needless, vec![Step::RollMember(at(0, 1))]),
        (missing(), vec![Step::CreatePreflight]),
        (Preflight::UnderWay, Vec::new()),
        (rejected(false), Vec::new()),
        (rejected(true), vec![Step::EndPreflight]),
        (Preflight::Passed, vec![Step::RollMember(at(0, 1))]),
    ];
    for (preflight, steps) in table {
        let plan = outdated(preflight.clone()).plan();
        assert_eq!(plan.steps, steps, "{preflight:?}");
        match preflight {
            Preflight::Rejected { trouble, .. } => assert_eq!(plan.stage, Stage::Stuck { member: None, trouble }),
            other => assert!(matches!(plan.stage, Stage::Rolling { done: 0, of: 6, .. }), "{other:?}"),
        }
    }
}

#[test]
fn a_primary_does_not_fail_over_before_the_preflight_succeeded() {
    let mut scene = outdated(missing());
    for shard in 0..3 {
        scene.member(at(shard, 1)).workload = Workload::Current;
    }
    assert_eq!(scene.plan().steps, [Step::CreatePreflight]);
    scene.observed.preflight = Preflight::Passed;
    assert!(matches!(scene.plan().steps[..], [Step::Failover { .. }]));
}

#[test]
fn a_preflight_pod_is_created_without_waiting_for_status() {
    let scene = outdated(missing());
    let memory = candor_engine::kinds::valkey::memory(&scene.cluster.status.clone().unwrap());
    assert!(scene.plan().is_announced(&memory));
    assert!(!Step::CreatePreflight.disturbs() && !Step::EndPreflight.disturbs());
}

#[test]
fn an_old_preflight_pod_is_deleted_before_a_new_one_is_created() {
    let mut scene = outdated(missing());
    scene.observed.old_preflight = true;
    assert_eq!(scene.plan().steps, [Step::EndPreflight, Step::CreatePreflight]);
}

#[test]
fn ready_waits_until_no_preflight_pod_is_left() {
    let mut scene = Scene::healthy(3, 1);
    scene.observed.old_preflight = true;
    let plan = scene.plan();
    assert_eq!((plan.stage, plan.steps), (Stage::Writing, vec![Step::EndPreflight]));
}

#[test]
fn a_finished_preflight_pod_is_deleted_after_healing() {
    let mut scene = Scene::healthy(3, 1);
    scene.kill(at(1, 0));
    scene.observed.old_preflight = true;
    let steps = scene.plan().steps;
    assert!(steps.len() > 1, "{steps:?}");
    assert_eq!(steps.last(), Some(&Step::EndPreflight));
}

#[test]
fn live_configuration_does_not_wait_for_a_preflight() {
    for preflight in [missing(), Preflight::UnderWay, rejected(false)] {
        let mut scene = outdated(preflight.clone());
        scene.facts(at(2, 0)).config = Applied::No;
        assert!(scene.plan().steps.contains(&Step::Configure(at(2, 0))), "{preflight:?}");
    }
}
