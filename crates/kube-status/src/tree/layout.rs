//! From rows to text: how wide the columns are, and what happens when they do not fit.
//!
//! Three shapes, the first that fits: a table with the message as its last column; a table with the message below
//! each row; and, in a very narrow terminal, one thing below the other. The branches go on at the left of all three.

use super::arrange::{Cell, Row};
use super::since::since;
use super::wrap::{tame, width, wrap};
use super::{Tone, View};

const HEADER: [&str; 5] = ["NAME", "STATUS", "REASON", "SINCE", "MESSAGE"];
const GAP: usize = 2;
/// A message column narrower than this is harder to read than a message below the row.
const MESSAGE_MIN: usize = 32;
/// Text beside the branches never gets less than this; outer branches are left out instead.
const TEXT_MIN: usize = 8;

/// A row with every text tamed and measured.
struct Cells {
    branch: String,
    guide: String,
    name: String,
    status: String,
    reason: String,
    since: String,
    message: String,
    tone: Tone,
}

pub(super) fn layout(rows: &[Row], view: &View) -> String {
    let cells: Vec<_> = rows.iter().map(|row| cells(row, view)).collect();
    let columns = view.width.unwrap_or(usize::MAX).max(TEXT_MIN);
    let natural =
        |index: usize, text: fn(&Cells) -> usize| cells.iter().map(text).max().unwrap_or(0).max(width(HEADER[index]));
    let mut name = natural(0, |row| width(&row.branch) + width(&row.name));
    let status = natural(1, |row| width(&row.status));
    let mut reason = natural(2, |row| width(&row.reason));
    let since = natural(3, |row| width(&row.since));
    let needed = |name: usize, reason: usize| {
        name.saturating_add(status)
            .saturating_add(reason)
            .saturating_add(since)
            .saturating_add(4 * GAP)
    };
    let natural_reason = reason;
    // Long names and reasons are shortened before the message.
    if needed(name, reason).saturating_add(MESSAGE_MIN) > columns {
        name = name.min((columns * 2 / 5).max(24));
        reason = reason.min((columns / 5).max(16));
    }
    let message = columns.saturating_sub(needed(name, reason));
    let mut out = String::new();
    if message >= MESSAGE_MIN {
        table(&mut out, &cells, [name, status, reason, since], Some(message), view);
    } else if needed(name, reason) - GAP <= columns {
        let spare = columns - (needed(name, reason) - GAP);
        let reason = natural_reason.min(reason + spare);
        table(&mut out, &cells, [name, status, reason, since], None, view);
    } else {
        for row in &cells {
            stack(&mut out, row, columns, view.colour);
        }
    }
    out
}

fn cells(row: &Row, view: &View) -> Cells {
    let cell = row.status.as_ref();
    let line = |text: &str| tame(text).replace('\n', " ");
    Cells {
        branch: row.branch.clone(),
        guide: row.guide.clone(),
        name: line(&row.name),
        status: cell.map(|cell| cell.status.to_owned()).unwrap_or_default(),
        reason: cell.map(|cell| line(&cell.reason)).unwrap_or_default(),
        since: cell
            .and_then(|cell| cell.since)
            .map(|then| since(then, view.now))
            .unwrap_or_default(),
        message: tame(&row.message),
        tone: cell.map_or(Tone::Unknown, |cell: &Cell| cell.tone),
    }
}

/// A table; with `message` columns for the message, or with the message below each row.
fn table(out: &mut String, rows: &[Cells], widths: [usize; 4], message: Option<usize>, view: &View) {
    let total = view.width.unwrap_or(usize::MAX);
    let shown = if message.is_some() {
        HEADER.len()
    } else {
        HEADER.len() - 1
    };
    let header: Vec<_> = HEADER[..shown]
        .iter()
        .enumerate()
        .map(|(i, text)| pad(text, *widths.get(i).unwrap_or(&0)))
        .collect();
    push_line(out, &header.join("  "));
    for row in rows {
        let names = name_lines(row, widths[0]);
        let reasons = wrap(&row.reason, widths[2]);
        let beside = message.map(|columns| wrap(&row.message, columns)).unwrap_or_default();
        for index in 0..names.len().max(reasons.len()).max(beside.len()) {
            let first = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            let text = [
                pad(names.get(index).unwrap_or(&row.guide), widths[0]),
                paint(&first(&row.status), widths[1], row.tone, view.colour),
                paint(
                    reasons.get(index).map_or("", String::as_str),
                    widths[2],
                    row.tone,
                    view.colour,
                ),
                pad(&first(&row.since), widths[3]),
                beside.get(index).cloned().unwrap_or_default(),
            ];
            push_line(out, &text.join("  "));
        }
        if message.is_none() && !row.message.trim().is_empty() {
            below(out, &row.message, &format!("{}  ", row.guide), total);
        }
    }
}

/// The name with the branches before it, broken where it is too long.
fn name_lines(row: &Cells, columns: usize) -> Vec<String> {
    let beside = columns.saturating_sub(width(&row.branch));
    let room = if width(&row.name) <= beside {
        beside
    } else {
        beside.max(TEXT_MIN.min(columns))
    };
    let branch = clip(&row.branch, columns.saturating_sub(room));
    let guide = clip(&row.guide, columns.saturating_sub(room));
    wrap(&row.name, room)
        .into_iter()
        .enumerate()
        .map(|(index, part)| {
            if index == 0 {
                format!("{branch}{part}")
            } else {
                format!("{guide}{part}")
            }
        })
        .collect()
}

/// Everything below each other: name, then status, reason and age, then the message.
fn stack(out: &mut String, row: &Cells, columns: usize, colour: bool) {
    for name in name_lines(row, columns) {
        push_line(out, &name);
    }
    let guide = format!("{}  ", row.guide);
    let guide = clip(&guide, columns - TEXT_MIN);
    let cell = [&row.status, &row.reason, &row.since]
        .into_iter()
        .filter(|text| !text.is_empty());
    let cell: Vec<_> = cell.map(String::as_str).collect();
    if !cell.is_empty() {
        for part in wrap(&cell.join(" "), columns - width(guide)) {
            push_line(out, &format!("{guide}{}", paint(&part, 0, row.tone, colour)));
        }
    }
    if !row.message.trim().is_empty() {
        below(out, &row.message, guide, columns);
    }
}

fn below(out: &mut String, message: &str, guide: &str, columns: usize) {
    let guide = clip(guide, columns.saturating_sub(TEXT_MIN));
    for part in wrap(message, columns.saturating_sub(width(guide))) {
        push_line(out, &format!("{guide}{part}"));
    }
}

/// The innermost branches that fit into `columns`: the outer ones tell least.
fn clip(branches: &str, columns: usize) -> &str {
    let from = branches
        .char_indices()
        .map(|(at, _)| at)
        .find(|&at| width(&branches[at..]) <= columns);
    &branches[from.unwrap_or(branches.len())..]
}

fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

fn paint(text: &str, columns: usize, tone: Tone, colour: bool) -> String {
    if !colour || text.is_empty() {
        return pad(text, columns);
    }
    let padding = " ".repeat(columns.saturating_sub(width(text)));
    format!("\u{1b}[{}m{text}\u{1b}[0m{padding}", tone.ansi())
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}
