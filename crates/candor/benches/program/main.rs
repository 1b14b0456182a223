//! The cost of the CLI: how long a user waits for an answer, and how much CPU a live screen takes. Members are
//! simulated. API server, members and operator run in this process, so that only the CLI itself is measured.

mod crowd;
#[path = "../../tests/cli/desk.rs"]
#[allow(dead_code, unused_imports)] // tests ask for more
mod desk;
mod page;
#[path = "../../tests/cli/runner.rs"]
#[allow(dead_code)]
mod runner;
#[path = "../../tests/cli/terminal.rs"]
#[allow(dead_code)]
mod terminal;

use std::time::{Duration, Instant};

use desk::Desk;
use serde_json::json;
use terminal::Terminal;

/// How often each command is run.
const RUNS: usize = 20;
/// How long a live screen is measured.
const LOOKED: Duration = Duration::from_secs(20);
/// Linux counts CPU time in hundredths of a second.
const TICKS: f64 = 100.0;

#[tokio::main]
async fn main() {
    let desk = Desk::set().await;
    desk.ready("big", json!({"shards": 1, "replicas": 2})).await;
    crowd::gather(&desk.stage, "big").await;
    println!("{:<36} {:>13}  measured", "", "must reach");
    let all = |output: &str| output.contains("all slots served, all replicas in sync") && output.contains("19-2");
    waited(&desk, "status big -n crowd", "candor status, 60 members", 300, all).await;
    let all = |output: &str| output.lines().filter(|line| line.contains("Ready")).count() == crowd::CLUSTERS;
    waited(&desk, "status -n crowd", "candor status, 200 clusters", 1000, all).await;
    let load = load(&desk).await * 100.0;
    let words = format!("{load:.1} % over {} s", LOOKED.as_secs());
    row("candor top, 60 members", "5 % of a core", &words, load < 5.0);
    page::measure(&desk).await;
    desk.end().await;
}

fn row(what: &str, promised: &str, measured: &str, met: bool) {
    println!(
        "{what:<36} {promised:>13}  {measured:<34} {}",
        if met { "met" } else { "MISSED" }
    );
}

/// Measures how long a user waits for an answer.
async fn waited(desk: &Desk, words: &str, what: &str, promised: u128, whole: impl Fn(&str) -> bool) {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let output = desk.run(words).await.well();
        times.push(begun.elapsed().as_millis());
        assert!(whole(&output), "{output}");
    }
    times.sort_unstable();
    let (median, worst) = (times[RUNS / 2], times[RUNS - 1]);
    let measured = format!("{median} ms (the slowest of {RUNS}: {worst} ms)");
    row(what, &format!("{promised} ms"), &measured, median <= promised);
}

/// The share of one core that `top` uses.
async fn load(desk: &Desk) -> f64 {
    let terminal = Terminal::start(desk.folder.path(), (120, 40), &desk.becoming("top big -n crowd"));
    terminal
        .until("there", |text| text.contains("60 of 60 members answer"))
        .await;
    let process = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let process = process.trim();
    let (before, begun) = (spent(process), Instant::now());
    tokio::time::sleep(LOOKED).await;
    let load = (spent(process) - before) / begun.elapsed().as_secs_f64();
    terminal.press("q");
    load
}

/// The CPU time of a process, in seconds.
fn spent(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it lives");
    // The name may contain anything; the numbers come after it, with user and system time in fields 12 and 13.
    let (_, numbers) = stat.rsplit_once(')').expect("a process has a name");
    let ticks = numbers.split_whitespace().skip(11).take(2);
    ticks.map(|field| field.parse::<f64>().expect("a number")).sum::<f64>() / TICKS
}
