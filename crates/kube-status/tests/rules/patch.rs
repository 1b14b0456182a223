//! The three-way patch, both generations.

use kube_status::severity::{self, Rules, Severity};
use kube_status::{Change, Condition, Conflict, Draft, Order, Ownership, Patch, PatchOperation, PatchVerb, Status};

use crate::thing::at;

fn condition(type_: &str, status: Status, reason: &str, second: i64) -> Condition {
    Draft::new(type_.to_owned(), status, reason.to_owned()).into_condition(1, at(second))
}

fn apply(
    before: &[Condition],
    after: &[Condition],
    latest: &[Condition],
    ownership: &Ownership<'_>,
) -> Result<Vec<Condition>, Conflict> {
    let mut list = latest.to_vec();
    let result = Patch::between(before, after).apply(&mut list, ownership, at(1000));
    if result.is_err() {
        assert_eq!(list, latest, "a failed patch leaves the latest untouched");
    }
    result.map(|_| list)
}

#[test]
fn the_operations_are_additions_and_changes_in_order_then_removals() {
    let (a, b, c) = (
        condition("A", Status::True, "R", 0),
        condition("B", Status::True, "R", 0),
        condition("C", Status::True, "R", 0),
    );
    let b2 = condition("B", Status::False, "R", 5);
    let d = condition("D", Status::True, "R", 0);
    let patch = Patch::between(&[a.clone(), b.clone(), c.clone()], &[c, d.clone(), b2.clone()]);
    assert_eq!(
        patch.operations(),
        [
            PatchOperation::Add { after: d },
            PatchOperation::Change { before: b, after: b2 },
            PatchOperation::Remove { before: a },
        ]
    );
}

#[test]
fn nothing_changed_is_nothing_to_do() {
    let list = [condition("A", Status::True, "R", 0)];
    let patch = Patch::between(&list, &list);
    assert!(patch.is_empty());
    let mut latest = vec![
        condition("Z", Status::True, "R", 0),
        condition("B", Status::True, "R", 0),
    ];
    assert_eq!(
        patch.apply(&mut latest, &Ownership::force(), at(1)),
        Ok(Change::Nothing)
    );
    assert_eq!(latest[0].type_, "Z", "not even sorted");
}

#[test]
fn conditions_of_other_writers_stay() {
    let ours = condition("Ready", Status::True, "Up", 10);
    let theirs = condition("Paused", Status::True, "Asked", 20);
    let result = apply(
        &[],
        std::slice::from_ref(&ours),
        std::slice::from_ref(&theirs),
        &Ownership::none(),
    );
    assert_eq!(result, Ok(vec![ours, theirs]));
}

#[test]
fn both_added_the_same_and_the_latest_time_stands() {
    let ours = condition("A", Status::True, "R", 10);
    let theirs = condition("A", Status::True, "R", 5);
    let result = apply(&[], &[ours], std::slice::from_ref(&theirs), &Ownership::none());
    assert_eq!(result, Ok(vec![theirs]));
}

#[test]
fn two_different_additions_are_a_conflict_that_names_the_difference() {
    let (ours, theirs) = (
        condition("A", Status::True, "R", 10),
        condition("A", Status::False, "R", 5),
    );
    let conflict = apply(&[], &[ours], &[theirs], &Ownership::none()).expect_err("a conflict");
    assert_eq!(conflict.type_name(), "A");
    assert_eq!(
        conflict.to_string(),
        "error patching conditions: The condition \"A\" was modified by a different process and this caused a \
         merge/AddCondition conflict: status: latest \"False\", desired \"True\""
    );
}

#[test]
fn a_change_of_a_condition_changed_by_another_writer_is_a_conflict() {
    let before = condition("A", Status::True, "R", 0);
    let (ours, theirs) = (
        condition("A", Status::False, "Ours", 10),
        condition("A", Status::False, "Theirs", 5),
    );
    let conflict =
        apply(std::slice::from_ref(&before), &[ours], &[theirs], &Ownership::none()).expect_err("a conflict");
    assert!(matches!(
        conflict,
        Conflict::Modified {
            verb: PatchVerb::Change,
            ..
        }
    ));
    assert!(
        conflict
            .to_string()
            .contains("merge/ChangeCondition conflict: reason: latest \"Theirs\", desired \"Ours\"")
    );
}

#[test]
fn a_change_of_a_condition_deleted_by_another_writer_is_a_conflict() {
    let before = condition("A", Status::True, "R", 0);
    let conflict = apply(
        &[before],
        &[condition("A", Status::False, "R", 10)],
        &[],
        &Ownership::none(),
    );
    assert_eq!(
        conflict.expect_err("a conflict").to_string(),
        "error patching conditions: The condition \"A\" was deleted by a different process and this caused a \
         merge/ChangeCondition conflict"
    );
}

#[test]
fn both_made_the_same_change_and_the_latest_stands() {
    let before = condition("A", Status::True, "R", 0);
    let (ours, theirs) = (
        condition("A", Status::False, "R", 10),
        condition("A", Status::False, "R", 5),
    );
    assert_eq!(
        apply(&[before], &[ours], std::slice::from_ref(&theirs), &Ownership::none()),
        Ok(vec![theirs])
    );
}

#[test]
fn removing_a_condition_changed_by_another_writer_is_a_conflict_and_a_missing_one_is_not() {
    let before = condition("A", Status::True, "R", 0);
    let changed = condition("A", Status::False, "R", 5);
    let conflict = apply(std::slice::from_ref(&before), &[], &[changed], &Ownership::none()).expect_err("a conflict");
    assert!(matches!(
        conflict,
        Conflict::Modified {
            verb: PatchVerb::Remove,
            ..
        }
    ));
    assert_eq!(
        apply(std::slice::from_ref(&before), &[], &[], &Ownership::none()),
        Ok(vec![])
    );
    assert_eq!(
        apply(
            std::slice::from_ref(&before),
            &[],
            std::slice::from_ref(&before),
            &Ownership::none()
        ),
        Ok(vec![])
    );
}

#[test]
fn an_owned_type_or_force_wins_without_a_conflict() {
    let before = condition("A", Status::True, "R", 0);
    let ours = condition("A", Status::False, "Ours", 10);
    let theirs = condition("A", Status::Unknown, "Theirs", 5);
    for ownership in [Ownership::of(["A"]), Ownership::force()] {
        let won = Ok(vec![ours.clone()]);
        let (was, is, now) = (
            std::slice::from_ref(&before),
            std::slice::from_ref(&ours),
            std::slice::from_ref(&theirs),
        );
        assert_eq!(apply(&[], is, now, &ownership), won);
        assert_eq!(apply(was, is, now, &ownership), won);
        assert_eq!(apply(was, is, &[], &ownership), won);
        assert_eq!(apply(was, &[], now, &ownership), Ok(vec![]));
    }
    let other = Ownership::of(["B"]);
    assert!(apply(&[], &[ours], &[theirs], &other).is_err());
}

#[test]
fn even_a_forced_change_keeps_the_latest_time_while_the_status_is_equal() {
    let ours = condition("A", Status::True, "Ours", 10);
    let theirs = condition("A", Status::True, "Theirs", 5);
    let result = apply(&[], &[ours], &[theirs], &Ownership::force()).expect("forced");
    assert_eq!(
        (result[0].reason.as_str(), result[0].last_transition_time.0),
        ("Ours", at(5))
    );
}

#[test]
fn a_condition_that_changed_and_changed_back_before_a_write_keeps_its_time() {
    let (before, after) = (
        condition("A", Status::True, "R", 0),
        condition("A", Status::True, "R", 50),
    );
    let (was, is) = (std::slice::from_ref(&before), std::slice::from_ref(&after));
    assert_eq!(apply(was, is, was, &Ownership::none()), Ok(vec![before.clone()]));
}

#[test]
fn a_patch_that_fails_late_has_written_nothing() {
    let (a, b) = (
        condition("A", Status::True, "R", 0),
        condition("B", Status::True, "Ours", 0),
    );
    let theirs = condition("B", Status::False, "Theirs", 0);
    let mut latest = vec![theirs.clone()];
    let patch = Patch::between(&[], &[a, b]);
    assert!(patch.apply(&mut latest, &Ownership::none(), at(1)).is_err());
    assert_eq!(latest, [theirs]);
}

#[test]
fn the_result_is_sorted_and_the_change_is_returned() {
    let mut latest = vec![condition("Zeta", Status::True, "R", 0)];
    let added = [condition("Alpha", Status::True, "R", 0)];
    assert_eq!(
        Patch::between(&[], &added).apply(&mut latest, &Ownership::none(), at(1)),
        Ok(Change::Status)
    );
    assert_eq!(latest[0].type_, "Alpha");
    let text = [condition("Alpha", Status::True, "Other", 0)];
    assert_eq!(
        Patch::between(&added, &text).apply(&mut latest, &Ownership::none(), at(1)),
        Ok(Change::Text)
    );
    let order = Ownership::none().order(Order::new(&["Zeta"], &[]));
    let gone = Patch::between(&text, &[]).apply(&mut latest, &order, at(1));
    assert_eq!((gone, latest.len()), (Ok(Change::Status), 1));
}

#[test]
fn generation_1_conflicts_name_the_severity_too() {
    let condition = |severity| severity::Draft::bad("A", severity, "R", "").into_condition(at(0));
    let mut latest = vec![condition(Severity::Error)];
    let patch = Patch::between(&[], &[condition(Severity::Info)]);
    let conflict = patch
        .apply(&mut latest, &Ownership::none(), at(1))
        .expect_err("a conflict");
    assert!(
        conflict
            .to_string()
            .ends_with("AddCondition conflict: severity: latest \"Error\", desired \"Info\"")
    );
}

#[test]
fn generation_1_moves_the_time_of_a_forced_change_as_its_rules_say() {
    let condition =
        |reason: &'static str, second| severity::Draft::bad("A", Severity::Info, reason, "").into_condition(at(second));
    for (rules, since) in [(Rules::PROPOSAL, 5), (Rules::GO, 1000)] {
        let mut latest = vec![condition("Theirs", 5)];
        let patch = Patch::between(&[], &[condition("Ours", 10)]);
        let change = patch.apply(&mut latest, &Ownership::force().rules(rules), at(1000));
        assert_eq!(change, Ok(Change::Text));
        assert_eq!(latest[0].last_transition_time(), Some(at(since)), "{rules:?}");
    }
}

#[test]
fn a_patch_has_the_time_of_a_status_change() {
    let (before, after) = (
        condition("A", Status::True, "R", 0),
        condition("A", Status::False, "R", 10),
    );
    let mut latest = vec![before.clone()];
    let patch = Patch::between(&[before], std::slice::from_ref(&after));
    assert_eq!(
        patch.apply(&mut latest, &Ownership::none(), at(1000)),
        Ok(Change::Status)
    );
    assert_eq!(latest, [after]);
}

#[test]
fn generation_1_follows_the_same_rules_of_conflict() {
    let good = |second| severity::Draft::good("A").into_condition(at(second));
    let bad = |second| severity::Draft::bad("A", Severity::Info, "R", "").into_condition(at(second));
    let apply = |before: &[severity::Condition], after: &[severity::Condition], latest: &[severity::Condition]| {
        let mut list = latest.to_vec();
        let change = Patch::between(before, after).apply(&mut list, &Ownership::none(), at(1000));
        change.map(|change| (change, list))
    };
    assert_eq!(
        apply(&[good(0)], &[bad(5)], &[good(0)]),
        Ok((Change::Status, vec![bad(5)]))
    );
    assert_eq!(apply(&[good(0)], &[good(0)], &[]), Ok((Change::Nothing, vec![])));
    assert_eq!(apply(&[], &[bad(5)], &[bad(1)]), Ok((Change::Nothing, vec![bad(1)])));
    assert!(apply(&[], &[bad(5)], &[good(1)]).is_err());
    assert!(apply(&[good(0)], &[bad(5)], &[]).is_err());
    assert!(apply(&[good(0)], &[], &[bad(1)]).is_err());
    assert_eq!(apply(&[good(0)], &[], &[good(0)]), Ok((Change::Status, vec![])));
}

#[test]
fn a_patch_that_only_puts_the_list_in_order_must_be_written() {
    let (alpha, zeta) = (
        condition("Alpha", Status::True, "R", 0),
        condition("Zeta", Status::True, "R", 0),
    );
    let mut latest = vec![zeta.clone(), alpha.clone()];
    let agreed = Patch::between(&[], std::slice::from_ref(&zeta));
    assert_eq!(agreed.apply(&mut latest, &Ownership::none(), at(1)), Ok(Change::Text));
    assert_eq!(latest, [alpha, zeta]);
    assert_eq!(
        agreed.apply(&mut latest, &Ownership::none(), at(1)),
        Ok(Change::Nothing)
    );
}

#[test]
fn a_patch_that_the_latest_has_already_changes_nothing_unless_it_puts_the_list_in_order() {
    let at = jiff::Timestamp::UNIX_EPOCH;
    let stored = |type_| Draft::new(type_, Status::True, "Up").into_condition(1, at);
    let (alpha, beta) = (stored("Alpha"), stored("Beta"));
    let patch = Patch::between(&[], std::slice::from_ref(&alpha));

    let mut in_order = vec![alpha.clone(), beta.clone()];
    let change = patch.apply(&mut in_order, &Ownership::none(), at).expect("both agree");
    assert_eq!(change, Change::Nothing);

    let mut out_of_order = vec![beta, alpha];
    let change = patch
        .apply(&mut out_of_order, &Ownership::none(), at)
        .expect("both agree");
    assert_eq!(change, Change::Text);
    assert_eq!(out_of_order, in_order);
}

#[test]
fn a_patch_returns_whether_text_or_status_changed() {
    let before = [condition("A", Status::True, "Up", 0)];
    let words = [condition("A", Status::True, "StillUp", 0)];
    let transitioned = [condition("A", Status::False, "Down", 5)];
    for (after, expected) in [(&words, Change::Text), (&transitioned, Change::Status)] {
        let mut latest = before.to_vec();
        let change = Patch::between(&before, after).apply(&mut latest, &Ownership::none(), at(1000));
        assert_eq!(change, Ok(expected));
    }
    let mut latest = before.to_vec();
    let change = Patch::between(&before, &[]).apply(&mut latest, &Ownership::none(), at(1000));
    assert_eq!((change, latest), (Ok(Change::Status), vec![]));
}

/// A condition whose time was never set: the epoch stands for "no time".
fn without_a_time(type_: &str, status: &str) -> Condition {
    let epoch = "1970-01-01T00:00:00Z";
    let text =
        format!(r#"{{"type":"{type_}","status":"{status}","reason":"R","message":"","lastTransitionTime":"{epoch}"}}"#);
    serde_json::from_str(&text).expect("a condition")
}

#[test]
fn a_condition_without_a_time_gets_the_time_of_the_patch() {
    let added = apply(&[], &[without_a_time("A", "True")], &[], &Ownership::none()).unwrap();
    assert_eq!(added[0].last_transition_time.0, at(1000));
    let stored = [condition("A", Status::False, "R", 5)];
    let transitioned = apply(&stored, &[without_a_time("A", "True")], &stored, &Ownership::none()).unwrap();
    assert_eq!(transitioned[0].last_transition_time.0, at(1000));
    let same = apply(&[], &[without_a_time("A", "False")], &stored, &Ownership::force()).unwrap();
    assert_eq!(same[0].last_transition_time.0, at(5), "the status did not change");
}
