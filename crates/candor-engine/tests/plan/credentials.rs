//! The Secret with the operator's credentials, and members that reject the operator's user.

use candor_engine::observation::{Credentials, Login, Observation};
use candor_engine::outcome::{Change, Did, ObjectKind, Outcome};
use candor_engine::plan::Stage;
use candor_engine::step::Step;

use crate::scene::{Scene, at};

fn repairs(scene: &Scene) -> Vec<Step> {
    let steps = scene.plan().steps.into_iter();
    steps
        .filter(|step| matches!(step, Step::RepairCredentials(_)))
        .collect()
}

#[test]
fn credentials_are_repaired_only_at_members_that_proved_to_be_members() {
    let mut scene = Scene::healthy(3, 1);
    for member in [at(0, 1), at(1, 1)] {
        scene.stop_responding(member);
    }
    scene.member(at(0, 1)).login = Login::Rejected;
    assert_eq!(repairs(&scene), []);
    scene.member(at(1, 1)).login = Login::Repairable;
    assert_eq!(repairs(&scene), [Step::RepairCredentials(at(1, 1))]);
    assert_eq!(
        scene.plan().steps.first(),
        Some(&Step::RepairCredentials(at(1, 1))),
        "nothing is known of a member before"
    );
}

#[test]
fn credentials_are_not_repaired_while_pods_are_unknown_or_the_cluster_is_paused_or_deleted() {
    let mut scene = Scene::healthy(3, 1);
    scene.stop_responding(at(1, 1));
    scene.member(at(1, 1)).login = Login::Repairable;
    scene.cluster.spec.paused = Some(true);
    assert_eq!(repairs(&scene), []);
    scene.cluster.spec.paused = None;
    scene.observed.pods_unknown = Some("pods is forbidden".to_owned());
    assert_eq!(repairs(&scene), []);
    scene.observed.pods_unknown = None;
    scene.observed.deleting = true;
    assert_eq!(repairs(&scene), []);
}

#[test]
fn a_repair_of_credentials_does_not_make_a_stored_status_untrue() {
    assert!(!Step::RepairCredentials(at(0, 0)).disturbs());
}

fn lost(recoverable: bool) -> Observation {
    Observation {
        credentials: Credentials::Lost {
            message: "the Secret is gone".to_owned(),
            recoverable,
        },
        ..Observation::default()
    }
}

#[test]
fn missing_credentials_are_created_before_any_object_that_contains_them() {
    let mut scene = Scene::new(1, 1);
    scene.observed.credentials = Credentials::Missing;
    let first = [
        Step::CreateCredentials,
        Step::WriteObjects,
        Step::CreateMember(at(0, 0)),
    ];
    assert_eq!(scene.plan().steps[..3], first);
    scene.observed.missing = vec!["Secret shop-users is missing".to_owned()];
    assert_eq!(scene.plan().steps, [Step::CreateCredentials]);

    let mut scene = Scene::healthy(3, 1);
    scene.observed.credentials = Credentials::Missing;
    let plan = scene.plan();
    assert_eq!(
        (plan.stage, plan.steps),
        (Stage::Writing, vec![Step::CreateCredentials])
    );
    scene.cluster.spec.paused = Some(true);
    assert_eq!(scene.plan().steps, []);
}

#[test]
fn lost_credentials_are_created_anew_only_if_a_member_lets_the_operator_in() {
    let mut scene = Scene::healthy(3, 1);
    for (recoverable, steps) in [(false, vec![]), (true, vec![Step::CreateCredentials])] {
        scene.observed = lost(recoverable);
        let plan = scene.plan();
        assert_eq!(plan.stage, Stage::LockedOut("the Secret is gone".to_owned()));
        assert_eq!(plan.steps, steps);
        scene.observed.pods_unknown = Some("pods is forbidden".to_owned());
        assert_eq!(scene.plan().stage, Stage::Blind("pods is forbidden".to_owned()));
    }
}

#[test]
fn a_reconcile_that_recovers_credentials_keeps_the_status_of_unobserved_members() {
    let mut scene = Scene::healthy(3, 1);
    let before = scene.reconcile(&[]).status;
    scene.observed = lost(true);
    let (kind, name, did) = (ObjectKind::SystemSecret, "internal-sample".to_owned(), Did::Created);
    let after = scene.reconcile(&[Outcome {
        step: Step::CreateCredentials,
        result: Ok(vec![Change { kind, name, did }]),
    }]);
    assert_eq!(after.status, before);
    assert_eq!(after.events.len(), 1, "{:?}", after.events);
}
