//! Pods that lost their labels: which are deleted, and which steps come first.

use candor_engine::model::MemberRef;
use candor_engine::observation::{Orphan, OrphanedPod, Server, Volume};
use candor_engine::plan::Stage;
use candor_engine::step::{FailoverBy, Step};
use valkey_admin::SlotSet;

use crate::scene::{Scene, at, ip};

/// The pod of a member lost its labels, and the member has no other pod yet.
fn orphan(scene: &mut Scene, of: MemberRef) {
    let pod = scene.member(of).pod.take().unwrap();
    let member = scene.member(of);
    member.server = Server::Nowhere;
    member.other_addresses = vec![ip(of)];
    member.orphan = Orphan::Found(OrphanedPod {
        name: pod.name,
        uid: pod.uid,
        ip: Some(ip(of)),
        leaving: false,
        remedy: "kubectl label pod".to_owned(),
    });
}

/// The stage's message about the shard, and the steps.
fn planned(scene: &Scene) -> (String, Vec<Step>) {
    let plan = scene.plan();
    match plan.stage {
        Stage::PrimaryLost(lost) | Stage::ReplicaLost(lost) => (lost[0].observed.clone(), plan.steps),
        stage => panic!("{stage:?}"),
    }
}

#[test]
fn the_pod_of_a_replica_is_named_and_deleted() {
    let mut scene = Scene::healthy(3, 1);
    orphan(&mut scene, at(1, 1));
    let (message, steps) = planned(&scene);
    assert_eq!(
        message,
        "pod valkey-sample-1-1-pod of member 1-1 lost its labels and is replaced"
    );
    assert_eq!(steps, [Step::DeleteOrphanedPod(at(1, 1))]);
    let Orphan::Found(pod) = &mut scene.member(at(1, 1)).orphan else {
        panic!()
    };
    pod.leaving = true;
    assert_eq!(planned(&scene).1, [], "it is being deleted");
}

#[test]
fn a_pod_is_not_deleted_while_its_shard_has_no_primary_or_its_node_owns_slots() {
    let mut scene = Scene::healthy(3, 1);
    orphan(&mut scene, at(1, 1));
    scene.stop_responding(at(1, 0));
    assert!(!scene.plan().steps.contains(&Step::DeleteOrphanedPod(at(1, 1))));

    // The replica was promoted, and status does not name it as the primary yet.
    let mut scene = Scene::healthy(3, 1);
    let slots = scene.facts(at(1, 0)).slots();
    for of in [at(0, 0), at(0, 1), at(1, 0), at(2, 0), at(2, 1)] {
        for entry in &mut scene.facts(of).map.0 {
            if entry.address.host == ip(at(1, 0)).to_string() {
                entry.slots = SlotSet::new();
            } else if entry.address.host == ip(at(1, 1)).to_string() {
                entry.slots = slots.clone();
            }
        }
    }
    orphan(&mut scene, at(1, 1));
    assert!(!scene.plan().steps.contains(&Step::DeleteOrphanedPod(at(1, 1))));
}

#[test]
fn the_pod_of_a_primary_is_deleted_after_a_planned_failover_or_from_its_volume() {
    let failover = Step::Failover {
        to: at(1, 1),
        by: FailoverBy::Planned,
    };
    // Replicas, in sync, volume: expected steps, and what the message says.
    let table = [
        (
            1,
            true,
            Volume::None,
            vec![failover.clone()],
            "is replaced by member 1-1",
        ),
        (1, true, Volume::Kept, vec![failover], "is replaced by member 1-1"),
        (1, false, Volume::None, vec![], "kubectl label pod"),
        (1, false, Volume::Kept, vec![], "kubectl label pod"),
        (0, false, Volume::None, vec![], "kubectl label pod"),
        (
            0,
            false,
            Volume::Kept,
            vec![Step::DeleteOrphanedPod(at(1, 0))],
            "is restarted from its volume",
        ),
    ];
    for (replicas, in_sync, volume, expected, part) in table {
        let mut scene = Scene::healthy(3, replicas);
        orphan(&mut scene, at(1, 0));
        scene.member(at(1, 0)).volume = volume;
        if replicas > 0 {
            let facts = scene.facts(at(1, 1));
            (facts.in_sync, facts.was_in_sync) = (in_sync, in_sync);
        }
        let (message, steps) = planned(&scene);
        assert!(message.contains(part), "{replicas} {in_sync} {volume:?}: {message}");
        assert_eq!(steps, expected, "{replicas} {in_sync} {volume:?}");
    }
}

#[test]
fn a_pod_that_lost_its_labels_or_could_not_be_looked_up_is_not_confirmed_terminated() {
    for unread in [false, true] {
        let mut scene = Scene::healthy(3, 0);
        let of = at(1, 0);
        let node = scene.member(of).pod.clone().unwrap().node;
        orphan(&mut scene, of);
        // Its node was heard from again, and a blank server runs in the new pod, on the same node.
        scene.member(of).last_node_believed = true;
        crate::candidates::answer_blank(&mut scene, of);
        scene.member(of).pod = Some(candor_engine::observation::Pod {
            uid: "next".to_owned(),
            node,
            ..Default::default()
        });
        if unread {
            scene.member(of).orphan = Orphan::Unread;
        }
        let before = scene.memory().topology[&of.shard].pods[&of.node].clone();
        let plan = scene.plan();
        let lost = |step: &Step| matches!(step, Step::DeclareLost { .. } | Step::AddSlots { .. });
        assert!(!plan.steps.iter().any(lost), "{plan:?}");
        let after = scene.memory().after(&scene.desired(), &scene.observed, &plan);
        assert_eq!(
            after.topology[&of.shard].pods[&of.node], before,
            "still remembered, not terminated"
        );
    }
}

#[test]
fn the_replaced_pod_of_a_replica_stays_remembered_until_it_is_deleted() {
    let mut scene = Scene::healthy(3, 1);
    let of = at(1, 1);
    let before = scene.memory().topology[&of.shard].pods[&of.node].clone();
    scene.member(of).pod.as_mut().unwrap().uid = "next".to_owned();
    scene.member(of).orphan = Orphan::Found(OrphanedPod {
        uid: before.uid.clone(),
        ..OrphanedPod::default()
    });
    let remembered = |scene: &Scene| {
        let after = scene.memory().after(&scene.desired(), &scene.observed, &scene.plan());
        after.topology[&of.shard].pods[&of.node].uid.clone()
    };
    assert_eq!(scene.plan().stage, Stage::Forgetting);
    assert_eq!(scene.plan().steps, [Step::DeleteOrphanedPod(of)]);
    assert_eq!(remembered(&scene), before.uid);
    scene.member(of).orphan = Orphan::None;
    assert_eq!(scene.plan().stage, Stage::Healthy);
    assert_eq!(remembered(&scene), "next");
}
