//! Generation 1: set, merge, step counter, source reference, and the three places where the proposal beats Go.

use kube_status::severity::{
    Aggregate, Condition, Draft, Mirror, Rules, Severity, Summary, is_false, is_true, is_unknown, remove, same_state,
    set, set_in,
};
use kube_status::{Change, Negative, Status};
use serde_json::json;

use crate::thing::{OldThing, at, old_machine, old_thing};

fn error(type_: &str, reason: &str, message: &str) -> Draft<'static> {
    Draft::bad(type_.to_owned(), Severity::Error, reason.to_owned(), message.to_owned())
}

fn warning(type_: &str, reason: &str, message: &str) -> Draft<'static> {
    Draft::bad(
        type_.to_owned(),
        Severity::Warning,
        reason.to_owned(),
        message.to_owned(),
    )
}

fn info(type_: &str, reason: &str, message: &str) -> Draft<'static> {
    Draft::bad(type_.to_owned(), Severity::Info, reason.to_owned(), message.to_owned())
}

fn read(value: serde_json::Value) -> Condition {
    serde_json::from_value(value).expect("a condition")
}

fn reported(draft: &Draft<'_>) -> (Status, Option<Severity>, String, String) {
    (
        draft.status(),
        draft.severity(),
        draft.reason().to_owned(),
        draft.message().to_owned(),
    )
}

fn expect(
    status: Status,
    severity: impl Into<Option<Severity>>,
    reason: &str,
    message: &str,
) -> (Status, Option<Severity>, String, String) {
    (status, severity.into(), reason.to_owned(), message.to_owned())
}

#[test]
fn empty_reason_severity_and_message_are_omitted_and_there_is_no_generation() {
    let stored = Draft::good("Ready").into_condition(at(0));
    assert_eq!(
        serde_json::to_value(stored).expect("JSON"),
        json!({"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-12T13:46:40Z"})
    );
    let stored = error("Ready", "R", "M").into_condition(at(0));
    assert_eq!(
        serde_json::to_value(stored).expect("JSON"),
        json!({
            "type": "Ready", "status": "False", "severity": "Error", "reason": "R", "message": "M",
            "lastTransitionTime": "1970-01-12T13:46:40Z",
        })
    );
}

#[test]
fn a_condition_is_kept_as_it_was_read_even_without_severity_or_time() {
    let stored = read(json!({"type": "A", "status": "False", "severity": "", "lastTransitionTime": null}));
    assert_eq!((stored.severity(), stored.last_transition_time()), (None, None));
    let wrong = serde_json::from_value::<Condition>(json!({"type": "A", "status": "False", "severity": "Fatal"}));
    assert!(
        wrong
            .expect_err("a severity nobody knows")
            .to_string()
            .contains("Fatal")
    );
}

#[test]
fn by_the_proposal_the_time_moves_when_the_status_changes_and_by_go_on_any_change() {
    for (rules, after_text) in [(Rules::PROPOSAL, 10), (Rules::GO, 20)] {
        let mut list = Vec::new();
        assert_eq!(set_in(&mut list, info("A", "R", ""), at(10), rules), Change::Status);
        assert_eq!(set_in(&mut list, warning("A", "R", ""), at(20), rules), Change::Text);
        assert_eq!(list[0].last_transition_time(), Some(at(after_text)), "{rules:?}");
        assert_eq!(set_in(&mut list, warning("A", "R", ""), at(30), rules), Change::Nothing);
        assert_eq!(list[0].last_transition_time(), Some(at(after_text)), "{rules:?}");
        assert_eq!(set_in(&mut list, Draft::good("A"), at(40), rules), Change::Status);
        assert_eq!(list[0].last_transition_time(), Some(at(40)));
    }
}

#[test]
fn every_field_of_the_state_is_compared() {
    let first = || info("A", "R", "M");
    for other in [
        warning("A", "R", "M"),
        info("A", "S", "M"),
        info("A", "R", "N"),
        Draft::good("A"),
    ] {
        let mut list = vec![first().into_condition(at(0))];
        assert!(set_in(&mut list, other, at(1), Rules::PROPOSAL).must_write());
    }
}

#[test]
fn ready_stands_first_and_the_rest_by_name() {
    let mut object = old_machine("m");
    for type_ in ["Zeta", "Available", "Ready", "Alpha"] {
        let _ = set(&mut object, Draft::good(type_), at(0));
    }
    let types: Vec<&str> = object.conditions.iter().map(Condition::type_).collect();
    assert_eq!(types, ["Ready", "Alpha", "Available", "Zeta"]);
}

#[test]
fn errors_surface_first_then_warnings_then_infos_then_good_news_then_unknowns() {
    let all = [
        error("E", "Broken", "e"),
        warning("W", "Slow", "w"),
        info("I", "Busy", "i"),
        Draft::good("T"),
        Draft::unknown("U", "NoAnswer", "u"),
    ];
    let expected = [
        expect(Status::False, Severity::Error, "Broken", "e"),
        expect(Status::False, Severity::Warning, "Slow", "w"),
        expect(Status::False, Severity::Info, "Busy", "i"),
        expect(Status::True, None, "", ""),
        expect(Status::Unknown, None, "NoAnswer", "u"),
    ];
    for (first, expected) in expected.into_iter().enumerate() {
        let object = all[first..]
            .iter()
            .rev()
            .fold(old_machine("m"), |object, draft| object.with_old(draft.clone()));
        assert_eq!(
            reported(&Summary::new().of(&object).expect("a summary")),
            expected,
            "from {first}"
        );
    }
}

#[test]
fn good_news_beats_the_unknown_here() {
    let object = old_machine("m")
        .with_old(Draft::good("A"))
        .with_old(Draft::unknown("B", "R", ""));
    assert_eq!(Summary::new().of(&object).expect("a summary").status(), Status::True);
}

#[test]
fn a_bad_condition_without_severity_is_an_error_by_the_proposal_and_comes_last_in_go() {
    let mut object = old_machine("m")
        .with_old(info("A", "Busy", ""))
        .with_old(Draft::good("C"));
    object
        .conditions
        .push(read(json!({"type": "B", "status": "False", "reason": "Bare"})));
    let proposal = Summary::new().of(&object).expect("a summary");
    assert_eq!(reported(&proposal), expect(Status::False, Severity::Error, "Bare", ""));
    let go = Summary::new().rules(Rules::GO).of(&object).expect("a summary");
    assert_eq!(reported(&go), expect(Status::False, Severity::Info, "Busy", ""));
    object.conditions.retain(|c| c.type_() == "B");
    let alone = Summary::new().rules(Rules::GO).of(&object).expect("a summary");
    assert_eq!(reported(&alone), expect(Status::False, None, "Bare", ""));
}

#[test]
fn a_negative_condition_that_is_true_counts_by_its_severity() {
    let object = old_machine("m").with_old(info("A", "Busy", "")).with_old(Draft::bad(
        Negative("Degraded"),
        Severity::Warning,
        "SlowDisk",
        "2 s",
    ));
    let summary = Summary::new().negative(["Degraded"]);
    assert_eq!(
        reported(&summary.of(&object).expect("one")),
        expect(Status::False, Severity::Warning, "SlowDisk", "2 s")
    );
    let blind = Rules {
        negative_counts_by_severity: false,
        ..Rules::PROPOSAL
    };
    assert_eq!(
        reported(&summary.rules(blind).of(&object).expect("one")),
        expect(Status::False, Severity::Info, "Busy", "")
    );
}

#[test]
fn a_negative_condition_that_is_false_is_good_news() {
    let object = old_machine("m").with_old(Draft::good(Negative("Degraded")));
    assert_eq!(
        Summary::new().negative(["Degraded"]).of(&object).expect("one").status(),
        Status::True
    );
}

#[test]
fn the_message_is_that_of_the_callers_first_type_else_of_the_first_by_name() {
    let object = old_machine("m")
        .with_old(error("B", "OfB", "b"))
        .with_old(error("A", "OfA", "a"));
    assert_eq!(Summary::new().of(&object).expect("one").reason(), "OfA");
    assert_eq!(
        Summary::new().types(["B", "A"]).of(&object).expect("one").reason(),
        "OfB"
    );
}

#[test]
fn the_present_ready_and_types_out_of_scope_do_not_count_and_missing_ones_are_ignored() {
    let object = old_machine("m")
        .with_old(error("Ready", "Old", ""))
        .with_old(error("X", "R", ""))
        .with_old(Draft::good("A"));
    let summary = Summary::new().types(["A", "NotThere"]);
    assert_eq!(summary.of(&object).expect("one").status(), Status::True);
}

#[test]
fn an_object_without_conditions_has_no_summary_and_that_is_no_error() {
    let mut object = old_machine("m");
    assert!(Summary::new().of(&object).is_none());
    assert_eq!(Summary::new().set(&mut object, at(0)), Change::Nothing);
    let ready_only = old_machine("m").with_old(Draft::good("Ready"));
    assert!(Summary::new().of(&ready_only).is_none());
}

#[test]
fn steps_are_counted_against_what_is_in_scope_or_the_callers_list() {
    let object = old_machine("m")
        .with_old(Draft::good("A"))
        .with_old(info("B", "Busy", "words"))
        .with_old(Draft::good("C"));
    let message = |summary: Summary<'_>| summary.of(&object).expect("one").message().to_owned();
    assert_eq!(message(Summary::new()), "words");
    assert_eq!(message(Summary::new().step_counter(true)), "2 of 3 completed");
    assert_eq!(
        message(Summary::new().types(["A", "B", "C", "D", "E"]).step_counter(true)),
        "2 of 5 completed"
    );
    assert_eq!(
        message(Summary::new().types(["A", "B"]).step_counter(true)),
        "1 of 2 completed"
    );
    assert_eq!(message(Summary::new().types(["A", "B"]).step_counter(false)), "words");
}

#[test]
fn steps_are_counted_only_while_no_other_condition_is_there() {
    let steps = ["A", "B", "C"];
    let summary = Summary::new().step_counter(true).step_counter_only_for(steps);
    let early = old_machine("m")
        .with_old(Draft::good("A"))
        .with_old(info("B", "Busy", "words"));
    assert_eq!(summary.of(&early).expect("one").message(), "1 of 3 completed");
    let later = early.with_old(Draft::good("HealthCheckSucceeded"));
    assert_eq!(summary.of(&later).expect("one").message(), "words");
    let unasked = Summary::new().step_counter_only_for(steps);
    assert_eq!(
        unasked
            .of(&old_machine("m").with_old(info("B", "Busy", "words")))
            .expect("one")
            .message(),
        "words"
    );
}

#[test]
fn steps_are_never_shown_when_all_is_well() {
    let object = old_machine("m").with_old(Draft::good("A"));
    let ready = Summary::new()
        .step_counter(true)
        .source_reference(true)
        .of(&object)
        .expect("one");
    assert_eq!(reported(&ready), expect(Status::True, None, "", ""));
}

#[test]
fn the_reason_names_its_source_once() {
    let object = old_thing("AWSMachine", "m1").with_old(error("A", "NoKey", ""));
    let summary = Summary::new().source_reference(true);
    assert_eq!(summary.of(&object).expect("one").reason(), "NoKey @ AWSMachine/m1");
    let already = old_machine("m").with_old(error("A", "NoKey @ AWSMachine/m1", ""));
    assert_eq!(summary.of(&already).expect("one").reason(), "NoKey @ AWSMachine/m1");
}

#[test]
fn a_mirror_copies_ready_or_returns_nothing_or_the_fallback() {
    let source = old_machine("m").with_old(warning("Ready", "Slow", "2 s"));
    let mirror = Mirror::new("MachineReady");
    assert_eq!(
        reported(&mirror.of(&source).expect("one")),
        expect(Status::False, Severity::Warning, "Slow", "2 s")
    );
    let bare = old_machine("m");
    assert!(mirror.of(&bare).is_none());
    let mut target = old_thing("Cluster", "c");
    assert_eq!(mirror.set(&bare, &mut target, at(0)), Change::Nothing);
    let waiting = mirror.clone().fallback_bad(Severity::Info, "Waiting", "for it");
    assert_eq!(
        reported(&waiting.of(&bare).expect("one")),
        expect(Status::False, Severity::Info, "Waiting", "for it")
    );
    assert_eq!(
        reported(&mirror.fallback_good().of(&bare).expect("one")),
        expect(Status::True, None, "", "")
    );
}

#[test]
fn a_new_mirror_keeps_the_time_of_its_source() {
    let source = old_machine("m").with_old(Draft::good("Ready").since(at(7)));
    let mut target = old_thing("Cluster", "c");
    let _ = Mirror::new("InfrastructureReady").set(&source, &mut target, at(100));
    assert_eq!(target.conditions[0].last_transition_time(), Some(at(7)));
}

#[test]
fn an_aggregate_counts_objects_without_ready_in_the_total_and_names_the_first() {
    let machines = [
        old_machine("c").with_old(error("Ready", "OfC", "")),
        old_machine("b").with_old(error("Ready", "OfB", "")),
        old_machine("a").with_old(Draft::good("Ready")),
        old_machine("d"),
    ];
    let draft = Aggregate::new("MachinesReady")
        .source_reference(true)
        .of(&machines)
        .expect("one");
    assert_eq!(
        reported(&draft),
        expect(Status::False, Severity::Error, "OfB @ Machine/b", "1 of 4 completed")
    );
    let words = Aggregate::new("MachinesReady")
        .step_counter(false)
        .of(&machines)
        .expect("one");
    assert_eq!(words.message(), "");
}

#[test]
fn an_aggregate_of_objects_without_ready_is_empty() {
    let machines = [old_machine("a"), old_machine("b")];
    assert!(Aggregate::new("MachinesReady").of(&machines).is_none());
    assert!(Aggregate::new("MachinesReady").of::<OldThing>([]).is_none());
}

#[test]
fn the_same_state_is_everything_but_the_time() {
    let one = || info("A", "R", "M").into_condition(at(1));
    assert!(same_state(&one(), &info("A", "R", "M").into_condition(at(9))));
    for other in [
        info("B", "R", "M"),
        info("A", "S", "M"),
        info("A", "R", "N"),
        warning("A", "R", "M"),
        Draft::unknown("A", "R", "M"),
    ] {
        assert!(!same_state(&one(), &other.into_condition(at(1))));
    }
}

#[test]
fn a_missing_condition_is_unknown_and_neither_true_nor_false() {
    let object = old_machine("m")
        .with_old(Draft::good("Up"))
        .with_old(Draft::unknown("Dull", "R", ""))
        .with_old(info("Down", "R", ""));
    let list = &object.conditions;
    let reported = |type_: &str| (is_true(list, type_), is_false(list, type_), is_unknown(list, type_));
    assert_eq!(reported("Up"), (true, false, false));
    assert_eq!(reported("Down"), (false, true, false));
    assert_eq!(reported("Dull"), (false, false, true));
    assert_eq!(reported("Gone"), (false, false, true));
}

#[test]
fn remove_returns_whether_the_type_was_there() {
    let mut object = old_machine("m").with_old(Draft::good("A")).with_old(Draft::good("B"));
    assert!(remove(&mut object.conditions, "A"));
    assert!(!remove(&mut object.conditions, "A"));
    assert_eq!(object.conditions[0].type_(), "B");
}

#[test]
fn of_a_type_that_stands_in_the_list_twice_the_first_speaks() {
    let mut object = old_machine("m").with_old(error("A", "First", ""));
    object.conditions.push(error("A", "Second", "").into_condition(at(0)));
    assert_eq!(Summary::new().of(&object).expect("one").reason(), "First");
    assert_eq!(Summary::new().types(["A"]).of(&object).expect("one").reason(), "First");
}

#[test]
fn a_stored_status_is_what_it_is_and_a_missing_one_is_unknown() {
    let object = old_machine("m")
        .with_old(Draft::good("Good"))
        .with_old(error("Bad", "Broken", ""))
        .with_old(Draft::unknown("Silent", "NoAnswer", ""));
    for (type_, expected) in [
        ("Good", [true, false, false]),
        ("Bad", [false, true, false]),
        ("Silent", [false, false, true]),
        ("Missing", [false, false, true]),
    ] {
        let found = [
            is_true(&object.conditions, type_),
            is_false(&object.conditions, type_),
            is_unknown(&object.conditions, type_),
        ];
        assert_eq!(found, expected, "{type_}");
    }
}

#[test]
fn setting_what_is_set_in_a_list_out_of_order_changes_its_text() {
    let mut list = vec![
        Draft::good("B").into_condition(at(0)),
        Draft::good("A").into_condition(at(0)),
    ];
    assert_eq!(
        set_in(&mut list, Draft::good("A"), at(40), Rules::PROPOSAL),
        Change::Text
    );
    assert_eq!(list[0].type_(), "A");
}

#[test]
fn a_bad_negative_condition_is_not_a_completed_step() {
    let object = old_machine("m")
        .with_old(Draft::bad(Negative("Degraded"), Severity::Error, "Down", "words"))
        .with_old(Draft::good("A"))
        .with_old(Draft::good("B"));
    let summary = Summary::new().negative(["Degraded"]).step_counter(true).of(&object);
    assert_eq!(summary.expect("a summary").message(), "2 of 3 completed");
}

#[test]
fn an_aggregate_names_no_source_by_default() {
    let object = old_machine("m").with_old(error("Ready", "Down", "words"));
    let draft = Aggregate::new("MachinesReady").of(&[object]).expect("an aggregate");
    assert_eq!(draft.reason(), "Down");
}

#[test]
fn an_unknown_condition_is_not_a_completed_step() {
    let object = old_machine("m")
        .with_old(error("A", "Down", "words"))
        .with_old(Draft::unknown("B", "Unheard", ""));
    let summary = Summary::new().step_counter(true).of(&object);
    assert_eq!(summary.expect("a summary").message(), "0 of 2 completed");
}
