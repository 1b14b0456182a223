//! Older answers of the server, for stale reads.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use serde_json::Value;

use super::request::{RequestInfo, Verb};

/// Versions kept of one object or list.
const MAX_VERSIONS: usize = 16;

/// Older versions of objects and of lists, as this client saw them.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    objects: HashMap<String, VecDeque<Bytes>>,
    lists: HashMap<String, VecDeque<Bytes>>,
}

impl Snapshots {
    /// Keeps an answer. Objects are learned from gets, from lists and from the answers to writes.
    pub fn keep(&mut self, request: &RequestInfo, query: &str, answer: &Bytes) {
        match request.verb {
            Verb::List => {
                push(self.lists.entry(list_key(request, query)).or_default(), answer.clone());
                self.keep_items(request, answer);
            }
            Verb::Get | Verb::Update | Verb::Patch if request.subresource != "scale" && !request.dry_run => {
                push(self.objects.entry(object_key(request)).or_default(), answer.clone());
            }
            Verb::Create if request.subresource.is_empty() && !request.dry_run => {
                let Ok(object) = serde_json::from_slice::<Value>(answer) else {
                    return;
                };
                let Some(name) = object["metadata"]["name"].as_str() else {
                    return;
                };
                push(
                    self.objects.entry(format!("{}/{name}", request.path)).or_default(),
                    answer.clone(),
                );
            }
            _ => {}
        }
    }

    /// The answer of so many versions ago, where it is known.
    pub fn older(&self, request: &RequestInfo, query: &str, back: usize) -> Option<Bytes> {
        let history = match request.verb {
            Verb::List => self.lists.get(&list_key(request, query))?,
            Verb::Get => self.objects.get(&object_key(request))?,
            _ => return None,
        };
        let at = history.len().checked_sub(1 + back)?;
        history.get(at).cloned()
    }

    /// A list's items are objects too, but carry neither kind nor apiVersion.
    fn keep_items(&mut self, request: &RequestInfo, answer: &Bytes) {
        let Ok(mut list) = serde_json::from_slice::<Value>(answer) else {
            return;
        };
        let Some(kind) = list["kind"]
            .as_str()
            .and_then(|kind| kind.strip_suffix("List"))
            .map(str::to_owned)
        else {
            return;
        };
        let version = list["apiVersion"].clone();
        for item in list["items"].as_array_mut().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let base = if request.group.is_empty() {
                format!("/api/{}", request.version)
            } else {
                format!("/apis/{}/{}", request.group, request.version)
            };
            let path = if namespace.is_empty() {
                format!("{base}/{}/{name}", request.resource)
            } else {
                format!("{base}/namespaces/{namespace}/{}/{name}", request.resource)
            };
            item["kind"] = Value::from(kind.clone());
            item["apiVersion"] = version.clone();
            push(self.objects.entry(path).or_default(), Bytes::from(item.to_string()));
        }
    }
}

/// Adds a version unless the newest one known is the same.
fn push(history: &mut VecDeque<Bytes>, answer: Bytes) {
    if history.back().is_some_and(|newest| same_version(newest, &answer)) {
        return;
    }
    if history.len() == MAX_VERSIONS {
        history.pop_front();
    }
    history.push_back(answer);
}

/// Two answers are one version when their resourceVersions are: an object's text differs between a list and a get.
fn same_version(a: &Bytes, b: &Bytes) -> bool {
    let version = |bytes: &Bytes| {
        serde_json::from_slice::<Value>(bytes)
            .ok()
            .and_then(|value| value["metadata"]["resourceVersion"].as_str().map(str::to_owned))
    };
    a == b || version(a).is_some_and(|a| Some(a) == version(b))
}

/// The object's own path, whichever of its subresources was asked.
fn object_key(request: &RequestInfo) -> String {
    request
        .path
        .trim_end_matches('/')
        .strip_suffix(&format!("/{}", request.subresource))
        .unwrap_or(&request.path)
        .to_owned()
}

/// Path and selectors: what makes two lists ask for the same.
fn list_key(request: &RequestInfo, query: &str) -> String {
    let mut parts: Vec<&str> = query
        .split('&')
        .filter(|pair| {
            ["labelSelector=", "fieldSelector=", "limit=", "continue="]
                .iter()
                .any(|key| pair.starts_with(key))
        })
        .collect();
    parts.sort_unstable();
    format!("{}?{}", request.path, parts.join("&"))
}
