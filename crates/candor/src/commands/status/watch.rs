//! `--watch`: the snapshot as it changes. A terminal is redrawn in place; a pipe gets one line per change.

use std::error::Error;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use candor_api::ValkeyNode;
use jiff::Timestamp;
use kube::api::ApiResource;
use kube::runtime::watcher;
use kube_status::tree::since;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::changes::{Scope, listen};
use super::super::cluster::answer::Answer;
use super::super::cluster::{ClusterRef, Kind};
use super::super::connect::Connected;
use super::super::output::{Screen, clear, cut, print, print_frame, size};
use super::{Shown, Status};

/// Interval at which ages are redrawn, and data without a watch is fetched again.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Several changes within this time are one snapshot.
const GATHER: Duration = Duration::from_millis(50);
/// After this long without a response, the last snapshot is marked as outdated.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows changes until Ctrl-C.
pub(super) async fn watch(status: &Status, at: &Connected, cluster: Option<&ClusterRef>) -> Result<(), Box<dyn Error>> {
    // An error at the start ends the command; a later error is shown beside the last snapshot.
    let mut shown = status.fetch(at, cluster).await?;
    let mut taken = Timestamp::now();
    let mut trouble: Option<String> = None;
    // One signal stream for the whole time: a Ctrl-C during a request to the API server must not be lost.
    let mut enough = signal(SignalKind::interrupt())?;
    let terminal = std::io::stdout().is_terminal();
    let mut printed = String::new();
    let (changed, mut changes) = mpsc::channel(1);
    // Dropping the set ends its tasks.
    let _watches = watches(status, at, cluster, &changed);
    if terminal {
        clear()?;
    }
    loop {
        let trouble_since = trouble.as_deref().map(|message| (message, taken));
        if terminal {
            print_frame(&frame(status, &shown, trouble_since))?;
        } else {
            print_changes(&shown, trouble_since, &mut printed)?;
        }
        let next = Instant::now() + HEARTBEAT;
        tokio::select! {
            _ = enough.recv() => break,
            Some(()) = changes.recv() => tokio::time::sleep(GATHER).await,
            () = sleep_until(next) => {}
        }
        let fetched = tokio::select! {
            _ = enough.recv() => break,
            fetched = timeout(PATIENCE, status.fetch(at, cluster)) => fetched,
        };
        match fetched {
            Ok(Ok(newer)) => {
                shown = newer;
                taken = Timestamp::now();
                trouble = None;
            }
            Ok(Err(error)) => trouble = Some(error.to_string()),
            Err(_) => trouble = Some(format!("the API server did not respond for {} s", PATIENCE.as_secs())),
        }
    }
    if terminal {
        print("\n")?;
    }
    Ok(())
}

/// Watches the objects that the snapshot is made of.
fn watches(status: &Status, at: &Connected, cluster: Option<&ClusterRef>, changed: &mpsc::Sender<()>) -> JoinSet<()> {
    let scope = if status.all_namespaces {
        Scope::Everywhere
    } else {
        Scope::Namespace
    };
    let kinds: Vec<Kind> = cluster.map_or_else(|| Kind::ALL.into(), |cluster| vec![cluster.kind]);
    let mut resources: Vec<ApiResource> = kinds.iter().map(|kind| kind.resource()).collect();
    if kinds.contains(&Kind::ValkeyCluster) {
        resources.push(ApiResource::erase::<ValkeyNode>(&()));
    }
    let mut tasks = JoinSet::new();
    for resource in resources {
        let all = watcher::Config::default();
        tasks.spawn(listen(at.clone(), scope, resource, all, changed.clone()));
    }
    tasks
}

/// The snapshot, as far as it fits.
fn frame(status: &Status, shown: &Shown, trouble: Option<(&str, Timestamp)>) -> Vec<String> {
    let screen = Screen::of_stdout(status.output);
    let (columns, rows) = size().unwrap_or((80, 24));
    let mut lines: Vec<String> = Vec::new();
    if let Some((message, taken)) = trouble {
        let message = cut(&old(taken, first_line(message)), columns);
        lines.push(screen.paint(&message, kube_status::tree::Tone::Error));
    }
    let text = status.draw(shown, &screen);
    lines.extend(text.lines().map(str::to_owned));
    let room = rows.saturating_sub(1).max(1);
    let hidden = lines.len().saturating_sub(room);
    if hidden > 0 {
        lines.truncate(room.saturating_sub(1));
        lines.push(screen.dim(&format!("... {} more lines", hidden + 1)));
    }
    lines
}

/// Precedes a problem in what was printed last, so that its end is noticed.
const TROUBLE: &str = "!";

/// Prints a line for every change since `printed`, with its time.
fn print_changes(
    shown: &Shown,
    trouble: Option<(&str, Timestamp)>,
    printed: &mut String,
) -> Result<(), Box<dyn Error>> {
    let answers: Vec<(String, &Answer)> = match shown {
        Shown::One(report) => vec![(format!("{}/{}", report.namespace, report.name), &report.answer)],
        Shown::All(listing) => listing
            .clusters
            .iter()
            .map(|row| (format!("{}/{}", row.namespace, row.name), &row.answer))
            .collect(),
    };
    let mut now = String::new();
    let mut lines = String::new();
    let details = match shown {
        Shown::One(report) => details(report),
        Shown::All(_) => String::new(),
    };
    for (name, answer) in answers {
        let line = format!("{name} {}{details}", state(answer));
        if !printed.lines().any(|known| known == line) {
            let _ = writeln!(lines, "{}  {line}  {}", clock(), answer.text());
        }
        now += &line;
        now.push('\n');
    }
    if let Some((message, taken)) = trouble {
        let line = format!("{TROUBLE}{}", first_line(message));
        if !printed.lines().any(|known| known == line) {
            let _ = writeln!(lines, "{}  {}", clock(), old(taken, first_line(message)));
        }
        now += &line;
        now.push('\n');
    } else if printed.lines().any(|known| known.starts_with(TROUBLE)) {
        let _ = writeln!(lines, "{}  The API server responds again.", clock());
    }
    *printed = now;
    print(&lines)
}

fn state(answer: &Answer) -> String {
    format!("{} {}", answer.state, answer.reason)
}

/// Stage and progress of the operation.
fn details(report: &super::Report) -> String {
    let mut text = String::new();
    if let Some(stage) = &report.stage {
        text.extend([" ", &stage.step]);
    }
    let moved = report
        .operation
        .as_ref()
        .and_then(|one| Some((one.slots_moved?, one.slots_total?)));
    if let Some((moved, of)) = moved {
        // Writing into a String cannot fail.
        let _ = write!(text, " {moved}/{of} slots");
    }
    text
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// Says that the last snapshot is outdated, and why.
fn old(taken: Timestamp, why: &str) -> String {
    format!("As of {} ago: {why}", since(taken, Timestamp::now()))
}

fn clock() -> String {
    Timestamp::now().strftime("%H:%M:%SZ").to_string()
}
