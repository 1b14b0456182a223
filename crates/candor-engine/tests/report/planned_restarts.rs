//! A member that is missing or out of sync because of the operator's own action is never reported as lost.

use candor_api::valkey::status::OperationKind;
use candor_engine::observation::{Server, Trouble, Workload};
use valkey_admin::{SlotRange, SlotSet};

use crate::scene::{Scene, at, ip, lines};

#[test]
fn a_primary_that_failed_over_in_a_rolling_update_is_not_lost_while_it_replicates_the_new_one() {
    let mut scene = Scene::healthy(3, 2);
    for shard in 0..3 {
        scene.member(at(shard, 0)).workload = Workload::Outdated;
    }
    let report = scene.act();
    assert_eq!(
        report.status.operation.unwrap().member,
        "0-0",
        "it is by our hand from the hand-over on"
    );
    scene.promote(at(0, 1));
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False UpdatingNodes (Warning): Updating ValkeyNodes",
            "Progressing=True UpdatingNodes (Warning): Updating ValkeyNodes (6 of 9 done)",
        ],
        "neither it nor the other replica, which follows another now, is lost"
    );
    assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    scene.kill(at(0, 2));
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost (Warning): Replica lost in shard 0: member 0-"),
        "one that dies meanwhile is: {:?}",
        lines(&report.status)
    );
}

#[test]
fn a_new_replica_is_not_lost_during_its_first_full_sync() {
    let mut scene = Scene::healthy(2, 1);
    scene.cluster.spec.replicas = Some(2);
    scene.create();
    scene.reconcile(&[]);
    scene.start();
    scene.act();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 2).map(SlotSet::from).unwrap_or_default());
    for shard in 0..2 {
        let facts = scene.facts(at(shard, 2));
        (facts.in_sync, facts.was_in_sync, facts.keys) = (false, false, 0);
    }
    // Status remembers them from the first of these reconciles on.
    for _ in 0..3 {
        let report = scene.reconcile(&[]);
        assert_eq!(
            lines(&report.status)[..2],
            [
                "Ready=False MissingReplicas (Warning): Waiting for all replicas to be created",
                "Progressing=True Reconciling (Warning): Creating replicas",
            ]
        );
        assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    }
    scene.stop_responding(at(1, 1));
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost"),
        "one that does not answer is: {:?}",
        lines(&report.status)
    );
}

#[test]
fn a_replica_is_not_lost_while_it_follows_the_new_primary_of_a_scale_in() {
    let mut scene = Scene::healthy(2, 2);
    scene.promote(at(0, 2));
    for node in [0, 1] {
        let facts = scene.facts(at(0, node));
        (facts.in_sync, facts.was_in_sync, facts.link_down) = (true, true, false);
    }
    assert_eq!(scene.reconcile(&[]).status.reason, "ClusterHealthy");
    scene.cluster.spec.replicas = Some(1);
    scene.act();
    scene.promote(at(0, 0));
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False Reconciling (Warning): Cluster is Reconciling",
            "Progressing=True Reconciling (Warning): Removing nodes that are no longer wanted",
        ]
    );
    assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    scene.kill(at(0, 1));
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost (Warning): Replica lost in shard 0: member 0-"),
        "one that dies meanwhile is: {:?}",
        lines(&report.status)
    );
}

/// A cluster without replicas, in which the operator has just restarted member 0-0.
fn restarting() -> Scene {
    let mut scene = Scene::healthy(3, 0);
    for shard in 0..3 {
        scene.member(at(shard, 0)).workload = Workload::Outdated;
    }
    let report = scene.act();
    assert_eq!(report.status.operation.unwrap().member, "0-0");
    scene.member(at(0, 0)).workload = Workload::Current;
    scene
}

#[test]
fn a_primary_without_replicas_is_not_lost_while_the_operator_restarts_it() {
    let mut scene = restarting();
    let since = scene.now;
    // The server, and whether its pod is still there.
    let states = [
        (Server::Dead { since }, true),
        (Server::Silent { since }, true),
        (Server::Nowhere, true),
        (Server::Nowhere, false),
    ];
    for (server, there) in states {
        scene.member(at(0, 0)).server = server.clone();
        if !there {
            scene.member(at(0, 0)).pod = None;
        }
        let report = scene.reconcile(&[]);
        assert_eq!(
            lines(&report.status)[..2],
            [
                "Ready=False UpdatingNodes (Warning): Updating ValkeyNodes",
                "Progressing=True UpdatingNodes (Warning): Updating ValkeyNodes (0 of 3 done): member 0-0 is restarting \
                 (planned), and shard 0 has no replica to serve meanwhile",
            ],
            "{server:?}"
        );
        assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
        assert_eq!(report.events, [], "{server:?}");
        let operation = report.status.operation.unwrap();
        assert_eq!(
            (operation.kind, operation.member.as_str()),
            (OperationKind::Roll, "0-0")
        );
    }
}

#[test]
fn a_restarted_primary_that_loads_its_dataset_is_not_lost() {
    let mut scene = restarting();
    scene.facts(at(0, 0)).loading = true;
    let report = scene.reconcile(&[]);
    let message = &lines(&report.status)[1];
    assert!(message.contains("member 0-0 is restarting (planned)"), "{message}");
    assert_eq!(report.events, []);
}

#[test]
fn a_restarted_primary_is_lost_if_its_pod_cannot_run_or_another_primary_dies_too() {
    let mut scene = restarting();
    scene.trouble(at(0, 0), Trouble::NotStarting("pod p: no such image".to_owned()));
    let report = scene.reconcile(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True PrimaryLost (Error): Primary lost in shard 0:"),
        "{:?}",
        lines(&report.status)
    );

    let mut scene = restarting();
    scene.kill(at(0, 0));
    scene.kill(at(1, 0));
    let report = scene.reconcile(&[]);
    let degraded = &lines(&report.status)[2];
    assert!(degraded.starts_with("Degraded=True QuorumLost"), "{degraded}");

    let mut scene = restarting();
    scene.kill(at(0, 0));
    scene.facts(at(1, 0)).loading = true;
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[2],
        "Degraded=True PrimaryLost (Error): Primary lost in shard 0: member 0-0 is restarting (planned); Primary lost in \
         shard 1: member 1-0 reads its dataset"
    );
}

#[test]
fn a_restarted_member_that_meets_the_others_again_is_part_of_the_rolling_update() {
    let mut scene = Scene::healthy(3, 1);
    for shard in 0..3 {
        scene.member(at(shard, 1)).workload = Workload::Outdated;
    }
    scene.act();
    scene.member(at(0, 1)).workload = Workload::Current;
    // It is back with its volume, at another address.
    scene.member(at(0, 1)).pod.as_mut().unwrap().ip = Some(ip(at(5, 1)));
    let report = scene.act();
    assert_eq!(
        lines(&report.status)[1],
        "Progressing=True UpdatingNodes (Warning): Updating ValkeyNodes (3 of 6 done)"
    );
    let operation = report.status.operation.unwrap();
    assert_eq!(
        (operation.kind, operation.member.as_str()),
        (OperationKind::Roll, "0-1")
    );
}

#[test]
fn members_that_do_not_report_ok_yet_are_not_reported_as_unassigned_slots() {
    let mut scene = Scene::healthy(3, 1);
    for shard in 0..3 {
        scene.member(at(shard, 1)).workload = Workload::Outdated;
    }
    scene.act();
    scene.facts(at(0, 1)).ok = false;
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[..2],
        [
            "Ready=False Reconciling (Warning): Waiting for all nodes to report cluster_state:ok",
            "Progressing=True Reconciling (Warning): Waiting for all nodes to report cluster_state:ok",
        ]
    );
    assert!(said.contains(&"SlotsAssigned=True AllSlotsAssigned: All slots assigned".to_owned()));
    assert_eq!(
        report.status.operation.unwrap().kind,
        OperationKind::Roll,
        "not a repair"
    );
}
