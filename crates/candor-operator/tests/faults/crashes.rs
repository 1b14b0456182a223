//! Killed after every write in turn, each run ends as an undisturbed one does.

use std::time::Duration;

use futures::StreamExt;
use kube_sandbox::faults::{Fault, Rule};

use crate::chapter::Chapter;
use crate::thorough;

/// Runs at a time: members and servers wait more than they work.
const SIDE_BY_SIDE: usize = 6;

/// Seconds of false Ready are printed and not yet asserted: they have been seen above 0 on a machine with ten times more
/// to do than cores, and whether that load alone is the cause is not known.
async fn kill_after_every_write(chapter: Chapter, step: usize) {
    let calm = chapter.run(None, None).await;
    assert_eq!(calm.wrong, None, "{chapter:?} undisturbed");
    let writes = u64::try_from(calm.writes.len()).unwrap();
    let step = if thorough() { 1 } else { step };
    let points: Vec<u64> = (1..=writes).step_by(step).collect();
    let ending = &calm.ending;
    let runs = points.iter().map(|n| async move {
        let rule = Rule::new("killed").writes().nth(*n).then(Fault::Crash);
        (*n, chapter.run(Some(rule), Some(ending)).await)
    });
    let runs: Vec<_> = futures::stream::iter(runs)
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    let tried = runs.iter().filter(|(_, run)| run.killed).count();
    let false_ready: Duration = runs.iter().map(|(_, run)| run.false_ready).sum();
    println!(
        "{chapter:?}: {writes} writes undisturbed, {tried} crash points tried, {:.1} s of false Ready",
        false_ready.as_secs_f64()
    );
    for (n, run) in &runs {
        let last = run.writes.last().map(ToString::to_string).unwrap_or_default();
        assert_eq!(run.wrong, None, "{chapter:?} killed after write {n} ({last})");
    }
    assert!(
        tried * 10 >= points.len() * 8,
        "{tried} of {} points struck",
        points.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_cluster_is_made() {
    kill_after_every_write(Chapter::Create, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_shards_are_added() {
    kill_after_every_write(Chapter::ScaleOut, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_shards_are_taken_away() {
    kill_after_every_write(Chapter::ScaleIn, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_users_change() {
    kill_after_every_write(Chapter::Users, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_every_write_while_a_cluster_is_deleted() {
    kill_after_every_write(Chapter::Delete, 2).await;
}
