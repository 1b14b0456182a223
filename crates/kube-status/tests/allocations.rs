//! What is already said costs no memory to say again: a controller does it on every reconcile.

use allocation_counter::measure;
use jiff::Timestamp;
use kube_status::severity::Severity;
use kube_status::{Change, Condition, Draft, GradedCondition, Order, Status, remove, set_in};

/// As an object of twenty conditions carries them, each with a sentence.
fn stored(now: Timestamp) -> Vec<Condition> {
    let message = "the bootstrap data is there, the node has not joined yet";
    let one = |i| Draft::new(format!("Condition{i:02}"), Status::False, "Waiting").message(message);
    (0..20).map(|i| one(i).into_condition(3, now)).collect()
}

#[test]
fn setting_what_is_set_allocates_nothing() {
    let now = Timestamp::UNIX_EPOCH;
    let mut list = stored(now);
    let message = list[10].message.clone();
    let mut change = Change::Status;
    let used = measure(|| {
        let draft = Draft::new("Condition10", Status::False, "Waiting").message(&message);
        change = set_in(&mut list, draft, 3, now, &Order::STANDARD);
    });
    assert_eq!((change, used.count_total), (Change::Nothing, 0));
}

#[test]
fn setting_what_is_set_with_a_severity_allocates_nothing() {
    let now = Timestamp::UNIX_EPOCH;
    let mut list: Vec<GradedCondition> = Vec::new();
    let waiting = |type_| Draft::bad(type_, (Severity::Info, "Waiting")).message("1 of 3 members is up");
    for type_ in ["Ready", "MembersReady"] {
        let _ = set_in(&mut list, waiting(type_), 3, now, &Order::STANDARD);
    }
    let mut change = Change::Status;
    let used = measure(|| change = set_in(&mut list, waiting("MembersReady"), 3, now, &Order::STANDARD));
    assert_eq!((change, used.count_total), (Change::Nothing, 0));
}

#[test]
fn setting_what_is_set_in_generation_1_allocates_nothing() {
    use kube_status::severity::{Draft, Rules, Severity, set_in};
    let now = Timestamp::UNIX_EPOCH;
    let mut list = Vec::new();
    for type_ in ["Ready", "Alpha", "Beta"] {
        let _ = set_in(
            &mut list,
            Draft::bad(type_, Severity::Info, "Waiting", "1 of 3"),
            now,
            Rules::PROPOSAL,
        );
    }
    let mut change = Change::Status;
    let used = measure(|| {
        let draft = Draft::bad("Beta", Severity::Info, "Waiting", "1 of 3");
        change = set_in(&mut list, draft, now, Rules::PROPOSAL);
    });
    assert_eq!((change, used.count_total), (Change::Nothing, 0));
}

#[test]
fn an_allocation_is_counted() {
    let now = Timestamp::UNIX_EPOCH;
    let mut list = stored(now);
    let used = measure(|| {
        let draft = Draft::new("Condition10", Status::False, "Waiting").message("the node has joined");
        let _ = set_in(&mut list, draft, 3, now, &Order::STANDARD);
    });
    assert!(used.count_total > 0, "a new message has to be stored somewhere");
}

#[test]
fn removing_what_is_not_there_allocates_nothing() {
    let mut list = stored(Timestamp::UNIX_EPOCH);
    let used = measure(|| assert!(!remove(&mut list, "Condition99")));
    assert_eq!(used.count_total, 0);
}
