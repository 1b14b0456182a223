//! All clusters: what is broken first, then what is in progress, then the rest.

use jiff::{SignedDuration, Timestamp};
use kube_status::Status;
use kube_status::tree::{Tone, since};
use maud::{Markup, html};

use super::marks::{Part, Rendered, age, class, pill, sentence};
use super::world::{Key, World};
use crate::commands::cluster::Cluster;
use crate::commands::cluster::answer::Answer;
use crate::commands::history::{self, Period, periods};
use crate::commands::liveness::Liveness;
use crate::commands::output::some;
use crate::commands::snapshot::Snapshot;

/// The strip of a row shows this long.
const HOUR: SignedDuration = SignedDuration::from_secs(3600);

/// Which clusters a viewer wants to see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this namespace only.
    pub namespace: Option<String>,
    /// With this text in their name, namespace, state or reason.
    pub text: String,
}

/// The group of a cluster in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// It needs attention.
    Broken,
    /// An operation runs.
    InProgress,
    /// It is as desired.
    AsDesired,
}

impl Group {
    /// Every group, in the order of the page.
    pub const ALL: [Self; 3] = [Self::Broken, Self::InProgress, Self::AsDesired];

    /// The group of a cluster.
    pub fn of(cluster: &Cluster, answer: &Answer) -> Self {
        let is_true = |type_: &str| cluster.condition(type_).map(|one| Status::of(one)) == Some(Status::True);
        match answer.tone {
            _ if is_true("Degraded") || is_true("DataLost") => Self::Broken,
            Tone::Error | Tone::Unknown => Self::Broken,
            Tone::Good => Self::AsDesired,
            Tone::Info | Tone::Warning => Self::InProgress,
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Broken => "Needs attention",
            Self::InProgress => "In progress",
            Self::AsDesired => "As desired",
        }
    }

    const fn list(self) -> &'static str {
        match self {
            Self::Broken => "rows-broken",
            Self::InProgress => "rows-progress",
            Self::AsDesired => "rows-desired",
        }
    }
}

/// One cluster in the list.
#[derive(Clone, Debug)]
pub struct Row {
    group: Group,
    rank: u8,
    since: Option<Timestamp>,
    key: Key,
    text: String,
    part: Part,
}

impl Row {
    /// The row of a cluster.
    pub fn of(key: &Key, snapshot: &Snapshot) -> Self {
        let cluster = snapshot.cluster();
        let answer = Answer::of(&cluster, &snapshot.operator, snapshot.now);
        let group = Group::of(&cluster, &answer);
        let id = format!("c-{}-{}-{}", key.kind.short(), key.namespace, key.name);
        Self {
            part: Part::new(id.as_str(), row(&id, key, snapshot, &cluster, &answer)),
            text: format!("{} {} {} {}", key.name, key.namespace, answer.state, answer.reason).to_lowercase(),
            group,
            rank: answer.rank(),
            since: answer.since,
            key: key.clone(),
        }
    }

    fn is_shown(&self, filter: &Filter) -> bool {
        let text = filter.text.to_lowercase();
        let has_all = text.split_whitespace().all(|word| self.text.contains(word));
        has_all && filter.namespace.as_ref().is_none_or(|one| *one == self.key.namespace)
    }
}

/// What concerns all clusters.
#[derive(Clone, Debug)]
pub struct Around {
    /// Whether an operator is running.
    pub operator: Liveness,
    /// What is not shown, and why.
    pub notes: Vec<String>,
    /// The time.
    pub now: Timestamp,
}

impl Around {
    /// For a viewer who sees everything.
    pub fn of(world: &World, now: Timestamp) -> Self {
        Self {
            operator: world.operator(now),
            notes: world.notes(|_| true),
            now,
        }
    }
}

/// The page of these rows.
pub fn render(rows: &[Row], filter: &Filter, around: &Around) -> Rendered {
    let mut shown: Vec<&Row> = rows.iter().filter(|row| row.is_shown(filter)).collect();
    // The newest problem first; clusters as desired by name.
    let newest = |row: &Row| std::cmp::Reverse(row.since.filter(|_| row.group != Group::AsDesired));
    shown.sort_by_key(|row| (row.group, row.rank, newest(row), row.key.clone()));
    let count = |group: Group| shown.iter().filter(|row| row.group == group).count();
    let mut rendered = vec![(
        "fleet-head",
        vec![Part::new("summary", summary(rows.len(), shown.len(), count, around))],
    )];
    for group in Group::ALL {
        let of_group = shown.iter().filter(|row| row.group == group);
        rendered.push((group.list(), of_group.map(|row| row.part.clone()).collect()));
    }
    rendered
}

/// The counts, and what concerns all clusters.
fn summary(all: usize, shown: usize, count: impl Fn(Group) -> usize, around: &Around) -> Markup {
    let n = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    html! {
        div id="summary" {
            p class="counts" {
                @for (group, tone) in Group::ALL.into_iter().zip([Tone::Error, Tone::Info, Tone::Good]) {
                    @let is_none = count(group) == 0;
                    a href={ "#" (group.list()) } class={ "count " (class(tone)) @if is_none { " none" } } {
                        strong { (count(group)) } " " (group.title().to_lowercase())
                    }
                }
            }
            @if all == 0 {
                p class="empty" { "There is no cluster here yet. Create one with kubectl apply, and it appears by itself." }
            } @else if shown < all {
                p class="hint" role="status" { (shown) " of " (some(n(all), "cluster")) " shown." }
            }
            (operator_banner(&around.operator, around.now))
            @for note in &around.notes { p class="note" { (note) } }
        }
    }
}

/// Warns that no operator is running.
pub fn operator_banner(operator: &Liveness, now: Timestamp) -> Markup {
    let tone = match operator {
        Liveness::Alive { .. } => return html! {},
        Liveness::Gone { .. } => "bad",
        Liveness::NoLease | Liveness::Unknown { .. } => "unknown",
    };
    html! { @if let Some(message) = operator.message(now) { p class={ "banner " (tone) } { (message) } } }
}

/// The lists of the page, empty headings included: a heading without rows is hidden by the style sheet.
pub fn lists(rendered: &Rendered) -> Markup {
    let parts = |name: &str| rendered.iter().find(|(list, _)| *list == name).map(|(_, parts)| parts);
    html! {
        div id="fleet-head" { @for part in parts("fleet-head").into_iter().flatten() { (maud::PreEscaped(&part.html)) } }
        @for group in Group::ALL {
            section class="group" aria-labelledby={ "h-" (group.list()) } {
                h2 id={ "h-" (group.list()) } { (group.title()) }
                ol id=(group.list()) class="rows" {
                    @for part in parts(group.list()).into_iter().flatten() { (maud::PreEscaped(&part.html)) }
                }
            }
        }
    }
}

fn row(id: &str, key: &Key, snapshot: &Snapshot, cluster: &Cluster, answer: &Answer) -> Markup {
    let now = snapshot.now;
    html! {
        li id=(id) class="row" {
            div class="who" {
                a href=(key.path()) { (key.name) }
                span class="where" { (key.namespace) " · " (key.kind.short()) " · " (cluster.shards) "×" (1 + cluster.replicas) }
            }
            div class="state" {
                (pill(answer.tone, &answer.state))
                span class="reason" { (answer.reason) }
                // The page of the cluster has the rest of it.
                @for aside in &answer.asides { span class="aside" { "! " (aside.split(": ").next().unwrap_or(aside)) } }
            }
            p class="sentence" { (sentence(answer, now)) }
            (strip(&periods(snapshot), now))
            span class="fresh" { (freshness(&snapshot.operator, now)) }
        }
    }
}

/// How old the data of a cluster is: the operator writes at once what changes, so it is current while one runs.
fn freshness(operator: &Liveness, now: Timestamp) -> Markup {
    match operator {
        Liveness::Gone { since: Some(at), .. } => html! { (age(*at, now)) " old" },
        Liveness::Gone { .. } => html! { "old" },
        Liveness::Alive { .. } => html! { "current" },
        Liveness::NoLease | Liveness::Unknown { .. } => html! { "age unknown" },
    }
}

/// The states of the last hour.
fn strip(periods: &[Period], now: Timestamp) -> Markup {
    let start = now.checked_sub(HOUR).unwrap_or(now);
    let bars: Vec<(i64, i64, &Period)> = periods
        .iter()
        .filter_map(|period| {
            let from = period.from.max(start);
            let to = period.to.unwrap_or(now).min(now);
            (to >= from).then(|| (seconds(from, start), seconds(to, from).max(12), period))
        })
        .collect();
    let words: Vec<String> = periods
        .iter()
        .filter(|one| one.to.unwrap_or(now) >= start)
        .map(|one| {
            format!(
                "{} for {}",
                one.state,
                since(one.from.max(start), one.to.unwrap_or(now))
            )
        })
        .collect();
    html! {
        svg class="strip" viewBox="0 0 3600 12" preserveAspectRatio="none" role="img"
            aria-label={ "The last hour: " (words.join(", ")) } {
            @for (x, width, period) in bars {
                @let tone = history::tone(&period.state);
                @let height = height(tone);
                rect class=(class(tone)) x=(x) width=(width) y=(12 - height) height=(height) {}
            }
        }
    }
}

fn seconds(at: Timestamp, start: Timestamp) -> i64 {
    at.duration_since(start).as_secs()
}

/// The worse a state, the higher its bar.
const fn height(tone: Tone) -> i32 {
    match tone {
        Tone::Good => 4,
        Tone::Info => 6,
        Tone::Warning => 8,
        Tone::Unknown => 10,
        Tone::Error => 12,
    }
}
