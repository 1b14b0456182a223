//! `--watch`: the snapshot as it changes. A terminal is redrawn in place; a pipe gets one line per change.

use std::error::Error;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;

use candor_api::{ValkeyCluster, ValkeyNode};
use jiff::Timestamp;
use kube::runtime::watcher;
use kube_status::tree::since;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::super::connect::Connected;
use super::super::news::listen;
use super::super::output::{Screen, clear, cut, print, print_frame, size};
use super::{Seen, Status};

/// Interval at which ages are redrawn, and data without a watch is fetched again.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// Several changes within this time are one snapshot.
const GATHER: Duration = Duration::from_millis(50);
/// After this long without a response, the last snapshot is marked as outdated.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows changes until Ctrl-C.
pub(super) async fn watch(status: &Status, at: &Connected) -> Result<(), Box<dyn Error>> {
    // An error at the start ends the command; a later error is shown beside the last snapshot.
    let mut seen = status.look(at).await?;
    let mut taken = Timestamp::now();
    let mut trouble: Option<String> = None;
    // One signal stream for the whole time: a Ctrl-C during a request to the API server must not be lost.
    let mut enough = signal(SignalKind::interrupt())?;
    let terminal = std::io::stdout().is_terminal();
    let mut said = String::new();
    let (told, mut news) = mpsc::channel(1);
    let namespace = (!status.all_namespaces).then(|| at.namespace.clone());
    let all = watcher::Config::default;
    let tasks = [
        tokio::spawn(listen::<ValkeyCluster>(
            at.client.clone(),
            namespace.clone(),
            all(),
            told.clone(),
        )),
        tokio::spawn(listen::<ValkeyNode>(at.client.clone(), namespace, all(), told)),
    ];
    if terminal {
        clear()?;
    }
    loop {
        if terminal {
            print_frame(&frame(status, &seen, trouble.as_deref().map(|words| (words, taken))))?;
        } else {
            tell(&seen, trouble.as_deref().map(|words| (words, taken)), &mut said)?;
        }
        let next = Instant::now() + HEARTBEAT;
        tokio::select! {
            _ = enough.recv() => break,
            Some(()) = news.recv() => tokio::time::sleep(GATHER).await,
            () = sleep_until(next) => {}
        }
        let looked = tokio::select! {
            _ = enough.recv() => break,
            looked = timeout(PATIENCE, status.look(at)) => looked,
        };
        match looked {
            Ok(Ok(newer)) => {
                seen = newer;
                taken = Timestamp::now();
                trouble = None;
            }
            Ok(Err(error)) => trouble = Some(error.to_string()),
            Err(_) => trouble = Some(format!("the API server did not answer for {} s", PATIENCE.as_secs())),
        }
    }
    for task in tasks {
        task.abort();
    }
    if terminal {
        print("\n")?;
    }
    Ok(())
}

/// The snapshot, as far as it fits.
fn frame(status: &Status, seen: &Seen, trouble: Option<(&str, Timestamp)>) -> Vec<String> {
    let screen = Screen::of_stdout(status.output);
    let (columns, rows) = size().unwrap_or((80, 24));
    let mut lines: Vec<String> = Vec::new();
    if let Some((words, taken)) = trouble {
        let words = cut(&old(taken, first_line(words)), columns);
        lines.push(screen.paint(&words, kube_status::tree::Tone::Error));
    }
    let text = status.draw(seen, &screen);
    lines.extend(text.lines().map(str::to_owned));
    let room = rows.saturating_sub(1).max(1);
    let hidden = lines.len().saturating_sub(room);
    if hidden > 0 {
        lines.truncate(room.saturating_sub(1));
        lines.push(screen.dim(&format!("... {} more lines", hidden + 1)));
    }
    lines
}

/// Precedes a problem in `said`, so that its end is noticed.
const TROUBLE: &str = "!";

/// Prints a line for every change, with its time.
fn tell(seen: &Seen, trouble: Option<(&str, Timestamp)>, said: &mut String) -> Result<(), Box<dyn Error>> {
    let answers: Vec<(String, &super::answer::Answer)> = match seen {
        Seen::One(report) => vec![(format!("{}/{}", report.namespace, report.name), &report.answer)],
        Seen::All(listing) => listing
            .clusters
            .iter()
            .map(|row| (format!("{}/{}", row.namespace, row.name), &row.answer))
            .collect(),
    };
    let mut now = String::new();
    let mut lines = String::new();
    for (name, answer) in answers {
        let progress = match seen {
            Seen::One(report) => report
                .operation
                .as_ref()
                .and_then(|one| Some((one.slots_moved?, one.slots_total?))),
            Seen::All(_) => None,
        };
        let moved = progress.map_or(String::new(), |(moved, of)| format!(" {moved}/{of} slots"));
        let line = format!("{name} {} {}{moved}", answer.state, answer.reason);
        if !said.lines().any(|known| known == line) {
            let _ = writeln!(lines, "{}  {line}  {}", clock(), answer.sentence);
        }
        now += &line;
        now.push('\n');
    }
    if let Some((words, taken)) = trouble {
        let line = format!("{TROUBLE}{}", first_line(words));
        if !said.lines().any(|known| known == line) {
            let _ = writeln!(lines, "{}  {}", clock(), old(taken, first_line(words)));
        }
        now += &line;
        now.push('\n');
    } else if said.lines().any(|known| known.starts_with(TROUBLE)) {
        let _ = writeln!(lines, "{}  The API server answers again.", clock());
    }
    *said = now;
    print(&lines)
}

fn first_line(words: &str) -> &str {
    words.lines().next().unwrap_or_default()
}

/// Says that the last snapshot is outdated, and why.
fn old(taken: Timestamp, why: &str) -> String {
    format!("As of {} ago: {why}", since(taken, Timestamp::now()))
}

fn clock() -> String {
    Timestamp::now().strftime("%H:%M:%SZ").to_string()
}
