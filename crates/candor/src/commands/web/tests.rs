//! What pages contain: every state, and nothing that others wrote as anything but text.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::cluster::{self, PageOptions};
use super::fleet::{self, Around, Filter, Row};
use super::page::{self, Frame};
use super::source::Source;
use super::world::{Key, World};
use crate::commands::clean::is_active;
use crate::commands::cluster::Kind;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::{fixtures, redkey_fixtures};

/// A script, an attribute that ends early, escape sequences of terminals, marks that turn text around.
const EVIL: &str =
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\u{2066}y\u{200f}";

fn key(snapshot: &Snapshot) -> Key {
    Key {
        namespace: "default".to_owned(),
        kind: snapshot.object.kind(),
        name: snapshot.object.name(),
    }
}

/// Both pages of a cluster.
fn pages(snapshot: &Snapshot, options: &PageOptions) -> [String; 2] {
    let frame = Frame {
        title: snapshot.object.name(),
        trail: Some(snapshot.object.name()),
        user: Some(EVIL.to_owned()),
        ..Frame::default()
    };
    let one = cluster::lists(&cluster::render(snapshot, options));
    let row = Row::of(&key(snapshot), snapshot);
    let all = fleet::render(
        &[row],
        &Filter::default(),
        &Around::of(&World::new(Source::ALL), snapshot.now),
    );
    [page::page(&frame, &one), page::page(&frame, &fleet::lists(&all))]
}

/// The same object with a text wherever others can write one.
fn spoiled(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let is_text = matches!(
                    name.as_str(),
                    "message" | "reason" | "note" | "podName" | "nodeName" | "nodeId" | "image"
                );
                match field {
                    Value::String(text) if is_text => *text = EVIL.to_owned(),
                    field => spoiled(field),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(spoiled),
        _ => {}
    }
}

fn hostile(mut snapshot: Snapshot) -> Snapshot {
    fn again<K: serde::Serialize + serde::de::DeserializeOwned>(object: &mut K) {
        let mut value = json!(object);
        spoiled(&mut value);
        *object = serde_json::from_value(value).unwrap();
    }
    match &mut snapshot.object {
        crate::commands::cluster::Object::Valkey(one) => again(one.as_mut()),
        crate::commands::cluster::Object::Redkey(one) => again(one.as_mut()),
    }
    snapshot.nodes.iter_mut().for_each(again);
    snapshot.pods.iter_mut().for_each(again);
    snapshot.events.iter_mut().for_each(again);
    snapshot.notes = vec![EVIL.to_owned()];
    snapshot.zones.values_mut().for_each(|zone| EVIL.clone_into(zone));
    snapshot
}

fn states() -> Vec<(&'static str, Snapshot)> {
    [fixtures::states(), redkey_fixtures::states()].concat()
}

#[test]
fn text_of_others_is_never_markup_nor_control() {
    let options = PageOptions {
        shards: Some(5),
        token: Some("token".to_owned()),
    };
    for (state, snapshot) in states() {
        for page in pages(&hostile(snapshot), &options) {
            assert!(page.contains("&lt;script&gt;"), "{state}: the canary is shown as text");
            for part in ["<script>", "<img", "onerror=alert(2)>"] {
                assert!(!page.contains(part), "{state}: {part} in {page}");
            }
            let active = page.chars().find(|c| *c != '\n' && is_active(*c));
            assert_eq!(active, None, "{state}");
        }
    }
}

#[test]
fn a_page_says_what_status_says() {
    for (state, snapshot) in states() {
        let answer =
            crate::commands::cluster::answer::Answer::of(&snapshot.cluster(), &snapshot.operator, snapshot.now);
        for page in pages(&snapshot, &PageOptions::default()) {
            let text = without_tags(&page);
            let said = answer.text();
            assert!(text.contains(&said), "{state}: {said} is not in {text}");
            assert!(page.contains(&answer.state), "{state}");
        }
    }
}

fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for c in page.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    text.replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[test]
fn without_permission_to_change_there_is_no_button() {
    let page = |options: &PageOptions| pages(&fixtures::healthy(), options)[0].clone();
    let read_only = page(&PageOptions::default());
    assert!(
        read_only.contains("Read-only") && !read_only.contains("Pause…"),
        "{read_only}"
    );
    let changing = page(&PageOptions {
        shards: None,
        token: Some("token".to_owned()),
    });
    assert!(changing.contains("Pause…") && changing.contains("Restart members…"));
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_list_that_starts_again_forgets_what_it_does_not_have() {
    let source = Source::Clusters(Kind::ValkeyCluster);
    let named = |name: &str| {
        object(json!({"apiVersion": "valkey.io/v1alpha1", "kind": "ValkeyCluster",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"shards": 1}}))
    };
    let names = |world: &World| world.clusters().map(|(key, _)| key.name.clone()).collect::<Vec<_>>();
    let mut world = World::new(Source::ALL);
    world.begin(source);
    world.apply(source, named("a"));
    world.apply(source, named("b"));
    assert!(!world.is_complete());
    world.complete(source);
    world.fail(Source::Clusters(Kind::RedkeyCluster), "forbidden".to_owned());
    assert!(world.is_complete(), "a kind that may not be listed is not waited for");
    assert_eq!(names(&world), ["a", "b"]);
    assert_eq!(world.notes(|_| true), ["RedkeyClusters are not shown: forbidden"]);
    world.begin(source);
    world.apply(source, named("b"));
    assert_eq!(
        names(&world),
        ["a", "b"],
        "nothing is forgotten before the list is complete"
    );
    world.complete(source);
    assert_eq!(names(&world), ["b"]);
    world.remove(source, &named("b"));
    assert_eq!(names(&world), Vec::<String>::new());
}

#[test]
fn an_object_that_cannot_be_decoded_costs_only_itself() {
    let source = Source::Clusters(Kind::ValkeyCluster);
    let mut world = World::new(Source::ALL);
    world.apply(
        source,
        object(json!({"metadata": {"name": "odd", "namespace": "default"}, "spec": {"shards": "three"}})),
    );
    assert_eq!(world.clusters().count(), 0);
    assert!(
        world.notes(|_| true)[0].contains("default/odd cannot be decoded"),
        "{:?}",
        world.notes(|_| true)
    );
}

#[test]
fn broken_clusters_come_first() {
    let snapshots = [fixtures::healthy(), fixtures::moving(), fixtures::primary_lost()];
    let rows: Vec<Row> = snapshots.iter().map(|one| Row::of(&key(one), one)).collect();
    let rendered = fleet::render(
        &rows,
        &Filter::default(),
        &Around::of(&World::new(Source::ALL), snapshots[0].now),
    );
    let found: Vec<(&str, usize)> = rendered.iter().map(|(list, parts)| (*list, parts.len())).collect();
    assert_eq!(
        found,
        [
            ("fleet-head", 1),
            ("rows-broken", 1),
            ("rows-progress", 1),
            ("rows-desired", 1)
        ]
    );
    let text = |text: &str| Filter {
        namespace: None,
        text: text.to_owned(),
    };
    for (filter, shown) in [(text("SHOP"), 3), (text("shop primarylost"), 1), (text("nothing"), 0)] {
        let rendered = fleet::render(&rows, &filter, &Around::of(&World::new(Source::ALL), snapshots[0].now));
        assert_eq!(
            rendered[1..].iter().map(|(_, parts)| parts.len()).sum::<usize>(),
            shown,
            "{filter:?}"
        );
    }
}
