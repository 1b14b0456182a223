//! One cluster: the answer first, then the operation, the slots, the members, the past, the conditions and a preview.

use kube_status::tree::{Line, Node, Tone, since};
use maud::{Markup, html};

use super::fleet::operator_banner;
use super::marks::{Part, Rendered, age, class, pill, sentence, sign};
use super::world::Key;
use super::{actions, members, page, slots, timeline};
use crate::commands::liveness::Liveness;
use crate::commands::output::some;
use crate::commands::snapshot::Snapshot;
use crate::commands::status::operation::Progress;
use crate::commands::status::screen::Report;

/// What a viewer asked for beside the cluster itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageOptions {
    /// A preview for this many shards.
    pub shards: Option<i32>,
    /// The token that a request for a change must repeat; `None`: the page is read-only.
    pub token: Option<String>,
}

/// The first list of the page.
pub const LIST: &str = "cluster";

/// The page of a cluster: four lists, of which two stand side by side where there is room.
pub fn render(snapshot: &Snapshot, options: &PageOptions) -> Rendered {
    let report = Report::of(snapshot);
    let cluster = snapshot.cluster();
    let mut first = vec![Part::new("answer", answer(snapshot, &report))];
    if let Some(operation) = &report.operation {
        first.push(Part::new("operation", progress(operation, &report)));
    }
    let left = vec![
        Part::new("slots", slots::section(&cluster)),
        Part::new("members", members::section(&report)),
    ];
    let mut right = vec![Part::new("timeline", timeline::section(snapshot))];
    if let Some(tree) = &report.tree {
        right.push(Part::new("conditions", conditions(tree, &report)));
    }
    right.push(Part::new("plan", actions::plan(snapshot, options)));
    if options.token.is_some() {
        right.push(Part::new("actions", actions::section(&cluster)));
    }
    let last = if report.notes.is_empty() {
        Vec::new()
    } else {
        vec![Part::new("notes", notes(&report.notes))]
    };
    vec![(LIST, first), ("left", left), ("right", right), ("last", last)]
}

/// What stands where the cluster would be if there were one.
pub fn gone(key: &Key) -> Rendered {
    let text = format!(
        "There is no {} {} in namespace {}.",
        key.kind.name(),
        key.name,
        key.namespace
    );
    let message = page::message("No such cluster", &text);
    let part = Part::new("gone", html! { div id="gone" { (message) } });
    let none = |list| (list, Vec::new());
    vec![(LIST, vec![part]), none("left"), none("right"), none("last")]
}

/// The lists of the page.
pub fn lists(rendered: &Rendered) -> Markup {
    html! {
        (page::list(rendered, LIST))
        div class="columns" { (page::list(rendered, "left")) (page::list(rendered, "right")) }
        (page::list(rendered, "last"))
    }
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
        let end = start
            .checked_add(jiff::SignedDuration::from_secs(left))
            .unwrap_or(start);
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
