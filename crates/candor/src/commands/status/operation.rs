//! The operation in progress, how far it is, and how long it will take.

use std::fmt::Write;

use jiff::Timestamp;
use kube_status::tree::{Tone, since};
use serde::Serialize;

use crate::commands::cluster::Operation;
use crate::commands::output::{Screen, cut, some, wrap};

/// The progress of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// The operation.
    pub kind: String,
    /// When it started.
    pub started_at: Timestamp,
    /// How often it failed and was retried.
    pub attempts: i32,
    /// The member it is about.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub member: String,
    /// What happens now.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// The current step.
    pub step: i32,
    /// The number of steps.
    pub steps: i32,
    /// Slots that have moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots_moved: Option<i32>,
    /// Slots that move in total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots_total: Option<i32>,
    /// Slots per second since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots_per_second: Option<i64>,
    /// Seconds left at that rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<i64>,
}

impl Progress {
    /// The progress of an operation at a given time.
    pub fn of(operation: &Operation, now: Timestamp) -> Self {
        let started = operation.started_at;
        let elapsed = now.duration_since(started).as_secs().max(1);
        let moved = operation.slots_moved.map(i64::from).filter(|moved| *moved > 0);
        let left = operation
            .slots_total
            .zip(moved)
            .map(|(total, moved)| (i64::from(total) - moved).max(0));
        Self {
            kind: operation.kind.clone(),
            started_at: started,
            attempts: operation.attempts,
            member: operation.member.clone(),
            stage: operation.stage.clone(),
            step: operation.step,
            steps: operation.steps,
            slots_moved: operation.slots_moved,
            slots_total: operation.slots_total,
            slots_per_second: moved.map(|moved| moved / elapsed),
            seconds_left: left
                .zip(moved)
                .map(|(left, moved)| (left * elapsed + moved - 1) / moved),
        }
    }

    /// The completed part in thousandths, if it is known.
    pub fn done(&self) -> Option<i64> {
        let (part, whole) = match (self.slots_moved, self.slots_total) {
            (Some(moved), Some(total)) if total > 0 => (moved, total),
            // The current step is not complete yet.
            _ if self.steps > 1 => ((self.step - 1).max(0), self.steps),
            _ => return None,
        };
        Some((i64::from(part) * 1000 / i64::from(whole)).clamp(0, 1000))
    }

    /// As text and a progress bar.
    pub fn draw(&self, now: Timestamp, screen: &Screen) -> String {
        // Writing into a String cannot fail.
        let mut text = format!("{} for {}", self.kind, since(self.started_at, now));
        if self.steps > 1 {
            let _ = write!(text, ", step {} of {}", self.step, self.steps);
        }
        if !self.stage.is_empty() {
            text.extend([", ", &self.stage]);
        }
        if !self.member.is_empty() {
            let _ = write!(text, ", member {}", self.member);
        }
        if let (Some(moved), Some(total)) = (self.slots_moved, self.slots_total) {
            let _ = write!(text, ", {moved} of {} moved", some(total.into(), "slot"));
        }
        if self.attempts > 0 {
            let _ = write!(text, ", failed {} and was retried", times(self.attempts));
        }
        let mut out = wrap(&text, screen.width, 2).join("\n");
        out.push('\n');
        if let Some(done) = self.done() {
            out += &self.bar(done, screen);
            out.push('\n');
        }
        out
    }

    fn bar(&self, done: i64, screen: &Screen) -> String {
        const USUAL: usize = 40;
        let mut behind = format!(" {:>3}%", done / 10);
        if let Some(rate) = self.slots_per_second {
            match rate {
                0 => behind.push_str(", less than 1 slot/s"),
                rate => behind.extend([", ", &some(rate, "slot"), "/s"]),
            }
        }
        if let Some(left) = self.seconds_left {
            let end = self.started_at;
            let later = end.checked_add(jiff::SignedDuration::from_secs(left)).unwrap_or(end);
            let _ = write!(behind, ", {} left", since(end, later));
        }
        let room = screen.width.unwrap_or(usize::MAX).saturating_sub(behind.len() + 2);
        let length = room.min(USUAL);
        if length < 4 {
            return cut(behind.trim_start(), screen.width.unwrap_or(usize::MAX));
        }
        let full = usize::try_from(done).unwrap_or(0) * length / 1000;
        let filled = screen.paint(&"█".repeat(full), Tone::Info);
        format!("[{filled}{}]{behind}", "·".repeat(length - full))
    }
}

fn times(count: i32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}
