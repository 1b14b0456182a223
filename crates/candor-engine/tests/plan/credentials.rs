//! Members that reject the operator's user.

use candor_engine::observation::Login;
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
        scene.silence(member);
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
    scene.silence(at(1, 1));
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
