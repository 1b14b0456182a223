//! Generation 2 with severities: the rules are those of the plain condition, and a severity stands only beside what is
//! bad.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_status::merge::{Input, MergeError, Merged, Operation, Strategy as Merging};
use kube_status::severity::Severity::{self, Error, Info, Warning};
use kube_status::tree::{Node, Tone};
use kube_status::{
    Aggregate, Allowance, Change, Condition, Conditioned, Draft, GradedCondition, Location, Mirror, Negative, Order,
    Ownership, Patch, Phase, Polarity, Reason, Run, SignedDuration, Status, Summary, Untyped, find, same_state, set,
    set_in,
};
use proptest::prelude::*;
use serde_json::json;

use crate::thing::{Thing, at, bare, machine};

type Graded = Thing<GradedCondition>;

fn graded(name: &str) -> Graded {
    bare("Machine", name)
}

fn with(mut object: Graded, draft: Draft<'_>) -> Graded {
    let _ = set(&mut object, draft, at(0));
    object
}

fn severity(object: &Graded, type_: &str) -> Option<Severity> {
    find(&object.conditions, type_).expect(type_).severity()
}

/// Why a network is not there.
#[derive(Clone, Copy, Debug, Reason)]
enum Why {
    /// It is being made.
    #[reason(severity = Info, expected = "10m")]
    Provisioning,
    /// The provider refused it.
    #[reason(severity = Warning)]
    Rejected,
    /// It is not said how bad this is.
    Gone,
}

#[test]
fn a_severity_stands_exactly_while_the_condition_is_bad() {
    for (draft, expected) in [
        (Draft::bad("A", (Warning, "R")), Some(Warning)),
        (Draft::good("A", "R"), None),
        (Draft::bad(Negative("A"), (Info, "R")), Some(Info)),
        (Draft::good(Negative("A"), "R"), None),
        (Draft::unknown("A", "R"), None),
        (Draft::new("A", Status::False, "R"), None),
    ] {
        let from_nothing = with(graded("m"), draft.clone());
        let from_bad = with(with(graded("m"), Draft::bad("A", (Error, "Before"))), draft.clone());
        assert_eq!(severity(&from_nothing, "A"), expected, "{draft:?}");
        assert_eq!(severity(&from_bad, "A"), expected, "{draft:?}");
    }
}

#[test]
fn a_declared_reason_brings_its_severity_and_one_that_has_none_is_an_error() {
    for (reason, expected) in [(Why::Provisioning, Info), (Why::Rejected, Warning), (Why::Gone, Error)] {
        assert_eq!(
            severity(&with(graded("m"), Draft::bad("A", reason)), "A"),
            Some(expected)
        );
    }
    assert_eq!(
        severity(&with(graded("m"), Draft::bad("A", String::from("R"))), "A"),
        Some(Error)
    );
}

#[test]
fn an_info_that_lasts_longer_than_expected_becomes_a_warning_and_the_time_stays() {
    let mut object = with(graded("m"), Draft::bad("A", Why::Provisioning));
    let minutes = |n| at(0) + SignedDuration::from_mins(n);
    assert_eq!(
        set(&mut object, Draft::bad("A", Why::Provisioning), minutes(10)),
        Change::Nothing
    );
    assert_eq!(
        set(&mut object, Draft::bad("A", Why::Provisioning), minutes(11)),
        Change::Text
    );
    assert_eq!(severity(&object, "A"), Some(Warning));
    assert_eq!(object.conditions[0].last_transition_time.0, at(0));
    let _ = set(&mut object, Draft::good("A", "Up"), minutes(12));
    let _ = set(&mut object, Draft::bad("A", Why::Provisioning), minutes(13));
    assert_eq!(severity(&object, "A"), Some(Info), "it counts from when it turned");
}

#[test]
fn another_severity_alone_is_a_change_of_text() {
    let mut object = with(graded("m"), Draft::bad("A", (Info, "R")));
    assert_eq!(set(&mut object, Draft::bad("A", (Error, "R")), at(9)), Change::Text);
    assert_eq!(object.conditions[0].last_transition_time.0, at(0));
    let other = with(graded("m"), Draft::bad("A", (Info, "R")));
    assert!(!same_state(&object.conditions[0], &other.conditions[0]));
}

#[test]
fn a_summary_has_the_worst_severity_of_its_issues() {
    let ready = |drafts: &[Draft<'static>]| {
        let object = drafts.iter().cloned().fold(graded("m"), with);
        let mut object = with(object, Draft::good("Z", "Up"));
        let summary = Summary::new("Ready")
            .types(["A", "B", "Z"])
            .ignore_if_missing(["A", "B"]);
        let summary = summary.negative(["B"]);
        let _ = summary.set(&mut object, at(1)).expect("a summary");
        severity(&object, "Ready")
    };
    let (info, warning) = (Draft::bad("A", (Info, "R")), Draft::bad(Negative("B"), (Warning, "R")));
    assert_eq!(ready(&[info.clone(), warning]), Some(Warning));
    assert_eq!(ready(std::slice::from_ref(&info)), Some(Info));
    assert_eq!(
        ready(&[info, Draft::new("B", Status::True, "Silent")]),
        Some(Error),
        "not said is an error"
    );
    assert_eq!(ready(&[]), None);
    assert_eq!(ready(&[Draft::unknown("A", "R")]), None, "what is unknown is not bad");
}

#[test]
fn an_aggregate_has_the_worst_severity_and_that_of_plain_objects_is_an_error() {
    let machines = [
        with(graded("a"), Draft::bad("Ready", (Info, "R"))),
        with(graded("b"), Draft::bad("Ready", (Warning, "R"))),
    ];
    let mut owner = graded("set");
    let aggregate = Aggregate::new("Ready").target("MachinesReady");
    let _ = aggregate.set(&machines, &mut owner, at(1)).expect("machines");
    assert_eq!(severity(&owner, "MachinesReady"), Some(Warning));
    let plain = [machine("a").with("Ready", Status::False, "Down", "")];
    let _ = aggregate.set(&plain, &mut owner, at(1)).expect("machines");
    assert_eq!(severity(&owner, "MachinesReady"), Some(Error));
    let scaling = [with(graded("a"), Draft::bad(Negative("ScalingUp"), (Info, "R")))];
    let negative = Aggregate::new("ScalingUp").polarity(Polarity::Negative);
    let _ = negative.set(&scaling, &mut owner, at(1)).expect("machines");
    assert_eq!(severity(&owner, "ScalingUp"), Some(Info));
}

#[test]
fn more_objects_than_allowed_are_a_warning() {
    let machines = [with(graded("a"), Draft::good("Ready", "Up"))];
    let objects = machines.iter().map(|machine| (machine, Phase::Steady));
    let draft = Aggregate::new("Ready")
        .of_during(objects, &Allowance::new(0))
        .expect("machines");
    assert_eq!((draft.status, draft.severity()), (Status::False, Some(Warning)));
}

#[test]
fn a_custom_strategy_can_set_the_severity() {
    struct Careful;
    impl Merging for Careful {
        fn merge(&self, _: Operation, inputs: Vec<Input<'_>>, _: &[&str]) -> Result<Merged, MergeError> {
            let worst = inputs.iter().filter_map(|c| c.severity).min();
            Ok(match worst {
                Some(Error) => Merged::bad(Polarity::Positive, Error, "Broken", ""),
                _ => Merged::new(Status::True, "GoodEnough", ""),
            })
        }
    }
    let summary = Summary::new("Ready").types(["A"]).strategy(&Careful);
    let reported = |severity| {
        let draft = summary
            .of(&with(graded("m"), Draft::bad("A", (severity, "R"))))
            .expect("a summary");
        (draft.status, draft.severity())
    };
    assert_eq!(reported(Error), (Status::False, Some(Error)));
    assert_eq!(reported(Info), (Status::True, None));
}

#[test]
fn a_mirror_carries_the_severity_on() {
    let infra = with(graded("infra"), Draft::bad("Ready", (Warning, "Slow")));
    let mut cluster = graded("cluster");
    let _ = Mirror::new("Ready")
        .target("InfrastructureReady")
        .set(&infra, &mut cluster, at(5));
    assert_eq!(severity(&cluster, "InfrastructureReady"), Some(Warning));
}

#[test]
fn a_run_starts_as_information() {
    let mut object = graded("kcp");
    let _ = Run::new(["UpgradeSucceeded"]).start(&mut object, "", at(0));
    assert_eq!(severity(&object, "UpgradeSucceeded"), Some(Info));
}

#[test]
fn a_patch_sees_a_severity_that_differs_and_names_it() {
    let one = |severity| vec![Draft::bad("A", (severity, "R")).into_graded(1, at(0))];
    let patch = Patch::between(&one(Info), &one(Warning));
    let mut latest = one(Error);
    let conflict = patch
        .apply(&mut latest, &Ownership::none(), at(9))
        .expect_err("somebody else said Error");
    assert!(
        conflict
            .to_string()
            .ends_with(r#"severity: latest "Error", desired "Warning""#),
        "{conflict}"
    );
    assert_eq!(patch.apply(&mut latest, &Ownership::of(["A"]), at(9)), Ok(Change::Text));
    assert_eq!(latest, one(Warning));
}

#[derive(Clone, Debug, Default)]
struct CacheStatus {
    conditions: Vec<GradedCondition>,
}

#[derive(Clone, Debug, Default, Conditioned)]
#[conditioned(graded)]
struct Cache {
    metadata: ObjectMeta,
    status: Option<CacheStatus>,
}

#[test]
fn the_derive_joins_an_object_with_severities() {
    let mut cache = Cache::default();
    assert_eq!(
        set(&mut cache, Draft::bad("Ready", Why::Rejected), at(0)),
        Change::Status
    );
    assert_eq!(cache.conditions()[0].severity(), Some(Warning));
    let none = Cache { status: None, ..cache };
    assert!(none.conditions().is_empty());
}

#[test]
fn an_untyped_object_keeps_its_severities_and_an_invalid_one_is_an_error() {
    let object = |severity: &str| {
        json!({"kind": "Cache", "metadata": {"name": "c"}, "status": {"conditions": [
            {"type": "Ready", "status": "False", "severity": severity, "reason": "R", "message": "",
             "lastTransitionTime": "2026-02-05T10:00:00Z"},
        ]}})
    };
    let read = |severity| Untyped::<GradedCondition>::read_at(&object(severity), Location::STATUS);
    let cache = read("Warning").expect("a good object");
    assert_eq!(cache.conditions()[0].severity(), Some(Warning));
    let mut back = object("Warning");
    cache.write_to(&mut back).expect("the same place");
    assert_eq!(back, object("Warning"));
    assert_eq!(
        read("").expect("an empty word is none").conditions()[0].severity(),
        None
    );
    let error = read("Fatal").expect_err("no such severity").to_string();
    assert_eq!(
        error,
        r#"Cache "c": status.conditions[0].severity: "Fatal" is none of Error, Warning, Info"#
    );
}

#[test]
fn the_tree_takes_its_colour_from_the_severity() {
    let list = [Draft::bad("Ready", (Info, "Starting")).into_graded(1, at(0))];
    assert_eq!(Node::new("Cache", "c").conditions(&list, &[]).lines[0].tone, Tone::Info);
}

fn stated() -> impl Strategy<Value = Draft<'static>> {
    let severity = prop_oneof![Just(Error), Just(Warning), Just(Info)];
    let type_ = prop_oneof![Just("Ready"), Just("A"), Just("B")];
    (type_, 0..4, severity, "[A-C]", "[x-z]?").prop_map(|(type_, kind, severity, reason, message)| {
        let draft = match kind {
            0 => Draft::good(type_, reason),
            1 => Draft::unknown(type_, reason),
            2 => Draft::bad(type_, (severity, reason)),
            _ => Draft::new(type_, Status::False, reason),
        };
        draft.message(message)
    })
}

proptest! {
    #[test]
    fn but_for_its_severities_a_graded_list_is_the_plain_list(drafts in proptest::collection::vec(stated(), 0..12)) {
        let (mut plain, mut graded) = (Vec::<Condition>::new(), Vec::<GradedCondition>::new());
        for (second, draft) in (0..).zip(drafts) {
            let one = set_in(&mut plain, draft.clone(), 1, at(second), &Order::STANDARD);
            let other = set_in(&mut graded, draft.clone(), 1, at(second), &Order::STANDARD);
            prop_assert!(one == other || (one, other) == (Change::Nothing, Change::Text));
            let stored = find(&graded, &draft.type_).expect("it was just set");
            prop_assert_eq!(stored.severity(), draft.severity());
            let again = set_in(&mut graded, draft, 1, at(second), &Order::STANDARD);
            prop_assert_eq!(again, Change::Nothing);
        }
        for condition in &graded {
            prop_assert!(condition.severity().is_none() || condition.status == "False");
        }
        let text = serde_json::to_string(&graded).expect("JSON");
        prop_assert_eq!(&serde_json::from_str::<Vec<GradedCondition>>(&text).expect("the same"), &graded);
        prop_assert_eq!(graded.into_iter().map(GradedCondition::into_plain).collect::<Vec<_>>(), plain);
    }

    #[test]
    fn a_patch_of_graded_conditions_applied_to_where_it_began_gives_where_it_ended(
        first in proptest::collection::vec(stated(), 0..5), second in proptest::collection::vec(stated(), 0..5)
    ) {
        let list = |drafts: Vec<Draft<'static>>, mut list: Vec<GradedCondition>, second| {
            for draft in drafts {
                let _ = set_in(&mut list, draft, 1, at(second), &Order::STANDARD);
            }
            list
        };
        let before = list(first, Vec::new(), 0);
        // One change of a type only: two turns within one reconcile have a time that no patch can know.
        let mut observed = std::collections::HashSet::new();
        let second = second.into_iter().filter(|d| observed.insert(d.type_.clone())).collect();
        let after = list(second, before.clone(), 5);
        let mut latest = before.clone();
        let _ = Patch::between(&before, &after).apply(&mut latest, &Ownership::none(), at(9)).expect("nobody else wrote");
        prop_assert_eq!(latest, after);
    }
}
