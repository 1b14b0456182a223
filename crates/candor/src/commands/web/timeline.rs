//! States and events on one time axis, so that cause and effect line up.

use jiff::{SignedDuration, Timestamp};
use kube_status::tree::{Tone, since};
use maud::{Markup, html};

use super::marks::{age, class, sign};
use crate::commands::history::{self, Period, periods};
use crate::commands::snapshot::Snapshot;
use crate::commands::status::screen::Transition;

/// The axis is at most this long.
const LONGEST: SignedDuration = SignedDuration::from_secs(3600);
/// And at least this long.
const SHORTEST: SignedDuration = SignedDuration::from_secs(60);
/// How many events are listed.
const LISTED: usize = 40;

/// The axis: positions in percent of its width.
#[derive(Clone, Copy, Debug)]
struct Axis {
    from: Timestamp,
    to: Timestamp,
}

impl Axis {
    /// Everything that is known of the last hour.
    fn of(periods: &[Period], events: &[Transition], now: Timestamp) -> Self {
        let first = periods
            .iter()
            .map(|one| one.from)
            .chain(events.iter().filter_map(|one| one.at));
        let known = first.min().unwrap_or(now);
        let (longest, shortest) = (now.checked_sub(LONGEST), now.checked_sub(SHORTEST));
        Self {
            from: known.max(longest.unwrap_or(now)).min(shortest.unwrap_or(now)),
            to: now,
        }
    }

    /// In hundredths of a percent.
    fn at(self, at: Timestamp) -> i64 {
        let whole = i64::try_from(self.to.duration_since(self.from).as_millis())
            .unwrap_or(1)
            .max(1);
        let part = i64::try_from(at.duration_since(self.from).as_millis()).unwrap_or(0);
        (part * 10_000 / whole).clamp(0, 10_000)
    }

    fn percent(hundredths: i64) -> String {
        format!("{}.{:02}%", hundredths / 100, hundredths % 100)
    }
}

/// The section.
pub fn section(snapshot: &Snapshot) -> Markup {
    let now = snapshot.now;
    let periods = periods(snapshot);
    let events = Transition::newest(snapshot, LISTED);
    let axis = Axis::of(&periods, &events, now);
    html! {
        section id="timeline" class="card" aria-labelledby="h-timeline" {
            h2 id="h-timeline" { "What happened" }
            (chart(axis, &periods, &events))
            @if events.is_empty() {
                p class="hint" { "No events are kept of this cluster. Kubernetes keeps them for about an hour." }
            } @else {
                ol class="events" tabindex="0" aria-label="Events, the newest first" { @for event in events.iter().rev() { (entry(event, &periods, now)) } }
            }
        }
    }
}

/// States as bars, events as marks below them.
fn chart(axis: Axis, periods: &[Period], events: &[Transition]) -> Markup {
    let spans: Vec<String> = periods
        .iter()
        .filter(|one| one.to.unwrap_or(axis.to) >= axis.from)
        .map(|one| {
            format!(
                "{} for {}",
                one.state,
                since(one.from.max(axis.from), one.to.unwrap_or(axis.to))
            )
        })
        .collect();
    html! {
        svg class="axis" width="100%" height="76" role="img" aria-label={ "States: " (spans.join(", ")) } {
            @for period in periods { (bar(axis, period)) }
            @for event in events {
                @if let Some(at) = event.at.filter(|at| *at >= axis.from) {
                    @let x = Axis::percent(axis.at(at));
                    @let kind = if event.warning { "warn" } else { "good" };
                    line class=(kind) x1=(x) x2=(x) y1="0" y2="40" {}
                    circle class=(kind) cx=(x) cy="44" r=(if event.warning { "5" } else { "4" }) {
                        title { (event.reason) ": " (event.message) }
                    }
                }
            }
            @for quarter in 0_i32..=4 { (tick(axis, quarter)) }
        }
    }
}

fn bar(axis: Axis, period: &Period) -> Markup {
    let (from, to) = (axis.at(period.from), axis.at(period.to.unwrap_or(axis.to)));
    let tone = history::tone(&period.state);
    let is_past = period.to.is_some_and(|to| to < axis.from);
    html! {
        @if !is_past {
            svg x=(Axis::percent(from)) width=(Axis::percent((to - from).max(20))) y="6" height="26" {
                rect class=(class(tone)) width="100%" height="26" rx="3" { title { (period.state) ": " (period.message) } }
                @if to - from > 900 { text x="8" y="18" { (sign(tone)) " " (period.state) } }
            }
        }
    }
}

fn tick(axis: Axis, quarter: i32) -> Markup {
    let back = axis.to.duration_since(axis.from) / 4 * (4 - quarter);
    let at = axis.to.checked_sub(back).unwrap_or(axis.to);
    let x = format!("{}%", quarter * 25);
    let anchor = match quarter {
        0 => "start",
        4 => "end",
        _ => "middle",
    };
    let word = if quarter == 4 {
        "now".to_owned()
    } else {
        format!("−{}", since(at, axis.to))
    };
    html! {
        line class="tick" x1=(x) x2=(x) y1="52" y2="57" {}
        text class="tick" x=(x) y="71" text-anchor=(anchor) { (word) }
    }
}

fn entry(event: &Transition, periods: &[Period], now: Timestamp) -> Markup {
    let tone = if event.warning { Tone::Warning } else { Tone::Good };
    let state = event.at.and_then(|at| {
        let during = |one: &&Period| one.from <= at && one.to.is_none_or(|to| at < to);
        periods.iter().rev().find(during)
    });
    html! {
        li class={ "event " (class(tone)) } {
            span class="when" { @if let Some(at) = event.at { (age(at, now)) } }
            span class="reason" { span class="sign" aria-hidden="true" { (if event.warning { "!" } else { "·" }) } (event.reason) }
            span class="message" { (event.message) @if event.times > 1 { " (" (event.times) " times)" } }
            @if let Some(period) = state { span class={ "during " (class(history::tone(&period.state))) } { (period.state) } }
        }
    }
}
