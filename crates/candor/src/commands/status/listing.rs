//! One line per cluster.

use candor_api::ValkeyCluster;
use jiff::Timestamp;
use kube::ResourceExt;
use kube_status::tree::{Tone, since};
use serde::Serialize;

use super::answer::Answer;
use crate::commands::liveness::Liveness;
use crate::commands::output::{Screen, wrap};
use crate::commands::table::{Cell, Column, table};

/// All clusters.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// Whether an operator is running.
    pub operator: Liveness,
    /// One line per cluster.
    pub clusters: Vec<Row>,
    #[serde(skip)]
    now: Timestamp,
}

/// A cluster in one line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Shards that are complete.
    pub ready_shards: i32,
    /// Desired shards.
    pub shards: i32,
    /// Replicas per shard.
    pub replicas: i32,
    /// The answer.
    pub answer: Answer,
}

impl Listing {
    /// Builds the list, sorted by namespace and name.
    pub fn of(clusters: &[ValkeyCluster], operator: &Liveness, now: Timestamp) -> Self {
        let row = |cluster: &ValkeyCluster| Row {
            namespace: cluster.namespace().unwrap_or_default(),
            name: cluster.name_any(),
            ready_shards: cluster.status.as_ref().map_or(0, |status| status.ready_shards),
            shards: cluster.spec.shards,
            replicas: cluster.spec.replicas.unwrap_or(0),
            answer: Answer::of(cluster, operator, now),
        };
        let mut rows: Vec<Row> = clusters.iter().map(row).collect();
        rows.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
        Self {
            operator: operator.clone(),
            clusters: rows,
            now,
        }
    }

    /// As a table; shows the namespace only if clusters of all namespaces were requested.
    pub fn draw(&self, everywhere: bool, screen: &Screen) -> String {
        const COLUMNS: [Column; 8] = [
            Column::text("NAMESPACE", 8),
            Column::text("NAME", 10),
            Column::text("STATE", 9),
            Column::text("SHARDS", 6),
            Column::number("REPLICAS", 3),
            Column::text("REASON", 7),
            Column::text("SINCE", 5),
            Column::text("ANSWER", 4),
        ];
        let row = |one: &Row| {
            let answer = &one.answer;
            vec![
                if everywhere {
                    Cell::from(&one.namespace)
                } else {
                    Cell::default()
                },
                (&one.name).into(),
                Cell::toned(&answer.state, answer.tone),
                format!("{}/{}", one.ready_shards, one.shards).into(),
                one.replicas.to_string().into(),
                Cell::toned(&answer.reason, answer.tone),
                answer.since.map(|at| since(at, self.now)).unwrap_or_default().into(),
                match answer.asides.first() {
                    _ if answer.tone != Tone::Good => Cell::from(&answer.sentence),
                    // Ready, but a user must know: paused, or data was lost.
                    Some(aside) => Cell::toned(aside, Tone::Warning),
                    None => Cell::default(),
                },
            ]
        };
        let rows: Vec<Vec<Cell>> = self.clusters.iter().map(row).collect();
        let mut out = String::new();
        if let Some(words) = self
            .operator
            .words(self.now)
            .filter(|_| matches!(self.operator, Liveness::Gone { .. }))
        {
            for line in wrap(&words, screen.width, 2) {
                out += &screen.paint(&line, Tone::Error);
                out.push('\n');
            }
            out.push('\n');
        }
        if rows.is_empty() {
            return out + "There is no ValkeyCluster here. Look everywhere with: candor status -A\n";
        }
        out + &table(&COLUMNS, &rows, screen)
    }
}
