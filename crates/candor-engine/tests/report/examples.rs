//! The examples of the specification, verbatim.

use candor_engine::step::Step;

use crate::scene::{Scene, at, event_lines, failed, lines};

#[test]
fn a_healthy_cluster_is_as_in_the_seed() {
    let mut scene = Scene::healthy(3, 1);
    let status = scene.reconcile(&[]).status;
    assert_eq!(
        lines(&status),
        [
            "Ready=True ClusterHealthy: Cluster is healthy",
            "Progressing=False ReconcileComplete: No changes needed",
            "ClusterFormed=True TopologyComplete: All nodes joined cluster",
            "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
        ]
    );
    insta::assert_yaml_snapshot!(status);
}

#[test]
fn an_initializing_cluster_is_as_in_the_seed() {
    let mut scene = Scene::new(3, 1);
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False MissingShards (Info): Waiting for all shards to be created",
            "Progressing=True Reconciling (Info): Creating shards",
            "ClusterFormed=False MissingShards (Info): Waiting for shards",
        ]
    );
    assert!(event_lines(&report).contains(&"Normal WaitingForShards: 0 of 3 shards exist".to_owned()));
    insta::assert_yaml_snapshot!(report.status);
}

#[test]
fn a_degraded_cluster_is_as_in_the_seed() {
    let mut scene = Scene::new(3, 1);
    scene.create();
    scene.start();
    scene.reconcile(&[]);
    scene.later(5);
    let meet = Step::Meet {
        at: at(0, 0),
        with: at(0, 1),
    };
    let report = scene.reconcile(&[failed(meet, "connection timeout")]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False Reconciling (Error): Cluster is Reconciling",
            "Progressing=True AddingNodes (Info): Adding nodes to cluster",
            "Degraded=True NodeAddFailed (Error): Failed to add node: connection timeout",
            "SlotsAssigned=False SlotsUnassigned (Info): Assigning slots to nodes",
        ]
    );
    assert!(event_lines(&report).contains(&"Warning NodeAddFailed: Failed to add node: connection timeout".to_owned()));
    insta::assert_yaml_snapshot!(report.status);
}

#[test]
fn a_watch_shows_the_rows_of_the_seed() {
    let mut scene = Scene::new(3, 1);
    let mut rows = Vec::new();
    let mut row = |scene: &mut Scene| {
        let status = scene.act().status;
        rows.push(format!(
            "{:?} {} {}",
            status.state.unwrap(),
            status.reason,
            status.ready_shards
        ));
    };
    row(&mut scene);
    scene.create();
    row(&mut scene);
    scene.start();
    row(&mut scene);
    scene.join();
    for shard in 1..3 {
        scene.facts(at(shard, 1)).in_sync = false;
    }
    row(&mut scene);
    scene.facts(at(1, 1)).in_sync = true;
    row(&mut scene);
    scene.facts(at(2, 1)).in_sync = true;
    row(&mut scene);
    assert_eq!(
        rows,
        [
            "Initializing Reconciling 0",
            "Reconciling Reconciling 0",
            "Reconciling AddingNodes 0",
            "Reconciling AddingNodes 1",
            "Reconciling AddingNodes 2",
            "Ready ClusterHealthy 3",
        ]
    );
}
