//! Snapshot tests of every screen, in every state, at every width, with and without colour.

use std::fmt::Write;

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::clean::{clean, is_active};
use super::cluster::names::Names;
use super::cluster::{Kind, Object};
use super::describe::{Objects, Which, typed};
use super::output::Screen;
use super::snapshot::Snapshot;
use super::status::screen::{Report, Transition, draw_transitions};
use super::status::{fixtures, redkey_fixtures};
use super::{describe, history, plan, top};

/// Renders a snapshot for one command.
type Draw = fn(&Snapshot, &Screen) -> String;

const SCREENS: [(&str, Draw); 5] = [
    ("status", status),
    ("describe", described),
    ("events", events),
    ("history", past),
    ("plan", planned),
];
const WIDTHS: [usize; 3] = [80, 120, 200];

fn screen(width: usize, colour: bool) -> Screen {
    Screen {
        width: Some(width),
        colour,
        wide: width > 150,
    }
}

/// Clusters of both kinds in their common states.
fn states() -> Vec<(&'static str, Snapshot)> {
    [fixtures::states(), redkey_fixtures::states()].concat()
}

fn now() -> Timestamp {
    fixtures::NOW.parse().unwrap()
}

fn status(snapshot: &Snapshot, screen: &Screen) -> String {
    Report::of(snapshot).draw(screen)
}

fn described(snapshot: &Snapshot, screen: &Screen) -> String {
    describe::draw(&objects(snapshot), now(), Which::Matter, screen).unwrap()
}

fn events(snapshot: &Snapshot, screen: &Screen) -> String {
    let names = Names::of(&snapshot.cluster());
    let shown: Vec<Transition> = snapshot
        .events
        .iter()
        .map(|event| Transition::of(event, &names))
        .collect();
    draw_transitions(&shown, now(), screen)
}

fn past(snapshot: &Snapshot, screen: &Screen) -> String {
    history::draw(&history::periods(snapshot), now(), screen)
}

/// The plan for one more shard.
fn planned(snapshot: &Snapshot, screen: &Screen) -> String {
    let mut desired = snapshot.object.clone();
    match &mut desired {
        Object::Valkey(desired) => desired.spec.shards += 1,
        Object::Redkey(desired) => desired.spec.primaries += 1,
    }
    plan::draw(Some(&snapshot.object), &desired, &plan::weights(snapshot), screen)
}

/// The objects that the cluster of a snapshot consists of.
fn objects(snapshot: &Snapshot) -> Objects {
    let deployment = |shard: i32, node: i32| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("valkey-shop-{shard}-{node}"),
            "labels": {"valkey.io/shard-index": shard.to_string(), "valkey.io/node-index": node.to_string()}},
            "spec": {"replicas": 1}, "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
                "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]}})
    };
    let mut others: Vec<Value> = match snapshot.object.kind() {
        Kind::ValkeyCluster => Vec::new(),
        Kind::RedkeyCluster => redkey_workloads(snapshot.pods.len()),
    };
    for node in &snapshot.nodes {
        let mut value = typed(node);
        value["metadata"]["labels"] = json!({"valkey.io/shard-index": node.spec.shard.to_string(),
            "valkey.io/node-index": node.spec.node.to_string()});
        others.push(value);
        others.push(deployment(node.spec.shard, node.spec.node));
    }
    for pod in &snapshot.pods {
        let mut value = typed(pod);
        if snapshot.object.kind() == Kind::ValkeyCluster {
            value["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        }
        others.push(value);
    }
    Objects {
        kind: snapshot.object.kind(),
        cluster: snapshot.object.value(),
        object: snapshot.object.clone(),
        others,
    }
}

/// The servers' `StatefulSet` with a claim, and Robin.
fn redkey_workloads(pods: usize) -> Vec<Value> {
    let labels =
        |component: &str| json!({"redkey-cluster-name": "cache", "redis.redkeycluster.operator/component": component});
    vec![
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "cache", "labels": labels("redis")},
            "spec": {"replicas": pods}, "status": {"replicas": pods, "readyReplicas": pods, "availableReplicas": pods,
                "currentReplicas": pods, "updatedReplicas": pods}}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data-cache-0", "labels": labels("redis")},
            "status": {"phase": "Bound"}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "cache-robin", "labels": labels("robin")},
            "spec": {"replicas": 1}, "status": {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1,
                "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]}}),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cache-robin-6d5f7-x", "labels": labels("robin")},
            "spec": {"containers": [{"name": "robin"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
    ]
}

/// The screen of `top`, as text.
fn live(snapshot: &Snapshot, width: u16, height: u16, colour: bool) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let model = top::model::Model::new(snapshot.clone(), colour);
    terminal.draw(|frame| top::screen::draw(frame, &model)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut out = String::new();
    for row in 0..height {
        let mut style = String::new();
        let mut line = String::new();
        for column in 0..width {
            let cell = &buffer[(column, row)];
            let faint = cell.modifier.contains(ratatui::style::Modifier::DIM);
            let now = match cell.fg {
                ratatui::style::Color::Reset if faint => "<dim>".to_owned(),
                ratatui::style::Color::Reset => String::new(),
                colour => format!("<{}>", colour.to_string().to_lowercase()),
            };
            if now != style {
                line += if now.is_empty() { "</>" } else { &now };
                style = now;
            }
            line += cell.symbol();
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Replaces colour codes by names.
pub fn legible(text: &str) -> String {
    let names = [
        ("31", "red"),
        ("32", "green"),
        ("33", "yellow"),
        ("35", "magenta"),
        ("36", "cyan"),
        ("2", "dim"),
        ("0", "/"),
    ];
    names.iter().fold(text.to_owned(), |text, (code, name)| {
        text.replace(&format!("\u{1b}[{code}m"), &format!("<{name}>"))
    })
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once('m').unwrap().1;
    }
    plain
}

#[test]
fn every_screen_in_every_state_at_every_width() {
    for (word, draw) in SCREENS {
        for (state, snapshot) in states() {
            let mut all = String::new();
            for width in WIDTHS {
                let _ = writeln!(all, "{width} columns\n\n{}", draw(&snapshot, &screen(width, false)));
            }
            let coloured = draw(&snapshot, &screen(120, true));
            let _ = write!(all, "120 columns, in colour\n\n{}", legible(&coloured));
            insta::assert_snapshot!(format!("{word}_{state}"), all);
        }
    }
}

#[test]
fn the_live_screen_in_every_state_at_every_size() {
    for (state, snapshot) in states() {
        let mut all = String::new();
        for (width, height) in [(20, 12), (80, 24), (120, 30), (200, 30)] {
            let _ = writeln!(
                all,
                "{width} columns, {height} rows

{}",
                live(&snapshot, width, height, false)
            );
        }
        let _ = write!(all, "80 columns, in colour\n\n{}", live(&snapshot, 80, 24, true));
        insta::assert_snapshot!(format!("top_{state}"), all);
    }
}

#[test]
fn colour_is_added_and_nothing_else_changes() {
    for (word, draw) in SCREENS {
        for (state, snapshot) in states() {
            for width in WIDTHS {
                let plain = draw(&snapshot, &screen(width, false));
                let coloured = draw(&snapshot, &screen(width, true));
                assert_eq!(clean(&coloured, true), coloured, "every colour is one that is printed");
                assert_eq!(without_colour(&coloured), plain, "{word} {state} {width}");
                assert!(
                    !plain.contains('\u{1b}'),
                    "{word} {state} {width}: colour although it is off"
                );
            }
        }
    }
}

/// A snapshot with hostile text wherever others can write: names, messages of servers, reasons, events, notes.
fn hostile() -> Snapshot {
    const EVIL: &str = "x\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\r\u{8}y";
    let mut snapshot = fixtures::primary_lost();
    let cluster = fixtures::valkey(&mut snapshot);
    cluster.spec.users = vec![serde_json::from_value(json!({"name": EVIL})).unwrap()];
    let status = cluster.status.as_mut().unwrap();
    status.message = EVIL.to_owned();
    for condition in &mut status.conditions {
        let mut value = serde_json::to_value(&condition).unwrap();
        value["message"] = json!(EVIL);
        *condition = serde_json::from_value(value).unwrap();
    }
    for node in &mut snapshot.nodes {
        let mut value = serde_json::to_value(&node).unwrap();
        value["status"]["conditions"][0]["message"] = json!(EVIL);
        value["status"]["conditions"][0]["reason"] = json!(EVIL);
        *node = serde_json::from_value(value).unwrap();
    }
    for event in &mut snapshot.events {
        event.message = Some(EVIL.to_owned());
        event.reason = Some(EVIL.to_owned());
    }
    snapshot.notes = vec![EVIL.to_owned()];
    snapshot
}

#[test]
fn nothing_that_others_wrote_acts_on_the_terminal() {
    let snapshot = hostile();
    for (word, draw) in SCREENS {
        for width in WIDTHS {
            let plain = draw(&snapshot, &screen(width, false));
            let active = plain.chars().find(|c| *c != '\n' && is_active(*c));
            assert_eq!(active, None, "{word}: {plain}");
        }
    }
    let live = live(&snapshot, 120, 40, false);
    assert!(!live.contains(|c: char| c != '\n' && is_active(c)), "{live:?}");
}

#[test]
fn no_screen_is_wider_than_its_terminal() {
    for (word, draw) in SCREENS {
        for (state, snapshot) in states() {
            for columns in [20, 40, 80, 120, 200] {
                for line in draw(&snapshot, &screen(columns, false)).lines() {
                    // A command, a name or an address that is longer than the terminal is not broken, so that it can be
                    // copied.
                    if line.starts_with("  kubectl ") || line.starts_with("  candor ") {
                        continue;
                    }
                    let word_width = line.split_whitespace().map(UnicodeWidthStr::width).max().unwrap_or(0);
                    assert!(
                        line.width() <= columns.max(word_width + 4),
                        "{word} {state} at {columns}: {line:?}"
                    );
                }
            }
        }
    }
}
