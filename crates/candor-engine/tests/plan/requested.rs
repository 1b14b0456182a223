//! Planned failovers, requested by a user or needed to drain a node: when one is performed, when it waits, when it is
//! rejected, and what the report says about it.

use candor_api::valkey::FAILOVER;
use candor_engine::observation::{Applied, Workload};
use candor_engine::plan::Stage;
use candor_engine::step::{FailoverBy, Step};

use crate::scene::{Scene, at, event_lines, failed, id, lines};

fn ask(scene: &mut Scene, message: &str) {
    let annotations = scene.cluster.metadata.annotations.get_or_insert_default();
    annotations.insert(FAILOVER.to_owned(), message.to_owned());
}

fn healthy_and_asked(replicas: i32, to: &str) -> Scene {
    let mut scene = Scene::healthy(3, replicas);
    let from = id(at(1, 0));
    ask(&mut scene, &format!("1/{from}{to}"));
    scene
}

fn plan_failover(node: u32) -> Step {
    Step::Failover {
        to: at(1, node),
        by: FailoverBy::Planned,
    }
}

fn rejected(message: &str) -> Step {
    Step::ClearFailoverRequest {
        rejected: Some(message.to_owned()),
    }
}

/// Shard 1 gets another primary.
fn promote(scene: &mut Scene, node: u32) {
    for (other, member) in &mut scene.observed.members {
        let candor_engine::observation::Server::Up(facts) = &mut member.server else {
            continue;
        };
        let slots = facts.map.get(id(at(1, 0))).unwrap().slots.clone();
        for entry in &mut facts.map.0 {
            let candidate = entry.id == id(at(1, node));
            let old = entry.id == id(at(1, 0));
            if entry.primary == Some(id(at(1, 0))) {
                entry.primary = Some(id(at(1, node)));
            }
            if candidate || old {
                (entry.flags.primary, entry.flags.replica) = (candidate, old);
                entry.primary = old.then(|| id(at(1, node)));
                entry.slots = if candidate {
                    slots.clone()
                } else {
                    valkey_admin::SlotSet::new()
                };
            }
        }
        if other.shard.0 == 1 {
            facts.in_sync = other.node != node;
        }
    }
}

#[test]
fn the_best_replica_takes_over_or_the_one_that_is_named() {
    let mut scene = healthy_and_asked(2, "");
    scene.facts(at(1, 2)).offset = 9;
    let plan = scene.plan();
    let to = Some(at(1, 2));
    assert_eq!(
        plan.stage,
        Stage::FailingOver {
            shard: at(1, 0).shard,
            to,
            drained: false
        }
    );
    assert_eq!(plan.steps, [plan_failover(2)]);
    assert_eq!(healthy_and_asked(2, "/1-1").plan().steps, [plan_failover(1)]);
}

/// Cordons a member's node.
fn cordon(scene: &mut Scene, node: u32) {
    let pod = scene.member(at(1, node)).pod.as_mut().unwrap();
    pod.cordoned = true;
}

#[test]
fn a_primary_on_a_cordoned_node_fails_over_only_to_a_replica_on_another_node() {
    let mut scene = Scene::healthy(3, 2);
    cordon(&mut scene, 1);
    assert_eq!(scene.plan().stage, Stage::Healthy, "replicas are evicted as they are");
    cordon(&mut scene, 0);
    scene.facts(at(1, 1)).offset = 9;
    let plan = scene.plan();
    let (shard, to) = (at(1, 0).shard, Some(at(1, 2)));
    assert_eq!(
        plan.stage,
        Stage::FailingOver {
            shard,
            to,
            drained: true
        }
    );
    assert_eq!(plan.steps, [plan_failover(2)]);
    scene.reconcile(&[]);
    let said = scene.cluster.status.clone().unwrap();
    assert_eq!(
        said.message,
        "Failing over shard 1 to member 1-2: the node of its primary takes no new pods"
    );
    promote(&mut scene, 2);
    scene.facts(at(1, 0)).in_sync = false;
    let to = None;
    assert_eq!(
        scene.plan().stage,
        Stage::FailingOver {
            shard,
            to,
            drained: false
        },
        "that the old one does not follow yet is our own doing"
    );
    scene.facts(at(1, 0)).in_sync = true;
    assert_eq!(scene.plan().stage, Stage::Healthy);
    scene.reconcile(&[]);
    scene.facts(at(1, 0)).in_sync = false;
    assert!(
        matches!(scene.plan().stage, Stage::ReplicaLost(_)),
        "and later it is not"
    );
    let mut scene = Scene::healthy(3, 2);
    for node in 0..3 {
        cordon(&mut scene, node);
    }
    assert_eq!(scene.plan().stage, Stage::Healthy, "there is nowhere to go");
}

#[test]
fn no_evacuation_runs_if_the_cluster_is_paused_or_the_member_leaves_or_is_desired_on_that_node() {
    let cordoned = || {
        let mut scene = Scene::healthy(3, 2);
        cordon(&mut scene, 0);
        scene
    };
    assert_eq!(cordoned().plan().steps, [plan_failover(1)]);
    let mut paused = cordoned();
    paused.cluster.spec.paused = Some(true);
    assert_eq!(paused.plan().stage, Stage::Healthy);
    let mut leaving = cordoned();
    leaving.member(at(1, 0)).pod.as_mut().unwrap().leaving = true;
    assert!(
        !leaving.plan().steps.contains(&plan_failover(1)),
        "its server gives way by itself"
    );
    let mut heir_leaves = cordoned();
    heir_leaves.member(at(1, 1)).pod.as_mut().unwrap().leaving = true;
    assert_eq!(heir_leaves.plan().steps, [plan_failover(2)]);
    let mut asked = Scene::healthy(3, 2);
    cordon(&mut asked, 2);
    ask(&mut asked, &format!("1/{}/1-2", id(at(1, 0))));
    let message = "member 1-2 is on a node that takes no new pods, or on its way out";
    assert_eq!(asked.plan().steps, [rejected(message)], "it would be undone");
}

#[test]
fn a_replica_of_another_shard_that_is_out_of_sync_is_lost_and_not_our_doing() {
    let mut scene = Scene::healthy(3, 2);
    cordon(&mut scene, 0);
    scene.reconcile(&[]);
    promote(&mut scene, 1);
    scene.facts(at(2, 1)).in_sync = false;
    assert!(
        matches!(scene.plan().stage, Stage::ReplicaLost(_)),
        "{:?}",
        scene.plan().stage
    );
}

/// A server that did not know yet that its replica belongs to its shard stays a primary after the failover, without
/// slots and with its keys (Valkey 8.0 beside 9.1). It rejects `CLUSTER REPLICATE`, so it is reset; but only if the
/// failover was the operator's own, with the primary's help.
#[test]
fn a_former_primary_that_retained_its_keys_is_reset_only_after_a_failover_by_the_operator() {
    let kept = |scene: &mut Scene| {
        promote(scene, 1);
        let facts = scene.facts(at(1, 0));
        facts.keys = 5462;
        let me = facts.map.0.iter_mut().find(|entry| entry.flags.myself).unwrap();
        me.primary = None;
        (me.flags.primary, me.flags.replica) = (true, false);
        (facts.in_sync, facts.link_down) = (false, false);
    };
    let mut rolled = Scene::healthy(3, 1);
    rolled.member(at(1, 0)).workload = Workload::Outdated;
    rolled.reconcile(&[]);
    kept(&mut rolled);
    let mut asked = healthy_and_asked(1, "");
    asked.reconcile(&[]);
    kept(&mut asked);
    for scene in [&rolled, &asked] {
        assert!(
            scene.plan().steps.contains(&Step::Reset(at(1, 0))),
            "{:?}",
            scene.plan()
        );
    }
    let mut by_hand = Scene::healthy(3, 1);
    by_hand.reconcile(&[]);
    kept(&mut by_hand);
    let steps = by_hand.plan().steps;
    assert!(!steps.iter().any(|step| matches!(step, Step::Reset(_))), "{steps:?}");
}

/// Sets the shard that one member attributes to another.
fn believed(scene: &mut Scene, by: (u32, u32), of: (u32, u32), shard: &str) {
    let of = id(at(of.0, of.1));
    let entries = &mut scene.facts(at(by.0, by.1)).map.0;
    let entry = entries.iter_mut().find(|entry| entry.id == of).unwrap();
    entry.address.aux = vec![("shard-id".to_owned(), shard.to_owned())];
}

#[test]
fn no_planned_failover_runs_while_a_new_member_assigns_the_two_to_different_shards() {
    let mut rolled = Scene::healthy(3, 1);
    rolled.member(at(1, 0)).workload = Workload::Outdated;
    // In a rolling update the two announce themselves; a request waits.
    let announced = [at(1, 0), at(1, 1)].map(|of| Step::Announce { at: of, to: at(2, 1) });
    let asked = [healthy_and_asked(1, ""), healthy_and_asked(1, "/1-1")].map(|scene| (scene, Vec::new()));
    for (mut scene, meanwhile) in asked.into_iter().chain([(rolled, announced.to_vec())]) {
        believed(&mut scene, (2, 1), (1, 0), "a");
        believed(&mut scene, (2, 1), (1, 1), "b");
        assert_eq!(scene.plan().steps, meanwhile, "not now, and not refused");
        believed(&mut scene, (2, 1), (1, 1), "a");
        assert_eq!(scene.plan().steps, [plan_failover(1)]);
    }
}

#[test]
fn an_impossible_failover_request_is_rejected_with_a_message_and_disturbs_no_member() {
    let table = [
        (healthy_and_asked(0, ""), "shard 1 has no replica in sync"),
        (healthy_and_asked(1, "/1-0"), "member 1-0 is the primary already"),
        (healthy_and_asked(1, "/2-1"), "member 2-1 is none of shard 1"),
        (healthy_and_asked(1, "/1-7"), "member 1-7 is none of shard 1"),
        (
            {
                let mut scene = Scene::healthy(3, 1);
                ask(&mut scene, &format!("9/{}", id(at(1, 0))));
                scene
            },
            "shard 9 has no primary",
        ),
        (
            {
                let mut scene = Scene::healthy(3, 1);
                ask(&mut scene, "one, please");
                scene
            },
            "\"one, please\" names no failover: expected shard and node id of its primary, such as 0/<40 hex digits>",
        ),
    ];
    for (mut scene, message) in table {
        let plan = scene.plan();
        assert_eq!(
            (plan.stage, plan.steps.as_slice()),
            (Stage::Healthy, [rejected(message)].as_slice())
        );
        let report = scene.act();
        let events = [format!(
            "Warning FailoverFailed: The failover that was asked for is not done: {message}"
        )];
        assert_eq!(event_lines(&report), events);
        assert_eq!(report.status.reason, "ClusterHealthy", "nothing was disturbed");
    }
}

#[test]
fn it_waits_for_what_is_under_way() {
    let mut healing = healthy_and_asked(1, "");
    healing.stop_responding(at(2, 1));
    assert!(matches!(healing.plan().stage, Stage::ReplicaLost(_)));
    let mut rolling = healthy_and_asked(1, "");
    rolling.member(at(0, 1)).workload = Workload::Outdated;
    assert_eq!(rolling.plan().steps, [Step::RollMember(at(0, 1))]);
    let mut moving = healthy_and_asked(1, "");
    moving.cluster.spec.shards = 2;
    assert!(matches!(moving.plan().stage, Stage::Moving { .. }));
    let mut paused = healthy_and_asked(1, "");
    paused.cluster.spec.paused = Some(true);
    assert!(paused.plan().steps.is_empty());
}

#[test]
fn a_rejected_spec_does_not_block_evacuating_a_cordoned_node() {
    let mut scene = healthy_and_asked(1, "");
    scene.facts(at(0, 0)).config = Applied::Rejected("no such option".to_owned());
    let plan = scene.plan();
    assert!(matches!(plan.stage, Stage::Rejected { .. }));
    assert_eq!(plan.steps, [plan_failover(1)]);
}

#[test]
fn a_requested_failover_is_reported_step_by_step_and_done_once_if_requested_twice() {
    let mut scene = healthy_and_asked(1, "");
    let report = scene.act();
    assert_eq!(
        event_lines(&report),
        ["Normal FailoverInitiated: Failing over shard 1 to member 1-1 (10.244.0.15)"]
    );
    let ready = "Ready=False Reconciling (Warning): Cluster is Reconciling";
    let progressing = "Progressing=True Reconciling (Warning): Failing over shard 1 to member 1-1";
    assert_eq!(&lines(&report.status)[..2], [ready, progressing]);
    let operation = report.status.operation.unwrap();
    assert_eq!(
        (operation.member.as_str(), operation.step, operation.steps),
        ("1-1", 1, 2)
    );

    promote(&mut scene, 1);
    scene.facts(at(1, 0)).in_sync = false;
    let report = scene.act();
    let completed = format!(
        "Normal FailoverCompleted: Member 1-1 ({}) is the primary of shard 1",
        id(at(1, 1))
    );
    assert_eq!(
        event_lines(&report),
        [completed],
        "the old primary follows by our hand: nobody is lost"
    );

    scene.facts(at(1, 0)).in_sync = true;
    let plan = scene.plan();
    let answer = Step::ClearFailoverRequest { rejected: None };
    assert_eq!(
        (plan.stage, plan.steps.as_slice()),
        (Stage::Healthy, [answer].as_slice())
    );
    assert_eq!(
        event_lines(&scene.act()),
        ["Normal ClusterReady: Cluster ready with 3 shards and 1 replicas"]
    );
    scene.cluster.metadata.annotations = None;
    assert_eq!(scene.plan().steps, []);
}

#[test]
fn a_command_that_a_server_keeps_rejecting_is_not_repeated_forever() {
    let mut scene = healthy_and_asked(1, "");
    for _ in 0..5 {
        assert_eq!(scene.plan().steps, [plan_failover(1)]);
        let report = scene.reconcile(&[failed(plan_failover(1), "ERR no")]);
        assert_eq!(
            event_lines(&report),
            ["Warning FailoverFailed: Failed to fail over shard 1 to member 1-1 (10.244.0.15): ERR no"]
        );
    }
    assert_eq!(scene.plan().steps, [rejected("it was refused 5 times")]);
}
