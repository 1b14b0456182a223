//! The laws, on random conditions.

use kube_status::severity::{self, Rules, Severity};
use kube_status::{
    Aggregate, Change, Condition, Draft, Negative, Order, Ownership, Patch, Status, Summary, Untyped, find, limits,
    set_in,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::thing::{Thing, at, machine};

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::True), Just(Status::False), Just(Status::Unknown)]
}

fn type_name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("Ready"),
        Just("Available"),
        Just("Paused"),
        Just("Deleting"),
        Just("A"),
        Just("B"),
        Just("C"),
        Just("D")
    ]
    .prop_map(str::to_owned)
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("* first\n* second".to_owned()),
        Just("first\n  * second".to_owned()),
        "[a-c]{1,2}",
        "\\PC{0,12}",
    ]
}

prop_compose! {
    fn draft()(type_ in type_name(), status in status(), reason in "[A-C]", message in words(), since in proptest::option::of(0i64..5))
        -> Draft<'static> {
        let draft = Draft::new(type_, status, reason).message(message);
        match since {
            Some(second) => draft.since(at(second)),
            None => draft,
        }
    }
}

prop_compose! {
    fn old_draft()(type_ in type_name(), choice in 0..5u8, reason in "[A-C]", message in words()) -> severity::Draft<'static> {
        match choice {
            0 => severity::Draft::good(type_),
            1 => severity::Draft::unknown(type_, reason, message),
            2 => severity::Draft::bad(type_, Severity::Error, reason, message),
            3 => severity::Draft::bad(type_, Severity::Info, reason, message),
            _ => severity::Draft::bad(Negative(type_), Severity::Warning, reason, message),
        }
    }
}

/// A list as a controller leaves it: set, so without doubles and in order.
fn list() -> impl Strategy<Value = Vec<Condition>> {
    proptest::collection::vec(draft(), 0..8).prop_map(|drafts| {
        let mut list = Vec::new();
        for draft in drafts {
            let _ = set_in(&mut list, draft, 1, at(1), &Order::STANDARD);
        }
        list
    })
}

fn old_list() -> impl Strategy<Value = Vec<severity::Condition>> {
    proptest::collection::vec(old_draft(), 0..8).prop_map(|drafts| {
        let mut list = Vec::new();
        for draft in drafts {
            let _ = severity::set_in(&mut list, draft, at(1), Rules::PROPOSAL);
        }
        list
    })
}

/// Objects, some of them without the condition.
fn crowd() -> impl Strategy<Value = Vec<Thing>> {
    let one = (
        prop_oneof![Just("Machine"), Just("Cluster"), Just("NetworkPolicy")],
        proptest::option::weighted(0.9, (status(), words())),
        0i64..4,
        proptest::bool::weighted(0.1),
    );
    proptest::collection::vec(one, 1..40).prop_map(|each| {
        let things = each
            .into_iter()
            .enumerate()
            .map(|(i, (kind, reported, second, prominent))| {
                let bare = crate::thing::thing(kind, &format!("n{i:02}"));
                let thing = match reported {
                    Some((status, message)) => bare.with_since("Ready", status, "R", &message, second),
                    None => bare,
                };
                if prominent { thing.prominent() } else { thing }
            });
        things.collect()
    })
}

/// Objects with messages of one word, so that the lines of the aggregate can be parsed.
fn plain_crowd() -> impl Strategy<Value = Vec<Thing>> {
    crowd().prop_map(|things| {
        things
            .into_iter()
            .map(|mut thing| {
                for condition in &mut thing.conditions {
                    condition.message = format!("w{}", condition.message.len() % 7);
                }
                thing
            })
            .collect()
    })
}

/// How many objects an aggregate's message speaks of: `* Kinds a, b, ... (2 more): words` and `And 3 Kinds ...`.
fn count_messages(message: &str) -> usize {
    let number = |text: &str| {
        text.split(' ')
            .next()
            .and_then(|n| n.parse::<usize>().ok())
            .expect("a number")
    };
    let line = |line: &str| {
        if let Some(rest) = line.strip_prefix("And ") {
            return number(rest);
        }
        let names = line
            .trim_start_matches("* ")
            .split_once(' ')
            .expect("a kind and names")
            .1;
        let names = names.split(':').next().expect("names before the colon");
        let more = names.split_once(", ... (").map_or(0, |(_, rest)| number(rest));
        names.split(", ").filter(|name| name.starts_with('n')).count() + more
    };
    message.lines().map(line).sum()
}

proptest! {
    // The default of 256 cases can be raised: PROPTEST_CASES=4096.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn set_is_idempotent(mut list in list(), draft in draft(), generation in 0i64..3, now in 0i64..9) {
        let _ = set_in(&mut list, draft.clone(), generation, at(now), &Order::STANDARD);
        let before = list.clone();
        prop_assert_eq!(set_in(&mut list, draft, generation, at(now + 1), &Order::STANDARD), Change::Nothing);
        prop_assert_eq!(list, before);
    }

    #[test]
    fn set_moves_the_time_exactly_when_the_status_turns(mut list in list(), draft in draft()) {
        let before = find(&list, &draft.type_).cloned();
        let change = set_in(&mut list, draft.clone(), 1, at(77), &Order::STANDARD);
        let after = find(&list, &draft.type_).expect("it was set").clone();
        match before {
            Some(before) if before.status == draft.status.as_str() => {
                prop_assert_eq!(&before.last_transition_time, &after.last_transition_time);
                prop_assert_eq!(change, if before == after { Change::Nothing } else { Change::Text });
            }
            _ => {
                prop_assert_eq!(after.last_transition_time.0, draft.since.unwrap_or(at(77)));
                prop_assert_eq!(change, Change::Status);
            }
        }
    }

    #[test]
    fn set_touches_no_other_condition_and_leaves_the_list_in_order(mut list in list(), draft in draft()) {
        let others = |list: &[Condition]| list.iter().filter(|c| c.type_ != draft.type_).cloned().collect::<Vec<_>>();
        let before = others(&list);
        let _ = set_in(&mut list, draft.clone(), 1, at(7), &Order::STANDARD);
        prop_assert_eq!(others(&list), before);
        prop_assert!(list.is_sorted_by(|a, b| Order::STANDARD.compare(&a.type_, &b.type_).is_le()));
    }

    #[test]
    fn generation_1_set_is_idempotent_and_moves_the_time_as_its_rules_say(
        mut list in old_list(), draft in old_draft(), go in any::<bool>()
    ) {
        let rules = if go { Rules::GO } else { Rules::PROPOSAL };
        let before = severity::find(&list, draft.type_()).cloned();
        let change = severity::set_in(&mut list, draft.clone(), at(77), rules);
        let after = severity::find(&list, draft.type_()).expect("it was set").clone();
        if let Some(before) = before {
            let moves = if go { !severity::same_state(&before, &after) } else { before.status() != after.status() };
            let expected = if moves { Some(at(77)) } else { before.last_transition_time() };
            prop_assert_eq!(after.last_transition_time(), expected);
            prop_assert_eq!(change.must_write(), !severity::same_state(&before, &after));
        }
        prop_assert_eq!(severity::set_in(&mut list, draft, at(99), rules), Change::Nothing);
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order_of_the_list(list in list(), seed in any::<u64>()) {
        let object = Thing { conditions: list, ..machine("m") };
        let mut transitioned = object.clone();
        shuffle(&mut transitioned.conditions, seed);
        let summary = Summary::new("Whole").types(["D", "B", "A", "Ready", "C"]).negative(["B"]);
        prop_assert_eq!(summary.of(&object), summary.of(&transitioned));
    }

    #[test]
    fn a_summary_is_never_good_over_an_issue_or_an_unknown(list in list()) {
        let object = Thing { conditions: list, ..machine("m") };
        let types = ["A", "B", "C", "D"];
        let ready = Summary::new("Whole").types(types).of(&object).expect("a summary");
        let all_true = types.iter().all(|t| kube_status::is_true(&object.conditions, t));
        prop_assert_eq!(ready.status == Status::True, all_true);
        let any_false = types.iter().any(|t| kube_status::is_false(&object.conditions, t));
        prop_assert_eq!(ready.status == Status::False, any_false);
    }

    #[test]
    fn an_aggregate_does_not_depend_on_the_order_of_the_objects_when_their_times_differ(
        mut things in crowd(), seed in any::<u64>()
    ) {
        // Between objects that turned in the same second the order of the list decides, as it does in Go.
        for (i, thing) in things.iter_mut().enumerate() {
            for condition in &mut thing.conditions {
                condition.last_transition_time.0 = at(i64::try_from(i).expect("a small index"));
            }
        }
        let whole: Vec<Thing> = things.into_iter().filter(|t| !t.conditions.is_empty()).collect();
        prop_assume!(!whole.is_empty());
        let mut transitioned = whole.clone();
        shuffle(&mut transitioned, seed);
        let aggregate = Aggregate::new("Ready");
        prop_assert_eq!(aggregate.of(&whole), aggregate.of(&transitioned));
    }

    #[test]
    fn an_aggregate_counts_every_object_that_matters_exactly_once(things in plain_crowd()) {
        let draft = Aggregate::new("Ready").of(&things).expect("an aggregate");
        let status = |t: &Thing| t.conditions.first().map_or(Status::Unknown, Status::of);
        let unwell = things.iter().filter(|t| status(t) != Status::True).count();
        let expected = if unwell > 0 { unwell } else { things.len() };
        prop_assert_eq!(count_messages(&draft.message), expected, "{}", draft.message);
    }

    #[test]
    fn an_aggregate_reports_at_most_three_messages(things in plain_crowd()) {
        let draft = Aggregate::new("Ready").of(&things).expect("an aggregate");
        prop_assert!(draft.message.lines().filter(|line| line.starts_with("* ")).count() <= 3);
    }

    #[test]
    fn a_patch_applied_to_where_it_began_gives_where_it_ended(before in list(), drafts in proptest::collection::vec(draft(), 0..4), gone in type_name()) {
        let mut after = before.clone();
        for draft in once_each(drafts, |d| d.type_.to_string()) {
            let _ = set_in(&mut after, draft, 1, at(5), &Order::STANDARD);
        }
        let _ = kube_status::remove(&mut after, &gone);
        let mut latest = before.clone();
        let change = Patch::between(&before, &after).apply(&mut latest, &Ownership::none(), at(9)).expect("nobody else wrote");
        prop_assert_eq!(&latest, &after);
        prop_assert_eq!(change.must_write(), before != after);
    }

    #[test]
    fn a_patch_of_generation_1_applied_to_where_it_began_gives_where_it_ended(
        before in old_list(), drafts in proptest::collection::vec(old_draft(), 0..4)
    ) {
        let mut after = before.clone();
        for draft in once_each(drafts, |d| d.type_().to_owned()) {
            let _ = severity::set_in(&mut after, draft, at(5), Rules::PROPOSAL);
        }
        let mut latest = before.clone();
        let _ = Patch::between(&before, &after).apply(&mut latest, &Ownership::none(), at(9)).expect("nobody else wrote");
        prop_assert_eq!(latest, after);
    }

    #[test]
    fn patches_of_disjoint_types_commute(base in list(), one in draft(), other in draft()) {
        prop_assume!(one.type_ != other.type_);
        let changed = |draft: Draft<'static>| {
            let mut after = base.clone();
            let _ = set_in(&mut after, draft, 2, at(5), &Order::STANDARD);
            Patch::between(&base, &after)
        };
        let (first, second) = (changed(one), changed(other));
        let apply = |a: &Patch, b: &Patch| {
            let mut list = base.clone();
            let _ = a.apply(&mut list, &Ownership::none(), at(9)).expect("disjoint");
            let _ = b.apply(&mut list, &Ownership::none(), at(9)).expect("disjoint");
            list
        };
        prop_assert_eq!(apply(&first, &second), apply(&second, &first));
    }

    #[test]
    fn a_change_of_another_writer_is_never_overwritten_unless_the_type_is_owned(
        base in list(), ours in proptest::collection::vec(draft(), 1..4), theirs in proptest::collection::vec(draft(), 1..4), owned in type_name()
    ) {
        let changed = |drafts: Vec<Draft<'static>>, generation| {
            let mut after = base.clone();
            for draft in drafts {
                let _ = set_in(&mut after, draft, generation, at(5), &Order::STANDARD);
            }
            after
        };
        let (mine, latest) = (changed(ours, 2), changed(theirs, 3));
        let mut result = latest.clone();
        let applied = Patch::between(&base, &mine).apply(&mut result, &Ownership::of([owned.as_str()]), at(9));
        for theirs in latest.iter().filter(|c| c.type_ != owned && find(&base, &c.type_) != Some(c)) {
            let kept = find(&result, &theirs.type_);
            prop_assert_eq!(kept, Some(theirs), "applied: {:?}", &applied);
        }
        if applied.is_err() {
            prop_assert_eq!(result, latest);
        }
    }

    #[test]
    fn texts_that_leave_the_process_keep_within_the_limits_and_whole_in_their_characters(text in "\\PC{0,2000}", times in 1usize..40) {
        let long = text.repeat(times);
        let message = limits::cut_message(&long);
        let note = limits::cut_note(&long);
        prop_assert!(message.len() <= 32_768 && note.len() <= 1_024);
        let kept = note.strip_suffix("...").unwrap_or(&note);
        prop_assert!(long.starts_with(kept));
    }

    #[test]
    fn reading_any_json_never_panics_and_never_drops_a_condition(value in json(), at_path in 0..4u8) {
        let object = match at_path {
            0 => value,
            1 => serde_json::json!({"status": value}),
            2 => serde_json::json!({"status": {"conditions": value}}),
            _ => serde_json::json!({"status": {"v1beta2": {"conditions": value}}}),
        };
        if let Ok(read) = Untyped::<Condition>::read(&object) {
            let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).map_or(0, Vec::len);
            let listed = match count("/status/v1beta2/conditions") {
                0 => count("/status/conditions"),
                some => some,
            };
            prop_assert_eq!(kube_status::Conditioned::conditions(&read).len(), listed);
        }
        let _ = Untyped::<severity::Condition>::read_at(&object, kube_status::Location::STATUS);
        let _ = serde_json::from_value::<Condition>(object.clone());
        let _ = serde_json::from_value::<severity::Condition>(object);
    }

    #[test]
    fn both_generations_survive_a_way_through_json(list in list(), old in old_list()) {
        let text = serde_json::to_string(&(&list, &old)).expect("JSON");
        let back: (Vec<Condition>, Vec<severity::Condition>) = serde_json::from_str(&text).expect("the same");
        prop_assert_eq!(back, (list, old));
    }
}

/// A condition that turns and turns back before anybody saw it keeps its time: the law holds for one word on each type.
fn once_each<D>(drafts: Vec<D>, type_of: impl Fn(&D) -> String) -> Vec<D> {
    let mut observed = std::collections::HashSet::new();
    drafts
        .into_iter()
        .filter(|draft| observed.insert(type_of(draft)))
        .collect()
}

/// JSON that is often nearly a list of conditions.
fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just("True"),
            Just("False"),
            Just("Maybe"),
            Just(""),
            Just("2026-02-05T10:00:00Z")
        ]
        .prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("type"),
        Just("status"),
        Just("reason"),
        Just("message"),
        Just("lastTransitionTime"),
        Just("severity"),
        Just("observedGeneration"),
        Just("conditions"),
        Just("v1beta2"),
        Just("other")
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::hash_map(key.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A permutation that depends on the seed alone.
fn shuffle<T>(items: &mut [T], mut seed: u64) {
    for i in (1..items.len()).rev() {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let bound = u64::try_from(i + 1).expect("a length");
        items.swap(i, usize::try_from((seed >> 33) % bound).expect("below the length"));
    }
}

/// A summary or an aggregate is built once and shared by concurrent reconciles.
#[test]
fn builders_are_send_and_sync() {
    fn shared<T: Send + Sync>() {}
    shared::<kube_status::Summary<'static>>();
    shared::<kube_status::Aggregate<'static>>();
    shared::<kube_status::Mirror<'static>>();
    shared::<kube_status::merge::Standard<'static>>();
    shared::<kube_status::severity::Summary<'static>>();
    shared::<kube_status::severity::Aggregate<'static>>();
    shared::<kube_status::severity::Mirror<'static>>();
    shared::<kube_status::Ownership<'static>>();
    shared::<kube_status::Run<'static>>();
}
