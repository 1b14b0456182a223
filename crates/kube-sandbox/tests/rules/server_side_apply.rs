//! Server-side apply: ownership, conflicts, removal, and the notes on who changed what.

use std::sync::Arc;

use jiff::Timestamp;
use kube_sandbox::apply::{Writer, apply, keep_times, track_update};
use kube_sandbox::kinds::{Kind, Registry};
use kube_sandbox::status::ApiError;
use proptest::prelude::*;
use serde_json::{Value, json};

fn by(manager: &str, second: i64) -> Writer<'_> {
    Writer {
        manager,
        subresource: "",
        now: Timestamp::from_second(second).unwrap(),
    }
}

fn deployments() -> Arc<Kind> {
    Registry::builtin().find("apps", "v1", "deployments").unwrap()
}

fn config(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}, "spec": spec})
}

fn put(live: Option<&Value>, spec: &Value, writer: Writer<'_>) -> Result<Value, ApiError> {
    apply(&deployments(), live, &config(spec), writer, false)
}

fn owners(object: &Value) -> Vec<(String, Value)> {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let spec = |e: &Value| e["fieldsV1"]["f:spec"].clone();
    entries
        .iter()
        .map(|e| (e["manager"].as_str().unwrap().to_owned(), spec(e)))
        .collect()
}

fn own(name: &str, fields: Value) -> (String, Value) {
    (name.to_owned(), fields)
}

#[test]
fn two_appliers_that_agree_share_a_field() {
    let live = put(None, &json!({"replicas": 3}), by("a", 1)).unwrap();
    let live = put(Some(&live), &json!({"replicas": 3, "paused": true}), by("b", 2)).unwrap();
    assert_eq!(
        owners(&live),
        [
            own("a", json!({"f:replicas": {}})),
            own("b", json!({"f:replicas": {}, "f:paused": {}}))
        ]
    );
    let live = put(Some(&live), &json!({}), by("a", 3)).unwrap();
    assert_eq!(live["spec"]["replicas"], json!(3), "b still applies it");
    let live = put(Some(&live), &json!({"paused": true}), by("b", 4)).unwrap();
    assert_eq!(live["spec"].get("replicas"), None, "no manager applies it");
    assert_eq!(live["spec"]["paused"], json!(true));
}

#[test]
fn a_field_of_someone_else_is_a_conflict_until_forced() {
    let live = put(None, &json!({"replicas": 3}), by("a", 1)).unwrap();
    let error = put(Some(&live), &json!({"replicas": 4}), by("b", 2)).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 1 conflict: conflict with \"a\": .spec.replicas"
    );
    assert_eq!(
        error.details.unwrap()["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": ".spec.replicas"}])
    );
    let forced = apply(
        &deployments(),
        Some(&live),
        &config(&json!({"replicas": 4})),
        by("b", 2),
        true,
    )
    .unwrap();
    assert_eq!(owners(&forced), [own("b", json!({"f:replicas": {}}))]);
}

#[test]
fn conflicts_with_an_updater_name_its_version_and_many_are_listed() {
    let mut live = config(
        &json!({"replicas": 3, "paused": true, "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}),
    );
    track_update(&deployments(), None, &mut live, by("kubectl-edit", 1));
    let error = put(Some(&live), &json!({"replicas": 4}), by("b", 2)).unwrap_err();
    let one = "Apply failed with 1 conflict: conflict with \"kubectl-edit\" using apps/v1: .spec.replicas";
    assert_eq!(error.message, one);
    let spec = json!({"replicas": 4, "template": {"spec": {"containers": [{"name": "c", "image": "y"}]}}});
    let error = put(Some(&live), &spec, by("b", 2)).unwrap_err();
    assert_eq!(
        error.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using apps/v1:\n- .spec.replicas\n\
         - .spec.template.spec.containers[name=\"c\"].image"
    );
}

#[test]
fn list_items_belong_to_those_who_applied_them() {
    let containers = |names: &[&str]| {
        let list: Vec<Value> = names.iter().map(|n| json!({"name": n, "image": "x"})).collect();
        json!({"template": {"spec": {"containers": list}}})
    };
    let names = |object: &Value| -> Vec<String> {
        let list = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        list.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
    };
    let live = put(None, &containers(&["a", "b"]), by("one", 1)).unwrap();
    let live = put(Some(&live), &containers(&["c"]), by("two", 2)).unwrap();
    assert_eq!(names(&live), ["a", "b", "c"]);
    let live = put(Some(&live), &containers(&["b"]), by("one", 3)).unwrap();
    assert_eq!(names(&live), ["b", "c"]);
    let error = put(Some(&live), &containers(&["b", "b"]), by("one", 3)).unwrap_err();
    assert!(
        error
            .message
            .ends_with(".spec.template.spec.containers: duplicate entries for key [name=\"b\"]")
    );
}

#[test]
fn an_undeclared_field_is_rejected() {
    let spec = json!({"template": {"spec": {"containers": [{"name": "c", "bar": 1}]}}});
    let error = put(None, &spec, by("a", 1)).unwrap_err();
    assert_eq!(error.code, 500);
    assert_eq!(
        error.message,
        "failed to create typed patch object (n/a; apps/v1, Kind=Deployment): \
         .spec.template.spec.containers[name=\"c\"].bar: field not declared in schema"
    );
}

#[test]
fn an_update_takes_what_it_changes_and_only_then_gets_a_new_time() {
    let kind = deployments();
    let live = put(None, &json!({"replicas": 3, "paused": true}), by("a", 1)).unwrap();
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(5);
    track_update(&kind, Some(&live), &mut new, by("scaler", 2));
    assert_eq!(
        owners(&new),
        [
            own("a", json!({"f:paused": {}})),
            own("scaler", json!({"f:replicas": {}}))
        ]
    );
    let mut same = new.clone();
    track_update(&kind, Some(&new), &mut same, by("scaler", 9));
    assert_eq!(same, new);
}

#[test]
fn an_empty_list_of_managers_resets_and_the_next_apply_finds_an_unknown_past() {
    let kind = deployments();
    let live = put(None, &json!({"replicas": 3}), by("a", 1)).unwrap();
    for reset in [json!([]), json!([{}])] {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = reset;
        track_update(&kind, Some(&live), &mut new, by("x", 2));
        assert!(new["metadata"].get("managedFields").is_none());
        let error = put(Some(&new), &json!({"replicas": 4}), by("a", 3)).unwrap_err();
        assert!(error.message.contains("before-first-apply"), "{}", error.message);
    }
}

#[test]
fn kubectl_moves_from_client_side_to_server_side_apply() {
    let kind = deployments();
    let mut live = config(&json!({"replicas": 3}));
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": config(&json!({"replicas": 3})).to_string()});
    track_update(&kind, None, &mut live, by("kubectl-client-side-apply", 1));
    let mut changed = put(Some(&live), &json!({"replicas": 4}), by("kubectl", 2)).unwrap();
    assert_eq!(changed["spec"]["replicas"], json!(4));
    assert_eq!(
        put(Some(&live), &json!({"replicas": 4}), by("other", 2))
            .unwrap_err()
            .code,
        409
    );
    let before = changed.clone();
    changed["spec"]["replicas"] = json!(7);
    track_update(&kind, Some(&before), &mut changed, by("someone", 3));
    assert_eq!(
        put(Some(&changed), &json!({"replicas": 4}), by("kubectl", 4))
            .unwrap_err()
            .code,
        409
    );
}

#[test]
fn status_has_its_own_managers_and_does_not_touch_spec() {
    let kind = deployments();
    let mut live = config(&json!({"replicas": 3}));
    live["status"] = json!({});
    track_update(&kind, None, &mut live, by("a", 1));
    let mut new = live.clone();
    new["status"] = json!({"replicas": 3});
    new["spec"]["replicas"] = json!(9);
    let writer = Writer {
        subresource: "status",
        ..by("controller", 2)
    };
    track_update(&kind, Some(&live), &mut new, writer);
    let entry = &new["metadata"]["managedFields"][1];
    assert_eq!(entry["subresource"], json!("status"));
    assert_eq!(entry["fieldsV1"], json!({"f:status": {"f:replicas": {}}}));
}

#[test]
fn at_most_ten_updaters_are_kept_apart() {
    let kind = deployments();
    let mut live = config(&json!({"replicas": 0}));
    track_update(&kind, None, &mut live, by("m", 0));
    for round in 1..=15 {
        let mut new = live.clone();
        new["metadata"]["labels"][format!("l{round}")] = json!("x");
        track_update(&kind, Some(&live), &mut new, by(&format!("m{round}"), round));
        live = new;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], json!("ancient-changes"));
}

fn spec() -> impl Strategy<Value = Value> {
    let container = ("[a-c]", prop::option::of("[x-z]")).prop_map(|(name, image)| match image {
        Some(image) => json!({"name": name, "image": image}),
        None => json!({"name": name}),
    });
    let containers = prop::collection::vec(container, 1..4).prop_map(|mut list| {
        list.sort_by_key(|c| c["name"].to_string());
        list.dedup_by_key(|c| c["name"].to_string());
        list
    });
    let labels = prop::collection::btree_map("[a-c]", "[x-z]", 0..3);
    (prop::option::of(0..3), containers, labels).prop_map(|(replicas, containers, labels)| {
        let mut spec = json!({"template": {"metadata": {"labels": labels}, "spec": {"containers": containers}}});
        if let Some(replicas) = replicas {
            spec["replicas"] = json!(replicas);
        }
        spec
    })
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in spec(), second in spec()) {
        let kind = deployments();
        let write = |live: Option<&Value>, spec: &Value, second: i64| {
            let mut new = apply(&kind, live, &config(spec), by("a", second), true).unwrap();
            kind.schema.default(&mut new);
            if let Some(live) = live {
                keep_times(live, &mut new);
            }
            new
        };
        let live = write(None, &first, 1);
        let once = write(Some(&live), &second, 2);
        let twice = write(Some(&once), &second, 3);
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn the_only_applier_gets_what_it_asks_for(first in spec(), second in spec()) {
        let live = put(None, &first, by("a", 1)).unwrap();
        let ours = put(Some(&live), &second, by("a", 2)).unwrap();
        prop_assert_eq!(&ours["spec"]["replicas"], &second["replicas"]);
        let names = |spec: &Value| -> Vec<String> {
            let list = spec["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
            list.iter().map(|c| c["name"].to_string()).collect()
        };
        prop_assert_eq!(names(&ours["spec"]), names(&second));
    }
}
