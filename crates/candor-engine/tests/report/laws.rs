//! Properties that hold for every report.

use candor_api::valkey::conditions::ClusterCondition;
use candor_engine::observation::{Applied, Claim, Server, Trouble, Workload};
use candor_engine::plan::Stage;
use kube_status::{ConditionType, Status, is_true};
use proptest::prelude::*;

use crate::scene::{Scene, at, lines};

/// A fault of a member or of its environment.
#[derive(Clone, Debug)]
enum Blow {
    Silent(u32, u32),
    Killed(u32, u32),
    Unschedulable(u32, u32),
    Loading(u32, u32),
    NotOk(u32, u32),
    Config(u32, u32),
    Rejected(u32, u32),
    Outdated(u32, u32),
    Absent(u32, u32),
    Small(u32, u32),
    Blind,
    Paused,
    Shards(i32),
    Replicas(i32),
    Objects,
    Deleting,
}

fn blow() -> impl Strategy<Value = Blow> {
    let place = || (0_u32..3, 0_u32..2);
    prop_oneof![
        place().prop_map(|(s, n)| Blow::Silent(s, n)),
        place().prop_map(|(s, n)| Blow::Killed(s, n)),
        place().prop_map(|(s, n)| Blow::Unschedulable(s, n)),
        place().prop_map(|(s, n)| Blow::Loading(s, n)),
        place().prop_map(|(s, n)| Blow::NotOk(s, n)),
        place().prop_map(|(s, n)| Blow::Config(s, n)),
        place().prop_map(|(s, n)| Blow::Rejected(s, n)),
        place().prop_map(|(s, n)| Blow::Outdated(s, n)),
        place().prop_map(|(s, n)| Blow::Absent(s, n)),
        place().prop_map(|(s, n)| Blow::Small(s, n)),
        Just(Blow::Blind),
        Just(Blow::Paused),
        (1_i32..6).prop_map(Blow::Shards),
        (0_i32..3).prop_map(Blow::Replicas),
        Just(Blow::Objects),
        Just(Blow::Deleting),
    ]
}

fn strike(scene: &mut Scene, blow: &Blow) {
    let up = |scene: &mut Scene, s, n| matches!(scene.member(at(s, n)).server, Server::Up(_));
    match *blow {
        Blow::Silent(s, n) => scene.silence(at(s, n)),
        Blow::Killed(s, n) => scene.kill(at(s, n)),
        Blow::Unschedulable(s, n) => {
            if scene.member(at(s, n)).pod.is_some() {
                scene.trouble(at(s, n), Trouble::Unschedulable("no room".to_owned()));
            }
        }
        Blow::Loading(s, n) if up(scene, s, n) => scene.facts(at(s, n)).loading = true,
        Blow::NotOk(s, n) if up(scene, s, n) => scene.facts(at(s, n)).ok = false,
        Blow::Config(s, n) if up(scene, s, n) => scene.facts(at(s, n)).config = Applied::No,
        Blow::Rejected(s, n) if up(scene, s, n) => {
            scene.facts(at(s, n)).users = Applied::Rejected("no such command".to_owned());
        }
        Blow::Loading(..) | Blow::NotOk(..) | Blow::Config(..) | Blow::Rejected(..) => {}
        Blow::Outdated(s, n) => scene.member(at(s, n)).workload = Workload::Outdated,
        Blow::Absent(s, n) => *scene.member(at(s, n)) = candor_engine::observation::Member::default(),
        Blow::Small(s, n) => scene.member(at(s, n)).claim = Claim::TooSmall,
        Blow::Blind => scene.observed.pods_unknown = Some("forbidden".to_owned()),
        Blow::Paused => scene.cluster.spec.paused = Some(true),
        Blow::Shards(shards) => scene.cluster.spec.shards = shards,
        Blow::Replicas(replicas) => scene.cluster.spec.replicas = Some(replicas),
        Blow::Objects => scene.observed.objects_ready = false,
        Blow::Deleting => scene.observed.deleting = true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn an_unchanged_world_is_told_the_same_byte_for_byte_and_without_events(
        blows in prop::collection::vec(blow(), 0..4),
        keys in 0_u64..1000,
    ) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &blows {
            strike(&mut scene, blow);
        }
        scene.look(&[]);
        // The first report changes the remembered state, and that may change the next report once more.
        let settled = scene.look(&[]);
        for member in scene.observed.members.values_mut() {
            if let Server::Up(facts) = &mut member.server {
                facts.keys += keys;
            }
        }
        scene.later(1);
        let again = scene.look(&[]);
        prop_assert_eq!(
            serde_json::to_string(&settled.status).unwrap(),
            serde_json::to_string(&again.status).unwrap()
        );
        prop_assert_eq!(&settled.nodes, &again.nodes);
        prop_assert!(again.events.is_empty(), "{:?}", again.events);
    }

    #[test]
    fn ready_is_never_said_of_what_is_not(blows in prop::collection::vec(blow(), 0..4)) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &blows {
            strike(&mut scene, blow);
        }
        let before = scene.plan();
        let report = scene.look(&[]);
        let conditions = &report.status.conditions;
        let ready = is_true(conditions, ClusterCondition::Ready);
        prop_assert_eq!(ready, before.stage == Stage::Healthy, "{:?} {:?}", before.stage, lines(&report.status));
        if ready {
            prop_assert!(!is_true(conditions, ClusterCondition::Progressing));
            prop_assert!(!is_true(conditions, ClusterCondition::Degraded));
            prop_assert!(report.nodes.values().all(|node| node.ready));
            prop_assert_eq!(report.status.ready_shards, scene.cluster.spec.shards);
            prop_assert_eq!(report.status.observed_generation, scene.cluster.metadata.generation);
        }
    }

    #[test]
    fn a_severity_stands_exactly_beside_what_is_bad(blows in prop::collection::vec(blow(), 0..4)) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &blows {
            strike(&mut scene, blow);
        }
        for condition in &scene.look(&[]).status.conditions {
            let declared = ClusterCondition::ALL.iter().find(|one| one.name() == condition.type_).unwrap();
            let bad = Status::of(condition) == declared.polarity().bad();
            prop_assert_eq!(condition.severity().is_some(), bad, "{:?}", condition);
            let reasons: Vec<&str> = declared.reasons().iter().map(AsRef::as_ref).collect();
            prop_assert!(reasons.contains(&condition.reason.as_str()), "undeclared: {:?}", condition);
        }
    }

    #[test]
    fn a_transition_time_moves_only_with_the_status(
        first in prop::collection::vec(blow(), 0..3),
        second in prop::collection::vec(blow(), 0..3),
    ) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &first {
            strike(&mut scene, blow);
        }
        let before = scene.look(&[]).status;
        for blow in &second {
            strike(&mut scene, blow);
        }
        scene.later(10);
        for condition in &scene.look(&[]).status.conditions {
            let Some(was) = before.conditions.iter().find(|was| was.type_ == condition.type_) else {
                continue;
            };
            let moved = was.last_transition_time != condition.last_transition_time;
            prop_assert_eq!(moved, was.status != condition.status);
        }
    }
}
