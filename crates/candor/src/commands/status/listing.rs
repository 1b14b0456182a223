//! One line per cluster, the worst first.

use candor_api::ValkeyNode;
use candor_api::redkey::CLUSTER_LABEL;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube_status::tree::{Tone, since};
use serde::Serialize;

use crate::commands::cluster::answer::Answer;
use crate::commands::cluster::fetch::Listed;
use crate::commands::cluster::{Kind, Object, Stage};
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
    /// What could not be listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip)]
    now: Timestamp,
}

/// A cluster in one line.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Its kind.
    pub kind: Kind,
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
    /// The stage of its operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The answer.
    pub answer: Answer,
}

impl Row {
    fn of(object: &Object, listed: &Listed, operator: &Liveness, now: Timestamp) -> Self {
        let cluster = object.view_with(&nodes_of(object, &listed.nodes), &pods_of(object, &listed.pods));
        Self {
            answer: Answer::of(&cluster, operator, now),
            kind: cluster.kind,
            namespace: cluster.namespace,
            name: cluster.name,
            ready_shards: cluster.ready_shards,
            shards: cluster.shards,
            replicas: cluster.replicas,
            stage: cluster.stage,
        }
    }

    /// The state as kubectl's columns show it: `Upgrading/RollingConfig 2`.
    fn state(&self) -> String {
        let mut text = self.answer.state.clone();
        if let Some(stage) = &self.stage {
            text.extend(["/", &stage.name]);
            text.extend(stage.partition.iter().flat_map(|partition| [" ", partition]));
        }
        text
    }
}

/// The members of one cluster.
fn nodes_of(object: &Object, nodes: &[ValkeyNode]) -> Vec<ValkeyNode> {
    let (name, namespace) = (object.name(), &object.metadata().namespace);
    let of_it = |node: &&ValkeyNode| node.spec.cluster == name && node.metadata.namespace == *namespace;
    nodes.iter().filter(of_it).cloned().collect()
}

/// The servers of one `RedkeyCluster`.
fn pods_of(object: &Object, pods: &[Pod]) -> Vec<Pod> {
    let (name, namespace) = (object.name(), &object.metadata().namespace);
    let of_it = |pod: &&Pod| pod.labels().get(CLUSTER_LABEL) == Some(&name) && pod.metadata.namespace == *namespace;
    pods.iter().filter(of_it).cloned().collect()
}

impl Listing {
    /// Builds the list: what is broken first, then by namespace, name and kind.
    pub fn of(listed: &Listed, operator: &Liveness, now: Timestamp) -> Self {
        let row = |object: &Object| Row::of(object, listed, operator, now);
        let mut rows: Vec<Row> = listed.objects.iter().map(row).collect();
        rows.sort_by(|one, other| {
            let key = |row: &Row| (row.answer.rank(), row.namespace.clone(), row.name.clone(), row.kind);
            key(one).cmp(&key(other))
        });
        Self {
            operator: operator.clone(),
            clusters: rows,
            notes: listed.notes.clone(),
            now,
        }
    }

    /// As a table; shows the namespace only if clusters of all namespaces were requested, and the kind only if there
    /// is more than one.
    pub fn draw(&self, everywhere: bool, screen: &Screen) -> String {
        const COLUMNS: [Column; 9] = [
            Column::text("NAMESPACE", 8),
            Column::text("KIND", 8),
            Column::text("NAME", 10),
            Column::text("STATE", 9),
            Column::text("SHARDS", 6),
            Column::number("REPLICAS", 3),
            Column::text("REASON", 7),
            Column::text("SINCE", 5),
            Column::text("ANSWER", 4),
        ];
        let several = self.clusters.iter().any(|row| row.kind != Kind::ValkeyCluster);
        let shown = |show: bool, text: &str| if show { Cell::from(text) } else { Cell::default() };
        let row = |one: &Row| {
            let answer = &one.answer;
            vec![
                shown(everywhere, &one.namespace),
                shown(several, one.kind.short()),
                (&one.name).into(),
                Cell::toned(one.state(), answer.tone),
                format!("{}/{}", one.ready_shards, one.shards).into(),
                one.replicas.to_string().into(),
                Cell::toned(&answer.reason, answer.tone),
                answer.since.map(|at| since(at, self.now)).unwrap_or_default().into(),
                match answer.asides.first() {
                    _ if answer.tone != Tone::Good => Cell::from(answer.brief()),
                    // Ready, but a user must know: paused, or data was lost.
                    Some(aside) => Cell::toned(aside, Tone::Warning),
                    None => Cell::default(),
                },
            ]
        };
        let rows: Vec<Vec<Cell>> = self.clusters.iter().map(row).collect();
        let mut out = String::new();
        let gone = matches!(self.operator, Liveness::Gone { .. });
        if let Some(message) = self.operator.message(self.now).filter(|_| gone) {
            for line in wrap(&message, screen.width, 2) {
                out += &screen.paint(&line, Tone::Error);
                out.push('\n');
            }
            out.push('\n');
        }
        if rows.is_empty() {
            out += "There is no cluster here. List every namespace with: candor status -A\n";
        } else {
            out += &table(&COLUMNS, &rows, screen);
        }
        if !self.notes.is_empty() {
            out.push('\n');
            out += &super::screen::draw_notes(&self.notes, screen);
        }
        out
    }
}
