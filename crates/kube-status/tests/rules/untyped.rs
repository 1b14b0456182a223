//! Untyped objects: writing one back loses nothing.

use kube_status::severity::{self, Severity};
use kube_status::{Condition, ConditionedMut, Conventions, Draft, GradedCondition, Location, Untyped, remove, set};
use serde_json::{Value, json};

use crate::thing::at;

/// Conditions as other controllers write them: without a time or a reason, with fields of their own.
fn object() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Cache", "metadata": {"name": "c", "generation": 4},
        "spec": {"size": 3},
        "status": {"phase": "Up", "conditions": [
            {"type": "Ready", "status": "True", "lastProbeTime": "2026-02-05T10:00:00Z"},
            {"type": "Synced", "status": "False", "severity": "Info", "reason": "Waiting", "message": "",
             "lastTransitionTime": "2026-02-05T10:00:00.123Z", "owner": {"name": "x"}},
        ]},
    })
}

#[test]
fn writing_what_was_read_changes_nothing() {
    let mut written = object();
    Untyped::<Condition>::read(&object())
        .unwrap()
        .write_to(&mut written)
        .unwrap();
    assert_eq!(written, object());
    let graded = Untyped::<GradedCondition>::read_at(&object(), Location::STATUS).unwrap();
    graded.write_to(&mut written).unwrap();
    assert_eq!(written, object());
    let first = Untyped::<severity::Condition>::read_at(&object(), Location::STATUS).unwrap();
    first.write_to(&mut written).unwrap();
    assert_eq!(written, object());
}

#[test]
fn of_a_changed_condition_only_the_changed_fields_are_written() {
    let mut written = object();
    let mut cache = Untyped::<Condition>::read(&object()).unwrap();
    let _ = set(&mut cache, Draft::bad("Ready", "Down").message("no quorum"), at(60));
    cache.write_to(&mut written).unwrap();
    let mut expected = object();
    expected["status"]["conditions"][0] = json!({
        "type": "Ready", "status": "False", "reason": "Down", "message": "no quorum", "observedGeneration": 4,
        "lastTransitionTime": at(60).to_string(), "lastProbeTime": "2026-02-05T10:00:00Z",
    });
    assert_eq!(written, expected);
}

#[test]
fn of_a_changed_text_the_missing_time_stays_missing() {
    let mut written = object();
    let mut cache = Untyped::<Condition>::read(&object()).unwrap();
    let _ = set(&mut cache, Draft::good("Ready", "Up"), at(60));
    cache.write_to(&mut written).unwrap();
    let ready = &written["status"]["conditions"][0];
    assert_eq!(ready["reason"], "Up");
    assert_eq!(ready.get("lastTransitionTime"), None, "{ready}");
}

#[test]
fn conditions_can_be_added_and_removed() {
    let mut written = object();
    let mut cache = Untyped::<GradedCondition>::read_at(&object(), Location::STATUS).unwrap();
    let _ = set(&mut cache, Draft::bad("Backup", (Severity::Warning, "Late")), at(60));
    assert!(remove(cache.conditions_mut(), "Ready"));
    cache.write_to(&mut written).unwrap();
    let list = written["status"]["conditions"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    assert_eq!(
        (&list[0]["type"], &list[0]["severity"]),
        (&json!("Backup"), &json!("Warning"))
    );
    assert_eq!(list[1], object()["status"]["conditions"][1]);
}

#[test]
fn an_untyped_object_follows_its_conventions() {
    let object = json!({"kind": "Cluster"});
    let mut cluster = Untyped::<Condition>::read(&object)
        .unwrap()
        .with_conventions(Conventions::CLUSTER_API);
    for type_ in ["Alpha", "RemoteConnectionProbe", "Ready"] {
        let _ = set(&mut cluster, Draft::good(type_, "Up"), at(1));
    }
    let mut written = object;
    cluster.write_to(&mut written).unwrap();
    let types: Vec<_> = written["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["Ready", "RemoteConnectionProbe", "Alpha"]);
}
