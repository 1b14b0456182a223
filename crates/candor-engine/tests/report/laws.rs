//! Properties that hold for every report.

use candor_api::valkey::conditions::ClusterCondition;
use candor_engine::observation::{Applied, Claim, Server, Trouble, Workload};
use candor_engine::plan::Stage;
use kube_status::{ConditionType, Status, is_true};
use proptest::prelude::*;

use crate::scene::{Scene, at, lines};

/// A fault of a member or of its environment.
#[derive(Clone, Debug)]
enum Fault {
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

fn blow() -> impl Strategy<Value = Fault> {
    let place = || (0_u32..3, 0_u32..2);
    prop_oneof![
        place().prop_map(|(s, n)| Fault::Silent(s, n)),
        place().prop_map(|(s, n)| Fault::Killed(s, n)),
        place().prop_map(|(s, n)| Fault::Unschedulable(s, n)),
        place().prop_map(|(s, n)| Fault::Loading(s, n)),
        place().prop_map(|(s, n)| Fault::NotOk(s, n)),
        place().prop_map(|(s, n)| Fault::Config(s, n)),
        place().prop_map(|(s, n)| Fault::Rejected(s, n)),
        place().prop_map(|(s, n)| Fault::Outdated(s, n)),
        place().prop_map(|(s, n)| Fault::Absent(s, n)),
        place().prop_map(|(s, n)| Fault::Small(s, n)),
        Just(Fault::Blind),
        Just(Fault::Paused),
        (1_i32..6).prop_map(Fault::Shards),
        (0_i32..3).prop_map(Fault::Replicas),
        Just(Fault::Objects),
        Just(Fault::Deleting),
    ]
}

fn strike(scene: &mut Scene, blow: &Fault) {
    let up = |scene: &mut Scene, s, n| matches!(scene.member(at(s, n)).server, Server::Up(_));
    match *blow {
        Fault::Silent(s, n) => scene.stop_responding(at(s, n)),
        Fault::Killed(s, n) => scene.kill(at(s, n)),
        Fault::Unschedulable(s, n) => {
            if scene.member(at(s, n)).pod.is_some() {
                scene.trouble(at(s, n), Trouble::Unschedulable("no room".to_owned()));
            }
        }
        Fault::Loading(s, n) if up(scene, s, n) => scene.facts(at(s, n)).loading = true,
        Fault::NotOk(s, n) if up(scene, s, n) => scene.facts(at(s, n)).ok = false,
        Fault::Config(s, n) if up(scene, s, n) => scene.facts(at(s, n)).config = Applied::No,
        Fault::Rejected(s, n) if up(scene, s, n) => {
            scene.facts(at(s, n)).users = Applied::Rejected("no such command".to_owned());
        }
        Fault::Loading(..) | Fault::NotOk(..) | Fault::Config(..) | Fault::Rejected(..) => {}
        Fault::Outdated(s, n) => scene.member(at(s, n)).workload = Workload::Outdated,
        Fault::Absent(s, n) => *scene.member(at(s, n)) = candor_engine::observation::Member::default(),
        Fault::Small(s, n) => scene.member(at(s, n)).claim = Claim::TooSmall,
        Fault::Blind => scene.observed.pods_unknown = Some("forbidden".to_owned()),
        Fault::Paused => scene.cluster.spec.paused = Some(true),
        Fault::Shards(shards) => scene.cluster.spec.shards = shards,
        Fault::Replicas(replicas) => scene.cluster.spec.replicas = Some(replicas),
        Fault::Objects => scene.observed.objects_ready = false,
        Fault::Deleting => scene.observed.deleting = true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn an_unchanged_observation_gives_the_same_status_and_no_events(
        blows in prop::collection::vec(blow(), 0..4),
        keys in 0_u64..1000,
    ) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &blows {
            strike(&mut scene, blow);
        }
        scene.reconcile(&[]);
        // The first report changes the remembered state, and that may change the next report once more.
        let settled = scene.reconcile(&[]);
        for member in scene.observed.members.values_mut() {
            if let Server::Up(facts) = &mut member.server {
                facts.keys += keys;
            }
        }
        scene.later(1);
        let again = scene.reconcile(&[]);
        prop_assert_eq!(
            serde_json::to_string(&settled.status).unwrap(),
            serde_json::to_string(&again.status).unwrap()
        );
        prop_assert_eq!(&settled.nodes, &again.nodes);
        prop_assert!(again.events.is_empty(), "{:?}", again.events);
    }

    #[test]
    fn ready_is_never_reported_for_a_cluster_that_is_not(blows in prop::collection::vec(blow(), 0..4)) {
        let mut scene = Scene::healthy(3, 1);
        for blow in &blows {
            strike(&mut scene, blow);
        }
        let before = scene.plan();
        let report = scene.reconcile(&[]);
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
        for condition in &scene.reconcile(&[]).status.conditions {
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
        let before = scene.reconcile(&[]).status;
        for blow in &second {
            strike(&mut scene, blow);
        }
        scene.later(10);
        for condition in &scene.reconcile(&[]).status.conditions {
            let Some(was) = before.conditions.iter().find(|was| was.type_ == condition.type_) else {
                continue;
            };
            let moved = was.last_transition_time != condition.last_transition_time;
            prop_assert_eq!(moved, was.status != condition.status);
        }
    }
}
