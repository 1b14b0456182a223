//! Asks the Go condition packages and kube-status the same random questions and compares every answer, string for
//! string. A difference is made small, printed, and fails the run. `bench` measures both on the same cases instead.

mod bench;
mod case;
mod compare;
mod generate;
mod go;
mod ours;
mod readers;
mod shrink;
mod untyped;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

use case::Case;
use compare::{Exception, Outcome};
use generate::Generation;
use go::Go;

/// Cases per round trip: enough to hide the pipe, few enough to keep in memory.
const BATCH: u64 = 500;

#[derive(Parser)]
#[command(about = "Compares kube-status with Go's condition packages on the same cases")]
struct Arguments {
    /// The built Go responder (conformance/conditions).
    #[arg(long, global = true, default_value = "conditions-responder")]
    responder: PathBuf,
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Random cases, answers compared string for string.
    Compare(Comparison),
    /// The cost of set, summary and aggregate on both sides.
    Bench,
}

#[derive(Args)]
struct Comparison {
    /// Cases for each generation.
    #[arg(long, default_value_t = 150_000)]
    cases: u64,
    /// The same seed gives the same cases.
    #[arg(long, default_value_t = 20_261_115)]
    seed: u64,
    /// Compare only generation 1 or 2.
    #[arg(long)]
    generation: Option<u8>,
    /// Compare only this operation, by the name the report gives it.
    #[arg(long)]
    only: Option<String>,
}

/// What one generation's run came to.
#[derive(Default)]
struct Tally {
    /// Per operation: cases, of which answered with an error.
    operations: BTreeMap<&'static str, (u64, u64)>,
    excepted: BTreeMap<Exception, u64>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("asking {} failed: {error}", arguments.responder.display());
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> std::io::Result<bool> {
    let mut go = Go::start(&arguments.responder)?;
    println!("kube-status {} beside:", env!("CARGO_PKG_VERSION"));
    for (module, version) in &go.versions {
        println!("  {module} {version}");
    }
    match &arguments.task {
        Task::Compare(comparison) => compare(&mut go, comparison),
        Task::Bench => bench::run(&mut go),
    }
}

fn compare(go: &mut Go, arguments: &Comparison) -> std::io::Result<bool> {
    for (generation, number) in [(Generation::Two, 2), (Generation::One, 1)] {
        if arguments.generation.is_some_and(|only| only != number) {
            continue;
        }
        println!(
            "generation {number}: {} cases of seed {}",
            arguments.cases, arguments.seed
        );
        let Some(tally) = compare_all(go, generation, arguments)? else {
            return Ok(false);
        };
        report(&tally);
    }
    if arguments.generation.is_some() || arguments.only.is_some() {
        return Ok(true);
    }
    readers::compare(go, arguments.cases, arguments.seed)
}

fn compare_all(go: &mut Go, generation: Generation, arguments: &Comparison) -> std::io::Result<Option<Tally>> {
    let mut tally = Tally::default();
    let mut first = 0;
    while first < arguments.cases {
        let numbers = first..arguments.cases.min(first + BATCH);
        let cases: Vec<Case> = numbers
            .map(|n| generate::case(generation, arguments.seed, n))
            .filter(|case| arguments.only.as_ref().is_none_or(|only| only == case.name()))
            .collect();
        let lines = cases.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        for (i, theirs) in go.ask_all(&lines)?.iter().enumerate() {
            let (case, asked): (&Case, Value) = (&cases[i], serde_json::from_str(&lines[i])?);
            let counts = tally.operations.entry(case.name()).or_default();
            counts.0 += 1;
            counts.1 += u64::from(theirs["error"].is_string() || theirs["panic"].is_string());
            match compare::compare(&asked, theirs, &ours::answer(case)) {
                Outcome::Equal => {}
                Outcome::Excepted(exception) => *tally.excepted.entry(exception).or_default() += 1,
                Outcome::Different => {
                    println!("a case of {} differs", case.name());
                    explain(go, asked)?;
                    return Ok(None);
                }
            }
        }
        first += BATCH;
    }
    Ok(Some(tally))
}

/// Prints the smallest case that still differs, with both answers.
fn explain(go: &mut Go, asked: Value) -> std::io::Result<()> {
    let small = shrink::shrink(asked, |candidate| {
        let Ok(case) = serde_json::from_value::<Case>(candidate.clone()) else {
            return false;
        };
        let Ok(theirs) = go.ask(&candidate.to_string()) else {
            return false;
        };
        compare::compare(candidate, &theirs, &ours::answer(&case)) == Outcome::Different
    });
    println!("smallest case: {small}");
    println!("Go answers:    {}", go.ask(&small.to_string())?);
    println!("kube-status:   {}", ours::answer(&serde_json::from_value(small)?));
    Ok(())
}

fn report(tally: &Tally) {
    let cases: u64 = tally.operations.values().map(|(asked, _)| asked).sum();
    for (operation, (asked, errors)) in &tally.operations {
        println!("  {operation:<22}{asked:>8} cases, {errors:>6} of them errors");
    }
    let excepted: u64 = tally.excepted.values().sum();
    println!(
        "  {} equal string for string, {excepted} excepted, 0 different",
        cases - excepted
    );
    for exception in Exception::ALL {
        if let Some(count) = tally.excepted.get(&exception) {
            println!("  excepted {count}: {}", exception.reason());
        }
    }
}
