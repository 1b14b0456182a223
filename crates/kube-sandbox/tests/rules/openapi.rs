//! OpenAPI documents as kubectl reads them.

use jiff::Timestamp;
use kube_sandbox::kinds::{Registry, openapi};
use serde_json::{Value, json};

/// Every reference in a document leads somewhere.
fn dangling(document: &Value, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                let name = reference.strip_prefix("#/components/schemas/").unwrap_or("wrong place");
                if document["components"]["schemas"].get(name).is_none() {
                    found.push(reference.to_owned());
                }
            }
            map.values().for_each(|inner| dangling(document, inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| dangling(document, inner, found)),
        _ => {}
    }
}

#[test]
fn every_listed_document_exists_and_is_closed() {
    let registry = Registry::builtin();
    let index = openapi::index(&registry);
    let paths = index["paths"].as_object().unwrap();
    assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"));
    for path in paths.keys() {
        let document = openapi::document(&registry, path).unwrap();
        let mut found = Vec::new();
        dangling(&document, &document, &mut found);
        assert!(found.is_empty(), "{path}: {found:?}");
    }
    assert!(openapi::document(&registry, "apis/none/v1").is_none());
}

#[test]
fn a_kind_is_found_by_its_path_and_takes_field_validation() {
    let document = openapi::document(&Registry::builtin(), "apis/apps/v1").unwrap();
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    let kind = json!({"group": "apps", "version": "v1", "kind": "Deployment"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    assert!(
        patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .any(|p| p["name"] == json!("fieldValidation"))
    );
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"],
        json!([kind])
    );
    let volumes = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
    assert_eq!(volumes["x-kubernetes-patch-strategy"], json!("merge,retainKeys"));
    assert_eq!(volumes["x-kubernetes-list-map-keys"], json!(["name"]));
    assert!(volumes["description"].as_str().unwrap().len() > 20);
}

#[test]
fn a_crd_is_published_with_its_schema() {
    let registry = Registry::builtin();
    let before = openapi::index(&registry);
    let definition = json!({"metadata": {"name": "xs.e.com"}, "spec": {"group": "e.com", "scope": "Namespaced",
        "names": {"plural": "xs", "kind": "X"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted."}}}}}]}});
    registry.install_crd(&definition, Timestamp::UNIX_EPOCH).unwrap();
    assert_ne!(openapi::index(&registry), before);
    let document = openapi::document(&registry, "apis/e.com/v1").unwrap();
    let schema = &document["components"]["schemas"]["com.e.v1.X"];
    assert_eq!(schema["properties"]["spec"]["description"], json!("What is wanted."));
    let mut found = Vec::new();
    dangling(&document, &document, &mut found);
    assert!(found.is_empty(), "{found:?}");
}
