//! OpenAPI v3: one document per group and version, as far as kubectl reads them: which paths take `fieldValidation`,
//! which kind is behind a path, the schemas with their prose, how lists merge.
//!
//! Documents are made on request and not cached: with their descriptions they take megabytes.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Kind, Registry, definition_name};
use crate::schema::{Link, ListKind, Node, Strategy, builtin};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Whether a client asks for `/openapi/v2` in protobuf, under its newer or its older name.
pub fn is_old_form(media: &str) -> bool {
    media == OLD_FORM || media == "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
}

/// The form in which kubectl asks for `/openapi/v2`: protobuf.
pub const OLD_FORM: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`, without a definition: kubectl asks for it before it sends a `kind: List`, and leaves the validation of
/// kinds that it does not find there to the server.
pub fn old_document() -> Vec<u8> {
    const SWAGGER: u8 = 1 << 3 | 2;
    const INFO: u8 = 2 << 3 | 2;
    const TITLE: u8 = 1 << 3 | 2;
    const VERSION: u8 = 2 << 3 | 2;
    // All texts are shorter than 128 bytes, so their lengths take one byte.
    let field = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap_or(0)], bytes].concat();
    let info = [field(TITLE, b"Kubernetes"), field(VERSION, b"v1.34.4")].concat();
    [field(SWAGGER, b"2.0"), field(INFO, &info)].concat()
}

/// `/openapi/v3`: where the document of each group and version is. The hash changes when the document does.
pub fn index(registry: &Registry) -> Value {
    let mut hashes: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for kind in registry.all() {
        let hasher = hashes.entry(path_of(&kind)).or_default();
        (&kind.kind, &kind.plural, &kind.short_names).hash(hasher);
        if let Some(raw) = kind.schema.open_api() {
            raw.to_string().hash(hasher);
        }
    }
    let paths: Map<String, Value> = hashes
        .into_iter()
        .map(|(path, hasher)| {
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({ "paths": paths })
}

/// The document at `/openapi/v3/{path}`, such as `api/v1` or `apis/apps/v1`; nothing where nothing is served there.
pub fn document(registry: &Registry, path: &str) -> Option<Value> {
    let kinds: Vec<Arc<Kind>> = registry
        .all()
        .into_iter()
        .filter(|kind| path_of(kind) == path)
        .collect();
    let first = kinds.first()?;
    let mut schemas = Map::new();
    if kinds.iter().any(|kind| !kind.custom) {
        let package = definition_name(&first.group, "v1", "X");
        let package = package
            .strip_prefix("io.k8s.api.")
            .unwrap_or("apiextensions")
            .split('.')
            .next()?
            .to_owned();
        for (name, schema) in builtin::with_prose(&|root| root.split("::").next() == Some(package.as_str())) {
            let schema = published(&name, schema);
            schemas.insert(name, schema);
        }
    } else {
        let meta = builtin::with_prose(&|root| root == "core::Namespace");
        for (name, schema) in meta.into_iter().filter(|(name, _)| name.contains("apimachinery")) {
            let schema = published(&name, schema);
            schemas.insert(name, schema);
        }
    }
    let mut paths = Map::new();
    for kind in &kinds {
        let name = if kind.custom {
            custom_name(kind)
        } else {
            definition_name(&kind.group, &kind.version, &kind.kind)
        };
        if let Some(raw) = kind.schema.open_api() {
            schemas.insert(name.clone(), custom_schema(raw));
        }
        if let Some(schema) = schemas.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([gvk(kind)]);
        }
        paths.extend(paths_of(kind, &name));
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.34.4"},
        "paths": paths,
        "components": {"schemas": schemas},
    }))
}

fn path_of(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

fn gvk(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

/// `com.example.v1.Widget`
fn custom_name(kind: &Kind) -> String {
    let reversed: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", reversed.join("."), kind.version, kind.kind)
}

fn custom_schema(raw: &Value) -> Value {
    let mut schema = if raw.is_object() {
        raw.clone()
    } else {
        json!({"type": "object"})
    };
    let describe = |text: &str| json!({"type": "string", "description": text});
    schema["properties"]["apiVersion"] = describe(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
         schemas to the latest internal value, and may reject unrecognized values. More info: \
         https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    );
    schema["properties"]["kind"] = describe(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
         endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
         https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
    );
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata. More info: \
            https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        "allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
    });
    schema
}

/// A generated schema as the server publishes it: references in their place, merging spelled out.
fn published(name: &str, mut schema: Value) -> Value {
    let node = builtin::definition(name);
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (field, property) in properties {
            if let Some(link) = node.properties.get(field.as_str()) {
                spell_out(property, link, node.strategies.get(field.as_str()));
            }
        }
    }
    if node.atomic && node.zero.is_some() {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    if schema["x-kubernetes-int-or-string"] == json!(true) {
        let kinds = if name.ends_with("Quantity") {
            ["string", "number"]
        } else {
            ["integer", "string"]
        };
        schema["oneOf"] = json!([{"type": kinds[0]}, {"type": kinds[1]}]);
        if let Some(map) = schema.as_object_mut() {
            map.remove("x-kubernetes-int-or-string");
        }
    }
    relocate(&mut schema);
    schema
}

fn spell_out(property: &mut Value, link: &Link, strategy: Option<&Strategy>) {
    if let Link::Own(node) = link {
        list_type(property, node);
    }
    let Some(strategy) = strategy else { return };
    let mut words = Vec::new();
    if strategy.merge {
        words.push("merge");
    }
    if strategy.replace {
        words.push("replace");
    }
    if strategy.retain_keys {
        words.push("retainKeys");
    }
    property["x-kubernetes-patch-strategy"] = json!(words.join(","));
    if let Some(key) = &strategy.key {
        property["x-kubernetes-patch-merge-key"] = json!(key);
    }
}

fn list_type(property: &mut Value, node: &Node) {
    match &node.list {
        ListKind::Atomic if property["type"] == json!("array") => property["x-kubernetes-list-type"] = json!("atomic"),
        ListKind::Atomic => {}
        ListKind::Set => property["x-kubernetes-list-type"] = json!("set"),
        ListKind::Map(keys) => {
            property["x-kubernetes-list-type"] = json!("map");
            property["x-kubernetes-list-map-keys"] = json!(keys);
        }
    }
}

/// `#/$defs/X` is `#/components/schemas/X` here, and a reference with prose beside it is wrapped.
fn relocate(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                let moved = reference.replace("#/$defs/", "#/components/schemas/");
                if map.len() == 1 {
                    map.insert("$ref".to_owned(), json!(moved));
                } else {
                    map.remove("$ref");
                    map.insert("allOf".to_owned(), json!([{ "$ref": moved }]));
                }
            }
            for (key, inner) in map.iter_mut() {
                if key != "allOf" || !inner[0]["$ref"].is_string() {
                    relocate(inner);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                relocate(item);
            }
        }
        _ => {}
    }
}

fn paths_of(kind: &Kind, schema: &str) -> Map<String, Value> {
    let root = format!("/{}", path_of(kind));
    let scoped = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", kind.plural)
    } else {
        format!("{root}/{}", kind.plural)
    };
    let one = format!("{scoped}/{{name}}");
    let mut paths = Map::new();
    if kind.namespaced {
        let everywhere = json!({"get": operation(kind, schema, "list")});
        paths.insert(format!("{root}/{}", kind.plural), everywhere);
    }
    paths.insert(
        scoped,
        json!({
            "get": operation(kind, schema, "list"),
            "post": operation(kind, schema, "post"),
            "delete": operation(kind, schema, "deletecollection"),
        }),
    );
    let whole = |with_delete: bool| {
        let mut item = json!({
            "get": operation(kind, schema, "get"),
            "put": operation(kind, schema, "put"),
            "patch": operation(kind, schema, "patch"),
        });
        if with_delete {
            item["delete"] = operation(kind, schema, "delete");
        }
        item
    };
    paths.insert(one.clone(), whole(true));
    if kind.has_status {
        paths.insert(format!("{one}/status"), whole(false));
    }
    paths
}

fn operation(kind: &Kind, schema: &str, action: &str) -> Value {
    let query: &[&str] = match action {
        "list" | "deletecollection" => &[
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "resourceVersion",
            "watch",
        ],
        "post" | "put" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        _ => &[],
    };
    let parameters: Vec<Value> = query
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
    let mut operation = json!({
        "operationId": format!("{action}{}{}{}", kind.group.replace('.', ""), kind.version, kind.kind),
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(kind),
    });
    let body: &[&str] = match action {
        "post" | "put" => &["application/json"],
        "patch" if kind.custom => &[
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
        ],
        "patch" => &[
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ],
        _ => &[],
    };
    if !body.is_empty() {
        let content: Map<String, Value> = body
            .iter()
            .map(|kind| ((*kind).to_owned(), json!({"schema": reference})))
            .collect();
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}
