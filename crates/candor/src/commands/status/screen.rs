//! One cluster on one screen: the answer first, then the details.

use candor_api::Condition;
use candor_api::valkey::node_conditions::NodeCondition;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;
use kube_status::tree::{Line, Node, Show, Tone, View, since};
use serde::Serialize;

use super::facts::{Facts, LABEL, aligned};
use super::operation::Progress;
use super::shards::{self, Shard};
use crate::commands::cluster::answer::Answer;
use crate::commands::cluster::names::Names;
use crate::commands::cluster::valkey::negative_types;
use crate::commands::cluster::{Cluster, Kind, Stage};
use crate::commands::describe::typed;
use crate::commands::liveness::Liveness;
use crate::commands::output::{Screen, wrap};
use crate::commands::placement::piled_up;
use crate::commands::snapshot::{Snapshot, happened, times};
use crate::commands::table::{Cell, Column, table};

/// How many transitions are shown.
const TRANSITIONS: usize = 8;

/// Everything that `candor status` shows of one cluster.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The answer.
    pub answer: Answer,
    /// Whether an operator is running.
    pub operator: Liveness,
    /// The stage of its operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// The operation in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<Progress>,
    /// What it runs and how clients reach it.
    pub facts: Facts,
    /// Its shards.
    pub shards: Vec<Shard>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The last transitions, the newest last.
    pub transitions: Vec<Transition>,
    /// What could not be fetched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(in crate::commands) tree: Option<Node>,
    #[serde(skip)]
    show_tree: bool,
    #[serde(skip)]
    now: Timestamp,
}

/// A recorded event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Transition {
    /// When it last happened.
    pub at: Option<Timestamp>,
    /// The event's reason.
    pub reason: String,
    /// The event's message.
    pub message: String,
    /// How often it happened.
    pub times: i32,
    /// Whether it is a warning.
    pub warning: bool,
}

impl Transition {
    /// An event, with members by their names.
    pub fn of(event: &Event, names: &Names) -> Self {
        Self {
            at: happened(event),
            reason: event.reason.clone().unwrap_or_default(),
            message: names.apply(event.message.as_deref().unwrap_or_default()),
            times: times(event),
            warning: event.type_.as_deref() == Some("Warning"),
        }
    }

    /// The newest events of a snapshot, at most so many, without housekeeping.
    pub fn newest(snapshot: &Snapshot, most: usize) -> Vec<Self> {
        let cluster = snapshot.cluster();
        let names = Names::of(&cluster);
        let matters = |event: &&Event| {
            !cluster
                .kind
                .is_housekeeping(event.reason.as_deref().unwrap_or_default())
        };
        let events: Vec<&Event> = snapshot.events.iter().filter(matters).collect();
        let newest = &events[events.len().saturating_sub(most)..];
        newest.iter().map(|event| Self::of(event, &names)).collect()
    }
}

impl Report {
    /// The report for a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let cluster = snapshot.cluster();
        Self {
            answer: Answer::of(&cluster, &snapshot.operator, snapshot.now),
            operator: snapshot.operator.clone(),
            operation: cluster.operation.as_ref().map(|one| Progress::of(one, snapshot.now)),
            facts: Facts::of(snapshot),
            shards: shards::shards(snapshot),
            transitions: Transition::newest(snapshot, TRANSITIONS),
            notes: snapshot.notes.clone(),
            tree: (!cluster.conditions.is_empty()).then(|| tree(snapshot, &cluster)),
            show_tree: false,
            kind: cluster.kind,
            name: cluster.name,
            namespace: cluster.namespace,
            stage: cluster.stage,
            conditions: cluster.conditions,
            now: snapshot.now,
        }
    }

    /// Shows the conditions even if all is well.
    #[must_use]
    pub fn with_tree(mut self, show: bool) -> Self {
        self.show_tree = show;
        self
    }

    /// When the snapshot was taken.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// As a screen.
    pub fn draw(&self, screen: &Screen) -> String {
        let mut parts = vec![self.head(screen)];
        if let Some(operation) = &self.operation {
            parts.push(operation.draw(self.now, screen));
        }
        let mut facts = self.facts.draw(self.now, screen);
        // While something else is wrong or under way, failovers are no advice.
        if let Some(piled) = piled_up(&self.shards).filter(|_| self.answer.tone == Tone::Good) {
            let command = format!("candor failover {} -n {} --spread", self.name, self.namespace);
            let mut lines = aligned("Zones", &format!("{piled}; spread them: {command}"), screen.width);
            if lines.len() > 1 {
                // The command stands on a line of its own, so that it can be pasted.
                lines = aligned("Zones", &format!("{piled}; spread them:"), screen.width);
                lines.push(format!("{:LABEL$}{command}", ""));
            }
            for line in lines {
                facts += &screen.paint(&line, Tone::Info);
                facts.push('\n');
            }
        }
        if !facts.is_empty() {
            parts.push(facts);
        }
        if !self.shards.is_empty() {
            parts.push(shards::draw(&self.shards, screen));
        }
        let show_tree = self.show_tree || self.answer.tone != Tone::Good;
        if let Some(tree) = self.tree.as_ref().filter(|_| show_tree) {
            let view = View::new(self.now)
                .colour(screen.colour)
                .show_for(self.kind.name(), Show::All);
            let view = match screen.width {
                Some(columns) => view.width(columns),
                None => view,
            };
            parts.push(view.render(tree));
        }
        if !self.transitions.is_empty() {
            parts.push(draw_transitions(&self.transitions, self.now, screen));
        }
        if !self.notes.is_empty() {
            parts.push(draw_notes(&self.notes, screen));
        }
        parts.join("\n")
    }

    /// The answer in a few lines.
    pub fn head(&self, screen: &Screen) -> String {
        self.head_in(screen, lines)
    }

    /// The answer for a screen that cuts long lines: commands are broken, too.
    pub fn head_for_top(&self, screen: &Screen) -> String {
        self.head_in(screen, wrap)
    }

    fn head_in(&self, screen: &Screen, lines: fn(&str, Option<usize>, usize) -> Vec<String>) -> String {
        let mut out = String::new();
        let mut say = |text: &str, tone: Option<Tone>, indent: usize| {
            for line in lines(text, screen.width, indent) {
                out += &tone.map_or(line.clone(), |tone| screen.paint(&line, tone));
                out.push('\n');
            }
        };
        let answer = &self.answer;
        let gone = matches!(self.operator, Liveness::Gone { .. });
        say(
            &format!("{}/{}: {}", self.namespace, self.name, answer.text()),
            Some(answer.tone),
            2,
        );
        let good = answer.tone == Tone::Good;
        // Of a cluster that is Ready, what must be mentioned in any state is the news.
        for aside in answer.asides.iter().filter(|_| good) {
            say(aside, Some(Tone::Warning), 2);
        }
        match (answer.person.as_str(), answer.operator.as_str()) {
            ("", "") => {}
            ("", operator) if good => say(&format!("The operator {operator}."), None, 2),
            ("", operator) => say(&format!("Nothing to do: the operator {operator}."), None, 2),
            (person, operator) => {
                let label = if good { "You can" } else { "To do" };
                say(&format!("{label}: {person}"), None, 2);
                if !operator.is_empty() {
                    say(&format!("The operator {operator}."), None, 2);
                }
            }
        }
        let operator = self.operator.message(self.now);
        if let Some(message) = operator.filter(|_| gone || !good) {
            say(&message, gone.then_some(Tone::Error), 2);
        }
        for aside in answer.asides.iter().filter(|_| !good) {
            say(aside, Some(Tone::Warning), 2);
        }
        out
    }
}

/// The lines of a text. A command at its end that does not fit stands on a line of its own and is not broken, so that
/// it can be pasted.
fn lines(text: &str, width: Option<usize>, indent: usize) -> Vec<String> {
    let whole = wrap(text, width, indent);
    let starts = [": kubectl ", ": candor "].map(|start| text.find(start));
    match starts.into_iter().flatten().min() {
        Some(colon) if whole.len() > 1 => {
            let mut lines = wrap(&text[..=colon], width, indent);
            lines.push(format!("{}{}", " ".repeat(indent), text[colon + 2..].trim_end()));
            lines
        }
        _ => whole,
    }
}

/// The cluster and its members with their conditions.
fn tree(snapshot: &Snapshot, cluster: &Cluster) -> Node {
    let root = Node::new(cluster.kind.name(), &cluster.name).conditions(&cluster.conditions, &cluster.kind.negative());
    let members = match cluster.kind {
        Kind::ValkeyCluster => valkey_nodes(snapshot),
        // Its members have no object but their pod.
        Kind::RedkeyCluster => pods(snapshot),
    };
    members.into_iter().fold(root, Node::child)
}

fn valkey_nodes(snapshot: &Snapshot) -> Vec<Node> {
    let mut nodes: Vec<_> = snapshot.nodes.iter().collect();
    nodes.sort_by_key(|node| (node.spec.shard, node.spec.node));
    let node = |node: &candor_api::ValkeyNode| {
        let conditions = node.status.as_ref().map(|status| status.conditions.as_slice());
        let mut shown = Node::new("ValkeyNode", node.name_any())
            .conditions(conditions.unwrap_or_default(), &negative_types::<NodeCondition>());
        // Healthy primaries and replicas form one group: the table above shows their roles.
        for line in shown.lines.iter_mut().filter(|line| line.tone == Tone::Good) {
            calm(line);
        }
        shown
    };
    nodes.into_iter().map(node).collect()
}

fn pods(snapshot: &Snapshot) -> Vec<Node> {
    let read = |pod: &k8s_openapi::api::core::v1::Pod| {
        let reading = kube_status::readers::read_value(&typed(pod)).ok()?;
        Some(Node::new("Pod", pod.name_any()).line(Line::read(&reading)))
    };
    snapshot.pods.iter().filter_map(read).collect()
}

fn calm(line: &mut Line) {
    if line.type_ == "Ready" {
        "MemberReady".clone_into(&mut line.reason);
        line.message.clear();
    }
}

/// What could not be fetched, one line each.
pub fn draw_notes(notes: &[String], screen: &Screen) -> String {
    let lines = notes
        .iter()
        .flat_map(|note| wrap(&format!("Note: {note}"), screen.width, 2));
    lines.map(|line| screen.dim(&line) + "\n").collect()
}

/// The last transitions as a table.
pub fn draw_transitions(transitions: &[Transition], now: Timestamp, screen: &Screen) -> String {
    const COLUMNS: [Column; 3] = [
        Column::text("AGE", 8),
        Column::text("TRANSITION", 9),
        Column::text("WHAT", 7),
    ];
    let row = |one: &Transition| {
        let often = if one.times > 1 {
            format!(" (x{})", one.times)
        } else {
            String::new()
        };
        let tone = if one.warning { Tone::Warning } else { Tone::Good };
        vec![
            one.at.map(|at| since(at, now)).unwrap_or_default().into(),
            Cell::toned(&one.reason, tone),
            format!("{}{often}", one.message).into(),
        ]
    };
    let rows: Vec<Vec<Cell>> = transitions.iter().map(row).collect();
    table(&COLUMNS, &rows, screen)
}
