//! Rendering: the answer, the operation in progress, slot owners, members, events. If space is scarce, the answer and
//! the members stay.

use candor_api::valkey::status::MemberRole;
use kube_status::tree::{Tone, since};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use valkey_admin::SlotSet;

use super::model::Model;
use crate::commands::output::{Screen, bytes, count, cut, width, wrap};
use crate::commands::status::screen::{Report, Transition, draw_transitions};
use crate::commands::status::shards::{Member, Shard, behind, keys, memory, role, state};
use crate::commands::table::{Cell, Column, table};

/// The colours of the shards, in rotation; red is reserved for problems.
const COLOURS: [Color; 5] = [Color::Green, Color::Cyan, Color::Yellow, Color::Magenta, Color::Blue];
/// The number of hash slots.
const SLOTS: usize = 16384;
/// Maximum number of lines for the answer.
const MOST_ANSWER: usize = 4;
/// The page about keys and columns.
const HELP: [&str; 22] = [
    "candor top: a live view of one cluster",
    "",
    "  q, Esc      quit, or close this page",
    "  f, space    freeze the screen; again to continue. The cluster is not paused: that is candor pause NAME",
    "  s           sort members by shard, commands, memory or lag",
    "  arrows      scroll members, also j and k, PageUp and PageDown",
    "  ?, h        this page",
    "",
    "  OPS/S       commands a second, as the server counts them. The operator and the probes send about 5 of them to",
    "              every member; a member without clients shows these",
    "  CLIENTS     connections, with two or three of the operator, the exporter and this screen",
    "  HITS        reads that found their key, since the server started",
    "  MEMORY      used, of maxmemory; servers without a limit show what they use",
    "  KEYS        with ~ as of the last change of status, where the server could not be asked",
    "  LAG         bytes that a replica is behind its primary",
    "  RESTARTS    of the server in its pod",
    "",
    "  The bars show which of the 16384 slots each shard owns: full, in part, or none of them.",
    "",
    "  Servers are asked once a second where they can be reached from here; else every 10 seconds through the API",
    "  server. Everything else follows the watches of the API server.",
    "",
];

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    let room = usize::from(area.height);
    let screen = Screen {
        width: Some(usize::from(area.width)),
        colour: model.colour,
        wide: false,
    };
    if model.help {
        let lines: Vec<Line<'static>> = HELP
            .iter()
            .map(|line| painted_line(&cut(line, screen.width.unwrap_or(0))))
            .collect();
        frame.render_widget(Paragraph::new(lines), area);
        return;
    }
    let report = model.report();
    let parts = parts(model, &report, &screen, room);
    let heights = parts
        .iter()
        .map(|lines| Constraint::Length(u16::try_from(lines.len()).unwrap_or(u16::MAX)));
    let places = Layout::vertical(heights).split(area);
    for (lines, place) in parts.iter().zip(places.iter()) {
        frame.render_widget(Paragraph::new(lines.clone()), *place);
    }
}

/// The parts from top to bottom, limited to the available number of lines.
fn parts(model: &Model, report: &Report, screen: &Screen, room: usize) -> Vec<Vec<Line<'static>>> {
    let mut head = notices(model, screen);
    head.extend(painted(&report.head_for_top(screen)).into_iter().take(MOST_ANSWER));
    let left = room.saturating_sub(1);
    head.truncate(left.saturating_sub(1).max(1));
    let mut left = left.saturating_sub(head.len());
    let mut doing = report
        .operation
        .as_ref()
        .map(|operation| painted(&operation.draw(report.now(), screen)))
        .unwrap_or_default();
    doing.push(painted_line(&cut(&totals(report), screen.width.unwrap_or(0))));
    if left < doing.len() + 3 {
        doing.clear();
    }
    left -= doing.len();
    let members = members(model, report, screen);
    let slots = slots(report, screen, (left / 3).max(2));
    let slots = if left >= slots.len() + 4 { slots } else { Vec::new() };
    left -= slots.len();
    let events = events(model, report, screen, left.saturating_sub(members.len()).max(left / 3));
    let events = if left >= events.len() + 4 { events } else { Vec::new() };
    left -= events.len();
    let of = members.len().saturating_sub(1);
    let (members, first) = visible(members, model.scroll, left);
    left -= members.len();
    let foot = format!(
        "{}{}",
        keys_line(model),
        position(first, members.len().saturating_sub(1), of)
    );
    let foot = vec![painted_line(&screen.dim(&cut(&foot, screen.width.unwrap_or(0))))];
    let mut parts = vec![head, doing, slots, members, events];
    // If there is space, blank lines separate the parts.
    let apart = parts.iter().skip(1).filter(|part| !part.is_empty()).count();
    if left >= apart {
        for part in parts.iter_mut().skip(1).filter(|part| !part.is_empty()) {
            part.insert(0, Line::default());
        }
        left -= apart;
    }
    parts.extend([vec![Line::default(); left], foot]);
    parts
}

/// Notices about the snapshot itself.
fn notices(model: &Model, screen: &Screen) -> Vec<Line<'static>> {
    let taken = model.snapshot().now;
    let age = since(taken, model.now);
    let mut all = Vec::new();
    if let Some(message) = &model.trouble {
        let first = message.lines().next().unwrap_or_default();
        let notice = format!("This snapshot is {age} old: {first}");
        all.extend(
            wrap(&notice, screen.width, 2)
                .into_iter()
                .map(|line| screen.paint(&line, Tone::Error)),
        );
    }
    if model.is_paused() {
        let notice = format!("Frozen: this snapshot is {age} old, f continues");
        all.extend(
            wrap(&notice, screen.width, 2)
                .into_iter()
                .map(|line| screen.paint(&line, Tone::Info)),
        );
    }
    all.iter().map(|line| painted_line(line)).collect()
}

fn keys_line(model: &Model) -> String {
    let freeze = if model.is_paused() { "f continue" } else { "f freeze" };
    format!(
        "q quit  ? help  {freeze}  s sort (by {})  arrows scroll",
        model.sort.name()
    )
}

/// The totals in one line.
fn totals(report: &Report) -> String {
    let members = || report.shards.iter().flat_map(|shard| &shard.members);
    let primaries = || members().filter(|one| one.role == Some(MemberRole::Primary));
    let (asked, all) = (members().filter(|one| one.asked).count(), members().count());
    if asked == 0 {
        return "No server can be reached from here: load, memory and lag are not known".to_owned();
    }
    let operations: u64 = primaries().filter_map(|one| one.operations).sum();
    let held: u64 = primaries().filter_map(|one| one.keys).sum();
    let used: u64 = members().filter_map(|one| one.memory).sum();
    let lag = members().filter_map(|one| one.lag_bytes).max();
    let lag = lag.map_or(String::new(), |lag| format!(", lag {}", bytes(lag)));
    format!(
        "{} ops/s, {} keys, {} in memory{lag}, {asked} of {all} members answer",
        count(operations),
        count(held),
        bytes(used)
    )
}

/// A bar per shard: where its slots are within the 16384 slots.
fn slots(report: &Report, screen: &Screen, most: usize) -> Vec<Line<'static>> {
    let shards: Vec<(u32, &Shard)> = report
        .shards
        .iter()
        .filter_map(|shard| Some((shard.shard?, shard)))
        .collect();
    let room = screen.width.unwrap_or(80);
    let label = shards
        .iter()
        .map(|(number, _)| number.to_string().len())
        .max()
        .unwrap_or(1);
    let shown = if shards.len() > most { most - 1 } else { shards.len() };
    let mut lines: Vec<Line<'static>> = shards[..shown]
        .iter()
        .map(|(number, shard)| bar(*number, shard, label, room, screen.colour))
        .collect();
    if shown < shards.len() {
        let rest = format!("... slots of {} more shards", shards.len() - shown);
        lines.push(painted_line(&screen.dim(&cut(&rest, room))));
    }
    lines
}

fn bar(number: u32, shard: &Shard, label: usize, room: usize, colour: bool) -> Line<'static> {
    let behind = if room >= 40 {
        format!(" {:>5} slots", shard.slot_count)
    } else {
        String::new()
    };
    let title = format!("{number:>label$} ");
    let columns = room.saturating_sub(title.len() + behind.len()).max(1);
    let set: SlotSet = shard.slots.parse().unwrap_or_default();
    let mut owned = vec![0; columns];
    for slot in set.iter() {
        owned[usize::from(slot.get()) * columns / SLOTS] += 1;
    }
    let style = if colour {
        Style::new().fg(colour_of(number, shard))
    } else {
        Style::new()
    };
    let faint = if colour {
        Style::new().add_modifier(Modifier::DIM)
    } else {
        Style::new()
    };
    let mut spans = vec![Span::raw(title)];
    for (column, owned) in owned.into_iter().enumerate() {
        // How many slots this column stands for; with more columns than slots, some stand for none.
        let whole = (column + 1) * SLOTS / columns - column * SLOTS / columns;
        spans.push(match owned {
            0 => Span::styled("·", faint),
            some if some + 1 >= whole => Span::styled("█", style),
            _ => Span::styled("▒", style),
        });
    }
    spans.push(Span::raw(behind));
    Line::from(spans)
}

fn colour_of(number: u32, shard: &Shard) -> Color {
    let serves = |one: &Member| one.role == Some(MemberRole::Primary) && one.ready != Some(false);
    if shard.members.iter().any(serves) {
        COLOURS[number as usize % COLOURS.len()]
    } else {
        Color::Red
    }
}

/// Members as a table, header first.
fn members(model: &Model, report: &Report, screen: &Screen) -> Vec<Line<'static>> {
    const COLUMNS: [Column; 12] = [
        Column::text("MEMBER", 10),
        Column::text("ROLE", 6),
        Column::text("STATE", 9),
        Column::number("OPS/S", 8),
        Column::number("CLIENTS", 3),
        Column::number("HITS", 2),
        Column::number("MEMORY", 5),
        Column::number("KEYS", 4),
        Column::number("LAG", 7),
        Column::number("RESTARTS", 3),
        Column::text("ZONE", 2),
        Column::text("NODE", 1),
    ];
    let row = |one: &Member| -> Vec<Cell> {
        vec![
            one.member.to_string().into(),
            role(one).into(),
            state(one),
            one.operations.map(count).unwrap_or_default().into(),
            one.clients.map(count).unwrap_or_default().into(),
            one.hit_percent
                .map(|hits| format!("{hits} %"))
                .unwrap_or_default()
                .into(),
            memory(one).into(),
            keys(one).into(),
            behind(one),
            match one.restarts {
                0 => Cell::default(),
                restarts => restarts.to_string().into(),
            },
            (&one.zone).into(),
            (&one.node).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = model.members(report).iter().map(row).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    titled(&table(&COLUMNS, &rows, screen), screen)
}

/// Recent events without housekeeping, the newest last.
fn events(model: &Model, report: &Report, screen: &Screen, most: usize) -> Vec<Line<'static>> {
    let shown = Transition::newest(model.snapshot(), most.saturating_sub(1));
    if shown.is_empty() {
        return Vec::new();
    }
    titled(&draw_transitions(&shown, report.now(), screen), screen)
}

/// A table with a dimmed header.
fn titled(table: &str, screen: &Screen) -> Vec<Line<'static>> {
    let mut lines = table.lines();
    let title = lines.next().map(|line| painted_line(&screen.dim(line)));
    title.into_iter().chain(lines.map(painted_line)).collect()
}

/// The header, and as many rows as fit from the scroll position on; and how many rows are before these.
fn visible(mut lines: Vec<Line<'static>>, scroll: usize, room: usize) -> (Vec<Line<'static>>, usize) {
    let mut first = 0;
    if lines.len() > room && lines.len() > 1 {
        let most = lines.len() - room.clamp(1, lines.len());
        first = scroll.min(most).min(lines.len() - 1);
        lines.drain(1..=first);
    }
    lines.truncate(room);
    (lines, first)
}

/// Which members are shown, if not all are.
fn position(first: usize, shown: usize, of: usize) -> String {
    if shown >= of {
        return String::new();
    }
    format!("  members {} to {} of {of}", first + 1, first + shown)
}

/// Converts text with the colours of [`Screen::paint`] into ratatui spans.
fn painted(text: &str) -> Vec<Line<'static>> {
    text.lines().map(painted_line).collect()
}

fn painted_line(text: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut style = Style::new();
    for (place, part) in text.split("\u{1b}[").enumerate() {
        let (code, plain) = match part.split_once('m') {
            Some((code, plain)) if place > 0 => (code, plain),
            _ => ("", part),
        };
        style = match code {
            "31" => Style::new().fg(Color::Red),
            "32" => Style::new().fg(Color::Green),
            "33" => Style::new().fg(Color::Yellow),
            "35" => Style::new().fg(Color::Magenta),
            "36" => Style::new().fg(Color::Cyan),
            "2" => Style::new().add_modifier(Modifier::DIM),
            "0" => Style::new(),
            _ => style,
        };
        if width(plain) > 0 {
            spans.push(Span::styled(plain.to_owned(), style));
        }
    }
    Line::from(spans)
}
