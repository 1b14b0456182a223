//! What set, summary and aggregate cost on both sides, on the same cases in the same run.

use std::hint::black_box;
use std::io;
use std::time::Duration;

use allocation_counter::measure;
use kube_status::{Aggregate, Conditioned, Draft, Order, Status, Summary, set_in};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::case::{Case, Object, Sorting, Words};
use crate::go::Go;
use crate::ours::generation_2::Stored;

/// How much faster a summary and an aggregate must be here.
const REQUIRED: f64 = 5.0;
/// How much more one object may cost when there are a hundred times as many, for the growth still to count as linear:
/// processor caches are full somewhere between the two.
const LINEAR: f64 = 3.0;
/// Both sides in turn, so that neither has the quiet half of the run to itself.
const ROUNDS: usize = 2;
/// Both sides measure in the same way: the processor time of the calling thread, the best of many batches, because
/// everything else on the host only adds time. What Go's garbage collector does on other threads is not counted.
const BATCHES: usize = 40;
const BATCH: Duration = Duration::from_millis(15);

/// One case's cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
    nanoseconds: f64,
    allocations: u64,
}

/// Measures, prints the table, and says whether the requirements hold.
pub fn run(go: &mut Go) -> io::Result<bool> {
    println!("processor time of the calling thread, the best of {ROUNDS} times {BATCHES} batches of {BATCH:?}");
    println!(
        "{:<46}{:>14}{:>10}{:>14}{:>10}{:>9}",
        "", "Go ns", "allocs", "ours ns", "allocs", "ratio"
    );
    let mut holds = true;

    let object = twenty();
    let unchanged = object.conditions[10].clone();
    let (theirs, ours) = both(go, &set_case(&object, &unchanged), || {
        set_unchanged(&object, &unchanged)
    })?;
    line("set, nothing changed, 20 conditions", theirs, ours);
    holds &= require(ours.allocations == 0, "set with nothing changed must not allocate");

    let (theirs, ours) = both(go, &summary_case(&object), || summary(&object))?;
    holds &= require(
        line("summary of 20 conditions", theirs, ours) >= REQUIRED,
        "summary must be 5 times faster",
    );

    let (mut per_object, mut reading) = (Vec::new(), Vec::new());
    for count in [1_000, 10_000, 100_000] {
        let objects = crowd(count);
        let (theirs, ours) = both(go, &aggregate_case(&objects), || aggregate(&objects))?;
        let ratio = line(&format!("aggregate of {count} objects, 50 messages"), theirs, ours);
        if count == 10_000 {
            holds &= require(ratio >= REQUIRED, "aggregate must be 5 times faster");
        }
        per_object.push(ours.nanoseconds / f64::from(count));
        reading.push(timed(only_read(&objects)).nanoseconds / f64::from(count));
    }
    let listed = |costs: &[f64]| {
        costs
            .iter()
            .map(|ns| format!("{ns:.1} ns"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    println!(
        "aggregate per object at 1,000, 10,000 and 100,000: {}",
        listed(&per_object)
    );
    println!("of which reading its words takes at least: {}", listed(&reading));
    let dearer = per_object[2] / per_object[0];
    holds &= require(dearer <= LINEAR, "aggregate must grow linearly with the objects");
    Ok(holds)
}

fn require(met: bool, rule: &str) -> bool {
    if !met {
        println!("NOT MET: {rule}");
    }
    met
}

fn line(name: &str, theirs: Cost, ours: Cost) -> f64 {
    let ratio = theirs.nanoseconds / ours.nanoseconds;
    println!(
        "{name:<46}{:>14.0}{:>10}{:>14.0}{:>10}{ratio:>8.1}x",
        theirs.nanoseconds, theirs.allocations, ours.nanoseconds, ours.allocations
    );
    ratio
}

/// Both sides in turn, the best round of each. `ours` builds the body, so that its preparation is not measured, as the
/// responder's is not.
fn both<B: FnMut()>(go: &mut Go, case: &Case, ours: impl Fn() -> B) -> io::Result<(Cost, Cost)> {
    let asked = json!({"op": "bench", "bench": case}).to_string();
    let mut best: Option<(Cost, Cost)> = None;
    for _ in 0..ROUNDS {
        let answer = go.ask(&asked)?;
        let theirs = Cost {
            nanoseconds: answer["bench"]["nanosecondsPerOp"]
                .as_f64()
                .ok_or_else(|| io::Error::other(format!("the responder measured nothing: {answer}")))?,
            allocations: answer["bench"]["allocationsPerOp"].as_u64().unwrap_or_default(),
        };
        let round = (theirs, timed(ours()));
        let least = |a: Cost, b: Cost| if b.nanoseconds < a.nanoseconds { b } else { a };
        best = Some(best.map_or(round, |known| (least(known.0, round.0), least(known.1, round.1))));
    }
    best.ok_or_else(|| io::Error::other("no round was run"))
}

fn timed(mut body: impl FnMut()) -> Cost {
    body();
    let allocations = measure(&mut body).count_total;
    let (mut runs, mut measured, mut nanoseconds) = (1_u32, 0, f64::INFINITY);
    while measured < BATCHES {
        let start = thread_time();
        for _ in 0..runs {
            body();
        }
        let taken = thread_time().saturating_sub(start);
        if taken < BATCH {
            runs *= 2;
            continue;
        }
        nanoseconds = nanoseconds.min(taken.as_secs_f64() * 1e9 / f64::from(runs));
        measured += 1;
    }
    Cost {
        nanoseconds,
        allocations,
    }
}

fn thread_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// An object as a controller of some size keeps it: mostly well, some issues, some unknown.
fn twenty() -> Object {
    let conditions = (0..20).map(|i| {
        let (status, message) = match i % 5 {
            0 => (
                "False",
                format!("waiting for machine-{i} to join\nthe bootstrap data is there"),
            ),
            1 => (
                "Unknown",
                format!("the node of machine-{i} has not reported for {i} minutes"),
            ),
            _ => ("True", String::new()),
        };
        words(&format!("Condition{i:02}"), status, &message)
    });
    Object {
        kind: "Machine".into(),
        name: "machine-1".into(),
        generation: 3,
        control_plane: false,
        conditions: conditions.collect(),
    }
}

/// Many objects that say one of fifty things.
fn crowd(count: u32) -> Vec<Object> {
    let object = |i: u32| Object {
        kind: "Machine".into(),
        name: format!("machine-{i:06}"),
        generation: 1,
        control_plane: false,
        conditions: vec![words(
            "Ready",
            "False",
            &format!("the node has been unhealthy for {} minutes", i % 50),
        )],
    };
    (0..count).map(object).collect()
}

/// What no aggregate can do without: every object's kind, and the type, status and message of its condition.
fn only_read(objects: &[Object]) -> impl FnMut() {
    let stored: Vec<Stored<'_>> = objects.iter().map(Stored::new).collect();
    move || {
        let mut read = 0_usize;
        for object in black_box(&stored) {
            let conditions = object.conditions().iter();
            read += usize::from(object.kind().ends_with('e'));
            read += conditions
                .filter(|c| c.type_ == "Ready" && c.status == "False" && c.message.ends_with("minutes"))
                .count();
        }
        let _ = black_box(read);
    }
}

fn words(type_: &str, status: &str, message: &str) -> Words {
    Words {
        type_: type_.into(),
        status: status.into(),
        severity: String::new(),
        observed_generation: Some(3),
        last_transition_time: jiff::Timestamp::from_second(1_700_000_000).ok(),
        reason: "Reported".into(),
        message: message.into(),
    }
}

fn types(object: &Object) -> Vec<String> {
    object.conditions.iter().map(|c| c.type_.clone()).collect()
}

fn set_case(object: &Object, condition: &Words) -> Case {
    Case::Set {
        object: object.clone(),
        condition: condition.clone(),
        order: Sorting::Default,
    }
}

fn set_unchanged(object: &Object, words: &Words) -> impl FnMut() {
    let mut stored = Stored::new(object).conditions().to_vec();
    let generation = object.generation;
    let status = Status::read(&words.status);
    let words = words.clone();
    move || {
        let draft = Draft::new(&words.type_, status, &words.reason).message(&words.message);
        let change = set_in(&mut stored, draft, generation, crate::ours::now(), &Order::CLUSTER_API);
        assert!(!change.must_write(), "the case is about nothing changed");
    }
}

fn summary_case(object: &Object) -> Case {
    Case::Summary {
        object: object.clone(),
        target: "Ready".into(),
        types: types(object),
        negative: Vec::new(),
        ignore: Vec::new(),
        overrides: Vec::new(),
        strategy: None,
    }
}

fn summary(object: &Object) -> impl FnMut() {
    let stored = Stored::new(object);
    let summary = Summary::new("Ready").types(types(object));
    move || {
        let _ = black_box(summary.of(black_box(&stored)));
    }
}

fn aggregate_case(objects: &[Object]) -> Case {
    Case::Aggregate {
        objects: objects.to_vec(),
        type_: "Ready".into(),
        target: "MachinesReady".into(),
        negative: None,
        strategy: None,
    }
}

fn aggregate(objects: &[Object]) -> impl FnMut() {
    let stored: Vec<Stored<'_>> = objects.iter().map(Stored::new).collect();
    let aggregate = Aggregate::new("Ready").target("MachinesReady");
    move || {
        let _ = black_box(aggregate.of(black_box(&stored)));
    }
}
