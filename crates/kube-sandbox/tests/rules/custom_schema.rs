//! What a CRD's schema does to objects: pruning, defaulting, validation, CEL.

use kube_sandbox::schema::Schema;
use proptest::prelude::*;
use serde_json::{Value, json};

fn schema() -> Schema {
    Schema::custom(
        json!({"type": "object", "required": ["spec"], "properties": {
            "spec": {"type": "object", "required": ["shards"], "properties": {
                "shards": {"type": "integer", "minimum": 1, "maximum": 100},
                "replicas": {"type": "integer", "default": 1},
                "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
                "port": {"x-kubernetes-int-or-string": true},
                "since": {"type": "string", "format": "date-time"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "note": {"type": "string", "nullable": true},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "list": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map",
                         "x-kubernetes-list-map-keys": ["name"],
                         "items": {"type": "object", "properties": {
                             "name": {"type": "string"}, "weight": {"type": "integer", "default": 7}}}},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                             "x-kubernetes-preserve-unknown-fields": true},
                "storage": {"type": "object", "default": {}, "properties": {
                    "size": {"type": "string", "default": "1Gi"}}},
            }, "x-kubernetes-validations": [
                {"rule": "self.shards >= oldSelf.shards", "message": "shards only grow"},
                {"rule": "self.replicas <= self.shards", "messageExpression": "'at most ' + string(self.shards)",
                 "fieldPath": ".replicas", "reason": "FieldValueForbidden"},
                {"rule": "!has(self.port) || type(self.port) == int"},
            ]},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }}),
        false,
    )
}

fn message(object: &Value, old: Option<&Value>) -> Vec<String> {
    let causes = schema().validate(object, old);
    causes
        .into_iter()
        .map(|c| format!("{}: {}", c.field, c.message))
        .collect()
}

#[test]
fn unknown_fields_go_and_are_named() {
    let mut object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "nonsense": 1},
        "spec": {"shards": 1, "foo": 1, "free": {"any": [1]}, "labels": {"k": "v"},
                 "list": [{"name": "a", "bar": 2}], "template": {"metadata": {"bad": 1}, "spec": {"x": 1}}},
        "status": {"x": 1}, "extra": true});
    let removed = schema().prune(&mut object);
    let mut expected = [
        "extra",
        "metadata.nonsense",
        "spec.foo",
        "spec.list[0].bar",
        "spec.template.metadata.bad",
    ];
    expected.sort_unstable();
    let mut sorted = removed.clone();
    sorted.sort();
    assert_eq!(sorted, expected);
    assert_eq!(
        object["spec"],
        json!({"shards": 1, "free": {"any": [1]}, "labels": {"k": "v"}, "list": [{"name": "a"}],
               "template": {"metadata": {}, "spec": {"x": 1}}})
    );
    assert!(schema().prune(&mut object).is_empty());
}

#[test]
fn defaults_fill_in_nested_objects_and_list_items_and_replace_nulls() {
    let mut object = json!({"spec": {"shards": 1, "mode": null, "note": null, "name": null, "list": [{"name": "a"}]}});
    schema().default(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"shards": 1, "replicas": 1, "mode": "a", "note": null, "storage": {"size": "1Gi"},
                        "list": [{"name": "a", "weight": 7}]}})
    );
}

#[test]
fn errors_have_the_real_servers_messages() {
    let skipped = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
                   correct the existing errors to complete validation";
    for (spec, expected) in [
        (
            json!({"shards": 0, "replicas": 0}),
            vec!["spec.shards: Invalid value: 0: spec.shards in body should be greater than or equal to 1"],
        ),
        (json!({"replicas": 1}), vec!["spec.shards: Required value", skipped]),
        (
            json!({"shards": "x", "replicas": 1}),
            vec![
                "spec.shards: Invalid value: \"string\": spec.shards in body must be of type integer: \"string\"",
                skipped,
            ],
        ),
        (
            json!({"shards": 1, "replicas": 1, "mode": "x"}),
            vec![
                "spec.mode: Unsupported value: \"x\": supported values: \"a\", \"b\"",
                skipped,
            ],
        ),
        (
            json!({"shards": 1, "replicas": 1, "name": "abcdef"}),
            vec!["spec.name: Too long: may not be more than 5 bytes", skipped],
        ),
        (
            json!({"shards": 1, "replicas": 1, "name": "A"}),
            vec!["spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]*$'"],
        ),
        (
            json!({"shards": 1, "replicas": 1, "since": "x"}),
            vec![
                "spec.since: Invalid value: \"x\": spec.since in body must be of type date-time: \"x\"",
                skipped,
            ],
        ),
        (
            json!({"shards": 1, "replicas": 1, "list": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}),
            vec![
                "spec.list: Too many: 3: must have at most 2 items",
                "spec.list[2]: Duplicate value: {\"name\":\"a\"}",
                skipped,
            ],
        ),
        (
            json!({"shards": 1, "replicas": 1, "tags": ["a", "a"]}),
            vec!["spec.tags[1]: Duplicate value: \"a\""],
        ),
        (
            json!({"shards": 1, "replicas": 3}),
            vec!["spec.replicas: Forbidden: at most 1"],
        ),
        (
            json!({"shards": 1, "replicas": 1, "port": "http"}),
            vec!["spec: Invalid value: \"object\": failed rule: !has(self.port) || type(self.port) == int"],
        ),
        (json!({"shards": 1, "replicas": 1, "port": 80}), vec![]),
    ] {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        assert_eq!(message(&object, None), expected, "{spec}");
    }
}

#[test]
fn transition_rules_see_the_past_and_untouched_faults_are_left_alone() {
    let old = json!({"spec": {"shards": 3, "replicas": 1, "name": "TOOLONG"}});
    let shrunk = json!({"spec": {"shards": 2, "replicas": 1, "name": "TOOLONG"}});
    assert_eq!(
        message(&shrunk, Some(&old)),
        ["spec: Invalid value: \"object\": shards only grow"]
    );
    let grown = json!({"spec": {"shards": 4, "replicas": 1, "name": "TOOLONG"}});
    assert!(message(&grown, Some(&old)).is_empty());
}

#[test]
fn an_optional_past_is_there_on_create_too() {
    let rule = json!({"rule": "!oldSelf.hasValue() || self.a >= oldSelf.value().a", "optionalOldSelf": true});
    let schema = Schema::custom(
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [rule]}),
        false,
    );
    let new = json!({"metadata": {"name": "n"}, "a": 1});
    assert!(schema.validate(&new, None).is_empty());
    assert!(schema.validate(&json!({"a": 2}), Some(&json!({"a": 1}))).is_empty());
    assert_eq!(schema.validate(&json!({"a": 0}), Some(&json!({"a": 1}))).len(), 1);
}

#[test]
fn a_rule_that_cannot_be_parsed_is_an_error_and_no_panic() {
    for rule in ["self.", "((", "'", "self.a ? ", "\u{0}", "[].map(", "a.b.c("] {
        let schema = Schema::custom(
            json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}]}),
            false,
        );
        assert!(!schema.validate(&json!({"a": 1}), None).is_empty(), "{rule}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "spec",
        "shards",
        "list",
        "name",
        "tags",
        "template",
        "metadata",
        "labels",
        "[a-z]{1,4}"
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_and_defaulting_twice_is_doing_it_once(value in any_json()) {
        let schema = schema();
        let mut object = value;
        schema.prune(&mut object);
        let once = object.clone();
        prop_assert!(schema.prune(&mut object).is_empty());
        prop_assert_eq!(&object, &once);
        schema.default(&mut object);
        let once = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(&object, &once);
        let _ = schema.validate(&object, Some(&once));
        let _ = schema.validate(&object, None);
    }
}
