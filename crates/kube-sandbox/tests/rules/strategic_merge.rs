//! Strategic merge patches of built-in kinds: one row per rule.

use kube_sandbox::kinds::Registry;
use kube_sandbox::patch::strategic_merge;
use proptest::prelude::*;
use serde_json::{Value, json};

fn pod(spec: &Value, patch: &Value) -> Result<Value, kube_sandbox::status::ApiError> {
    let kind = Registry::builtin().find("", "v1", "pods").unwrap();
    let merged = strategic_merge(&json!({ "spec": spec }), &json!({ "spec": patch }), &kind.schema)?;
    Ok(merged["spec"].clone())
}

#[test]
fn lists_and_maps_merge_as_their_kind_says() {
    let rows = [
        (
            "containers merge by name, and the new one comes first",
            json!({"containers": [{"name": "a", "image": "x"}]}),
            json!({"containers": [{"name": "b", "image": "y"}, {"name": "a", "tty": true}]}),
            json!({"containers": [{"name": "b", "image": "y"}, {"name": "a", "image": "x", "tty": true}]}),
        ),
        (
            "an element goes by directive",
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [{"name": "b"}]}),
        ),
        (
            "a list is replaced by directive",
            json!({"containers": [{"name": "a"}, {"name": "b"}]}),
            json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
            json!({"containers": [{"name": "c"}]}),
        ),
        (
            "tolerations are atomic",
            json!({"tolerations": [{"key": "a"}]}),
            json!({"tolerations": [{"key": "b"}]}),
            json!({"tolerations": [{"key": "b"}]}),
        ),
        (
            "the order is the one the patch sets, with what only the server has where it was",
            json!({"containers": [{"name": "a"}, {"name": "s"}, {"name": "b"}]}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "i"}]}),
            json!({"containers": [{"name": "s"}, {"name": "b"}, {"name": "a", "image": "i"}]}),
        ),
        (
            "null removes and a map merges",
            json!({"nodeSelector": {"a": "1", "b": "2"}, "hostNetwork": true}),
            json!({"nodeSelector": {"a": null, "c": "3"}, "hostNetwork": null}),
            json!({"nodeSelector": {"b": "2", "c": "3"}}),
        ),
        (
            "a map is replaced by directive",
            json!({"nodeSelector": {"a": "1"}}),
            json!({"nodeSelector": {"$patch": "replace", "c": "3"}}),
            json!({"nodeSelector": {"c": "3"}}),
        ),
        (
            "retained keys push the others out",
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}),
        ),
        (
            "nulls in what is new are left out",
            json!({}),
            json!({"containers": [{"name": "a", "image": null}], "securityContext": {"runAsUser": null}}),
            json!({"containers": [{"name": "a"}], "securityContext": {}}),
        ),
    ];
    for (rule, spec, patch, expected) in rows {
        assert_eq!(pod(&spec, &patch).unwrap(), expected, "{rule}");
    }
}

#[test]
fn finalizers_are_a_set_that_can_lose_members() {
    let kind = Registry::builtin().find("", "v1", "configmaps").unwrap();
    let object = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["c", "a"]}});
    let merged = strategic_merge(&object, &patch, &kind.schema).unwrap();
    assert_eq!(merged, json!({"metadata": {"finalizers": ["c", "a", "b"]}}));
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    let merged = strategic_merge(&object, &patch, &kind.schema).unwrap();
    assert_eq!(merged, json!({"metadata": {"finalizers": ["b"]}}));
}

#[test]
fn an_element_without_its_key_is_rejected() {
    let error = pod(
        &json!({"containers": [{"name": "a"}]}),
        &json!({"containers": [{"image": "x"}]}),
    )
    .unwrap_err();
    assert_eq!(
        error.message,
        "map: map[image:x] does not contain declared merge key: name"
    );
}

#[test]
fn every_built_in_kind_has_a_schema_and_is_found() {
    let registry = Registry::builtin();
    for kind in registry.all() {
        assert!(registry.find(&kind.group, &kind.version, &kind.plural).is_some());
        assert!(
            !kind.schema.root().properties.is_empty(),
            "{} {}",
            kind.group,
            kind.kind
        );
    }
}

fn spec() -> impl Strategy<Value = Value> {
    let container = ("[a-d]", prop::option::of("[x-z]")).prop_map(|(name, image)| match image {
        Some(image) => json!({"name": name, "image": image}),
        None => json!({"name": name}),
    });
    let containers = prop::collection::vec(container, 1..5).prop_map(|mut list| {
        list.sort_by_key(|c| c["name"].to_string());
        list.dedup_by_key(|c| c["name"].to_string());
        list
    });
    let labels = prop::collection::btree_map("[a-c]", "[x-z]", 0..3);
    (containers, labels, any::<bool>()).prop_map(
        |(containers, labels, host)| json!({"containers": containers, "nodeSelector": labels, "hostNetwork": host}),
    )
}

/// What kubectl sends to get from one list of containers to another.
fn difference(from: &Value, to: &Value) -> Value {
    let list = |spec: &Value| spec["containers"].as_array().cloned().unwrap_or_default();
    let deleted = list(from)
        .into_iter()
        .filter(|c| !list(to).iter().any(|other| other["name"] == c["name"]));
    let mut containers: Vec<Value> = deleted
        .map(|c| json!({"name": c["name"], "$patch": "delete"}))
        .collect();
    for container in list(to) {
        let mut change = container.clone();
        if container.get("image").is_none() {
            change["image"] = Value::Null;
        }
        containers.push(change);
    }
    let order: Vec<Value> = list(to).iter().map(|c| json!({"name": c["name"]})).collect();
    let mut labels = to["nodeSelector"].clone();
    for key in from["nodeSelector"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
    {
        if labels.get(key).is_none() {
            labels[key] = Value::Null;
        }
    }
    json!({"containers": containers, "$setElementOrder/containers": order, "nodeSelector": labels, "hostNetwork": to["hostNetwork"]})
}

proptest! {
    #[test]
    fn a_difference_leads_from_one_object_to_the_other_and_then_changes_nothing(from in spec(), to in spec()) {
        let patch = difference(&from, &to);
        let there = pod(&from, &patch).unwrap();
        prop_assert_eq!(&there, &to);
        prop_assert_eq!(&pod(&there, &patch).unwrap(), &to);
    }
}
