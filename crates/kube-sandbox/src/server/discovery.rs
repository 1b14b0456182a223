//! What the server serves, in the old form and the aggregated one; version and health.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Uri};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::api::{Api, table_of};
use super::negotiate::Accepted;
use super::respond::{self, Reply};
use super::reviews::REVIEWS;
use crate::kinds::{Kind, openapi};
use crate::status::ApiError;

/// Paths that are no resource.
pub(super) fn non_resource(api: &Api, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Reply, ApiError> {
    if method != Method::GET && method != Method::HEAD {
        return Err(ApiError::method_not_allowed());
    }
    let parts: Vec<&str> = uri.path().split('/').filter(|p| !p.is_empty()).collect();
    let reply = |value: &Value| Ok(respond::value(200, Accepted::JSON, value));
    match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Ok(respond::bytes(200, "text/plain; charset=utf-8", "ok")),
        ["version"] => reply(&version()),
        ["openapi", "v3"] => reply(&openapi::index(api.kinds())),
        ["openapi", "v3", path @ ..] => match openapi::document(api.kinds(), &path.join("/")) {
            Some(document) => reply(&document),
            None => Err(ApiError::not_served()),
        },
        ["openapi", "v2"] if accepted(headers).any(openapi::is_old_form) => {
            Ok(respond::bytes(200, openapi::OLD_FORM, openapi::old_document()))
        }
        ["metrics"] => Ok(respond::bytes(
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            metrics(api),
        )),
        ["api" | "apis"] if wants_aggregated(headers) => {
            let core = parts == ["api"];
            Ok(respond::bytes(
                200,
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
                aggregated(api, core).to_string(),
            ))
        }
        ["api"] => reply(&json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}],
        })),
        ["apis"] => {
            let groups: Vec<Value> = groups(api)
                .iter()
                .filter(|(g, _)| !g.is_empty())
                .map(|(g, v)| group(g, v))
                .collect();
            reply(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => match groups(api).get(*name) {
            Some(versions) => {
                let mut found = group(name, versions);
                found["kind"] = json!("APIGroup");
                found["apiVersion"] = json!("v1");
                reply(&found)
            }
            None => Err(ApiError::no_page()),
        },
        ["api", "v1"] => reply(&resources(api, "", "v1")),
        ["apis", name, version] => {
            let found = resources(api, name, version);
            if found["resources"].as_array().is_some_and(Vec::is_empty) {
                let known = groups(api).contains_key(*name);
                return Err(if known {
                    ApiError::not_served()
                } else {
                    ApiError::no_page()
                });
            }
            reply(&found)
        }
        _ => Err(ApiError::no_page()),
    }
}

/// How many objects of each kind there are, under the real server's name.
fn metrics(api: &Api) -> String {
    let mut out = String::from(
        "# HELP apiserver_storage_objects Number of stored objects.\n# TYPE apiserver_storage_objects gauge\n",
    );
    let mut tables: Vec<String> = api.kinds().all().iter().map(|k| table_of(k)).collect();
    tables.sort();
    tables.dedup();
    for table in tables {
        let count = api.store().count(&table);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "apiserver_storage_objects{{resource=\"{table}\"}} {count}");
    }
    out
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "emulationMajor": "1", "emulationMinor": "34",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "33",
        "gitVersion": "v1.34.4+kube-sandbox", "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, arch()),
    })
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn wants_aggregated(headers: &HeaderMap) -> bool {
    accepted(headers).any(|c| c.contains("as=APIGroupDiscoveryList") && c.contains("v=v2") && !c.contains("v2beta1"))
}

/// The media types a client takes.
fn accepted(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let all = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    all.split(',').map(str::trim)
}

/// Groups with their versions, in the order of the registry.
fn groups(api: &Api) -> BTreeMap<String, Vec<String>> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (group, ..) in REVIEWS {
        out.insert(group.to_owned(), vec!["v1".to_owned()]);
    }
    for kind in api.kinds().all() {
        let versions = out.entry(kind.group.clone()).or_default();
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
        }
    }
    out
}

fn group(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|v| json!({"groupVersion": format!("{name}/{v}"), "version": v}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn kinds_of(api: &Api, group: &str, version: &str) -> Vec<Arc<Kind>> {
    let mut kinds = api.kinds().all();
    kinds.retain(|k| k.group == group && k.version == version);
    kinds
}

fn reviews_of(group: &str, version: &str) -> impl Iterator<Item = (&'static str, &'static str, &'static str, bool)> {
    REVIEWS
        .into_iter()
        .filter(move |(g, ..)| *g == group && version == "v1")
}

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

fn resources(api: &Api, group: &str, version: &str) -> Value {
    let mut list = Vec::new();
    for (_, kind, plural, namespaced) in reviews_of(group, version) {
        list.push(json!({
            "name": plural, "singularName": kind.to_lowercase(), "namespaced": namespaced, "kind": kind,
            "verbs": ["create"],
        }));
    }
    for kind in kinds_of(api, group, version) {
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": VERBS, "storageVersionHash": storage_hash(&kind),
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            entry["categories"] = json!(kind.categories);
        }
        list.push(entry);
        for sub in subresources(&kind) {
            let mut entry = json!({
                "name": format!("{}/{}", kind.plural, sub.name), "singularName": "", "namespaced": kind.namespaced,
                "kind": sub.kind, "verbs": sub.verbs,
            });
            if let Some((group, version)) = sub.of {
                entry["group"] = json!(group);
                entry["version"] = json!(version);
            }
            list.push(entry);
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list})
}

/// What the real server's hash of a stored version is made of.
fn storage_hash(kind: &Kind) -> String {
    let digest = Sha256::digest(format!("{}/{}/{}", kind.group, kind.version, kind.kind));
    STANDARD.encode(&digest[..8])
}

struct Subresource {
    name: String,
    kind: String,
    /// Where its kind is not of the resource's own group.
    of: Option<(&'static str, &'static str)>,
    verbs: &'static [&'static str],
}

fn subresources(kind: &Kind) -> Vec<Subresource> {
    let plain = |name: &str, of, as_kind: &str, verbs| Subresource {
        name: name.into(),
        kind: as_kind.into(),
        of,
        verbs,
    };
    let mut out = Vec::new();
    for name in kind.subresources.iter().filter(|n| *n != "status" && *n != "scale") {
        out.push(match name.as_str() {
            "binding" => plain(name, None, "Binding", &["create"][..]),
            "eviction" => plain(name, Some(("policy", "v1")), "Eviction", &["create"]),
            "token" => plain(name, Some(("authentication.k8s.io", "v1")), "TokenRequest", &["create"]),
            "exec" => plain(name, None, "PodExecOptions", &["create", "get"]),
            "attach" => plain(name, None, "PodAttachOptions", &["create", "get"]),
            "portforward" => plain(name, None, "PodPortForwardOptions", &["create", "get"]),
            "finalize" => plain(name, None, &kind.kind, &["update"]),
            "log" => plain(name, None, &kind.kind, &["get"]),
            _ => plain(name, None, &kind.kind, &["get", "patch", "update"]),
        });
    }
    if kind.scale.is_some() {
        out.push(plain(
            "scale",
            Some(("autoscaling", "v1")),
            "Scale",
            &["get", "patch", "update"],
        ));
    }
    if kind.has_status {
        out.push(plain("status", None, &kind.kind, &["get", "patch", "update"]));
    }
    out
}

/// Everything in one answer: `/api` is the core group, `/apis` all others.
fn aggregated(api: &Api, core: bool) -> Value {
    let items: Vec<Value> = groups(api)
        .iter()
        .filter(|(group, _)| group.is_empty() == core)
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let mut list: Vec<Value> = reviews_of(group, version).map(aggregated_review).collect();
                    list.extend(kinds_of(api, group, version).iter().map(|k| aggregated_kind(k)));
                    json!({"version": version, "freshness": "Current", "resources": list})
                })
                .collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !group.is_empty() {
                metadata["name"] = json!(group);
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_review((group, kind, plural, namespaced): (&str, &str, &str, bool)) -> Value {
    json!({
        "resource": plural,
        "responseKind": {"group": group, "version": "v1", "kind": kind},
        "scope": if namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.to_lowercase(),
        "verbs": ["create"],
    })
}

fn aggregated_kind(kind: &Kind) -> Value {
    let of = |group: &str, version: &str, name: &str| json!({"group": group, "version": version, "kind": name});
    let subs: Vec<Value> = subresources(kind)
        .iter()
        .map(|s| {
            let (group, version) = s.of.unwrap_or((&kind.group, &kind.version));
            json!({"subresource": s.name, "responseKind": of(group, version, &s.kind), "verbs": s.verbs})
        })
        .collect();
    let mut entry = json!({
        "resource": kind.plural,
        "responseKind": of(&kind.group, &kind.version, &kind.kind),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": VERBS,
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
    if !subs.is_empty() {
        entry["subresources"] = json!(subs);
    }
    entry
}
