//! What a real kube-apiserver 1.34 answered to bad objects and forbidden changes (`fixtures/refusals.json`), against what
//! the sandbox answers.

use kube_sandbox::kinds::{Kind, Registry};
use kube_sandbox::patch::merge_patch;
use kube_sandbox::status::ApiError;
use serde_json::Value;

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

fn said(kind: &Kind, object: &Value, old: Option<&Value>) -> String {
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

/// Told by admission, or by the allocator of addresses, and not by a rule of the kind.
const ELSEWHERE: &[&str] = &["error looking up service account", "not configured for dual-stack"];

#[test]
fn bad_objects_are_refused_in_the_real_servers_words() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/refusals.json")).unwrap();
    let mut wrong = Vec::new();
    for row in rows {
        let wanted = head(row["answer"]["message"].as_str().unwrap_or_default());
        if ELSEWHERE.iter().any(|words| wanted.contains(words)) {
            continue;
        }
        let (mut object, old) = match row.get("create") {
            Some(object) => (object.clone(), None),
            None => (merge_patch(&row["live"], &row["patch"]).unwrap(), Some(&row["live"])),
        };
        let kind = kind_of(&object);
        kind.schema.default(&mut object);
        let ours = said(&kind, &object, old);
        if ours != wanted {
            wrong.push(format!("{row}\n  ours   {ours}\n  theirs {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_a_real_server_stores_is_refused_by_no_rule() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/answers.json")).unwrap();
    for row in rows {
        let stored = &row["created"];
        let kind = kind_of(stored);
        assert_eq!(said(&kind, stored, None), "", "{}", kind.kind);
        assert_eq!(said(&kind, stored, Some(stored)), "", "{}", kind.kind);
        let mut again = stored.clone();
        kind.schema.default(&mut again);
        assert_eq!(
            again, *stored,
            "{}: defaulting a stored object changes nothing",
            kind.kind
        );
    }
}
