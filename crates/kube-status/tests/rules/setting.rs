//! Generation 2: set, remove, compare, order, and what is serialised.

use kube_status::{
    Change, Draft, Order, Status, find, is_false, is_true, is_unknown, remove, same_except_generation, same_state, set,
    set_in,
};
use serde_json::json;

use crate::thing::{at, machine};

fn types(list: &[kube_status::Condition]) -> Vec<&str> {
    list.iter().map(|c| c.type_.as_str()).collect()
}

#[test]
fn a_new_condition_is_a_change_of_status_and_carries_the_objects_generation() {
    let mut object = machine("m1");
    object.generation = 7;
    assert_eq!(
        set(&mut object, Draft::new("Ready", Status::False, "Starting"), at(10)),
        Change::Status
    );
    let stored = &object.conditions[0];
    assert_eq!(stored.observed_generation, Some(7));
    assert_eq!(stored.last_transition_time.0, at(10));
}

#[test]
fn the_transition_time_moves_only_when_the_status_changes() {
    let mut object = machine("m1");
    let steps = [
        (Status::False, "Starting", "", 10, Change::Status, 10),
        (Status::False, "Starting", "1 of 3", 20, Change::Text, 10),
        (Status::False, "Stuck", "1 of 3", 30, Change::Text, 10),
        (Status::False, "Stuck", "1 of 3", 40, Change::Nothing, 10),
        (Status::True, "Up", "", 50, Change::Status, 50),
        (Status::Unknown, "NoAnswer", "", 60, Change::Status, 60),
    ];
    for (status, reason, message, now, change, since) in steps {
        assert_eq!(
            set(
                &mut object,
                Draft::new("Ready", status, reason).message(message),
                at(now)
            ),
            change
        );
        assert_eq!(
            object.conditions[0].last_transition_time.0,
            at(since),
            "{reason} at {now}"
        );
    }
}

#[test]
fn a_time_given_by_the_caller_counts_on_creation_and_on_a_change_of_status_only() {
    let mut object = machine("m1");
    let reported = |status, since: i64| Draft::new("Ready", status, "R").since(at(since));
    assert_eq!(set(&mut object, reported(Status::True, 5), at(100)), Change::Status);
    assert_eq!(object.conditions[0].last_transition_time.0, at(5));
    assert_eq!(
        set(&mut object, reported(Status::True, 6).message("new"), at(100)),
        Change::Text
    );
    assert_eq!(object.conditions[0].last_transition_time.0, at(5));
    assert_eq!(set(&mut object, reported(Status::False, 7), at(100)), Change::Status);
    assert_eq!(object.conditions[0].last_transition_time.0, at(7));
}

#[test]
fn times_are_cut_to_whole_seconds_also_when_the_caller_gives_them() {
    let fine = "2026-02-05T10:00:00.987654321Z".parse().expect("a time");
    let mut object = machine("m1");
    let _ = set(&mut object, Draft::new("A", Status::True, "R"), fine);
    let _ = set(&mut object, Draft::new("B", Status::True, "R").since(fine), at(0));
    let _ = set(&mut object, Draft::new("A", Status::False, "R"), fine);
    for stored in &object.conditions {
        assert_eq!(stored.last_transition_time.0.to_string(), "2026-02-05T10:00:00Z");
    }
}

#[test]
fn a_time_before_the_epoch_is_cut_downwards() {
    let fine = "1969-12-31T23:59:58.5Z".parse().expect("a time");
    assert_eq!(kube_status::whole_seconds(fine).to_string(), "1969-12-31T23:59:58Z");
}

#[test]
fn a_new_generation_alone_must_be_written() {
    let mut object = machine("m1").with("Ready", Status::True, "Up", "");
    object.generation = 2;
    assert_eq!(
        set(&mut object, Draft::new("Ready", Status::True, "Up"), at(9)),
        Change::Text
    );
    assert_eq!(object.conditions[0].observed_generation, Some(2));
    assert_eq!(object.conditions[0].last_transition_time.0, at(0));
}

#[test]
fn generation_zero_and_no_generation_are_the_same() {
    let mut list = vec![Draft::new("Ready", Status::True, "Up").into_condition(0, at(0))];
    assert_eq!(list[0].observed_generation, None);
    assert_eq!(
        set_in(
            &mut list,
            Draft::new("Ready", Status::True, "Up"),
            0,
            at(1),
            &Order::STANDARD
        ),
        Change::Nothing
    );
}

#[test]
fn an_unchanged_condition_is_not_written_and_the_list_is_not_sorted_again() {
    let mut object = machine("m1")
        .with("Zeta", Status::True, "R", "")
        .with("Alpha", Status::True, "R", "");
    let before = object.clone();
    assert_eq!(
        set(&mut object, Draft::new("Zeta", Status::True, "R"), at(9)),
        Change::Nothing
    );
    assert_eq!(object, before);
    let _ = set(&mut object, Draft::new("Zeta", Status::True, "Other"), at(9));
    assert_eq!(types(&object.conditions), ["Alpha", "Zeta"]);
}

#[test]
fn available_and_ready_stand_first_paused_and_deleting_last_the_rest_by_name() {
    let mut object = machine("m1");
    for type_ in ["Deleting", "Zeta", "Paused", "Ready", "Beta", "Available", "Alpha"] {
        let _ = set(&mut object, Draft::new(type_, Status::True, "R"), at(0));
    }
    assert_eq!(
        types(&object.conditions),
        ["Available", "Ready", "Alpha", "Beta", "Zeta", "Paused", "Deleting"]
    );
}

#[test]
fn a_caller_may_give_an_order_or_none() {
    let order = Order::new(&["SlotsCovered"], &["Ready"]);
    let mut ordered = Vec::new();
    let mut as_given = Vec::new();
    for type_ in ["Ready", "Zeta", "SlotsCovered", "Alpha"] {
        let _ = set_in(&mut ordered, Draft::new(type_, Status::True, "R"), 1, at(0), &order);
        let _ = set_in(
            &mut as_given,
            Draft::new(type_, Status::True, "R"),
            1,
            at(0),
            &Order::AS_GIVEN,
        );
    }
    assert_eq!(types(&ordered), ["SlotsCovered", "Alpha", "Zeta", "Ready"]);
    assert_eq!(types(&as_given), ["Ready", "Zeta", "SlotsCovered", "Alpha"]);
}

#[test]
fn cluster_apis_own_types_stand_in_its_own_order() {
    let mut list = [
        "Deleting",
        "Custom",
        "ScalingUp",
        "MachinesReady",
        "UpToDate",
        "Available",
    ];
    list.sort_by(|a, b| Order::CLUSTER_API.compare(a, b));
    assert_eq!(
        list,
        [
            "Available",
            "UpToDate",
            "ScalingUp",
            "MachinesReady",
            "Custom",
            "Deleting"
        ]
    );
}

#[test]
fn remove_takes_every_condition_of_the_type_and_leaves_the_order() {
    let mut object = machine("m1")
        .with("C", Status::True, "R", "")
        .with("A", Status::True, "R", "")
        .with("B", Status::True, "R", "");
    assert!(remove(&mut object.conditions, "A"));
    assert!(!remove(&mut object.conditions, "A"));
    assert_eq!(types(&object.conditions), ["C", "B"]);
}

#[test]
fn a_missing_condition_is_unknown_and_neither_true_nor_false() {
    let object = machine("m1")
        .with("Up", Status::True, "R", "")
        .with("Dull", Status::Unknown, "R", "");
    let list = &object.conditions;
    assert!(is_true(list, "Up") && !is_false(list, "Up") && !is_unknown(list, "Up"));
    assert!(!is_true(list, "Dull") && !is_false(list, "Dull") && is_unknown(list, "Dull"));
    assert!(!is_true(list, "Gone") && !is_false(list, "Gone") && is_unknown(list, "Gone"));
    assert!(find(list, "Gone").is_none());
}

#[test]
fn an_empty_message_is_serialised_so_that_server_side_apply_can_clear_it() {
    let stored = Draft::new("Ready", Status::True, "Up").into_condition(3, at(0));
    assert_eq!(
        serde_json::to_value(&stored).expect("a condition is JSON"),
        json!({
            "type": "Ready", "status": "True", "reason": "Up", "message": "",
            "lastTransitionTime": "1970-01-12T13:46:40Z", "observedGeneration": 3,
        })
    );
}

#[test]
fn the_heaviest_of_several_changes_counts() {
    assert!(Change::Nothing < Change::Text && Change::Text < Change::Status);
    assert!(!Change::Nothing.must_write() && Change::Text.must_write() && Change::Status.must_write());
    assert!(!Change::Text.is_transition() && Change::Status.is_transition());
}

#[test]
fn the_same_state_is_everything_but_the_time() {
    let reported =
        |type_: &'static str, status: Status, reason: &'static str, message: &'static str, generation, second| {
            Draft::new(type_, status, reason)
                .message(message)
                .into_condition(generation, at(second))
        };
    let one = reported("A", Status::True, "R", "M", 1, 1);
    assert!(same_state(&one, &reported("A", Status::True, "R", "M", 1, 9)));
    assert!(same_except_generation(
        &one,
        &reported("A", Status::True, "R", "M", 2, 9)
    ));
    assert!(!same_state(&one, &reported("A", Status::True, "R", "M", 2, 1)));
    let none = || reported("A", Status::True, "R", "M", 0, 1);
    assert!(same_state(&none(), &none()) && !same_state(&one, &none()));
    for other in [
        reported("B", Status::True, "R", "M", 1, 1),
        reported("A", Status::False, "R", "M", 1, 1),
        reported("A", Status::True, "S", "M", 1, 1),
        reported("A", Status::True, "R", "N", 1, 1),
    ] {
        assert!(!same_state(&one, &other) && !same_except_generation(&one, &other));
    }
}
