//! Plans for situations that the simulation does not model: evidence of termination, volumes, migration marks, unknown
//! nodes.

mod announcements;
mod candidates;
mod credentials;
mod orphans;
mod requested;
#[path = "../report/scene.rs"]
#[allow(dead_code)] // the scene has more than these tests ask for
mod scene;

mod preflight;
mod removed_slots;
mod shrunk;
mod turns;

use candor_engine::observation::{Claim, Facts, Member, Pod, Server, Volume, Workload};
use candor_engine::plan::Stage;
use candor_engine::step::{FailoverBy, Step};
use scene::{Scene, at, id, ip};
use valkey_admin::migrations::{Direction, Migration, Progress};
use valkey_admin::nodes::Mark;
use valkey_admin::{NodeId, Slot, SlotRange, SlotSet};

fn failover(scene: &Scene) -> Option<FailoverBy> {
    scene.plan().steps.into_iter().find_map(|step| match step {
        Step::Failover { by, .. } => Some(by),
        _ => None,
    })
}

fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

#[test]
fn a_replica_whose_own_link_is_up_is_never_made_primary_by_force() {
    let mut scene = Scene::healthy(3, 1);
    scene.kill(at(1, 0));
    scene.facts(at(1, 1)).link_down = false;
    assert_eq!(failover(&scene), None, "what refused us may live");
}

#[test]
fn a_replica_that_had_not_copied_all_is_never_made_primary() {
    let mut scene = Scene::healthy(3, 1);
    scene.kill(at(1, 0));
    scene.facts(at(1, 1)).was_in_sync = false;
    assert_eq!(failover(&scene), None);
}

#[test]
fn a_deleted_claim_is_created_again_once_the_member_does_not_respond() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "1Gi"})).unwrap());
    let replica = at(1, 1);
    scene.member(replica).claim = Claim::Absent;
    assert!(!scene.plan().steps.contains(&Step::CreateMember(replica)), "it runs");
    scene.kill(replica);
    assert!(scene.plan().steps.contains(&Step::CreateMember(replica)));
    scene.member(replica).claim = Claim::Pending("volume claim c is being deleted".to_owned());
    assert!(!scene.plan().steps.contains(&Step::CreateMember(replica)), "not yet");
}

#[test]
fn a_lost_volume_is_data_loss_once_a_blank_server_responds_from_a_new_volume() {
    let mut scene = Scene::healthy(3, 0);
    scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "1Gi"})).unwrap());
    let of = at(1, 0);
    scene.member(of).volume = Volume::Kept;
    let slots = scene.facts(of).slots();
    // The same node id: the volume is the previous one, whatever the server serves at the moment.
    for entry in &mut scene.facts(of).map.0 {
        entry.slots = entry.slots.difference(&slots);
    }
    scene.facts(of).keys = 0;
    let declares = |scene: &Scene| {
        let lost = |step: &Step| matches!(step, Step::DeclareLost { shard, .. } if *shard == of.shard);
        scene.plan().steps.iter().any(lost)
    };
    assert!(!declares(&scene), "its volume may hold the data");
    // Another node id, and the server knows only itself: the volume is new.
    let facts = scene.facts(of);
    let mut me = facts.me().unwrap().clone();
    facts.id = id(at(9, 0));
    me.id = facts.id;
    facts.map.0 = vec![me];
    assert!(declares(&scene));
    scene.facts(of).keys = 1;
    assert!(!declares(&scene), "it holds something");
    scene.facts(of).keys = 0;
    scene.facts(of).loading = true;
    assert!(!declares(&scene), "it has not read all of it yet");
}

#[test]
fn an_empty_volume_on_another_node_is_data_loss_only_if_its_claim_is_another_one() {
    // A volume without node affinity, such as a hostPath, is another folder on every node.
    let table = [
        ("claim-1", "node-1-0", true),
        ("claim-1", "elsewhere", false),
        ("claim-2", "node-1-0", true),
        ("claim-2", "elsewhere", true),
        // A status of an older version has no claims: the first one that is observed counts as the previous one.
        ("", "elsewhere", false),
    ];
    for (claim, node, lost) in table {
        let mut scene = Scene::healthy(3, 0);
        scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "1Gi"})).unwrap());
        let of = at(1, 0);
        let member = scene.member(of);
        (member.volume, member.claim_uid) = (Volume::Kept, if claim.is_empty() { "" } else { "claim-1" }.to_owned());
        scene.reconcile(&[]);
        candidates::answer_blank(&mut scene, of);
        let member = scene.member(of);
        member.claim_uid = if claim.is_empty() { "claim-1" } else { claim }.to_owned();
        member.terminated_pods = vec![format!("uid-{of}")];
        let pod = member.pod.as_mut().unwrap();
        (pod.uid, pod.node) = ("next".to_owned(), Some(node.to_owned()));
        let plan = scene.plan();
        let declared = plan.steps.iter().any(|step| matches!(step, Step::DeclareLost { .. }));
        assert_eq!(declared, lost, "{claim} on {node}: {plan:?}");
        if !lost {
            scene.reconcile(&[]);
            scene.member(of).claim_uid = "claim-3".to_owned();
            let steps = scene.plan().steps;
            let declared = steps.iter().any(|step| matches!(step, Step::DeclareLost { .. }));
            assert!(declared, "{claim} on {node}: its claim was deleted");
            let Stage::PrimaryLost(lost) = plan.stage else {
                panic!("{:?}", plan.stage)
            };
            assert_eq!(
                lost[0].observed,
                "member 1-0 came back empty on node elsewhere, but its volume may still have its data on node node-1-0. Run \
                 the member there again, or delete its volume claim if that data is lost"
            );
        }
    }
}

#[test]
fn a_member_that_may_own_slots_is_not_deleted() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.shards = 2;
    scene.stop_responding(at(2, 0));
    scene.stop_responding(at(2, 1));
    let steps = scene.plan().steps;
    assert!(
        !steps.iter().any(|step| matches!(step, Step::DeleteMember(_))),
        "{steps:?}"
    );
}

#[test]
fn a_server_of_another_cluster_at_our_address_is_never_met() {
    let mut scene = Scene::new(1, 1);
    scene.create();
    scene.start();
    let stranger = at(9, 0);
    let mut facts = scene.facts(at(0, 1)).clone();
    let mut peer = facts.map.0[0].clone();
    (peer.id, peer.flags.myself) = (id(stranger), false);
    facts.map.0.push(peer);
    scene.member(at(0, 1)).server = Server::Up(Box::new(Facts { keys: 7, ..facts }));
    let steps = scene.plan().steps;
    assert!(!steps.iter().any(|step| matches!(step, Step::Meet { .. })), "{steps:?}");
}

#[test]
fn an_unknown_node_in_the_map_is_reported_and_left_alone() {
    let mut scene = Scene::healthy(1, 1);
    let mut peer = scene.facts(at(0, 0)).map.0[0].clone();
    (peer.id, peer.flags.myself, peer.slots) = (id(at(9, 0)), false, SlotSet::new());
    peer.address.host = "10.9.9.9".to_owned();
    scene.facts(at(0, 0)).map.0.push(peer.clone());
    let plan = scene.plan();
    assert!(
        matches!(&plan.stage, Stage::Foreign(message) if message.contains("10.9.9.9:6379")),
        "{plan:?}"
    );
    assert!(plan.steps.is_empty());
    scene.observed.pods_at = [("10.9.9.9".parse().unwrap(), "web".to_owned())].into();
    let Stage::Foreign(message) = scene.plan().stage else {
        panic!()
    };
    assert!(
        message.ends_with("is none of its members: it runs in pod web"),
        "{message}"
    );
    // A second pod of a member is not an unknown node.
    scene.member(at(0, 1)).other_addresses = vec!["10.9.9.9".parse().unwrap()];
    assert_eq!(scene.plan().stage, Stage::Healthy);
}

#[test]
fn members_that_all_come_back_at_new_addresses_are_introduced_again() {
    let mut scene = Scene::healthy(1, 1);
    for node in 0..2 {
        let moved = ip(at(5, node));
        scene.member(at(0, node)).pod.as_mut().unwrap().ip = Some(moved);
    }
    let steps = scene.plan().steps;
    assert!(
        matches!(steps.as_slice(), [Step::Meet { .. }]),
        "one call for each pair: {steps:?}"
    );
}

/// The planned timeouts, without duplicates.
fn timeouts(scene: &Scene) -> Vec<u64> {
    let steps = scene.plan().steps.into_iter();
    let mut all: Vec<u64> = steps
        .filter_map(|step| match step {
            Step::SetNodeTimeout { millis, .. } => Some(millis),
            _ => None,
        })
        .collect();
    all.dedup();
    all
}

#[test]
fn a_short_node_timeout_lasts_from_the_first_meet_until_all_maps_agree() {
    let mut scene = Scene::new(3, 1);
    scene.create();
    scene.start();
    let everybody = |scene: &mut Scene, change: &dyn Fn(&mut Facts)| {
        for of in scene.desired().members().collect::<Vec<_>>() {
            change(scene.facts(of));
        }
    };
    assert_eq!(timeouts(&scene), [500], "while they meet");
    scene.join_with(&|_| SlotSet::new());
    everybody(&mut scene, &|facts| facts.keys = 0);
    assert_eq!(timeouts(&scene), [500], "those that met before anybody looked");
    everybody(&mut scene, &|facts| facts.node_timeout = 500);
    let given = |scene: &Scene| {
        scene
            .plan()
            .steps
            .iter()
            .any(|step| matches!(step, Step::AddSlots { .. }))
    };
    assert!(given(&scene));
    assert_eq!(timeouts(&scene), [] as [u64; 0], "slots come first");
    scene.join();
    everybody(&mut scene, &|facts| (facts.node_timeout, facts.ok) = (500, false));
    assert_eq!(timeouts(&scene), [] as [u64; 0], "not everybody agrees yet");
    everybody(&mut scene, &|facts| (facts.ok, facts.in_sync) = (true, false));
    assert_eq!(timeouts(&scene), [5000], "all agree, replicas are still copying");
    everybody(&mut scene, &|facts| facts.ok = false);
    scene.stop_responding(at(2, 1));
    assert_eq!(timeouts(&scene), [5000], "who knows when it comes back");
}

#[test]
fn a_drained_volume_is_reset_before_reuse_and_any_other_keeps_its_data() {
    let mut scene = Scene::healthy(1, 1);
    scene.cluster.spec.replicas = Some(2);
    scene.create();
    scene.start();
    let newcomer = at(0, 2);
    let mut facts = scene.facts(newcomer).clone();
    let mut peer = facts.map.0[0].clone();
    (peer.id, peer.flags.myself) = (id(at(9, 0)), false);
    facts.map.0.push(peer);
    facts.keys = 3;
    scene.member(newcomer).server = Server::Up(Box::new(facts.clone()));
    scene.member(newcomer).volume = Volume::Kept;
    assert!(
        !scene.plan().steps.contains(&Step::Reset(newcomer)),
        "what it has may be needed"
    );
    scene.member(newcomer).volume = Volume::Drained;
    assert!(scene.plan().steps.contains(&Step::Reset(newcomer)));
    facts.map.0[0].slots = SlotRange::of_shard(0, 3).unwrap().into();
    scene.member(newcomer).server = Server::Up(Box::new(facts.clone()));
    assert!(
        !scene.plan().steps.contains(&Step::Reset(newcomer)),
        "whatever is written on its volume: it owns slots"
    );
    facts.map.0.truncate(1);
    (facts.map.0[0].slots, facts.keys) = (SlotSet::new(), 0);
    scene.member(newcomer).server = Server::Up(Box::new(facts));
    assert!(scene.plan().steps.contains(&Step::ReuseVolume(newcomer)));
}

#[test]
fn no_slot_is_assigned_while_a_member_with_a_retained_volume_does_not_respond() {
    let mut scene = Scene::new(1, 0);
    scene.create();
    scene.start();
    scene.facts(at(0, 0)).node_timeout = 500;
    let gives = |scene: &Scene| {
        scene
            .plan()
            .steps
            .iter()
            .any(|step| matches!(step, Step::AddSlots { .. }))
    };
    assert!(gives(&scene));
    let kept = Member {
        volume: Volume::Kept,
        ..Member::default()
    };
    scene.observed.members.insert(at(1, 0), kept);
    assert!(!gives(&scene));
}

fn scaling() -> Scene {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    scene
}

fn running(scene: &mut Scene, from: u32, to: u32, slots: &str) {
    let job = Migration {
        name: "job".to_owned(),
        direction: Direction::Export,
        slots: slots.parse().unwrap(),
        source: Some(id(at(from, 0))),
        target: Some(id(at(to, 0))),
        created: 0,
        updated: 0,
        progress: Progress::Running,
        message: String::new(),
    };
    scene.facts(at(from, 0)).migrations.push(job);
}

#[test]
fn a_desired_slot_migration_continues_and_an_undesired_one_is_waited_for() {
    let mut scene = scaling();
    running(&mut scene, 0, 3, "0-1364");
    let Some(Step::MoveSlots { moves, .. }) = scene.plan().steps.into_iter().next() else {
        panic!("{:?}", scene.plan());
    };
    let from_first: Vec<String> = moves
        .iter()
        .filter(|one| one.from.0 == 0)
        .map(|one| one.slots.to_string())
        .collect();
    assert_eq!(
        from_first,
        ["0-1364"],
        "what runs counts, whichever slots another plan would take"
    );
    scene.cluster.spec.shards = 3;
    assert_eq!(
        scene.plan().steps,
        [],
        "cancelled in its hand-over, it would cost writes"
    );
}

#[test]
fn while_slots_move_no_failover_is_planned_in_their_shards() {
    let mut scene = Scene::healthy(3, 1);
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
    }
    running(&mut scene, 0, 1, "0-9");
    assert_eq!(scene.plan().steps, []);
    assert_eq!(failover(&scene), None);
}

fn mark(scene: &mut Scene, of: NodeId, place: (u32, u32), mark: Mark) {
    let facts = scene.facts(at(place.0, place.1));
    let me = facts.map.0.iter_mut().find(|entry| entry.id == of).unwrap();
    me.marks.push(mark);
}

#[test]
fn a_half_moved_slot_goes_on_to_where_it_was_going() {
    for only_one_side in [false, true] {
        let mut scene = Scene::healthy(3, 0);
        let (source, target) = (id(at(0, 0)), id(at(2, 0)));
        let coming = Mark::Importing {
            slot: slot(7),
            from: source,
        };
        mark(&mut scene, target, (2, 0), coming);
        if !only_one_side {
            let leaving = Mark::Migrating {
                slot: slot(7),
                to: target,
            };
            mark(&mut scene, source, (0, 0), leaving);
        }
        let steps = scene.plan().steps;
        let [Step::MoveSlots { moves, legacy: true }] = steps.as_slice() else {
            panic!("{steps:?}");
        };
        let events: Vec<_> = moves
            .iter()
            .map(|one| (one.from.0, one.to.0, one.slots.to_string()))
            .collect();
        assert_eq!(events, [(0, 2, "7".to_owned())]);
    }
}

#[test]
fn what_is_left_to_move_counts_the_rest_beside_the_half_moved() {
    let mut scene = Scene::healthy(3, 0);
    scene.cluster.spec.shards = 4;
    scene.create();
    scene.start();
    scene.join_with(&|shard| SlotRange::of_shard(shard, 3).map(SlotSet::from).unwrap_or_default());
    let left = |scene: &Scene| match scene.plan().stage {
        Stage::Moving { left, .. } => left,
        other => panic!("{other:?}"),
    };
    assert_eq!(left(&scene), 4096);
    let (source, target) = (id(at(0, 0)), id(at(3, 0)));
    let leaving = Mark::Migrating {
        slot: slot(5460),
        to: target,
    };
    mark(&mut scene, source, (0, 0), leaving);
    assert_eq!(left(&scene), 4096, "one of them is half moved now");
}

#[test]
fn migration_marks_of_finished_moves_are_cleared_also_at_replicas() {
    let mut scene = Scene::healthy(3, 1);
    let (source, target) = (id(at(0, 0)), id(at(2, 0)));
    // The slot is already at its destination.
    let over = Mark::Migrating {
        slot: slot(16000),
        to: target,
    };
    mark(&mut scene, source, (0, 0), over);
    let old = Mark::Importing {
        slot: slot(9),
        from: target,
    };
    mark(&mut scene, id(at(1, 1)), (1, 1), old);
    assert_eq!(
        scene.plan().steps,
        [(at(0, 0), "16000"), (at(1, 1), "9")].map(|(member, slots)| Step::Stabilize {
            member,
            slots: slots.parse().unwrap(),
        })
    );
}

#[test]
fn a_corrected_spec_reaches_a_member_whose_pod_cannot_start() {
    let mut scene = Scene::healthy(1, 1);
    let message = "ErrImagePull: no such image".to_owned();
    scene.trouble(at(0, 1), candor_engine::observation::Trouble::NotStarting(message));
    assert!(scene.plan().steps.is_empty());
    scene.member(at(0, 1)).workload = Workload::Outdated;
    assert_eq!(scene.plan().steps, [Step::RollMember(at(0, 1))]);
}

#[test]
fn a_paused_cluster_is_observed_and_left_alone() {
    let mut scene = Scene::healthy(3, 1);
    scene.cluster.spec.paused = Some(true);
    scene.kill(at(1, 0));
    let plan = scene.plan();
    assert!(matches!(plan.stage, Stage::PrimaryLost(_)) && plan.steps.is_empty());
}

#[test]
fn before_a_cluster_has_slots_another_spec_replaces_all_members_at_once() {
    let mut scene = Scene::new(1, 1);
    scene.create();
    for member in scene.observed.members.values_mut() {
        member.workload = Workload::Outdated;
        member.pod = Some(Pod::default());
    }
    assert_eq!(scene.plan().steps, [at(0, 0), at(0, 1)].map(Step::RollMember));
}

#[test]
fn a_lone_server_with_data_is_met_only_on_its_own_volume() {
    let mut scene = Scene::new(2, 0);
    scene.create();
    scene.start();
    let meets = |scene: &Scene| scene.plan().steps.iter().any(|step| matches!(step, Step::Meet { .. }));
    assert!(meets(&scene));
    scene.facts(at(1, 0)).keys = 7;
    assert!(!meets(&scene), "nobody knows whose keys these are");
    scene.member(at(1, 0)).volume = Volume::Kept;
    assert!(meets(&scene));
}
