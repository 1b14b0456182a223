//! A member that is missing or out of sync because of the operator's own action is never reported as lost.

use candor_engine::observation::Workload;
use valkey_admin::{SlotRange, SlotSet};

use crate::scene::{Scene, at, lines};

#[test]
fn a_primary_that_gave_way_in_a_roll_is_not_lost_while_it_follows_its_successor() {
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
    let report = scene.look(&[]);
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
    let report = scene.look(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost (Warning): Replica lost in shard 0: nobody"),
        "one that dies meanwhile is: {:?}",
        lines(&report.status)
    );
}

#[test]
fn a_replica_that_was_asked_for_is_not_lost_while_it_copies_for_the_first_time() {
    let mut scene = Scene::healthy(2, 1);
    scene.cluster.spec.replicas = Some(2);
    scene.create();
    scene.look(&[]);
    scene.start();
    scene.act();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 2).map(SlotSet::from).unwrap_or_default());
    for shard in 0..2 {
        let facts = scene.facts(at(shard, 2));
        (facts.in_sync, facts.was_in_sync, facts.keys) = (false, false, 0);
    }
    // Status remembers them from the first of these reconciles on.
    for _ in 0..3 {
        let report = scene.look(&[]);
        assert_eq!(
            lines(&report.status)[..2],
            [
                "Ready=False MissingReplicas (Warning): Waiting for all replicas to be created",
                "Progressing=True Reconciling (Warning): Creating replicas",
            ]
        );
        assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    }
    scene.silence(at(1, 1));
    let report = scene.look(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost"),
        "one that does not answer is: {:?}",
        lines(&report.status)
    );
}

#[test]
fn a_replica_whose_primary_leaves_in_a_scale_in_is_not_lost_while_it_follows_the_heir() {
    let mut scene = Scene::healthy(2, 2);
    scene.promote(at(0, 2));
    for node in [0, 1] {
        let facts = scene.facts(at(0, node));
        (facts.in_sync, facts.was_in_sync, facts.link_down) = (true, true, false);
    }
    assert_eq!(scene.look(&[]).status.reason, "ClusterHealthy");
    scene.cluster.spec.replicas = Some(1);
    scene.act();
    scene.promote(at(0, 0));
    let report = scene.look(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False Reconciling (Warning): Cluster is Reconciling",
            "Progressing=True Reconciling (Warning): Removing nodes that are no longer wanted",
        ]
    );
    assert!(!lines(&report.status).iter().any(|line| line.starts_with("Degraded")));
    scene.kill(at(0, 1));
    let report = scene.look(&[]);
    assert!(
        lines(&report.status)[2].starts_with("Degraded=True ReplicaLost (Warning): Replica lost in shard 0: nobody"),
        "one that dies meanwhile is: {:?}",
        lines(&report.status)
    );
}
