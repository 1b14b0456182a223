//! Seeded sequences: every verb and patch type, good input and bad.

use serde_json::{Value, json};

use super::objects::{KINDS, Kind, metadata_changes, object};
use super::operation::{Operation, Payload, VersionToSend};
use super::random::Random;

/// One sequence works in its own namespace, on two kinds and few names, so that its requests concern the same objects.
pub struct Sequence {
    pub namespace: String,
    pub kinds: Vec<&'static Kind>,
    pub operations: Vec<Operation>,
}

const NAMES: &[&str] = &["a", "b", "c"];
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
pub const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub const APPLY: &str = "application/apply-patch+yaml";

/// `run` keeps the namespaces of two runs apart, so that a sequence can be repeated on the same servers.
pub fn sequence(run: &str, seed: u64, number: u64, length: u64) -> Sequence {
    let mut random = Random::seeded(seed.wrapping_mul(1_000_003).wrapping_add(number));
    let namespace = format!("c{seed}-{number}-{run}");
    let kinds = vec![random.pick(KINDS), random.pick(KINDS)];
    let mut operations = Vec::new();
    for kind in &kinds {
        operations.push(create(kind, &namespace, &mut random));
    }
    for _ in 0..length {
        let kind = *random.pick(&kinds);
        operations.push(any(kind, &namespace, &mut random));
    }
    Sequence {
        namespace,
        kinds,
        operations,
    }
}

pub fn collection(kind: &Kind, namespace: &str) -> String {
    format!("{}/namespaces/{namespace}/{}", kind.base, kind.plural)
}

fn any(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let operation = match random.below(100) {
        0..=14 => create(kind, namespace, random),
        15..=21 => bad_create(kind, namespace, random),
        22..=28 => get(kind, namespace, random),
        29..=36 => list(kind, namespace, random),
        37..=47 => update(kind, namespace, random),
        48..=56 => patch(kind, namespace, random, MERGE),
        57..=63 => json_patch(kind, namespace, random),
        64..=70 => patch(kind, namespace, random, STRATEGIC),
        71..=82 => apply(kind, namespace, random),
        83..=89 => delete(kind, namespace, random),
        90..=91 => delete_collection(kind, namespace, random),
        92..=94 => scale(kind, namespace, random),
        95..=97 => status(kind, namespace, random),
        _ => odd(kind, namespace, random),
    };
    if operation.method != "GET" && random.one_in(10) {
        return operation.query("dryRun", *random.pick(&["All", "All", "All", "Some"]));
    }
    operation
}

fn create(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let mut body = object(kind, namespace, name, random);
    let label = format!("create {}", kind.plural);
    match random.below(12) {
        0 => return create_generated(kind, namespace),
        1 => body["metadata"]["finalizers"] = json!(["conformance.dev/hold"]),
        2 => body["metadata"]["annotations"] = json!({"note": "x"}),
        3 => {
            body["metadata"].as_object_mut().map(|m| m.remove("namespace"));
        }
        _ => {}
    }
    validated(
        Operation::new(label, "POST", collection(kind, namespace)).json(body),
        random,
    )
}

/// Generated names are in a random order: what has one is always the same, so that their order does not show.
fn create_generated(kind: &Kind, namespace: &str) -> Operation {
    let mut body = object(kind, namespace, "generated", &mut Random::seeded(0));
    body["metadata"].as_object_mut().map(|m| m.remove("name"));
    body["metadata"]["generateName"] = json!("gen-");
    let label = format!("create-generated {}", kind.plural);
    Operation::new(label, "POST", collection(kind, namespace)).json(body)
}

fn validated(operation: Operation, random: &mut Random) -> Operation {
    match random.below(6) {
        0 => operation.query("fieldValidation", "Strict"),
        1 => operation.query("fieldValidation", "Warn"),
        2 => operation.query("fieldManager", "hand"),
        _ => operation,
    }
}

fn bad_create(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let mut body = object(kind, namespace, name, random);
    let path = collection(kind, namespace);
    let label = |what: &str| format!("create-{what} {}", kind.plural);
    let (what, body) = match random.below(17) {
        0 => ("bad-name", with(body, "/metadata/name", json!("Not_Valid"))),
        1 => ("no-name", with(body, "/metadata/name", Value::Null)),
        2 => ("wrong-namespace", with(body, "/metadata/namespace", json!("elsewhere"))),
        3 => ("wrong-kind", with(body, "/kind", json!("Nonsense"))),
        4 => ("wrong-version", with(body, "/apiVersion", json!("v9"))),
        5 => ("no-kind", with(body, "/kind", Value::Null)),
        6 => ("no-spec", with(body, "/spec", Value::Null)),
        7 => ("bad-labels", with(body, "/metadata/labels", json!({"d": "e/f"}))),
        8 => ("with-version", with(body, "/metadata/resourceVersion", json!("5"))),
        9 => ("bad-finalizer", with(body, "/metadata/finalizers", json!(["no slash"]))),
        10 => {
            let unknown = with(with(body, "/nonsense", json!(1)), "/spec/alsoNonsense", json!({"x": 1}));
            let operation = Operation::new(label("unknown-field"), "POST", path).json(unknown);
            return operation.query("fieldValidation", *random.pick(&["Strict", "Warn", "Ignore", "Bogus"]));
        }
        11 => {
            let text = *random.pick(&["{", "", "[]", "null", "\"x\"", "{\"apiVersion\": 1}", "{}", "a: b"]);
            let raw = Payload::Raw(text.to_owned());
            return Operation::new(label("broken"), "POST", path).body("application/json", raw);
        }
        12 => {
            let kind = *random.pick(&["text/plain", "application/xml", ""]);
            return Operation::new(label("content-type"), "POST", path).body(kind, Payload::Json(body));
        }
        13 => {
            let (pointer, value) = change(kind, random);
            ("changed", with(body, pointer, value))
        }
        14 => {
            let text = body.to_string().replacen('{', "{\"kind\":\"Double\",", 1);
            let raw = Payload::Raw(text);
            return Operation::new(label("duplicate-field"), "POST", path)
                .body("application/json", raw)
                .query("fieldValidation", *random.pick(&["Strict", "Warn"]));
        }
        15 => ("long-name", with(body, "/metadata/name", json!("x".repeat(300)))),
        _ => {
            body["metadata"]["generateName"] = json!("Bad_");
            ("bad-generate-name", with(body, "/metadata/name", Value::Null))
        }
    };
    Operation::new(label(what), "POST", path).json(body)
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    super::server::set(&mut object, pointer, value);
    object
}

/// A pointer into an object of the kind and a value for it.
fn change(kind: &Kind, random: &mut Random) -> (&'static str, Value) {
    let table = if random.one_in(3) {
        metadata_changes()
    } else {
        kind.changes
    };
    let (pointer, text) = *random.pick(table);
    (pointer, serde_json::from_str(text).unwrap_or(Value::Null))
}

fn get(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let path = format!(
        "{}/{}",
        collection(kind, namespace),
        random.pick(&["a", "b", "c", "missing", "Bad_Name"])
    );
    let operation = Operation::new(format!("get {}", kind.plural), "GET", path);
    match random.below(6) {
        0 => operation.accept(TABLE),
        1 => operation.query("resourceVersion", "0"),
        2 => operation.accept("application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"),
        _ => operation,
    }
}

fn list(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let operation = Operation::new(format!("list {}", kind.plural), "GET", collection(kind, namespace));
    match random.below(16) {
        0 => operation.query("limit", "1"),
        1 => operation.query("limit", "2"),
        2 => operation.query("limit", "1").query("continue", "$continue"),
        3 => operation.query(
            "labelSelector",
            *random.pick(&[
                "tier=web",
                "tier!=web",
                "tier in (web,db),app",
                "!tier",
                "app notin (a)",
            ]),
        ),
        4 => operation.query(
            "fieldSelector",
            *random.pick(&["metadata.name=a", "metadata.name!=a", "metadata.namespace=x"]),
        ),
        5 => operation.query(
            "fieldSelector",
            *random.pick(&["spec.nothing=1", "status.phase=Running", "metadata.name==a"]),
        ),
        6 => operation.query(
            "labelSelector",
            *random.pick(&["a b", "tier in web", "=x", "tier in (a", "x/y/z=1", "tier>1"]),
        ),
        7 => operation.query("resourceVersion", "0"),
        8 => operation.query(
            "resourceVersionMatch",
            *random.pick(&["Exact", "NotOlderThan", "Bogus"]),
        ),
        9 => operation
            .query("resourceVersion", "0")
            .query("resourceVersionMatch", *random.pick(&["Exact", "NotOlderThan"])),
        10 => operation.query("resourceVersion", "nonsense"),
        11 => operation.accept(TABLE),
        12 => operation.query("continue", "nonsense"),
        13 => operation.query("limit", *random.pick(&["-1", "x", "0"])),
        14 => operation.accept("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        _ => operation,
    }
}

fn update(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let path = format!("{}/{name}", collection(kind, namespace));
    let mut sets = vec![change(kind, random)];
    if random.one_in(3) {
        sets.push(change(kind, random));
    }
    if random.one_in(20) {
        sets.push(("/metadata/uid", json!("22222222-2222-4222-8222-222222222222")));
    }
    let version = *random.pick(&[
        VersionToSend::Newest,
        VersionToSend::Newest,
        VersionToSend::Newest,
        VersionToSend::First,
        VersionToSend::None,
        VersionToSend::Malformed,
    ]);
    let otherwise = object(kind, namespace, name, random);
    let body = Payload::Changed {
        of: path.clone(),
        otherwise,
        sets,
        version,
    };
    validated(
        Operation::new(format!("update {}", kind.plural), "PUT", path).body("application/json", body),
        random,
    )
}

fn patch(kind: &Kind, namespace: &str, random: &mut Random, content_type: &'static str) -> Operation {
    let path = format!("{}/{}", collection(kind, namespace), random.pick(NAMES));
    let word = if content_type == MERGE { "merge" } else { "strategic" };
    let mut body = json!({});
    for _ in 0..=random.below(2) {
        let (pointer, value) = change(kind, random);
        if !pointer.contains("/0/") {
            put(&mut body, pointer, value);
        }
    }
    if content_type == STRATEGIC && random.one_in(2) {
        let containers = *random.pick(&[
            r#"[{"name":"main","image":"patched:3"}]"#,
            r#"[{"name":"second","image":"side:1"}]"#,
            r#"[{"name":"main","$patch":"delete"}]"#,
            r#"[{"$patch":"replace"},{"name":"only","image":"only:1"}]"#,
            r#"[{"name":"main","env":[{"name":"B","value":"2"}],"ports":[{"containerPort":81}]}]"#,
            r#"[{"image":"nameless:1"}]"#,
        ]);
        let containers: Value = serde_json::from_str(containers).unwrap_or_default();
        match kind.name {
            "Deployment" | "StatefulSet" => put(&mut body, "/spec/template/spec/containers", containers),
            "Pod" => put(&mut body, "/spec/containers", containers),
            "Service" => put(&mut body, "/spec/ports", json!([{"port": 90, "name": "more"}])),
            _ => put(&mut body, "/metadata/labels/$patch", json!("replace")),
        }
    }
    let operation = Operation::new(format!("patch-{word} {}", kind.plural), "PATCH", path);
    if random.one_in(15) {
        let raw = *random.pick(&["{", "[]", "null", "7", ""]);
        return operation.body(content_type, Payload::Raw(raw.to_owned()));
    }
    validated(operation.body(content_type, Payload::Json(body)), random)
}

/// Sets a value by pointer, `null` included.
fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    for part in pointer.trim_start_matches('/').split('/') {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[part];
    }
    *at = value;
}

fn json_patch(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let path = format!("{}/{}", collection(kind, namespace), random.pick(NAMES));
    let operation = Operation::new(format!("patch-json {}", kind.plural), "PATCH", path);
    let (pointer, value) = change(kind, random);
    let body = match random.below(12) {
        0 => json!([{"op": "test", "path": "/metadata/name", "value": "nobody"}]),
        1 => json!([{"op": "remove", "path": "/metadata/labels/none"}]),
        2 => json!([{"op": "remove", "path": "/metadata/labels/tier"}]),
        3 => json!([{"op": "replace", "path": "/metadata/annotations/none", "value": "x"}]),
        4 => json!([{"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copied"}]),
        5 => json!([{"op": "move", "from": "/metadata/labels/app", "path": "/metadata/labels/moved"}]),
        6 => json!([{"op": "nonsense", "path": "/a"}]),
        7 => json!({"op": "add"}),
        8 => json!([{"op": "add", "path": "/metadata/deep/er", "value": 1}]),
        9 => {
            json!([{"op": "test", "path": "/kind", "value": kind.name}, {"op": "add", "path": pointer, "value": value}])
        }
        _ => json!([{"op": "add", "path": pointer, "value": value}]),
    };
    operation.body(JSON_PATCH, Payload::Json(body))
}

fn apply(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let path = format!("{}/{name}", collection(kind, namespace));
    let mut body = match random.below(3) {
        0 => object(kind, namespace, name, random),
        _ => json!({"apiVersion": kind.version, "kind": kind.name, "metadata": {"name": name}}),
    };
    for _ in 0..=random.below(2) {
        let (pointer, value) = change(kind, random);
        if !value.is_null() && !pointer.contains("/0/") && !pointer.starts_with("/status") {
            put(&mut body, pointer, value);
        }
    }
    if random.one_in(12) {
        put(&mut body, "/metadata/managedFields", json!([]));
    }
    let mut operation =
        Operation::new(format!("apply {}", kind.plural), "PATCH", path).body(APPLY, Payload::Json(body));
    if !random.one_in(15) {
        operation = operation.query("fieldManager", *random.pick(&["x", "y"]));
    }
    if random.one_in(2) {
        operation = operation.query("force", *random.pick(&["true", "true", "false"]));
    }
    operation
}

fn delete(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let path = format!(
        "{}/{}",
        collection(kind, namespace),
        random.pick(&["a", "b", "c", "missing"])
    );
    let operation = Operation::new(format!("delete {}", kind.plural), "DELETE", path.clone());
    let options = match random.below(10) {
        0 => json!({"preconditions": {"uid": "$uid"}}),
        1 => json!({"preconditions": {"uid": "33333333-3333-4333-8333-333333333333"}}),
        2 => json!({"preconditions": {"resourceVersion": "$version"}}),
        3 => json!({"preconditions": {"resourceVersion": "1"}}),
        4 => json!({"propagationPolicy": *random.pick(&["Foreground", "Background", "Orphan", "Sideways"])}),
        5 => json!({"orphanDependents": *random.pick(&[true, false])}),
        6 => json!({"gracePeriodSeconds": *random.pick(&[0, 5, -1])}),
        7 => json!({"orphanDependents": true, "propagationPolicy": "Background"}),
        8 => return operation.query("propagationPolicy", *random.pick(&["Foreground", "Orphan", "Nonsense"])),
        _ => return operation,
    };
    operation.body("application/json", Payload::Options { of: path, options })
}

fn delete_collection(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let operation = Operation::new(
        format!("deletecollection {}", kind.plural),
        "DELETE",
        collection(kind, namespace),
    );
    match random.below(4) {
        0 => operation.query("labelSelector", "tier=web"),
        1 => operation.query("fieldSelector", "metadata.name=a"),
        2 => operation.query("labelSelector", "tier in (none)"),
        _ => operation,
    }
}

fn scale(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let path = format!("{}/{name}/scale", collection(kind, namespace));
    if !kind.scale && !random.one_in(4) {
        return get(kind, namespace, random);
    }
    let operation = |word: &str, method| Operation::new(format!("{word} {}/scale", kind.plural), method, path.clone());
    let replicas = *random.pick(&[0, 2, 5, -1, 12]);
    match random.below(3) {
        0 => operation("get", "GET"),
        1 => operation("update", "PUT").json(json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name, "namespace": namespace},
            "spec": {"replicas": replicas},
        })),
        _ => operation("patch-merge", "PATCH").body(MERGE, Payload::Json(json!({"spec": {"replicas": replicas}}))),
    }
}

fn status(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let name = *random.pick(NAMES);
    let object_path = format!("{}/{name}", collection(kind, namespace));
    let path = format!("{object_path}/status");
    if !kind.status && !random.one_in(4) {
        return update(kind, namespace, random);
    }
    let (pointer, value) = if kind.statuses.is_empty() || random.one_in(4) {
        change(kind, random)
    } else {
        let (pointer, text) = *random.pick(kind.statuses);
        (pointer, serde_json::from_str(text).unwrap_or(Value::Null))
    };
    let label = |word: &str| format!("{word} {}/status", kind.plural);
    match random.below(4) {
        0 => Operation::new(label("get"), "GET", path),
        1 => {
            let body = Payload::Changed {
                of: object_path,
                otherwise: object(kind, namespace, name, random),
                sets: vec![(pointer, value), ("/metadata/labels/from", json!("status"))],
                version: VersionToSend::Newest,
            };
            Operation::new(label("update"), "PUT", path).body("application/json", body)
        }
        2 => {
            let mut body = json!({});
            if !pointer.contains("/0/") {
                put(&mut body, pointer, value);
            }
            Operation::new(label("patch-merge"), "PATCH", path).body(MERGE, Payload::Json(body))
        }
        _ => {
            let mut body = json!({"apiVersion": kind.version, "kind": kind.name, "metadata": {"name": name}});
            if !pointer.contains("/0/") && !value.is_null() {
                put(&mut body, pointer, value);
            }
            Operation::new(label("apply"), "PATCH", path)
                .body(APPLY, Payload::Json(body))
                .query("fieldManager", "z")
                .query("force", "true")
        }
    }
}

fn odd(kind: &Kind, namespace: &str, random: &mut Random) -> Operation {
    let path = collection(kind, namespace);
    let label = |word: &str| format!("odd-{word} {}", kind.plural);
    match random.below(8) {
        0 => Operation::new(label("put-collection"), "PUT", path).json(json!({})),
        1 => Operation::new(label("post-object"), "POST", format!("{path}/a")).json(json!({})),
        2 => Operation::new(
            label("no-resource"),
            "GET",
            format!("{}/namespaces/{namespace}/nothings", kind.base),
        ),
        3 => Operation::new(label("no-subresource"), "GET", format!("{path}/a/nothing")),
        4 => Operation::new(
            label("no-group"),
            "GET",
            format!("/apis/nothing.dev/v1/namespaces/{namespace}/{}", kind.plural),
        ),
        5 => Operation::new(label("patch-collection"), "PATCH", path).body(MERGE, Payload::Json(json!({}))),
        6 => {
            let content_type = *random.pick(&["application/json", "text/plain"]);
            let operation = Operation::new(label("patch-type"), "PATCH", format!("{path}/a"));
            operation.body(content_type, Payload::Json(json!({})))
        }
        _ => Operation::new(label("watch"), "GET", path)
            .query("watch", "true")
            .query("timeoutSeconds", "1")
            .query("resourceVersion", *random.pick(&["nonsense", "-1"])),
    }
}
