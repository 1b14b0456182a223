//! Generation 2: the summary.

use kube_status::merge::{Input, MergeError, Merged, Operation, Owner, Priority, Standard, Strategy};
use kube_status::{Change, Draft, Polarity, Status, Summary};

use crate::thing::{Thing, at, machine};

fn reported(summary: &Summary<'_>, object: &Thing) -> (Status, String, String) {
    let draft = summary.of(object).expect("a summary");
    assert_eq!(draft.since, None);
    (draft.status, draft.reason.into_owned(), draft.message.into_owned())
}

fn expect(status: Status, reason: &str, message: &str) -> (Status, String, String) {
    (status, reason.to_owned(), message.to_owned())
}

#[test]
fn any_issue_makes_it_false_else_any_unknown_unknown_else_true() {
    use Status::{False, True, Unknown};
    let table = [
        ([True, True], True, "InfoReported"),
        ([True, Unknown], Unknown, "UnknownReported"),
        ([True, False], False, "IssuesReported"),
        ([Unknown, False], False, "IssuesReported"),
        ([Unknown, Unknown], Unknown, "UnknownReported"),
    ];
    for ([a, b], status, reason) in table {
        let object = machine("m").with("A", a, "R", "").with("B", b, "R", "");
        let draft = Summary::new("Ready").types(["A", "B"]).of(&object).expect("a summary");
        assert_eq!((draft.status, &*draft.reason), (status, reason), "{a} {b}");
    }
}

#[test]
fn issues_and_unknowns_are_listed_in_the_callers_order_and_good_conditions_are_not() {
    let object = machine("m")
        .with("A", Status::True, "R", "good news")
        .with("B", Status::Unknown, "R", "who knows")
        .with("C", Status::False, "R", "broken");
    let summary = Summary::new("Ready").types(["C", "A", "B"]);
    assert_eq!(
        reported(&summary, &object),
        expect(Status::False, "IssuesReported", "* C: broken\n* B: who knows")
    );
}

#[test]
fn the_reason_stands_in_where_the_message_is_empty() {
    let object = machine("m").with("A", Status::False, "DiskFull", "");
    let summary = Summary::new("Ready").types(["A"]);
    assert_eq!(reported(&summary, &object).2, "* A: DiskFull");
}

#[test]
fn when_all_is_well_only_good_conditions_with_a_message_are_listed() {
    let object = machine("m")
        .with("A", Status::True, "Reason", "")
        .with("B", Status::True, "R", "since noon");
    let summary = Summary::new("Ready").types(["A", "B"]);
    assert_eq!(
        reported(&summary, &object),
        expect(Status::True, "InfoReported", "* B: since noon")
    );
}

#[test]
fn a_missing_type_counts_as_unknown_not_yet_reported() {
    let object = machine("m").with("A", Status::True, "R", "");
    let summary = Summary::new("Ready").types(["A", "B"]);
    assert_eq!(
        reported(&summary, &object),
        expect(Status::Unknown, "UnknownReported", "* B: Condition not yet reported")
    );
}

#[test]
fn a_type_that_may_be_missing_counts_only_when_it_is_there() {
    let summary = Summary::new("Ready").types(["A", "B"]).ignore_if_missing(["B"]);
    let without = machine("m").with("A", Status::True, "R", "");
    assert_eq!(reported(&summary, &without).0, Status::True);
    let with = without.with("B", Status::False, "R", "");
    assert_eq!(reported(&summary, &with).0, Status::False);
}

#[test]
fn of_a_negative_type_true_is_the_issue() {
    let summary = Summary::new("Ready").types(["A", "ScalingUp"]).negative(["ScalingUp"]);
    let scaling = machine("m")
        .with("A", Status::True, "R", "")
        .with("ScalingUp", Status::True, "R", "from 1 to 3");
    assert_eq!(
        reported(&summary, &scaling),
        expect(Status::False, "IssuesReported", "* ScalingUp: from 1 to 3")
    );
    let still = machine("m")
        .with("A", Status::True, "R", "")
        .with("ScalingUp", Status::False, "R", "");
    assert_eq!(reported(&summary, &still).0, Status::True);
}

#[test]
fn conditions_outside_the_list_do_not_count() {
    let object = machine("m")
        .with("A", Status::True, "R", "")
        .with("Paused", Status::False, "R", "");
    assert_eq!(reported(&Summary::new("Ready").types(["A"]), &object).0, Status::True);
}

#[test]
fn a_message_of_several_lines_goes_below_indented_with_bullets_where_they_were_missing() {
    let table = [
        ("one line", "* A: one line"),
        ("first\nsecond", "* A:\n  * first\n  * second"),
        ("* first\n* second", "* A:\n  * first\n  * second"),
        ("* only", "* A:\n  * only"),
        (
            "head\n* first\n  * deeper",
            "* A:\n  * head\n    * first\n      * deeper",
        ),
        ("  * indented", "* A:\n    * indented"),
        ("ends with a break\n", "* A:\n  * ends with a break\n  * "),
        ("2 * 3", "* A:\n  2 * 3"),
        ("*bold* word", "* A:\n  *bold* word"),
        ("*.example.org", "* A: *.example.org"),
        ("a*", "* A: a*"),
    ];
    for (message, expected) in table {
        let object = machine("m").with("A", Status::False, "R", message);
        assert_eq!(
            reported(&Summary::new("Ready").types(["A"]), &object).2,
            expected,
            "{message:?}"
        );
    }
}

#[test]
fn an_override_stands_in_for_a_condition_and_the_object_keeps_its_own() {
    let object = machine("m")
        .with("A", Status::False, "R", "bad")
        .with("B", Status::True, "R", "");
    let summary = Summary::new("Ready")
        .types(["A", "B"])
        .overriding([Draft::new("A", Status::True, "Maintenance").message("known")]);
    assert_eq!(
        reported(&summary, &object),
        expect(Status::True, "InfoReported", "* A: known")
    );
    assert_eq!(object.conditions[0].status, "False");
}

#[test]
fn an_override_of_a_type_out_of_scope_changes_nothing() {
    let object = machine("m")
        .with("A", Status::True, "R", "")
        .with("B", Status::True, "R", "");
    let summary = Summary::new("Ready")
        .types(["A"])
        .overriding([Draft::new("B", Status::False, "R")]);
    assert_eq!(reported(&summary, &object).0, Status::True);
}

#[test]
fn a_summary_of_nothing_is_an_error() {
    let object = machine("m").with("A", Status::True, "R", "");
    let override_a = || Draft::new("A", Status::False, "R");
    let table = [
        (
            Summary::new("Ready"),
            MergeError::NoTypes,
            "option ForConditionTypes not provided or empty",
        ),
        (
            Summary::new("Ready").types(["A", "Ready"]),
            MergeError::TargetAmongTypes("Ready".into()),
            "option ForConditionTypes cannot include Ready (target condition type)",
        ),
        (
            Summary::new("Ready")
                .types(["A"])
                .overriding([override_a(), override_a()]),
            MergeError::OverrideTwice("A".into()),
            "override condition A specified multiple times",
        ),
        (
            Summary::new("Ready")
                .types(["A"])
                .overriding([Draft::new("B", Status::True, "R")]),
            MergeError::OverrideNotOnObject("B".into()),
            "override condition B must exist in source object",
        ),
        (
            Summary::new("Ready").types(["B"]).ignore_if_missing(["B"]),
            MergeError::NothingToSummarise,
            "summary can't be performed when the list of conditions to be summarized is empty",
        ),
    ];
    for (summary, error, words) in table {
        let found = summary.of(&object).expect_err(words);
        assert_eq!(found, error);
        assert_eq!(found.to_string(), words);
    }
}

#[test]
fn a_type_named_twice_is_listed_once_at_its_last_place() {
    let object = machine("m")
        .with("A", Status::False, "R", "a")
        .with("B", Status::False, "R", "b");
    let summary = Summary::new("Ready").types(["A", "B", "A"]);
    assert_eq!(reported(&summary, &object).2, "* B: b\n* A: a");
}

#[test]
fn reasons_can_be_named_or_computed() {
    let object = machine("m").with("A", Status::False, "DiskFull", "");
    let named = Standard::new().reasons("NotReady", "ReadyUnknown", "Ready");
    let computed = Standard::new().reason(|groups| {
        let first = groups.issues.first().expect("an issue");
        format!("{}Of{}And{}", first.reason, groups.unknown.len(), groups.info.len())
    });
    let summary = |strategy| Summary::new("Ready").types(["A", "B"]).strategy(strategy);
    assert_eq!(reported(&summary(&named), &object).1, "NotReady");
    assert_eq!(reported(&summary(&computed), &object).1, "DiskFullOf1And0");
}

#[test]
fn a_computed_reason_sees_the_conditions_in_the_callers_order() {
    let object = machine("m")
        .with("A", Status::False, "First", "")
        .with("B", Status::False, "Second", "");
    let first = Standard::new().reason(|groups| groups.issues[0].reason.to_owned());
    let summary = Summary::new("Ready").types(["B", "A"]).strategy(&first);
    assert_eq!(reported(&summary, &object).1, "Second");
}

#[test]
fn a_negative_target_is_true_when_something_is_wrong() {
    let strategy = Standard::new().target(Polarity::Negative);
    let summary = Summary::new("Degraded").types(["A"]).strategy(&strategy);
    let bad = machine("m").with("A", Status::False, "R", "broken");
    assert_eq!(
        reported(&summary, &bad),
        expect(Status::True, "IssuesReported", "* A: broken")
    );
    let good = machine("m").with("A", Status::True, "R", "fine");
    assert_eq!(reported(&summary, &good), expect(Status::False, "InfoReported", ""));
}

#[test]
fn a_caller_decides_what_is_an_issue_and_may_change_the_lines() {
    let patient = Standard::new()
        .priority(|c| {
            if c.reason == "Starting" {
                Priority::Info
            } else {
                Priority::Issue
            }
        })
        .lines(|lines| lines.into_iter().map(|line| line.to_uppercase()).collect());
    let summary = Summary::new("Ready").types(["A", "B"]).strategy(&patient);
    let object = machine("m")
        .with("A", Status::False, "Starting", "x")
        .with("B", Status::True, "Odd", "y");
    assert_eq!(
        reported(&summary, &object),
        expect(Status::False, "IssuesReported", "* B: Y")
    );
}

#[test]
fn a_strategy_of_the_callers_own_gets_what_is_expected_and_may_fail() {
    struct Strict;
    impl Strategy for Strict {
        fn merge(&self, operation: Operation, inputs: Vec<Input<'_>>, types: &[&str]) -> Result<Merged, MergeError> {
            assert_eq!(operation, Operation::Summary);
            assert_eq!((inputs.len(), types), (2, ["A", "B"].as_slice()));
            Err(MergeError::Strategy("no".into()))
        }
    }
    let object = machine("m").with("A", Status::True, "R", "");
    let summary = Summary::new("Ready").types(["A", "B"]).strategy(&Strict);
    assert_eq!(summary.of(&object), Err(MergeError::Strategy("no".into())));
    let empty = Standard::new().merge(Operation::Summary, vec![], &[]);
    assert_eq!(empty, Err(MergeError::Empty));
}

#[test]
fn a_summary_is_set_on_its_own_object_with_its_generation() {
    let mut object = machine("m").with("A", Status::True, "R", "");
    object.generation = 4;
    let summary = Summary::new("Ready").types(["A"]);
    assert_eq!(summary.set(&mut object, at(9)), Ok(Change::Status));
    assert_eq!(summary.set(&mut object, at(10)), Ok(Change::Nothing));
    assert_eq!(object.conditions[0].type_, "Ready");
    assert_eq!(object.conditions[0].observed_generation, Some(4));
}

#[test]
fn a_type_the_caller_did_not_order_stands_with_the_first() {
    let owner = Owner {
        kind: "Machine",
        name: "m",
        prominent: false,
    };
    let input = |type_| Input::missing(owner, type_, "m");
    let inputs = vec![input("C"), input("B"), input("Stranger"), input("A")];
    let merged = Standard::new()
        .merge(Operation::Summary, inputs, &["A", "B", "C"])
        .expect("a merge");
    assert_eq!(merged.message, "* Stranger: m\n* A: m\n* B: m\n* C: m");
}
