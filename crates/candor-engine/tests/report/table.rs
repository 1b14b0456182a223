//! The contract's table of stages, one test per row.

use candor_api::valkey::status::State;
use candor_engine::kinds::valkey::report::Report;
use candor_engine::observation::{Preflight, Server, Trouble, Workload};
use valkey_admin::{SlotRange, SlotSet};

use crate::scene::{Scene, at, event_lines, lines};

/// The columns of `kubectl get`.
pub fn state(report: &Report) -> (State, &str, &str) {
    let status = &report.status;
    (status.state.unwrap(), &status.reason, &status.message)
}

#[test]
fn creating() {
    let mut scene = Scene::new(3, 1);
    scene.create();
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False MissingShards (Info): Waiting for all shards to be created",
            "Progressing=True Reconciling (Info): Creating shards",
            "ClusterFormed=False MissingShards (Info): Waiting for shards",
        ]
    );
    assert_eq!(state(&report), (State::Reconciling, "Reconciling", "Creating shards"));
}

#[test]
fn initializing_while_the_first_object_cannot_be_made() {
    let mut scene = Scene::new(3, 1);
    scene.observed.missing = vec!["Secret sample-users is missing".to_owned()];
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[1],
        "Progressing=True Initializing (Info): Secret sample-users is missing"
    );
    assert!(scene.plan().steps.is_empty(), "nothing is written before it is there");
    assert_eq!(state(&report).0, State::Initializing);
}

#[test]
fn joining() {
    let mut scene = Scene::new(3, 1);
    scene.create();
    scene.start();
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False Reconciling (Info): Cluster is Reconciling",
            "Progressing=True AddingNodes (Info): Adding nodes to cluster",
            "SlotsAssigned=False SlotsUnassigned (Info): Assigning slots to nodes",
        ]
    );
}

#[test]
fn replicas_missing_while_the_cluster_is_created() {
    let mut scene = Scene::new(3, 1);
    scene.create();
    scene.start();
    for shard in 0..3 {
        scene.member(at(shard, 1)).server = Server::Nowhere;
    }
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False MissingReplicas (Info): Waiting for all replicas to be created",
            "Progressing=True Reconciling (Info): Creating replicas",
            "ClusterFormed=False MissingReplicas (Info): Waiting for replicas",
        ]
    );
}

#[test]
fn replicas_missing_because_more_are_desired() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.replicas = Some(2);
    scene.cluster.metadata.generation = Some(2);
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[..4],
        [
            "Ready=False MissingReplicas (Warning): Waiting for all replicas to be created",
            "Progressing=True Reconciling (Warning): Creating replicas",
            "ClusterFormed=False MissingReplicas (Info): Waiting for replicas",
            "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
        ]
    );
    assert_eq!(
        event_lines(&report).last().unwrap(),
        "Normal WaitingForReplicas: Waiting for replicas in shard 0"
    );
}

#[test]
fn slots_not_covered() {
    let mut scene = Scene::healthy(3, 1);
    let first: SlotSet = "0-5450".parse().unwrap();
    scene.join_with(&|shard| match shard {
        0 => first.clone(),
        other => SlotRange::of_shard(other, 3).unwrap().into(),
    });
    scene.facts(at(0, 0)).ok = false;
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[0],
        "Ready=False Reconciling (Error): Waiting for all slots to be assigned"
    );
    assert_eq!(
        said[3],
        "SlotsAssigned=False SlotsUnassigned (Warning): Waiting for all slots to be assigned"
    );
    let steps = format!("{:?}", scene.plan().steps);
    assert!(
        steps.contains("AddSlots") && steps.contains("5451-5460"),
        "they go back to whom they were taken from: {steps}"
    );
}

#[test]
fn a_primary_that_does_not_respond() {
    let mut scene = Scene::healthy(3, 1);
    scene.stop_responding(at(1, 0));
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[..3],
        [
            "Ready=False Reconciling (Error): Cluster is Reconciling",
            "Progressing=True Reconciling (Warning): Waiting for failover in shard 1",
            "Degraded=True PrimaryLost (Error): Primary lost in shard 1: member 1-0 does not answer",
        ]
    );
    assert_eq!(
        state(&report),
        (
            State::Degraded,
            "PrimaryLost",
            "Primary lost in shard 1: member 1-0 does not answer"
        )
    );
    assert_eq!(
        event_lines(&report),
        ["Warning PrimaryLost: Primary lost in shard 1: member 1-0 does not answer"]
    );
    assert_eq!(report.status.ready_shards, 2);
    assert_eq!(report.status.shards, 3);
    assert!(scene.plan().steps.is_empty(), "silence alone proves nothing");
}

#[test]
fn a_primary_that_refuses_connections_is_replaced_at_once() {
    let mut scene = Scene::healthy(3, 1);
    scene.kill(at(1, 0));
    let steps = scene.plan().steps;
    assert!(
        steps.iter().any(candor_engine::step::Step::restores_service),
        "{steps:?}"
    );
    let report = scene.act();
    assert_eq!(
        event_lines(&report),
        [
            "Normal FailoverInitiated: Failing over shard 1 to member 1-1 (10.244.0.15)",
            "Warning PrimaryLost: Primary lost in shard 1: member 1-0 refuses connections",
        ]
    );
}

#[test]
fn a_replica_that_does_not_respond() {
    let mut scene = Scene::healthy(3, 1);
    scene.stop_responding(at(2, 1));
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[..3],
        [
            "Ready=False MissingReplicas (Error): Waiting for all replicas to be created",
            "Progressing=True Reconciling (Warning): Waiting for replicas in shard 2",
            "Degraded=True ReplicaLost (Warning): Replica lost in shard 2: member 2-1 does not answer",
        ]
    );
    assert!(said.iter().any(|line| line
        == "NodesReady=False NodesNotReady (Error): * ValkeyNode sample-2-1: Does not answer since 2025-12-19T10:00:00Z"));
}

#[test]
fn a_majority_of_primaries_is_gone() {
    let mut scene = Scene::healthy(3, 1);
    scene.stop_responding(at(1, 0));
    scene.stop_responding(at(2, 0));
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[2],
        "Degraded=True QuorumLost (Error): 1 of 3 primaries answer: without a majority servers cannot elect a primary"
    );
    assert_eq!(said[0], "Ready=False Reconciling (Error): Cluster is Reconciling");
}

#[test]
fn pods_that_cannot_be_listed() {
    let mut scene = Scene::healthy(3, 1);
    scene.observed.pods_unknown = Some("pods is forbidden".to_owned());
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=Unknown PodListError: pods is forbidden",
            "Progressing=False ReconcileComplete: No changes needed",
            "ClusterFormed=True TopologyComplete: All nodes joined cluster",
            "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
        ]
    );
    assert_eq!(
        state(&report),
        (State::Reconciling, "PodListError", "pods is forbidden")
    );
    scene.later(60);
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report), (State::Failed, "PodListError", "pods is forbidden"));
    assert!(lines(&report.status)[1].starts_with("Progressing=False Stalled"));
    scene.later(60);
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report), (State::Failed, "PodListError", "pods is forbidden"));
    assert!(lines(&report.status)[1].starts_with("Progressing=False Stalled"));
}

#[test]
fn a_new_shard_gets_nothing_while_the_cluster_is_paused() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    scene.cluster.spec.paused = Some(true);
    let report = scene.reconcile(&[]);
    let said = lines(&report.status);
    assert_eq!(
        said[..3],
        [
            "Ready=False Reconciling (Error): Cluster is Reconciling",
            "Progressing=True RebalancingSlots (Warning): Rebalancing slots across primaries (0/4096 moved)",
            "Degraded=True NoSlotsAvailable (Error): No slots available for shard 3: the cluster is paused",
        ]
    );
    assert!(said.last().unwrap().starts_with("Paused=True PausedByUser (Info)"));
}

#[test]
fn slot_migration_reports_its_progress() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    let report = scene.act();
    assert_eq!(
        lines(&report.status)[1],
        "Progressing=True RebalancingSlots (Warning): Rebalancing slots across primaries (0/4096 moved)"
    );
    assert_eq!(event_lines(&report).len(), 5, "{:?}", event_lines(&report));
    assert!(
        event_lines(&report).contains(&"Normal SlotsRebalancing: Moving 1365 slots from shard 0 to shard 3".to_owned())
    );
    let moved: SlotSet = "4096-5460".parse().unwrap();
    scene.join_with(&|shard| match shard {
        0 => "0-4095".parse().unwrap(),
        3 => moved.clone(),
        other => SlotRange::of_shard(other, 3).unwrap().into(),
    });
    let report = scene.act();
    assert_eq!(
        lines(&report.status)[1],
        "Progressing=True RebalancingSlots (Warning): Rebalancing slots across primaries (1365/4096 moved)"
    );
    let running = report.status.operation.clone().unwrap();
    assert_eq!((running.slots_moved, running.slots_total), (Some(1365), Some(4096)));
    assert!(event_lines(&report).is_empty(), "{:?}", event_lines(&report));
}

#[test]
fn draining_reports_that_it_is_for_a_scale_in() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.shards = 2;
    let report = scene.act();
    assert_eq!(
        lines(&report.status)[1],
        "Progressing=True RebalancingSlots (Warning): Rebalancing slots for scale-in (0/5461 moved)"
    );
    assert_eq!(
        event_lines(&report)[0],
        "Normal SlotsDraining: Draining 5461 slots from shard 2"
    );
}

#[test]
fn rolling() {
    let mut scene = Scene::healthy(3, 1);
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
    }
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False UpdatingNodes (Warning): Updating ValkeyNodes",
            "Progressing=True UpdatingNodes (Warning): Updating ValkeyNodes (0 of 6 done)",
        ]
    );
    let running = report.status.operation.unwrap();
    assert_eq!((running.step, running.steps, running.member.as_str()), (1, 6, "0-1"));
    scene.member(at(0, 1)).workload = Workload::Current;
    scene.kill(at(0, 1));
    scene.facts(at(0, 0)).link_down = false;
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False UpdatingNodes (Warning): Updating ValkeyNodes",
            "Progressing=True UpdatingNodes (Warning): Updating ValkeyNodes (0 of 6 done)",
        ],
        "an operation is a warning, also while a member restarts"
    );
    assert_eq!(report.nodes[&at(0, 1)].conditions[0].reason, "Restarting");
    assert!(
        !lines(&report.status).iter().any(|line| line.starts_with("Degraded")),
        "a member that is away by our own hand is not lost"
    );
}

#[test]
fn a_pod_that_cannot_be_scheduled() {
    let mut scene = Scene::healthy(3, 1);
    let message = "0/3 nodes are available: 3 Insufficient memory.";
    scene.trouble(at(1, 1), Trouble::Unschedulable(message.to_owned()));
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..3],
        [
            format!("Ready=False PodUnschedulable (Error): {message}"),
            "Progressing=True Reconciling (Warning): Waiting for the pod of member 1-1".to_owned(),
            format!("Degraded=True PodUnschedulable (Error): {message}"),
        ]
    );
    assert_eq!(event_lines(&report), [format!("Warning PodUnschedulable: {message}")]);
}

#[test]
fn a_preflight_pod_that_is_rejected_before_a_rolling_update() {
    let mut scene = Scene::healthy(3, 1);
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
    }
    let message = "pod valkey-c-trial: container server: Back-off pulling image \"no-such\"";
    scene.observed.preflight = Preflight::Rejected {
        trouble: Trouble::NotStarting(message.to_owned()),
        stale: false,
    };
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..3],
        [
            format!("Ready=False PodNotStarting (Error): {message}"),
            "Progressing=True Reconciling (Warning): Waiting for the trial pod: members are left as they are"
                .to_owned(),
            format!("Degraded=True PodNotStarting (Error): {message}"),
        ]
    );
    assert_eq!(event_lines(&report), [format!("Warning PodNotStarting: {message}")]);
    assert_eq!(report.status.ready_shards, 3);
}

#[test]
fn deleting() {
    let mut scene = Scene::healthy(3, 1);
    scene.observed.deleting = true;
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status)[..2],
        [
            "Ready=False Deleting (Info): Cluster is being deleted",
            "Progressing=True Deleting (Info): Deleting the cluster",
        ]
    );
    assert_eq!(state(&report).0, State::Reconciling);
}

#[test]
fn a_paused_cluster_keeps_its_state() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.paused = Some(true);
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report).0, State::Ready);
    assert_eq!(
        lines(&report.status)[4],
        "Paused=True PausedByUser (Info): spec.paused is set: the operator reports status and makes no changes"
    );
}
