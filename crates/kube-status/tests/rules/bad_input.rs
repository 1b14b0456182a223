//! Bad input: an error that names the field and the object, or kept as it is; never a panic, never dropped in silence.

use kube_status::severity;
use kube_status::{Aggregate, Condition, Conditioned, Draft, Location, Problem, Status, Summary, Untyped, check, set};
use serde_json::{Value, json};

use crate::thing::{at, machine};

fn object(status: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Machine", "metadata": {"name": "m1", "generation": 3}, "status": status})
}

fn error(status: &Value) -> String {
    Untyped::<Condition>::read(&object(status))
        .expect_err("bad input")
        .to_string()
}

#[test]
fn a_wrong_type_anywhere_is_an_error_that_names_the_field_and_the_object() {
    let entry = |entry: Value| json!({"conditions": [{"type": "A", "status": "True"}, entry]});
    let table = [
        (
            json!("text"),
            r#"Machine "m1": status: expected an object, found a text"#,
        ),
        (
            json!({"conditions": {}}),
            r#"Machine "m1": status.conditions: expected a list, found an object"#,
        ),
        (
            entry(json!(7)),
            r#"Machine "m1": status.conditions[1]: expected an object, found a number"#,
        ),
        (
            entry(json!({})),
            r#"Machine "m1": status.conditions[1].type: must be set"#,
        ),
        (
            entry(json!({"type": ""})),
            r#"Machine "m1": status.conditions[1].type: must not be empty"#,
        ),
        (
            entry(json!({"type": 5})),
            r#"Machine "m1": status.conditions[1].type: expected a text, found a number"#,
        ),
        (
            entry(json!({"type": "B"})),
            r#"Machine "m1": status.conditions[1].status: must be set"#,
        ),
        (
            entry(json!({"type": "B", "status": "Maybe"})),
            r#"Machine "m1": status.conditions[1].status: "Maybe" is none of True, False, Unknown"#,
        ),
        (
            entry(json!({"type": "B", "status": true})),
            r#"Machine "m1": status.conditions[1].status: expected a text, found a boolean"#,
        ),
        (
            entry(json!({"type": "A", "status": "False"})),
            r#"Machine "m1": status.conditions[1].type: "A" stands in the list twice"#,
        ),
        (
            entry(json!({"type": "B", "status": "True", "lastTransitionTime": "noon"})),
            r#"Machine "m1": status.conditions[1].lastTransitionTime: "noon" is not a time like 2026-02-05T10:00:00Z"#,
        ),
        (
            entry(json!({"type": "B", "status": "True", "observedGeneration": 1.5})),
            r#"Machine "m1": status.conditions[1].observedGeneration: expected a whole number, found a number"#,
        ),
        (
            entry(json!({"type": "B", "status": "True", "message": ["x"]})),
            r#"Machine "m1": status.conditions[1].message: expected a text, found a list"#,
        ),
        (
            entry(json!({"type": "B", "status": "True", "reason": {}})),
            r#"Machine "m1": status.conditions[1].reason: expected a text, found an object"#,
        ),
    ];
    for (status, expected) in table {
        assert_eq!(error(&status), expected);
    }
}

#[test]
fn an_object_without_status_or_conditions_has_none_and_an_object_without_a_name_is_still_read() {
    for value in [
        json!({}),
        json!({"status": null}),
        json!({"status": {}}),
        json!({"status": {"conditions": null}}),
    ] {
        let read = Untyped::<Condition>::read(&value).expect("nothing wrong");
        assert!(read.conditions().is_empty());
        assert_eq!((read.kind(), read.name(), read.generation()), ("", "", 0));
    }
    assert!(Untyped::<Condition>::read(&json!([1])).is_err());
    assert!(
        Untyped::<Condition>::read(&json!(null))
            .expect("nothing")
            .conditions()
            .is_empty()
    );
}

#[test]
fn an_unknown_severity_is_an_error_and_an_empty_one_is_none() {
    let read = |severity: Value| {
        let status = json!({"conditions": [{"type": "A", "status": "False", "severity": severity}]});
        Untyped::<severity::Condition>::read_at(&object(&status), Location::STATUS)
    };
    assert_eq!(
        read(json!("Fatal")).expect_err("bad").to_string(),
        r#"Machine "m1": status.conditions[0].severity: "Fatal" is none of Error, Warning, Info"#
    );
    assert_eq!(read(json!("")).expect("good").conditions()[0].severity(), None);
    assert_eq!(
        read(json!("Info")).expect("good").conditions()[0].severity(),
        Some(severity::Severity::Info)
    );
}

#[test]
fn every_severity_is_read_as_it_is_written() {
    for severity in [
        severity::Severity::Error,
        severity::Severity::Warning,
        severity::Severity::Info,
    ] {
        let entry = json!({"type": "A", "status": "False", "severity": severity.as_str()});
        let value = object(&json!({"conditions": [entry]}));
        let read = Untyped::<severity::Condition>::read_at(&value, Location::STATUS).expect("a severity");
        assert_eq!(read.conditions()[0].severity(), Some(severity));
        let parsed: severity::Condition = serde_json::from_value(entry).expect("a severity");
        assert_eq!(parsed.severity(), Some(severity));
    }
}

#[test]
fn each_of_cluster_apis_places_is_read_and_written_back_without_touching_the_rest() {
    let condition = |reason: &str| {
        json!([{"type": "Ready", "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": "2026-02-05T10:00:00Z", "observedGeneration": 3}])
    };
    let old = json!([{"type": "Ready", "status": "False", "severity": "Info",
        "lastTransitionTime": "2026-02-05T10:00:00Z", "reason": "Old"}]);
    let value = object(&json!({
        "phase": "Running",
        "conditions": condition("InStatus"),
        "v1beta2": {"conditions": condition("InV1beta2")},
        "deprecated": {"v1beta1": {"conditions": old}},
    }));
    let newest = Untyped::<Condition>::read(&value).expect("readable");
    assert_eq!(
        newest.conditions()[0].reason,
        "InV1beta2",
        "the place made for generation 2 comes first"
    );
    let status = Untyped::<Condition>::read_at(&value, Location::STATUS).expect("readable");
    assert_eq!(status.conditions()[0].reason, "InStatus");
    let deprecated = Untyped::<severity::Condition>::read_at(&value, Location::DEPRECATED_V1BETA1).expect("readable");
    assert_eq!(deprecated.conditions()[0].reason(), "Old");

    let mut copy = value.clone();
    newest.write_to(&mut copy).expect("writable");
    status.write_to(&mut copy).expect("writable");
    deprecated.write_to(&mut copy).expect("writable");
    assert_eq!(copy, value);
}

#[test]
fn writing_creates_missing_objects_on_the_path_and_rejects_a_wrong_one() {
    let mut value = json!({"kind": "Machine", "metadata": {"name": "m1"}});
    let mut read = Untyped::<Condition>::read_at(&value, Location::V1BETA2).expect("readable");
    let _ = set(&mut read, Draft::new("Ready", Status::True, "Up"), at(0));
    read.write_to(&mut value).expect("writable");
    assert_eq!(value["status"]["v1beta2"]["conditions"][0]["reason"], "Up");
    let mut wrong = json!({"status": {"v1beta2": "text"}});
    let error = read.write_to(&mut wrong).expect_err("a wrong way");
    assert_eq!(
        error.to_string(),
        r#"Machine "m1": status.v1beta2: expected an object, found a text"#
    );
}

#[test]
fn machines_of_a_control_plane_are_prominent_also_untyped() {
    let value =
        |kind: &str| json!({"kind": kind, "metadata": {"name": "m", "labels": {"cluster.x-k8s.io/control-plane": ""}}});
    assert!(
        Untyped::<Condition>::read(&value("Machine"))
            .expect("readable")
            .is_prominent()
    );
    assert!(
        !Untyped::<Condition>::read(&value("Node"))
            .expect("readable")
            .is_prominent()
    );
}

#[test]
fn everything_the_api_server_would_reject_is_found_before_the_write() {
    let mut object = machine("m1")
        .with("Ready", Status::True, "Up", "")
        .with("example.org/Ready", Status::True, "Up:Slow", "")
        .with("", Status::True, "Up", "")
        .with("not a type", Status::True, "Up", "")
        .with("Spaced", Status::True, "not a reason", "")
        .with("Colon", Status::True, "Ends:", "")
        .with("Digit", Status::True, "1st", "")
        .with("Silent", Status::True, "", "")
        .with("Long", Status::True, &"R".repeat(1025), &"m".repeat(32_769))
        .with("Most", Status::True, &"R".repeat(1024), &"m".repeat(32_768));
    object.conditions.push(object.conditions[0].clone());
    object.conditions[1].status = "Maybe".into();
    object.conditions[1].observed_generation = Some(-1);
    let found: Vec<(String, Problem)> = check(&object).into_iter().map(|m| (m.field, m.problem)).collect();
    let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "conditions[1].status",
            "conditions[1].observedGeneration",
            "conditions[2].type",
            "conditions[3].type",
            "conditions[4].reason",
            "conditions[5].reason",
            "conditions[6].reason",
            "conditions[7].reason",
            "conditions[8].reason",
            "conditions[8].message",
            "conditions[10].type",
        ]
    );
    assert_eq!(found[1].1, Problem::Negative(-1));
    assert_eq!(found[2].1, Problem::Empty);
    assert_eq!(
        found[8].1,
        Problem::Long {
            length: 1025,
            limit: 1024
        }
    );
    assert_eq!(found[10].1, Problem::Duplicate("Ready".into()));
}

#[test]
fn types_and_reasons_are_held_to_the_patterns_of_the_api() {
    let rejected = |type_: &str, reason: &str| {
        let mut object = machine("m1").with(type_, Status::True, reason, "");
        object.conditions[0].observed_generation = Some(0);
        !check(&object).is_empty()
    };
    for good in ["A", "Ready", "a.b_c-D", "9Lives", "example.org/Ready", "a-1.b/Ready"] {
        assert!(!rejected(good, "R"), "{good:?}");
    }
    for bad in [
        "-Ready",
        "Ready-",
        "Ready.",
        "/Ready",
        "Example.org/Ready",
        "a_b/Ready",
        "-a/Ready",
        "a-/Ready",
        "a/",
        "a..b/R",
        "a/b/c",
        "Ü",
    ] {
        assert!(rejected(bad, "R"), "{bad:?}");
    }
    for good in ["R", "Up2", "A_", "Up:Slow,Hot"] {
        assert!(!rejected("A", good), "{good:?}");
    }
    for bad in ["_A", "9A", "A,", "A:", "A-B", "A B", "Ü", ""] {
        assert!(rejected("A", bad), "{bad:?}");
    }
    assert!(!rejected(&"A".repeat(316), "R") && rejected(&"A".repeat(317), "R"));
}

#[test]
fn an_invalid_status_is_kept_on_the_object_and_counts_as_unknown_in_a_merge() {
    let mut object = machine("m1").with("A", Status::True, "R", "odd");
    object.conditions[0].status = "Maybe".into();
    let ready = Summary::new("Ready").types(["A"]).of(&object).expect("a summary");
    assert_eq!(ready.status, Status::Unknown);
    let all = Aggregate::new("A").of([&object]).expect("an aggregate");
    assert_eq!((all.status, &*all.message), (Status::Unknown, "* Machine m1: odd"));
    assert_eq!(object.conditions[0].status, "Maybe");
}

#[test]
fn a_list_with_a_type_twice_is_summarised_with_both_and_loses_none() {
    let mut object = machine("m1").with("A", Status::True, "R", "");
    object.conditions.push(
        Draft::new("A", Status::False, "R")
            .message("second")
            .into_condition(1, at(5)),
    );
    let ready = Summary::new("Ready").types(["A"]).of(&object).expect("a summary");
    assert_eq!((ready.status, &*ready.message), (Status::False, "* A: second"));
}
