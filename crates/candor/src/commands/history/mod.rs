//! `candor history`: when a cluster was in which state, why, and for how long.

mod periods;
#[cfg(test)]
mod tests;

use std::error::Error;

use clap::Args;
use jiff::Timestamp;
use kube_status::tree::{Tone, since};

use super::cluster::Address;
use super::connect::Connection;
use super::output::{Format, Screen, print, print_data};
use super::snapshot::{Include, Snapshot};
use super::table::{Cell, Column, table};
pub(super) use periods::{Period, periods};

/// When a cluster was in which state and why, from its events and conditions.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  candor history shop

Kubernetes keeps events for about an hour, and of a repeated event only its first time, its last time and a count. What
is not known from them is shown as Unknown.")]
pub struct History {
    /// The cluster: NAME, or vkc/NAME and rkcl/NAME.
    #[arg(add = super::completion::clusters())]
    name: Address,
    /// How to write it.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
    #[command(flatten)]
    at: Connection,
}

impl History {
    /// Prints it.
    pub async fn run(self) -> Result<(), Box<dyn Error>> {
        let at = self.at.connect().await?;
        let cluster = at.resolve(&self.name).await?;
        let snapshot = Snapshot::take(&at, &cluster, &Include::default()).await?;
        let periods = periods(&snapshot);
        if print_data(&periods, self.output)? {
            return Ok(());
        }
        print(&draw(&periods, snapshot.now, &Screen::of_stdout(self.output)))
    }
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
        let tone = tone(&period.state);
        let long = match (period.to, period.lasts) {
            (Some(to), _) => since(period.from, to),
            (None, true) => format!("{} so far", since(period.from, now)),
            (None, false) => "?".to_owned(),
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

/// How good a state is.
pub(super) fn tone(state: &str) -> Tone {
    match state {
        "Ready" => Tone::Good,
        "Initializing" | "Maintenance" => Tone::Info,
        "Reconciling" | "Deleting" | "Configuring" | "ScalingUp" | "ScalingDown" | "Upgrading" => Tone::Warning,
        "Unknown" => Tone::Unknown,
        _ => Tone::Error,
    }
}
