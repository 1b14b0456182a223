//! Derives the periods of each state from events and conditions. Pure.
//!
//! A repeated event is stored once, with its first time, its last time and a count; the times in between are unknown.
//! Where such an event may have interrupted a state, the end of that state is unknown, and a gap follows it.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use serde::Serialize;

use crate::commands::cluster::Kind;
use crate::commands::cluster::answer::Answer;
use crate::commands::snapshot::{Snapshot, happened, times};

/// Conditions store whole seconds, and an event follows the status that it is about.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// The state of a `RedkeyCluster` that is repaired.
const FAULT: &str = "Configuring";

/// A period in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Period {
    /// Its start.
    pub from: Timestamp,
    /// Its end; `None` if it lasts or its end is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// Whether it lasts until now.
    pub lasts: bool,
    /// The state; `Unknown` for a gap.
    pub state: String,
    /// The reason, for programs.
    pub reason: String,
    /// The message, for people.
    pub message: String,
}

/// A moment at which the state is known.
struct Point {
    at: Timestamp,
    state: String,
    reason: String,
    message: String,
}

/// An event that happened more than twice: only its first and its last time are known.
struct Repeated {
    first: Timestamp,
    last: Timestamp,
    state: &'static str,
    reason: String,
    more: i32,
}

/// The periods, the oldest first; the last one is the present.
pub fn periods(snapshot: &Snapshot) -> Vec<Period> {
    let cluster = snapshot.cluster();
    let (mut points, repeated) = read(cluster.kind, &snapshot.events);
    let answer = Answer::of(&cluster, &snapshot.operator, snapshot.now);
    let mut gap_before_now = None;
    if let Some(since) = answer.since {
        // The current status decides the last period; events after its start are part of it.
        let about_now = since + SignedDuration::from_secs(1);
        points.retain(|point| point.at < about_now || point.state == answer.state);
        let known = points.last().is_some_and(|last| last.state == answer.state);
        let newer = points.last().is_some_and(|last| last.at + TOLERANCE < since);
        if !known || newer {
            gap_before_now = points.last().filter(|_| known).map(|last| last.at);
            let at = points.last().map_or(since, |last| last.at.max(since));
            points.push(Point {
                at,
                state: answer.state,
                reason: answer.reason,
                message: answer.sentence,
            });
        }
    }
    let mut all: Vec<Period> = before_the_first(cluster.created, points.first()).into_iter().collect();
    for (place, point) in points.iter().enumerate() {
        let following = points.get(place + 1);
        let next = following.map(|next| next.at);
        let missing = match following {
            Some(_) if gap_before_now == Some(point.at) => {
                Some("It changed and came back: no event says when and why".to_owned())
            }
            Some(next) => interruptions(&repeated, point, next),
            None => None,
        };
        let period = Period {
            from: point.at,
            to: next.filter(|_| missing.is_none()),
            lasts: next.is_none(),
            state: point.state.clone(),
            reason: point.reason.clone(),
            message: point.message.clone(),
        };
        match all.last_mut() {
            // Recorded again while it lasts.
            Some(last) if last.to == Some(point.at) && last.state == point.state && last.reason == point.reason => {
                (last.to, last.lasts) = (period.to, period.lasts);
            }
            _ => all.push(period),
        }
        all.extend(missing.map(|message| gap(point.at, next, message)));
    }
    all
}

fn gap(from: Timestamp, to: Option<Timestamp>, message: String) -> Period {
    Period {
        from,
        to,
        lasts: false,
        state: "Unknown".to_owned(),
        reason: String::new(),
        message,
    }
}

/// What is known of each event: its first time, its last time, and whether it happened more often.
fn read(kind: Kind, events: &[Event]) -> (Vec<Point>, Vec<Repeated>) {
    let (mut points, mut repeated) = (Vec::new(), Vec::new());
    for event in events {
        let reason = event.reason.clone().unwrap_or_default();
        let (Some(state), Some(last)) = (kind.state_after(&reason), happened(event)) else {
            continue;
        };
        let first = began(event).unwrap_or(last);
        let mut point = |at| {
            points.push(Point {
                at,
                state: state.to_owned(),
                reason: reason.clone(),
                message: event.message.clone().unwrap_or_default(),
            });
        };
        point(first);
        if times(event) > 1 {
            point(last);
        }
        if times(event) > 2 {
            repeated.push(Repeated {
                first,
                last,
                state,
                more: times(event) - 2,
                reason: reason.clone(),
            });
        }
    }
    points.sort_by_key(|point| point.at);
    // A fault during an operation does not end it: the state is still that of the operation.
    let is_operation = |state: &str| kind.operation_types().contains(&state);
    for place in 1..points.len() {
        let before = points[place - 1].state.clone();
        if points[place].state == FAULT && is_operation(&before) {
            points[place].state = before;
        }
    }
    (points, repeated)
}

/// When an event first happened.
fn began(event: &Event) -> Option<Timestamp> {
    let exact = event.event_time.as_ref().map(|time| time.0);
    exact.or_else(|| Some(event.first_timestamp.as_ref()?.0))
}

/// The repeated events that may have ended a state before the next known moment, as a sentence.
fn interruptions(repeated: &[Repeated], point: &Point, next: &Point) -> Option<String> {
    let between: Vec<&Repeated> = repeated
        .iter()
        .filter(|one| one.first < next.at && one.last > point.at)
        .collect();
    // Events mark transitions: an event that leads to the state of the next known moment cannot have come before it.
    let changed =
        between.iter().any(|one| one.state != point.state) && between.iter().any(|one| one.state != next.state);
    let each: Vec<String> = between
        .iter()
        .map(|one| format!("{} {}", one.reason, of_times(one.more)))
        .collect();
    changed.then(|| format!("When is not known: {}", each.join(", ")))
}

fn of_times(count: i32) -> String {
    match count {
        1 => "once more".to_owned(),
        more => format!("{more} more times"),
    }
}

/// The API server stores events for about an hour: the state before the first one is unknown.
fn before_the_first(made: Option<Timestamp>, first: Option<&Point>) -> Option<Period> {
    let (made, first) = (made?, first?);
    let unknown = made + TOLERANCE < first.at;
    unknown.then(|| {
        gap(
            made,
            Some(first.at),
            "No event of this time is kept any more".to_owned(),
        )
    })
}
