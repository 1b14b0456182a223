//! What the comparison with Go's packages once found, kept as named cases. The comparison itself is
//! `conformance/conditions.sh`.

use jiff::Timestamp;
use kube_status::severity::{self, Draft, Severity};
use kube_status::{Order, Ownership, Patch, pluralize};

#[test]
fn a_patch_of_generation_1_that_only_removes_leaves_the_order_alone() {
    let at = Timestamp::UNIX_EPOCH;
    let zeta = Draft::good("Zeta").into_condition(at);
    let alpha = Draft::bad("Alpha", Severity::Info, "Waiting", "").into_condition(at);
    let gone = Draft::good("Gone").into_condition(at);
    let mut latest = vec![zeta.clone(), gone.clone(), alpha.clone()];
    let patch = Patch::between(&[zeta.clone(), gone, alpha.clone()], &[zeta.clone(), alpha.clone()]);
    let change = patch
        .apply(&mut latest, &Ownership::none(), at)
        .expect("nobody else wrote");
    assert!(change.must_write());
    assert_eq!(latest, [zeta, alpha]);
}

#[test]
fn a_patch_of_generation_1_that_adds_puts_the_list_in_order() {
    let at = Timestamp::UNIX_EPOCH;
    let zeta = Draft::good("Zeta").into_condition(at);
    let ready = Draft::good(severity::READY).into_condition(at);
    let mut latest = vec![zeta.clone()];
    let patch = Patch::between(&[], std::slice::from_ref(&ready));
    let change = patch
        .apply(&mut latest, &Ownership::none(), at)
        .expect("nobody else wrote");
    assert!(change.is_transition());
    assert_eq!(latest, [ready, zeta]);
}

#[test]
fn the_order_of_cluster_api_knows_the_newest_of_its_types() {
    let mut types = ["EtcdPodHealthy", "Zeta", "NodeKubeadmLabelsAndTaintsSet", "NodeReady"];
    types.sort_by(|a, b| Order::CLUSTER_API.compare(a, b));
    assert_eq!(
        types,
        ["NodeReady", "NodeKubeadmLabelsAndTaintsSet", "EtcdPodHealthy", "Zeta"]
    );
}

#[test]
fn a_kind_that_ends_in_a_break_keeps_it_inside_its_plural() {
    assert_eq!(pluralize("policy_"), "policy_policies");
}

#[test]
fn a_second_plural_of_a_word_is_recognised_as_one() {
    assert_eq!(pluralize("Octopus"), "Octupuses");
    assert_eq!(pluralize("Octopi"), "Octopi");
}
