//! One cluster: the answer first, then the operation, the slots, the members, the past, the conditions and a preview.

use kube_status::tree::{Line, Node, Tone, since};
use maud::{Markup, html};

use super::fleet::operator_banner;
use super::marks::{Part, Picture, age, class, pill, sentence, sign};
use super::{actions, members, slots, timeline};
use crate::commands::liveness::Liveness;
use crate::commands::output::some;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::operation::Progress;
use crate::commands::status::screen::Report;

/// What a viewer asked for beside the cluster itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// A preview for this many shards.
    pub shards: Option<i32>,
    /// The token that a request for a change must repeat; `None`: the page is read-only.
    pub token: Option<String>,
}

/// The list of the page.
pub const LIST: &str = "cluster";

/// The page of a cluster.
pub fn picture(snapshot: &Snapshot, wish: &Wish) -> Picture {
    let report = Report::of(snapshot);
    let cluster = snapshot.cluster();
    let mut parts = vec![Part::new("answer", answer(snapshot, &report))];
    if let Some(operation) = &report.operation {
        parts.push(Part::new("operation", progress(operation, &report)));
    }
    parts.push(Part::new("slots", slots::section(&cluster)));
    parts.push(Part::new("members", members::section(&report)));
    parts.push(Part::new("timeline", timeline::section(snapshot)));
    if let Some(tree) = &report.tree {
        parts.push(Part::new("conditions", conditions(tree, &report)));
    }
    parts.push(Part::new("plan", actions::plan(snapshot, wish)));
    if let Some(token) = &wish.token {
        parts.push(Part::new("actions", actions::section(&cluster, token)));
    }
    if !report.notes.is_empty() {
        parts.push(Part::new("notes", notes(&report.notes)));
    }
    vec![(LIST, parts)]
}

fn answer(snapshot: &Snapshot, report: &Report) -> Markup {
    let answer = &report.answer;
    let is_gone = matches!(report.operator, Liveness::Gone { .. });
    let to_do = if answer.tone == Tone::Good { "You can" } else { "To do" };
    html! {
        section id="answer" class={ "answer " (class(answer.tone)) } aria-label="The answer" {
            p class="where" { (report.kind.name()) " in namespace " (report.namespace) }
            h1 { (report.name) " " (pill(answer.tone, &answer.state)) }
            p class="sentence" role="status" { (sentence(answer, snapshot.now)) }
            @if is_gone || answer.tone != Tone::Good { (operator_banner(&report.operator, snapshot.now)) }
            @if !answer.operator.is_empty() { p { "The operator " (answer.operator) "." } }
            @if !answer.person.is_empty() { p class="todo" { strong { (to_do) ":" } " " (answer.person) } }
            @for aside in &answer.asides { p class="banner warn" { (aside) } }
        }
    }
}

fn progress(operation: &Progress, report: &Report) -> Markup {
    let mut facts: Vec<String> = Vec::new();
    if operation.steps > 1 {
        facts.push(format!("step {} of {}", operation.step, operation.steps));
    }
    facts.extend([&operation.stage].into_iter().filter(|text| !text.is_empty()).cloned());
    if !operation.member.is_empty() {
        facts.push(format!("member {}", operation.member));
    }
    if let (Some(moved), Some(total)) = (operation.slots_moved, operation.slots_total) {
        facts.push(format!("{moved} of {} moved", some(total.into(), "slot")));
    }
    if operation.attempts > 0 {
        facts.push(format!("{} so far", some(operation.attempts.into(), "failed attempt")));
    }
    let rate = operation.slots_per_second.map(|rate| match rate {
        0 => "less than 1 slot/s".to_owned(),
        rate => format!("{}/s", some(rate, "slot")),
    });
    let left = operation.seconds_left.map(|left| {
        let start = report.now();
        let end = start.checked_add(jiff::SignedDuration::from_secs(left)).unwrap_or(start);
        format!("about {} left", since(start, end))
    });
    html! {
        section id="operation" class="card" aria-labelledby="h-operation" {
            h2 id="h-operation" { (operation.kind) " for " (age(operation.started_at, report.now())) }
            @match operation.done() {
                Some(done) => {
                    div class="bar" {
                        progress max="1000" value=(done) aria-labelledby="h-operation" {}
                        span { (done / 10) " %" }
                    }
                }
                None => { div class="bar" { progress aria-labelledby="h-operation" {} } }
            }
            p class="facts" { @for fact in facts.iter().chain(&rate).chain(&left) { span { (fact) } } }
        }
    }
}

/// The conditions as a tree: the cluster's own, then members, those that are not well first.
fn conditions(root: &Node, report: &Report) -> Markup {
    let is_well = |node: &&Node| node.lines.iter().all(|line| line.tone == Tone::Good);
    let (well, unwell): (Vec<&Node>, Vec<&Node>) = root.children.iter().partition(is_well);
    let well_count = i64::try_from(well.len()).unwrap_or(0);
    html! {
        section id="conditions" class="card" aria-labelledby="h-conditions" {
            h2 id="h-conditions" { "Conditions" }
            ul class="tree" {
                li {
                    span class="object" { (root.title()) }
                    ul { @for line in &root.lines { (condition(line, report)) } }
                }
                @for node in unwell { (member(node, report)) }
                @if !well.is_empty() {
                    li {
                        details id="well" {
                            summary { (sign(Tone::Good)) " " (some(well_count, "member")) " without a problem" }
                            ul { @for node in well { (member(node, report)) } }
                        }
                    }
                }
            }
        }
    }
}

fn member(node: &Node, report: &Report) -> Markup {
    html! { li { span class="object" { (node.title()) } ul { @for line in &node.lines { (condition(line, report)) } } } }
}

fn condition(line: &Line, report: &Report) -> Markup {
    html! {
        li class={ "condition " (class(line.tone)) } {
            span class="sign" aria-hidden="true" { (sign(line.tone)) }
            span class="type" { (line.type_) } " "
            span class="status" { (line.status) }
            span class="reason" { (line.reason) }
            @if let Some(at) = line.since { span class="since" { (age(at, report.now())) } }
            @if !line.message.is_empty() { span class="message" { (line.message) } }
        }
    }
}

fn notes(notes: &[String]) -> Markup {
    html! { section id="notes" class="notes" aria-label="Notes" { @for note in notes { p class="note" { (note) } } } }
}
