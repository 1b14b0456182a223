//! From objects to rows: what is shown, what is grouped, and the branches in front of each row.

use jiff::Timestamp;

use super::line::{Line, Node, Tone};
use super::{Show, View};
use crate::pluralize;

/// At most this many names of a group are written out.
const NAMED: usize = 3;

/// One row before its columns are measured.
pub(super) struct Row {
    /// Branches in front of the first line of the name, as `│ └─`.
    pub(super) branch: String,
    /// Guides in front of every further line of the same row, as `│   `.
    pub(super) guide: String,
    pub(super) name: String,
    pub(super) status: Option<Cell>,
    pub(super) message: String,
}

/// The columns between name and message.
pub(super) struct Cell {
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) since: Option<Timestamp>,
    pub(super) tone: Tone,
}

/// What hangs below an object.
enum Below<'a> {
    Condition(&'a Line),
    Object(&'a Node),
    Group(Vec<&'a Node>),
}

pub(super) fn rows(root: &Node, view: &View) -> Vec<Row> {
    let mut rows = Vec::new();
    object(root, view, "", "", &mut rows);
    rows
}

/// Adds a row for the object and everything below it. `branch` leads to the object, `stem` to what is below.
fn object(node: &Node, view: &View, branch: &str, stem: &str, rows: &mut Vec<Row>) {
    let below = below(node, view);
    let line = node.speaker();
    rows.push(Row {
        branch: branch.to_owned(),
        guide: guide(stem, !below.is_empty()),
        name: node.title(),
        status: line.map(cell),
        message: line.map(|line| line.message.clone()).unwrap_or_default(),
    });
    let last = below.len().saturating_sub(1);
    for (index, item) in below.into_iter().enumerate() {
        let (turn, on) = if index == last {
            ("└─", "  ")
        } else {
            ("├─", "│ ")
        };
        let (branch, stem) = (format!("{stem}{turn}"), format!("{stem}{on}"));
        match item {
            Below::Object(child) => object(child, view, &branch, &stem, rows),
            Below::Condition(line) => rows.push(Row {
                branch,
                guide: stem,
                name: line.type_.clone(),
                status: Some(cell(line)),
                message: line.message.clone(),
            }),
            Below::Group(nodes) => rows.push(group_row(&nodes, branch, stem)),
        }
    }
}

/// Below the first line of a row the way to its own children goes on.
fn guide(stem: &str, has_children: bool) -> String {
    format!("{stem}{}", if has_children { "│ " } else { "" })
}

fn cell(line: &Line) -> Cell {
    Cell {
        status: line.status.as_str(),
        reason: line.reason.clone(),
        since: line.since,
        tone: line.tone,
    }
}

fn below<'a>(node: &'a Node, view: &View) -> Vec<Below<'a>> {
    let mut below: Vec<_> = shown(node, view.show_of(node)).map(Below::Condition).collect();
    let mut done = vec![false; node.children.len()];
    for (index, child) in node.children.iter().enumerate() {
        if done[index] {
            continue;
        }
        let mut members = vec![child];
        if view.group && may_hide(child, view) {
            for (other, sibling) in node.children.iter().enumerate().skip(index + 1) {
                if !done[other] && may_hide(sibling, view) && alike(child, sibling) {
                    done[other] = true;
                    members.push(sibling);
                }
            }
        }
        below.push(if members.len() > 1 {
            Below::Group(members)
        } else {
            Below::Object(child)
        });
    }
    below
}

fn shown(node: &Node, show: Show) -> impl Iterator<Item = &Line> {
    let speaker = node.speaker();
    node.lines.iter().filter(move |line| {
        let in_the_row = speaker.is_some_and(|speaker| std::ptr::eq(speaker, *line));
        match show {
            Show::None => false,
            Show::All => !in_the_row,
            Show::WhatMatters => !in_the_row && line.tone != Tone::Good,
        }
    })
}

/// Whether a row of a group can stand for the object: nothing below it would be missed.
fn may_hide(node: &Node, view: &View) -> bool {
    let named = view.exceptions.contains_key(&node.title());
    !named && shown(node, view.show_of(node)).next().is_none() && node.children.iter().all(|child| is_well(child, view))
}

fn is_well(node: &Node, view: &View) -> bool {
    let good = |line: &Line| line.tone == Tone::Good;
    !view.exceptions.contains_key(&node.title())
        && node.lines.iter().all(good)
        && node.children.iter().all(|child| is_well(child, view))
}

/// Same kind and same state. The messages of good states may differ.
fn alike(a: &Node, b: &Node) -> bool {
    let state = |node: &Node| node.speaker().map(|line| (line.status, line.tone, line.reason.clone()));
    let messages = |node: &Node| {
        node.speaker()
            .filter(|line| line.tone != Tone::Good)
            .map(|line| line.message.clone())
    };
    a.kind == b.kind && state(a) == state(b) && messages(a) == messages(b)
}

fn group_row(nodes: &[&Node], branch: String, guide: String) -> Row {
    let mut names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    let see = match names.len() {
        count if count <= NAMED => format!("See {}", names.join(", ")),
        count => format!("See {}, ... ({} more)", names[..NAMED].join(", "), count - NAMED),
    };
    let line = nodes.first().and_then(|node| node.speaker());
    let message = match line {
        Some(line) if line.tone != Tone::Good && !line.message.is_empty() => format!("{}\n{see}", line.message),
        _ => see,
    };
    Row {
        branch,
        guide,
        name: format!("{} {}...", nodes.len(), pluralize(&nodes[0].kind)),
        status: line.map(|line| Cell {
            // The group has been so since the last of them turned.
            since: nodes.iter().filter_map(|node| node.speaker()?.since).max(),
            ..cell(line)
        }),
        message,
    }
}
