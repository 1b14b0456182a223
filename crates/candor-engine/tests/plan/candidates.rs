//! The choice of a failover candidate for a lost primary: the required evidence, and what happens if no replica
//! qualifies.

use candor_engine::model::MemberRef;
use candor_engine::observation::{Facts, Server, Volume};
use candor_engine::plan::Stage;
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::nodes::{Address, Flags};
use valkey_admin::{ClusterNodes, Epoch, NodeEntry, SlotSet};

use crate::failover;
use crate::scene::{Scene, at, id};

/// The `CLUSTER NODES` entry of a server that has just started, as the server itself reports it.
fn entry(of: MemberRef) -> NodeEntry {
    NodeEntry {
        id: id(of),
        address: Address::default(),
        flags: Flags {
            myself: true,
            primary: true,
            ..Flags::default()
        },
        primary: None,
        ping_sent: 0,
        pong_received: 0,
        epoch: Epoch(0),
        linked: true,
        slots: SlotSet::new(),
        marks: Vec::new(),
    }
}

/// What is known of a lost primary.
#[derive(Clone, Copy, Debug)]
enum Known {
    Silent,
    Refuses,
    Terminated,
    TerminatedOnAnUnbelievedNode,
    /// The operator cannot observe nodes.
    TerminatedAndRefusesOnAPartitionedNode,
    /// Its container restarted, and it does not serve.
    Restarted,
    /// The same, observed by an operator that started later: no server has ever been observed at its address.
    RestartedBeforeTheOperatorStarted,
    /// Its container restarted and it does not respond to the operator: it may serve other clients.
    RestartedAndNotResponding,
    PodDeleted,
    PodDeletedConfirmedTerminated,
    /// A replacement pod exists and is pending.
    PodDeletedConfirmedTerminatedAndAnotherPending,
    /// A replacement pod responds while the previous pod still exists.
    AnotherPodWhileTheFirstMayStillRun,
    /// A replacement pod responds, and there is no recent report from the node of the previous pod.
    AnotherPodOnAnotherNode,
    /// A replacement pod responds, and the node of the previous pod has reported since.
    AnotherPodAndTheNodeBelieved,
    /// A replacement pod responds, on the node of the previous pod.
    AnotherPodOnTheSameNode,
    /// A replacement pod responds, and the previous pod was reported terminated during its deletion.
    AnotherPodAndTheFirstTerminated,
    /// The same pod responds with another node id.
    TheSamePodRespondsAgain,
    /// Its pod is being deleted and was reported terminated; its node no longer reports.
    TerminatedWhileLeaving,
}

/// A blank server responds in the member's place.
pub fn answer_blank(scene: &mut Scene, of: MemberRef) {
    let blank = Facts::new(id(at(9, 0)), ClusterNodes(vec![entry(at(9, 0))]));
    scene.member(of).server = Server::Up(Box::new(blank));
}

fn lose(scene: &mut Scene, known: Known) {
    let primary = at(1, 0);
    scene.kill(primary);
    let since = scene.now;
    let ended = |scene: &mut Scene, believed: bool| {
        let pod = scene.member(primary).pod.as_mut().unwrap();
        (pod.ended, pod.node_believed) = (true, believed);
    };
    match known {
        Known::Silent => scene.member(primary).server = Server::Silent { since },
        Known::Refuses => {}
        Known::Terminated => ended(scene, true),
        Known::TerminatedOnAnUnbelievedNode => {
            ended(scene, false);
            scene.member(primary).server = Server::Silent { since };
        }
        Known::TerminatedAndRefusesOnAPartitionedNode => ended(scene, false),
        Known::Restarted | Known::RestartedBeforeTheOperatorStarted | Known::RestartedAndNotResponding => {
            let member = scene.member(primary);
            let pod = member.pod.as_mut().unwrap();
            (pod.restarted, pod.node_believed) = (true, false);
            match known {
                Known::RestartedBeforeTheOperatorStarted => member.server = Server::Nowhere,
                Known::RestartedAndNotResponding => member.server = Server::Silent { since },
                _ => {}
            }
        }
        Known::PodDeletedConfirmedTerminatedAndAnotherPending => {
            let member = scene.member(primary);
            let pod = member.pod.as_mut().unwrap();
            pod.ip = None;
            (member.server, member.last_node_believed) = (Server::Nowhere, true);
            "next".clone_into(&mut member.pod.as_mut().unwrap().uid);
        }
        Known::AnotherPodWhileTheFirstMayStillRun => {
            answer_blank(scene, primary);
            scene.member(primary).may_run_elsewhere = true;
        }
        Known::TheSamePodRespondsAgain => answer_blank(scene, primary),
        Known::AnotherPodOnAnotherNode
        | Known::AnotherPodAndTheNodeBelieved
        | Known::AnotherPodOnTheSameNode
        | Known::AnotherPodAndTheFirstTerminated => {
            answer_blank(scene, primary);
            let member = scene.member(primary);
            let pod = member.pod.as_mut().unwrap();
            let first = std::mem::replace(&mut pod.uid, "next".to_owned());
            match known {
                Known::AnotherPodOnTheSameNode => {}
                Known::AnotherPodAndTheFirstTerminated => member.terminated_pods.push(first),
                _ => member.last_node_believed = matches!(known, Known::AnotherPodAndTheNodeBelieved),
            }
            if !matches!(known, Known::AnotherPodOnTheSameNode) {
                member.pod.as_mut().unwrap().node = Some("elsewhere".to_owned());
            }
        }
        Known::TerminatedWhileLeaving => {
            ended(scene, false);
            let member = scene.member(primary);
            let pod = member.pod.as_mut().unwrap();
            pod.leaving = true;
            member.terminated_pods.push(pod.uid.clone());
            member.server = Server::Silent { since };
        }
        Known::PodDeleted | Known::PodDeletedConfirmedTerminated => {
            let member = scene.member(primary);
            (member.pod, member.server) = (None, Server::Nowhere);
            member.last_node_believed = matches!(known, Known::PodDeletedConfirmedTerminated);
        }
    }
}

#[test]
fn a_forced_failover_needs_evidence_and_a_takeover_needs_confirmed_termination() {
    use FailoverBy::{Forced, Takeover};
    let table = [
        (Known::Silent, 3, None),
        (Known::Refuses, 3, Some(Forced)),
        (Known::Terminated, 3, Some(Forced)),
        (Known::TerminatedOnAnUnbelievedNode, 3, None),
        (Known::TerminatedAndRefusesOnAPartitionedNode, 3, Some(Forced)),
        (Known::Restarted, 3, Some(Forced)),
        (Known::RestartedBeforeTheOperatorStarted, 3, Some(Forced)),
        (Known::RestartedAndNotResponding, 3, None),
        (Known::PodDeleted, 3, None),
        (Known::PodDeletedConfirmedTerminated, 3, Some(Forced)),
        (Known::PodDeletedConfirmedTerminatedAndAnotherPending, 3, Some(Forced)),
        (Known::AnotherPodWhileTheFirstMayStillRun, 3, Some(Forced)),
        (Known::AnotherPodOnAnotherNode, 3, Some(Forced)),
        (Known::AnotherPodAndTheNodeBelieved, 3, Some(Forced)),
        (Known::AnotherPodOnTheSameNode, 3, Some(Forced)),
        (Known::AnotherPodAndTheFirstTerminated, 3, Some(Forced)),
        (Known::TheSamePodRespondsAgain, 3, Some(Forced)),
        (Known::TerminatedWhileLeaving, 3, Some(Forced)),
        // Two shards: the remaining primary is not a majority.
        (Known::Silent, 2, None),
        (Known::Refuses, 2, None),
        (Known::Terminated, 2, Some(Takeover)),
        (Known::TerminatedOnAnUnbelievedNode, 2, None),
        (Known::TerminatedAndRefusesOnAPartitionedNode, 2, Some(Takeover)),
        (Known::Restarted, 2, Some(Takeover)),
        (Known::RestartedBeforeTheOperatorStarted, 2, Some(Takeover)),
        (Known::RestartedAndNotResponding, 2, None),
        (Known::PodDeleted, 2, None),
        (Known::PodDeletedConfirmedTerminated, 2, Some(Takeover)),
        (Known::PodDeletedConfirmedTerminatedAndAnotherPending, 2, Some(Takeover)),
        (Known::AnotherPodWhileTheFirstMayStillRun, 2, None),
        (Known::AnotherPodOnAnotherNode, 2, None),
        (Known::AnotherPodAndTheNodeBelieved, 2, Some(Takeover)),
        (Known::AnotherPodOnTheSameNode, 2, Some(Takeover)),
        (Known::AnotherPodAndTheFirstTerminated, 2, Some(Takeover)),
        (Known::TheSamePodRespondsAgain, 2, Some(Takeover)),
        (Known::TerminatedWhileLeaving, 2, Some(Takeover)),
    ];
    for (known, shards, by) in table {
        let mut scene = Scene::healthy(shards, 1);
        lose(&mut scene, known);
        assert_eq!(failover(&scene), by, "{known:?} with {shards} shards");
    }
}

#[test]
fn evidence_of_termination_outlives_the_operator_and_the_pod() {
    let mut scene = Scene::healthy(2, 1);
    lose(&mut scene, Known::AnotherPodOnAnotherNode);
    scene.facts(at(1, 1)).link_down = false;
    scene.reconcile(&[]);
    let lost = Stage::PrimaryLost(Vec::new());
    let plan = scene.plan();
    assert_eq!(std::mem::discriminant(&plan.stage), std::mem::discriminant(&lost));
    let status = scene.cluster.status.clone().unwrap();
    let expected = "member 1-0 may still be running on node node-1-0";
    assert!(status.message.contains(expected), "{}", status.message);
    let primary = |scene: &Scene| scene.cluster.status.clone().unwrap().topology[1].members[0].clone();
    assert_eq!(primary(&scene).pod_uid, "uid-1-0", "the blank successor is not entered");
    scene.member(at(1, 0)).last_node_believed = true;
    scene.reconcile(&[]);
    assert!(primary(&scene).pod_terminated);
    // Another operator starts, and the node stops reporting.
    scene.member(at(1, 0)).last_node_believed = false;
    scene.facts(at(1, 1)).link_down = true;
    assert_eq!(failover(&scene), Some(FailoverBy::Takeover));
}

#[test]
fn a_shard_is_not_lost_while_a_pod_of_it_may_still_be_running() {
    let mut scene = Scene::healthy(2, 0);
    lose(&mut scene, Known::AnotherPodOnAnotherNode);
    let plan = scene.plan();
    assert!(matches!(plan.stage, Stage::PrimaryLost(_)), "{plan:?}");
    assert!(
        !plan.steps.iter().any(|step| matches!(step, Step::DeclareLost { .. })),
        "{plan:?}"
    );
    scene.member(at(1, 0)).last_node_believed = true;
    assert!(matches!(scene.plan().stage, Stage::DataLost(_)));
}

#[test]
fn the_pods_of_a_healthy_cluster_are_written_once() {
    let mut scene = Scene::healthy(2, 1);
    let before = scene.cluster.status.clone().unwrap();
    let member = &before.topology[1].members[1];
    assert_eq!((&*member.pod_uid, &*member.node_name), ("uid-1-1", "node-1-1"));
    scene.reconcile(&[]);
    assert_eq!(scene.cluster.status, Some(before));
}

/// The member's container restarted without its data, and it waits until its replica is promoted.
fn hold(scene: &mut Scene) {
    scene.kill(at(0, 0));
    scene.member(at(0, 0)).pod.as_mut().unwrap().restarted = true;
}

#[test]
fn a_replica_in_full_sync_is_promoted_by_takeover_only_if_no_other_copy_and_no_majority_is_left() {
    let stale = |shards: i32| {
        let mut scene = Scene::healthy(shards, 1);
        hold(&mut scene);
        scene.facts(at(0, 1)).was_in_sync = false;
        scene
    };
    assert_eq!(failover(&stale(1)), Some(FailoverBy::Takeover));
    assert_eq!(failover(&stale(3)), None, "the servers elect");
    let mut kept = stale(1);
    kept.member(at(0, 0)).volume = Volume::Kept;
    assert_eq!(failover(&kept), None, "the primary comes back with its data");
    let mut silent = stale(1);
    silent.member(at(0, 0)).pod.as_mut().unwrap().restarted = false;
    assert_eq!(failover(&silent), None, "nothing is proved");
}

#[test]
fn a_shard_whose_replica_never_synced_is_lost_with_its_primary_and_reported() {
    let mut scene = Scene::healthy(1, 1);
    hold(&mut scene);
    let replica = scene.facts(at(0, 1));
    (replica.was_in_sync, replica.keys) = (false, 0);
    let plan = scene.plan();
    assert!(matches!(plan.stage, Stage::DataLost(_)), "{plan:?}");
    assert!(
        matches!(plan.steps.as_slice(), [Step::DeclareLost { .. }]),
        "first it is said: {plan:?}"
    );
    scene.reconcile(&[]);
    let steps = scene.plan().steps;
    assert!(steps.contains(&Step::Reset(at(0, 1))), "then it starts anew: {steps:?}");
    // While the primary may still be running, nothing is lost.
    let mut scene = Scene::healthy(1, 1);
    scene.kill(at(0, 0));
    let replica = scene.facts(at(0, 1));
    (replica.was_in_sync, replica.keys) = (false, 0);
    assert_eq!(scene.plan().steps, []);
}
