//! Kills the operator after every write in turn, rejects or delays its requests, and returns stale data. Each run must
//! reach the same final state as a run without faults, and status must never be false for longer than allowed.

use std::io::Write as _;
use std::time::Duration;

use futures::future::join_all;

use crate::chapter::{Chapter, Scenario, run};
use crate::disturbance::{Disturbance, readings, refusals};
use crate::{Trying, trying};

/// A scenario with at most this many writes is tested with every crash point.
const SHORT: usize = 25;
/// The number of crash points of a longer scenario, unless all of them are requested.
const CRASHES: usize = 8;
/// One in this many of the other disturbances is tested.
const ONE_IN: usize = 3;

/// The disturbances of a scenario with `writes` writes. Each scenario leaves out different ones.
fn disturbances(chapter: impl Scenario, writes: u64) -> Vec<Disturbance> {
    let (turn, all) = (chapter.number(), usize::try_from(writes).unwrap());
    let begin = turn as u64 * 7;
    let crashes = (1..=writes).map(Disturbance::crash);
    match trying() {
        Trying::Nothing => return Vec::new(),
        Trying::Crashes => return crashes.collect(),
        Trying::All => {
            let others = refusals(writes, 3, begin).into_iter().chain(readings(writes));
            return crashes.chain(others).collect();
        }
        Trying::Few => {}
    }
    // A failover request is completed within a few writes. Only a crash between them can lose it.
    if turn == Chapter::Failover as usize {
        return crashes.collect();
    }
    let (crash_points, one_in) = if chapter.is_long() {
        (CRASHES / 2, ONE_IN * 2)
    } else {
        (CRASHES, ONE_IN)
    };
    let few = all > SHORT || chapter.is_long();
    let each = if few { all.div_ceil(crash_points) } else { 1 };
    let crashes = crashes.skip(turn % each).step_by(each);
    let others = refusals(writes, writes, begin).into_iter().chain(readings(writes));
    let others = others.skip(turn % one_in).step_by(one_in);
    crashes.chain(others).collect()
}

pub async fn disturbed(chapter: impl Scenario) {
    let calm = run(chapter, None, None).await;
    assert_eq!(calm.wrong, None, "{chapter:?} undisturbed");
    let writes = u64::try_from(calm.writes.len()).unwrap();
    let mut all = disturbances(chapter, writes);
    if let Ok(only) = std::env::var("CANDOR_FAULT") {
        all.retain(|one| one.name.contains(&only));
    }
    let ending = &calm.ending;
    let runs = all
        .iter()
        .map(|one| async move { (one, run(chapter, Some(one), Some(ending)).await) });
    let runs = join_all(runs).await;
    let struck = |crash: bool| {
        let of_kind = runs.iter().filter(move |(one, _)| one.is_crash() == crash);
        of_kind.filter(|(_, run)| run.struck > 0)
    };
    let (crashes, others) = (struck(true).count(), struck(false).count());
    let faults: usize = struck(false).map(|(_, run)| run.struck).sum();
    let false_ready: Duration = runs.iter().map(|(_, run)| run.false_ready).sum::<Duration>() + calm.false_ready;
    let longest = runs.iter().map(|(_, run)| run.took).max().unwrap_or_default();
    // Written directly to stderr, because the test harness captures the output of tests that pass.
    let _ = writeln!(
        std::io::stderr(),
        "{chapter:?}: {writes} writes and {:.1} s undisturbed; {crashes} crash points tried, {faults} faults injected in \
         {others} runs, {:.1} s of false Ready, the longest run {:.1} s",
        calm.took.as_secs_f64(),
        false_ready.as_secs_f64(),
        longest.as_secs_f64(),
    );
    let mut wrong: Vec<String> = Vec::new();
    for (one, run) in &runs {
        let last = run.writes.last().map(ToString::to_string).unwrap_or_default();
        let findings = |message: &String| format!("{chapter:?}, {} (last write: {last}): {message}", one.name);
        wrong.extend(run.wrong.iter().map(findings));
        wrong.extend(run.lies.iter().map(findings));
    }
    wrong.extend(calm.lies);
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(false_ready, Duration::ZERO);
    assert!(
        (crashes + others) * 10 >= all.len() * 8,
        "{} of {} disturbances struck",
        crashes + others,
        all.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_a_cluster_is_made() {
    disturbed(Chapter::Create).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_shards_are_added() {
    disturbed(Chapter::ScaleOut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_shards_are_removed() {
    disturbed(Chapter::ScaleIn).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_members_are_rolled() {
    disturbed(Chapter::Roll).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_users_change() {
    disturbed(Chapter::Users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_a_cluster_is_deleted() {
    disturbed(Chapter::Delete).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_while_a_failover_is_requested() {
    disturbed(Chapter::Failover).await;
}
