//! `candor history`: when a cluster was in which state, why, and for how long.

use std::error::Error;

use candor_api::valkey::events::ClusterEvent;
use clap::Args;
use jiff::Timestamp;
use kube_status::Reason;
use kube_status::tree::{Tone, since};
use serde::Serialize;

use super::connect::Connection;
use super::output::{Format, Screen, print, print_data};
use super::picture::{Picture, Wish, happened};
use super::status::answer::Answer;
use super::table::{Cell, Column, table};

/// When a cluster was in which state and why, from its events and conditions.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor history shop

Kubernetes keeps events for about an hour: what is older shows only as the time of the last transition.")]
pub struct History {
    /// The cluster.
    #[arg(add = super::completion::clusters())]
    name: String,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

/// A time in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Period {
    /// From when.
    pub from: Timestamp,
    /// Until when; none: it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
    /// In which state.
    pub state: String,
    /// Why, for machines.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

impl History {
    /// Prints it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let picture = Picture::take(&at, &self.name, &Wish::default()).await?;
        let periods = periods(&picture);
        if print_data(&periods, self.output)? {
            return Ok(());
        }
        print(&draw(&periods, picture.now, &Screen::of_stdout(self.output)))
    }
}

/// The state that an event leads into; none for one that changes nothing.
fn leads_to(reason: &str) -> Option<&'static str> {
    let event = ClusterEvent::ALL.iter().copied().find(|event| event.name() == reason)?;
    match event {
        ClusterEvent::ClusterReady => Some("Ready"),
        ClusterEvent::PrimaryLost
        | ClusterEvent::ReplicaLost
        | ClusterEvent::QuorumLost
        | ClusterEvent::DataLost
        | ClusterEvent::PodUnschedulable
        | ClusterEvent::PodNotStarting
        | ClusterEvent::ForeignNode
        | ClusterEvent::SlotRebalanceFailed
        | ClusterEvent::DrainFailed
        | ClusterEvent::NodeAddFailed => Some("Degraded"),
        ClusterEvent::SpecInvalid
        | ClusterEvent::DowngradeRefused
        | ClusterEvent::ConfigurationRefused
        | ClusterEvent::UsersRefused => Some("Failed"),
        ClusterEvent::WaitingForShards
        | ClusterEvent::WaitingForReplicas
        | ClusterEvent::SlotsRebalancing
        | ClusterEvent::SlotsDraining
        | ClusterEvent::NodeAdding => Some("Reconciling"),
        ClusterEvent::ServiceCreated => Some("Initializing"),
        _ => None,
    }
}

/// The times in one state, the oldest first; the last one is now.
pub(super) fn periods(picture: &Picture) -> Vec<Period> {
    let mut all: Vec<Period> = Vec::new();
    for event in &picture.events {
        let reason = event.reason.clone().unwrap_or_default();
        let first = event.first_timestamp.as_ref().map(|time| time.0);
        let (Some(state), Some(from)) = (leads_to(&reason), first.or_else(|| happened(event))) else {
            continue;
        };
        all.push(Period {
            from,
            to: None,
            state: state.to_owned(),
            reason,
            message: event.message.clone().unwrap_or_default(),
        });
    }
    all.sort_by_key(|period| period.from);
    let answer = Answer::of(&picture.cluster, &picture.operator, picture.now);
    if let Some(from) = answer.since {
        // What status says now is the truth about the last period; events that came after its begin tell of it.
        all.retain(|period| period.from < from || period.state == answer.state);
        if all.last().is_none_or(|last| last.state != answer.state) {
            all.push(Period {
                from,
                to: None,
                state: answer.state,
                reason: answer.reason,
                message: answer.sentence,
            });
        }
    }
    all.dedup_by(|next, before| next.state == before.state && next.reason == before.reason);
    for place in 1..all.len() {
        all[place - 1].to = Some(all[place].from);
    }
    all
}

/// As a table.
pub(super) fn draw(periods: &[Period], now: Timestamp, screen: &Screen) -> String {
    const COLUMNS: [Column; 5] = [
        Column::text("FROM", 8),
        Column::text("FOR", 7),
        Column::text("STATE", 10),
        Column::text("WHY", 9),
        Column::text("WHAT", 6),
    ];
    if periods.is_empty() {
        return "Nothing is known: no operator has reported yet.\n".to_owned();
    }
    let row = |period: &Period| {
        let tone = match period.state.as_str() {
            "Ready" => Tone::Good,
            "Initializing" => Tone::Info,
            "Reconciling" | "Deleting" => Tone::Warning,
            "Unknown" => Tone::Unknown,
            _ => Tone::Error,
        };
        let long = since(period.from, period.to.unwrap_or(now));
        let long = if period.to.is_none() {
            format!("{long} so far")
        } else {
            long
        };
        vec![
            period.from.strftime("%Y-%m-%d %H:%M:%S").to_string().into(),
            long.into(),
            Cell::toned(&period.state, tone),
            (&period.reason).into(),
            (&period.message).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = periods.iter().map(row).collect();
    table(&COLUMNS, &rows, screen)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::status::fixtures;

    #[test]
    fn events_become_times_in_states_and_the_last_one_is_now() {
        let mut picture = fixtures::primary_lost();
        let event = |at: &str, reason: &str, message: &str| {
            serde_json::from_value(
                json!({"metadata": {}, "involvedObject": {}, "reason": reason, "message": message,
                "firstTimestamp": at, "lastTimestamp": at}),
            )
            .unwrap()
        };
        picture.events = vec![
            event("2026-02-05T09:10:00Z", "ServiceCreated", "Created headless Service"),
            event("2026-02-05T09:10:01Z", "WaitingForShards", "0 of 3 shards exist"),
            event("2026-02-05T09:10:02Z", "ClusterMeet", "Node 10.0.0.1 met node 10.0.0.2"),
            event(
                "2026-02-05T09:10:08Z",
                "ClusterReady",
                "Cluster ready with 3 shards and 1 replicas",
            ),
            event(
                "2026-02-05T09:59:57Z",
                "PrimaryLost",
                "Primary lost in shard 1: connection refused",
            ),
        ];
        let screen = Screen {
            width: Some(120),
            colour: false,
            wide: false,
        };
        insta::assert_snapshot!(draw(&periods(&picture), picture.now, &screen));
        picture.events.clear();
        assert_eq!(periods(&picture).len(), 1, "conditions alone tell of now");
    }
}
