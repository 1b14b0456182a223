//! What a real kube-apiserver 1.34 answered to bad objects and forbidden changes (`fixtures/rejections.json`), against what
//! the sandbox answers.

use kube_sandbox::kinds::{Kind, Registry};
use kube_sandbox::patch::merge_patch;
use kube_sandbox::status::ApiError;
use serde_json::{Value, json};

fn kind_of(object: &Value) -> std::sync::Arc<Kind> {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Registry::builtin()
        .find_kind(group, version, object["kind"].as_str().unwrap())
        .unwrap()
}

/// The first line: what follows is a diff of the real server's own structs.
fn head(message: &str) -> String {
    message
        .lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches(']')
        .to_owned()
}

fn message(kind: &Kind, object: &Value, old: Option<&Value>) -> String {
    let causes = kind.schema.validate(object, old);
    if causes.is_empty() {
        return String::new();
    }
    head(
        &ApiError::invalid(
            &kind.group,
            &kind.kind,
            object["metadata"]["name"].as_str().unwrap(),
            &causes,
        )
        .message,
    )
}

/// Errors of admission or of the allocator of addresses, and not of a rule of the kind.
const ELSEWHERE: &[&str] = &["error looking up service account", "not configured for dual-stack"];

#[test]
fn invalid_objects_have_the_real_servers_errors() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/rejections.json")).unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let expected = head(row["answer"]["message"].as_str().unwrap_or_default());
        if ELSEWHERE.iter().any(|message| expected.contains(message)) {
            continue;
        }
        let (mut object, old) = match row.get("create") {
            Some(object) => (object.clone(), None),
            None => (merge_patch(&row["live"], &row["patch"]).unwrap(), Some(&row["live"])),
        };
        let kind = kind_of(&object);
        kind.schema.default(&mut object);
        let ours = message(&kind, &object, old);
        if ours != expected {
            wrong.push(format!("{row}\n  ours   {ours}\n  theirs {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn objects_of_a_real_server_pass_all_rules() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/responses.json")).unwrap();
    for row in rows {
        let stored = &row["created"];
        let kind = kind_of(stored);
        assert_eq!(message(&kind, stored, None), "", "{}", kind.kind);
        assert_eq!(message(&kind, stored, Some(stored)), "", "{}", kind.kind);
        let mut again = stored.clone();
        kind.schema.default(&mut again);
        assert_eq!(
            again, *stored,
            "{}: defaulting a stored object changes nothing",
            kind.kind
        );
    }
}

#[test]
fn values_of_the_wrong_type_have_the_decoders_message() {
    let kind = Registry::builtin().find("apps", "v1", "deployments").unwrap();
    let field = "json: cannot unmarshal";
    for (spec, expected) in [
        (
            json!({"replicas": "x"}),
            format!("{field} string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            json!({"replicas": 1.5}),
            format!("{field} number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            json!({"template": {"spec": {"containers": {}}}}),
            format!("{field} object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container"),
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": 1}]}}}),
            format!("{field} number into Go struct field Container.spec.template.spec.containers.name of type string"),
        ),
        (
            json!({"selector": "x"}),
            format!("{field} string into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector"),
        ),
        (
            json!([]),
            format!("{field} array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        ),
        (
            json!({"template": {"metadata": {"labels": {"a": 1}}}}),
            format!("{field} number into Go struct field ObjectMeta.spec.template.metadata.labels of type string"),
        ),
        (
            json!({"template": {"spec": {"containers": ["x"]}}}),
            format!("{field} string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container"),
        ),
        (
            json!({"template": {"spec": {"nodeSelector": []}}}),
            format!(
                "{field} array into Go struct field PodSpec.spec.template.spec.nodeSelector of type map[string]string"
            ),
        ),
        (
            json!({"template": {"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "x"}}}]}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned(),
        ),
    ] {
        let object = json!({"metadata": {"name": "x"}, "spec": spec});
        assert_eq!(kind.schema.decode_error(&object), Some(expected), "{object}");
    }
}

#[test]
fn crds_must_be_structural() {
    let kind = Registry::builtin()
        .find("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        .unwrap();
    let at = "CustomResourceDefinition.apiextensions.k8s.io \"xs.e.com\" is invalid: spec.validation.openAPIV3Schema";
    for (schema, expected) in [
        (
            json!({"properties": {}}),
            ".type: Required value: must not be empty at the root",
        ),
        (
            json!({"type": "string"}),
            ".type: Invalid value: \"string\": must be object at the root",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {}}}}}),
            ".properties[spec].properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "array"}}}),
            ".properties[spec].items: Required value: must be specified",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "foo"}}}),
            ".properties[spec].type: Unsupported value: \"foo\": supported values: \"array\", \"boolean\", \"integer\", \
             \"number\", \"object\", \"string\"",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}}}),
            ".properties[spec].properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}},
                   "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}}}),
            ".properties[spec].items.properties[n].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "object", "anyOf": [{"type": "object"}]}}}),
            ".properties[spec].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "properties": {"spec": {"type": "object", "x-kubernetes-validations": [{"rule": ""}]}}}),
            ".properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not specified",
        ),
        (json!({"type": "object"}), ""),
    ] {
        let mut object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "xs.e.com"}, "spec": {"group": "e.com", "scope": "Cluster", "names": {"plural": "xs", "kind": "X"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
        kind.schema.default(&mut object);
        let expected = if expected.is_empty() {
            String::new()
        } else {
            format!("{at}{expected}")
        };
        assert_eq!(message(&kind, &object, None), expected, "{object}");
    }
}

fn rejection(mut object: Value, old: Option<Value>) -> String {
    let kind = kind_of(&object);
    kind.schema.default(&mut object);
    let old = old.map(|mut old| {
        kind.schema.default(&mut old);
        old
    });
    message(&kind, &object, old.as_ref())
}

#[test]
fn rules_found_by_comparison_have_the_real_servers_messages() {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "a"},
        "roleRef": {"name": "r"}});
    let secret = |kind: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": kind});
    let service = |address: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
            "spec": {"clusterIP": address, "type": kind, "ports": [{"port": 80}]}})
    };
    let big = "x".repeat(1024 * 1024 + 1);
    let map =
        |text: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": text}});
    for (object, old, message) in [
        (
            binding,
            None,
            r#"RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef.kind: Unsupported value: "": supported values: "Role", "ClusterRole""#,
        ),
        (
            secret("kubernetes.io/tls"),
            Some(secret("Opaque")),
            r#"Secret "a" is invalid: [type: Invalid value: "kubernetes.io/tls": field is immutable, data[tls.crt]: Required value, data[tls.key]: Required value"#,
        ),
        (
            service("None", "NodePort"),
            None,
            r#"Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services"#,
        ),
        (
            service("None", "ClusterIP"),
            Some(service("10.96.0.9", "ClusterIP")),
            r#"Service "a" is invalid: spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set"#,
        ),
        (
            map(&big),
            None,
            r#"ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes"#,
        ),
        (map(&big[1..]), None, ""),
    ] {
        assert_eq!(rejection(object, old), message);
    }
    let generated =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ok", "generateName": "Bad_"}});
    assert!(
        rejection(generated, None)
            .starts_with(r#"ConfigMap "ok" is invalid: metadata.generateName: Invalid value: "Bad_": "#)
    );
    let dashed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ok", "generateName": "ok-"}});
    assert_eq!(rejection(dashed, None), "");
}
