//! Generation 2: the aggregate.

use kube_status::merge::{MergeError, Standard};
use kube_status::{Aggregate, Change, Conditioned, Polarity, Status, pluralize};

use crate::thing::{Thing, at, machine, thing};

fn bad(name: &str, message: &str) -> Thing {
    machine(name).with("Ready", Status::False, "R", message)
}

fn unknown(name: &str, message: &str) -> Thing {
    machine(name).with("Ready", Status::Unknown, "R", message)
}

fn good(name: &str, message: &str) -> Thing {
    machine(name).with("Ready", Status::True, "R", message)
}

fn message(objects: &[Thing]) -> String {
    let draft = Aggregate::new("Ready").of(objects).expect("an aggregate");
    draft.message.into_owned()
}

#[test]
fn one_object_is_named_two_or_three_are_listed_and_more_are_counted() {
    assert_eq!(message(&[bad("a", "x")]), "* Machine a: x");
    assert_eq!(message(&[bad("b", "x"), bad("a", "x")]), "* Machines a, b: x");
    assert_eq!(
        message(&[bad("c", "x"), bad("a", "x"), bad("b", "x")]),
        "* Machines a, b, c: x"
    );
    let five: Vec<_> = ["e", "d", "c", "b", "a"].map(|name| bad(name, "x")).into();
    assert_eq!(message(&five), "* Machines a, b, c, ... (2 more): x");
}

#[test]
fn at_most_three_messages_are_listed_and_the_rest_is_counted() {
    let objects: Vec<_> = ["a", "b", "c", "d", "e"]
        .map(|name| bad(name, &format!("of {name}")))
        .into();
    assert_eq!(
        message(&objects),
        "* Machine a: of a\n* Machine b: of b\n* Machine c: of c\nAnd 2 Machines with other issues"
    );
    assert_eq!(
        message(&objects[..4]),
        "* Machine a: of a\n* Machine b: of b\n* Machine c: of c\nAnd 1 Machine with other issues"
    );
}

#[test]
fn issues_come_before_unknowns_whatever_their_number() {
    let objects = [unknown("a", "u"), unknown("b", "u"), bad("c", "i")];
    assert_eq!(message(&objects), "* Machine c: i\n* Machines a, b: u");
}

#[test]
fn unknowns_that_find_no_room_are_counted_apart_from_issues() {
    let mut objects: Vec<_> = ["a", "b", "c", "d"].map(|name| bad(name, name)).into();
    objects.extend([unknown("e", "u"), unknown("f", "v")]);
    assert_eq!(
        message(&objects),
        "* Machine a: a\n* Machine b: b\n* Machine c: c\nAnd 1 Machine with other issues\n\
         And 2 Machines with status unknown"
    );
}

#[test]
fn good_conditions_are_listed_only_when_all_is_well_and_only_with_a_message() {
    assert_eq!(message(&[good("a", "fine"), bad("b", "x")]), "* Machine b: x");
    assert_eq!(message(&[good("a", "fine"), good("b", "")]), "* Machine a: fine");
    let five: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| good(name, name)).into();
    assert_eq!(
        message(&five),
        "* Machine a: a\n* Machine b: b\n* Machine c: c\nAnd 2 Machines with additional info"
    );
}

#[test]
fn the_message_that_more_objects_share_comes_first() {
    let objects = [bad("a", "rare"), bad("b", "common"), bad("c", "common")];
    assert_eq!(message(&objects), "* Machines b, c: common\n* Machine a: rare");
}

#[test]
fn messages_of_equally_many_objects_are_ordered_by_the_names_in_the_order_of_their_transitions() {
    let objects = [
        machine("z").with_since("Ready", Status::False, "R", "one", 10),
        machine("a").with_since("Ready", Status::False, "R", "one", 20),
        machine("b").with_since("Ready", Status::False, "R", "two", 10),
        machine("c").with_since("Ready", Status::False, "R", "two", 20),
    ];
    assert_eq!(message(&objects), "* Machines b, c: two\n* Machines a, z: one");
}

#[test]
fn kinds_are_listed_by_name_and_share_the_limit() {
    let objects = [
        bad("m1", "x"),
        thing("Cluster", "c1").with("Ready", Status::False, "R", "x"),
        thing("Cluster", "c2").with("Ready", Status::False, "R", "y"),
        bad("m2", "z"),
    ];
    assert_eq!(
        message(&objects),
        "* Cluster c1: x\n* Cluster c2: y\n* Machine m1: x\nAnd 1 Machine with other issues"
    );
}

#[test]
fn the_same_message_with_different_priorities_counts_by_the_highest() {
    let objects = [unknown("a", "same"), bad("b", "same"), bad("c", "alone")];
    assert_eq!(message(&objects), "* Machines a, b: same\n* Machine c: alone");
}

#[test]
fn prominent_objects_and_their_messages_come_first() {
    let objects = [bad("a", "common"), bad("b", "common"), bad("z", "rare").prominent()];
    assert_eq!(message(&objects), "* Machine z: rare\n* Machines a, b: common");
    let together = [bad("a", "x"), bad("b", "x"), bad("c", "x"), bad("z", "x").prominent()];
    assert_eq!(message(&together), "* Machines z, a, b, ... (1 more): x");
}

#[test]
fn an_object_without_the_condition_is_unknown() {
    let objects = [machine("a"), good("b", "fine")];
    let draft = Aggregate::new("Ready").of(&objects).expect("an aggregate");
    assert_eq!((draft.status, &*draft.reason), (Status::Unknown, "UnknownReported"));
    assert_eq!(draft.message, "* Machine a: Condition Ready not yet reported");
}

#[test]
fn long_messages_go_below_the_names() {
    let objects = [bad("a", "* EtcdHealthy: no\n* ApiServer: no")];
    assert_eq!(
        message(&objects),
        "* Machine a:\n  * EtcdHealthy: no\n  * ApiServer: no"
    );
}

#[test]
fn an_issue_without_a_message_is_still_reported() {
    assert_eq!(message(&[bad("a", "")]), "* Machine a: ");
}

#[test]
fn a_negative_type_gives_a_negative_aggregate() {
    let scaling = |name: &str, status| machine(name).with("ScalingUp", status, "R", "from 1 to 3");
    let aggregate = Aggregate::new("ScalingUp").polarity(Polarity::Negative);
    let busy = aggregate
        .of(&[scaling("a", Status::True), scaling("b", Status::False)])
        .expect("an aggregate");
    assert_eq!(
        (busy.status, &*busy.message),
        (Status::True, "* Machine a: from 1 to 3")
    );
    let still = aggregate.of(&[scaling("a", Status::False)]).expect("an aggregate");
    assert_eq!((still.status, &*still.reason), (Status::False, "InfoReported"));
}

#[test]
fn an_aggregate_of_nothing_is_an_error() {
    let none: [Thing; 0] = [];
    let error = Aggregate::new("Ready").of(&none).expect_err("no objects");
    assert_eq!(error, MergeError::NoObjects);
    assert_eq!(error.to_string(), "sourceObjs can't be empty");
}

#[test]
fn objects_of_different_rust_types_are_aggregated_together() {
    let (a, b) = (
        bad("a", "x"),
        thing("Cluster", "c").with("Ready", Status::True, "R", ""),
    );
    let objects: [&dyn Conditioned; 2] = [&a, &b];
    let draft = Aggregate::new("Ready").of(objects).expect("an aggregate");
    assert_eq!(draft.message, "* Machine a: x");
}

#[test]
fn a_computed_reason_sees_the_oldest_first() {
    let objects = [
        machine("young").with_since("Ready", Status::False, "Young", "x", 20),
        machine("old").with_since("Ready", Status::False, "Old", "x", 10),
    ];
    let first = Standard::new().reason(|groups| groups.issues[0].reason.to_owned());
    let draft = Aggregate::new("Ready")
        .strategy(&first)
        .of(&objects)
        .expect("an aggregate");
    assert_eq!(draft.reason, "Old");
}

#[test]
fn a_condition_without_a_time_sorts_as_one_that_is_missing() {
    // The epoch: what a condition without a time is read with.
    let stored = machine("a").with_since("Ready", Status::Unknown, "R", "u", -1_000_000);
    let first = Standard::new().reason(|groups| groups.unknown[0].owner.name.to_owned());
    let ready = Aggregate::new("Ready").strategy(&first);
    let name = |objects: &[Thing]| ready.of(objects).expect("an aggregate").reason.into_owned();
    assert_eq!(name(&[stored.clone(), machine("b")]), "a");
    assert_eq!(name(&[machine("b"), stored]), "b");
}

#[test]
fn an_aggregate_is_set_on_another_object_under_its_own_type() {
    let objects = [bad("a", "x")];
    let mut owner = thing("MachineSet", "ms");
    let aggregate = Aggregate::new("Ready").target("MachinesReady");
    assert_eq!(aggregate.set(&objects, &mut owner, at(5)), Ok(Change::Status));
    assert_eq!(owner.conditions[0].type_, "MachinesReady");
}

#[test]
fn kinds_have_english_plurals() {
    let table = [
        ("Machine", "Machines"),
        ("NetworkPolicy", "NetworkPolicies"),
        ("Gateway", "Gateways"),
        ("Ingress", "Ingresses"),
        ("Proxy", "Proxies"),
        ("Address", "Addresses"),
        ("Endpoints", "Endpoints"),
        ("Status", "Statuses"),
        ("DNSIndex", "DNSIndices"),
        ("Child", "Children"),
        ("Person", "People"),
        ("Mouse", "Mice"),
        ("Series", "Series"),
        ("Metadata", "Metadata"),
        ("Quiz", "Quizzes"),
        ("Ox", "Oxen"),
        ("Mice", "Mice"),
        ("Indices", "Indices"),
        ("Indexes", "Indexes"),
        ("Box", "Boxes"),
        ("ValkeyCluster", "ValkeyClusters"),
        ("Redis", "Redis"),
        ("GPUNode", "GPUNodes"),
        ("UserID", "UserIDs"),
        ("", ""),
    ];
    for (one, many) in table {
        assert_eq!(pluralize(one), many);
    }
}

#[test]
fn objects_without_a_kind_are_counted_too() {
    let objects = [thing("", "a").with("Ready", Status::False, "Down", "not up")];
    let draft = Aggregate::new("Ready").of(&objects).expect("an aggregate");
    assert_eq!((draft.status, &*draft.message), (Status::False, "*  a: not up"));
}

#[test]
fn the_plural_is_that_of_the_last_word_of_a_kind() {
    for (one, many) in [
        ("BigOx", "BigOxen"),
        ("Big-Ox", "Big-Oxen"),
        ("big-ox", "big-oxen"),
        ("Box", "Boxes"),
    ] {
        assert_eq!(pluralize(one), many);
    }
}
