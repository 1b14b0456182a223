//! Desired state that cannot be reached because of the spec, a server's rejection, a full disk, or the version of the
//! data. The running members are left unchanged, and the error clears when its cause does.

use candor_api::valkey::status::State;
use candor_engine::kinds::valkey::report::Report;
use candor_engine::observation::{About, Applied, Claim, Problem, Workload};
use candor_engine::step::Step;

use crate::scene::{Scene, at, event_lines, lines};
use crate::table::state;

#[test]
fn optional_conditions_are_present_only_while_the_desired_state_is_not_applied() {
    let mut scene = Scene::healthy(1, 1);
    scene.facts(at(0, 0)).config = Applied::No;
    scene.facts(at(0, 1)).users = Applied::No;
    let report = scene.reconcile(&[]);
    assert_eq!(
        lines(&report.status),
        [
            "Ready=False Reconciling (Warning): Cluster is Reconciling",
            "Progressing=True Reconciling (Warning): Applying changes to 2 running nodes",
            "ClusterFormed=True TopologyComplete: All nodes joined cluster",
            "SlotsAssigned=True AllSlotsAssigned: All slots assigned",
            "ConfigurationApplied=False ConfigurationPending (Warning): 1 of 2 members wait for it",
            "UsersApplied=False UsersPending (Warning): 1 of 2 members wait for it",
        ]
    );
    scene.facts(at(0, 0)).config = Applied::Yes;
    scene.facts(at(0, 1)).users = Applied::Yes;
    let report = scene.reconcile(&[]);
    assert_eq!(lines(&report.status).len(), 4);
}

#[test]
fn a_setting_that_a_server_rejects_is_reported_with_its_message_as_an_error() {
    let mut scene = Scene::healthy(1, 1);
    scene.facts(at(0, 0)).config = Applied::Rejected("ERR Unknown option 'maxmemmory'".to_owned());
    scene.member(at(0, 0)).workload = Workload::Outdated;
    let report = scene.reconcile(&[]);
    let expected = "member 0-0: ERR Unknown option 'maxmemmory'";
    assert_eq!(state(&report), (State::Failed, "ConfigurationRefused", expected));
    assert!(scene.plan().steps.is_empty(), "nobody is restarted into it");
    assert_eq!(
        event_lines(&report),
        [format!("Warning ConfigurationRefused: {expected}")]
    );
}

#[test]
fn a_spec_that_cannot_be_made_leaves_members_alone_and_recovers_by_itself() {
    let mut scene = Scene::healthy(1, 1);
    let expected = "Secret sample-users has no key alice: add it, or name another";
    scene.observed.problems = vec![Problem {
        about: About::Users,
        message: expected.to_owned(),
    }];
    scene.observed.objects_ready = false;
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report), (State::Failed, "UsersInvalid", expected));
    assert!(scene.plan().steps.is_empty());
    scene.observed.problems.clear();
    scene.observed.objects_ready = true;
    assert_eq!(state(&scene.reconcile(&[])).0, State::Ready);
}

#[test]
fn a_volume_that_grows_or_cannot() {
    let mut scene = Scene::healthy(1, 0);
    scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "2Gi"})).unwrap());
    scene.member(at(0, 0)).claim = Claim::TooSmall;
    let report = scene.reconcile(&[]);
    let storage = |report: &Report| {
        let said = lines(&report.status);
        said.into_iter().find(|line| line.starts_with("StorageReady")).unwrap()
    };
    assert_eq!(
        storage(&report),
        "StorageReady=False VolumeResizing (Info): 1 volume grows"
    );
    assert_eq!(
        format!("{:?}", scene.plan().steps),
        "[ExpandVolume(MemberRef { shard: ShardIndex(0), node: 0 })]"
    );
    scene.member(at(0, 0)).claim = Claim::Failed("the class does not allow expansion".to_owned());
    let report = scene.reconcile(&[]);
    assert_eq!(
        storage(&report),
        "StorageReady=False VolumeFailed (Error): member 0-0: the class does not allow expansion"
    );
    let expected = "member 0-0: the class does not allow expansion";
    assert_eq!(state(&report), (State::Failed, "VolumeFailed", expected));
}

#[test]
fn a_full_disk_is_reported_with_the_servers_message_and_restarts_no_member() {
    let mut scene = Scene::healthy(1, 0);
    let expected = "MISCONF Errors writing to the AOF file: No space left on device";
    let said = "member 0-0: MISCONF Errors writing to the AOF file: No space left on device";
    scene.facts(at(0, 0)).disk_failed = Some(expected.to_owned());
    scene.member(at(0, 0)).workload = Workload::Outdated;
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report), (State::Failed, "VolumeFailed", said));
    assert!(lines(&report.status).contains(&format!("StorageReady=False VolumeFailed (Error): {said}")));
    let node = &report.nodes[&at(0, 0)].conditions;
    let storage = node.iter().find(|one| one.type_ == "StorageReady").unwrap();
    assert_eq!(
        (storage.reason.as_str(), storage.message.as_str()),
        ("VolumeFailed", expected)
    );
    assert_eq!(scene.plan().steps, [], "it is not rolled");
    scene.cluster.spec.persistence = Some(serde_json::from_value(serde_json::json!({"size": "2Gi"})).unwrap());
    scene.member(at(0, 0)).claim = Claim::TooSmall;
    assert_eq!(scene.plan().steps, [Step::ExpandVolume(at(0, 0))]);
    scene.facts(at(0, 0)).disk_failed = None;
    scene.member(at(0, 0)).claim = Claim::Bound;
    scene.member(at(0, 0)).workload = Workload::Current;
    let report = scene.reconcile(&[]);
    assert_eq!(state(&report).0, State::Ready);
    assert!(
        !lines(&report.status)
            .iter()
            .any(|line| line.starts_with("StorageReady"))
    );
}

#[test]
fn unreadable_secrets_affect_no_member_and_are_an_error_only_when_they_last() {
    let mut scene = Scene::healthy(1, 1);
    scene.observed.secrets_unread = Some("Secrets could not be read: no route to host".to_owned());
    scene.member(at(0, 1)).workload = Workload::Outdated;
    let report = scene.reconcile(&[]);
    let expected = "Secrets could not be read: no route to host";
    assert_eq!(
        lines(&report.status)[0],
        format!("Ready=False SecretError (Error): {expected}")
    );
    assert_eq!(state(&report).0, State::Reconciling, "it may pass");
    assert_eq!(scene.plan().steps, []);
    scene.now += jiff::SignedDuration::from_secs(61);
    assert_eq!(state(&scene.reconcile(&[])), (State::Failed, "SecretError", expected));
    scene.observed.secrets_unread = None;
    scene.member(at(0, 1)).workload = Workload::Current;
    assert_eq!(state(&scene.reconcile(&[])).0, State::Ready);
}

#[test]
fn a_downgrade_that_the_data_does_not_allow_is_rejected_unless_a_user_insists() {
    let mut scene = Scene::healthy(1, 1);
    let newer = valkey_admin::Version::parse(valkey_admin::ids::Family::Valkey, "9.1.2").unwrap();
    for node in 0..2 {
        scene.facts(at(0, node)).version = Some(newer);
        scene.member(at(0, node)).workload = Workload::Outdated;
    }
    scene.cluster.spec.image = Some("valkey/valkey:8.0".to_owned());
    let report = scene.reconcile(&[]);
    assert_eq!(
        (state(&report).0, state(&report).1),
        (State::Failed, "DowngradeRefused")
    );
    assert!(scene.plan().steps.is_empty());
    let mut wider = scene.clone();
    wider.cluster.spec.shards = 3;
    assert_eq!(wider.plan().steps, [], "nor is it passed by new members");
    let insist = [("valkey.io/allow-downgrade".to_owned(), "true".to_owned())];
    scene.cluster.metadata.annotations = Some(insist.into());
    assert_eq!(state(&scene.reconcile(&[])).1, "UpdatingNodes");
}
