//! The result of an audit: figures, as a table and as JSON.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::clock::{Moment, seconds};
use crate::reach::Unreached;
use crate::result::AuditResult;

/// What an audit found.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// `namespace/name`.
    pub cluster: String,
    /// When it started.
    pub began: jiff::Timestamp,
    /// How long the audit ran.
    #[serde(serialize_with = "seconds")]
    pub lasted: Duration,
    /// Status compared with the servers.
    pub truth: Truth,
    /// The canaries.
    pub writes: Writes,
    /// The longest time during which the auditor itself could not run: no figure is more precise than this.
    #[serde(serialize_with = "seconds")]
    pub stalled: Duration,
    /// How long the auditor may not have noticed a change: it stalled, or waited between two observations.
    #[serde(skip)]
    pub unobserved: Duration,
    /// Errors of reads from the API server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The overall result.
    #[serde(rename = "verdict")]
    pub result: AuditResult,
}

/// Status compared with the servers.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truth {
    /// For how long at least one member could be queried and compared with status.
    #[serde(serialize_with = "seconds")]
    pub judged: Duration,
    /// The members that could not be queried: the report makes no statement about them.
    pub not_judged: Vec<NotJudged>,
    /// Every period in which status said Ready while the cluster was not ready.
    pub spells: Vec<Spell>,
    /// The delay of every Ready that status reported late.
    #[serde(serialize_with = "all_seconds")]
    pub late: Vec<Duration>,
    /// The list of changes, as text.
    pub story: Vec<Change>,
}

/// A member that could not be queried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotJudged {
    /// Its pod.
    pub pod: String,
    /// For how long.
    #[serde(serialize_with = "seconds")]
    pub lasted: Duration,
    /// The last reason.
    pub why: Unreached,
}

/// A period in which status said Ready while the cluster was not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spell {
    /// Its start.
    pub from: Moment,
    /// How long.
    #[serde(serialize_with = "seconds")]
    pub lasted: Duration,
    /// The part of it after the contract's deadline: 1 s where the defect is reported, 2 s where the only evidence is
    /// a missing reply.
    #[serde(serialize_with = "seconds")]
    pub beyond: Duration,
    /// The defects.
    pub wrong: Vec<String>,
}

/// A change.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// When.
    pub at: Moment,
    /// What.
    #[serde(rename = "words")]
    pub text: String,
}

/// The canaries.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Writes {
    /// How many were acknowledged.
    pub acknowledged: u64,
    /// How many were not acknowledged until the end of the audit.
    pub unacknowledged: u64,
    /// The last reason why a canary could not be sent at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreached: Option<Unreached>,
    /// How many were acknowledged and are lost.
    pub lost: u64,
    /// Slots with canaries that could not be read back: nothing is known of their writes.
    pub unread_slots: u64,
    /// Keys of canaries that could not be removed.
    pub left_keys: u64,
    /// The longest time during which a slot accepted no write, if it exceeds the latency of the route to the servers.
    pub longest_outage: Option<Outage>,
    /// The latency of a write without any outage: the round trip to the servers, plus the auditor's own delays.
    #[serde(serialize_with = "seconds")]
    pub own_latency: Duration,
    /// From the moment when a write was due until its acknowledgement.
    pub latency: Latency,
}

/// A slot that accepted no write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Outage {
    /// Which slot.
    pub slot: u16,
    /// From when.
    pub from: Moment,
    /// For how long.
    #[serde(serialize_with = "seconds")]
    pub lasted: Duration,
}

/// Percentiles of the write latency.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// 50%.
    #[serde(serialize_with = "seconds")]
    pub p50: Duration,
    /// 99%.
    #[serde(serialize_with = "seconds")]
    pub p99: Duration,
    /// 99.9%.
    #[serde(serialize_with = "seconds")]
    pub p999: Duration,
    /// The maximum.
    #[serde(serialize_with = "seconds")]
    pub longest: Duration,
}

fn all_seconds<S: serde::Serializer>(times: &[Duration], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(times.iter().map(Duration::as_secs_f64))
}

impl Truth {
    /// The total time during which status said Ready while the cluster was not ready.
    pub fn false_ready(&self) -> Duration {
        self.spells.iter().map(|spell| spell.lasted).sum()
    }

    /// The longest such period.
    pub fn worst_false_ready(&self) -> Duration {
        self.spells.iter().map(|spell| spell.lasted).max().unwrap_or_default()
    }

    /// The part of it after the contract's deadlines.
    pub fn beyond(&self) -> Duration {
        self.spells.iter().map(|spell| spell.beyond).sum()
    }

    /// The same without what the auditor may not have noticed in each period.
    pub fn beyond_unobserved(&self, unobserved: Duration) -> Duration {
        let beyond = self.spells.iter().map(|spell| spell.beyond);
        beyond.map(|beyond| beyond.saturating_sub(unobserved)).sum()
    }

    /// The total time during which the cluster was ready and status did not say so.
    pub fn late_ready(&self) -> Duration {
        self.late.iter().sum()
    }

    /// The longest such period.
    pub fn worst_late_ready(&self) -> Duration {
        self.late.iter().max().copied().unwrap_or_default()
    }
}

impl Audit {
    /// The longest time during which any slot accepted no write.
    pub fn longest_outage(&self) -> Duration {
        self.writes
            .longest_outage
            .map(|outage| outage.lasted)
            .unwrap_or_default()
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { truth, writes, .. } = self;
        let mut row = |name: &str, value: String| writeln!(f, "{name:<26} {value}");
        row("cluster", self.cluster.clone())?;
        row(
            "audited for",
            format!("{} (judged for {})", of_seconds(self.lasted), of_seconds(truth.judged)),
        )?;
        for one in &truth.not_judged {
            row(
                "not judged",
                format!("{} for {}: {}", one.pod, of_seconds(one.lasted), one.why),
            )?;
        }
        for problem in &self.problems {
            row("not read", problem.clone())?;
        }
        row(
            "false Ready",
            format!(
                "{} (worst {}, beyond the deadlines {})",
                of_seconds(truth.false_ready()),
                of_seconds(truth.worst_false_ready()),
                of_seconds(truth.beyond())
            ),
        )?;
        for spell in &truth.spells {
            let text = format!(
                "{} for {}: {}",
                spell.from,
                of_seconds(spell.lasted),
                spell.wrong.join(", ")
            );
            row("", text)?;
        }
        row(
            "late Ready",
            format!(
                "{} (worst {})",
                of_seconds(truth.late_ready()),
                of_seconds(truth.worst_late_ready())
            ),
        )?;
        row(
            "longest outage of a slot",
            writes.longest_outage.map_or_else(
                || {
                    format!(
                        "none beyond the auditor's own latency, {}",
                        of_millis(writes.own_latency)
                    )
                },
                |outage| format!("{} (slot {}, {})", of_seconds(outage.lasted), outage.slot, outage.from),
            ),
        )?;
        row("writes acknowledged", writes.acknowledged.to_string())?;
        row("  never acknowledged", writes.unacknowledged.to_string())?;
        if let Some(why) = &writes.unreached {
            row("  could not be sent", why.to_string())?;
        }
        row("  acknowledged and lost", writes.lost.to_string())?;
        if writes.unread_slots > 0 {
            row("  slots not read back", writes.unread_slots.to_string())?;
        }
        if writes.left_keys > 0 {
            row("keys not removed", writes.left_keys.to_string())?;
        }
        let Latency {
            p50,
            p99,
            p999,
            longest,
        } = writes.latency;
        let [p50, p99, p999, longest] = [p50, p99, p999, longest].map(of_millis);
        row(
            "latency of a write",
            format!("p50 {p50}, p99 {p99}, p99.9 {p999}, longest {longest}"),
        )?;
        row("auditor stalled for", format!("at most {}", of_millis(self.stalled)))?;
        writeln!(f, "\n{}", self.result)
    }
}

pub(crate) fn of_seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

fn of_millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
