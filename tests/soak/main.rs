//! Real servers under load and an operator that is killed, gets rejections, and reads stale data: no acknowledged
//! write is lost.
//!
//! Each round creates a cluster, scales it out and in, rolls it, changes replicas and users, and deletes it, each with
//! a random fault, until `SOAK_SECONDS` have passed. Rounds alternate between the kinds, unless `SOAK_KIND` names one
//! (`valkey` or `redkey`). In a round of a `RedkeyCluster` every operation keeps its keys, and Robin is killed too.
//! `SOAK_SEED` repeats a random sequence, `SOAK_RATE` sets the writes per second. The test ends with counts, and with
//! an error if a check failed.

mod changes;
mod mishaps;

use std::sync::Arc;
use std::time::{Duration, Instant};

use candor_audit::Spell;
use candor_tests::{Cluster, Kind, World, contract};
use changes::{changes, whole};
use mishaps::{Lot, Operator, Robin};
use serde_json::Value;

/// What was done and found.
#[derive(Default)]
struct Counts {
    rounds: u32,
    operations: u32,
    robins: usize,
    acknowledged: u64,
    lost: u64,
    false_ready: Duration,
    wrong: Vec<String>,
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).unwrap_or_default();
    text.parse().unwrap_or(default)
}

/// Canaries per second. A rate above what the host sustains in its worst moments would delay the writes permanently.
fn rate() -> u32 {
    u32::try_from(number("SOAK_RATE", 300)).unwrap_or(u32::MAX)
}

/// The kind of a round's cluster.
fn kind(round: u32) -> Kind {
    match std::env::var("SOAK_KIND").unwrap_or_default().as_str() {
        "valkey" => Kind::ValkeyCluster,
        "" if round % 2 == 1 => Kind::ValkeyCluster,
        "" | "redkey" => Kind::RedkeyCluster,
        other => panic!("SOAK_KIND is {other:?}: write valkey or redkey, or nothing for both"),
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> std::process::ExitCode {
    let seconds = number("SOAK_SECONDS", 120);
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seed = number("SOAK_SEED", clock.map_or(1, |now| now.as_secs()));
    println!("soak for {seconds} s; SEED={seed} repeats its mishaps");
    let world = Arc::new(World::start("soak").await);
    world.stop_operator().await;
    let operator = Operator::start(&world, seed);
    let mut lot = Lot(seed);
    let mut counts = Counts::default();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(seconds) {
        counts.rounds += 1;
        round(&world, &operator, &mut lot, &mut counts).await;
    }
    let (crashes, faults) = operator.struck();
    operator.end().await;
    if let Some(world) = Arc::into_inner(world) {
        world.end().await;
    }
    println!(
        "{} rounds, {} operations, {crashes} crash points tried, {} kills of Robin, {faults} faults injected, {:.1} s of false Ready while an \
         operator was there, {} writes acknowledged, {} lost",
        counts.rounds,
        counts.operations,
        counts.robins,
        counts.false_ready.as_secs_f64(),
        counts.acknowledged,
        counts.lost,
    );
    for wrong in &counts.wrong {
        eprintln!("{wrong}");
    }
    if counts.wrong.is_empty() {
        std::process::ExitCode::SUCCESS
    } else {
        std::process::ExitCode::FAILURE
    }
}

/// One cluster, from creation to deletion.
async fn round(world: &Arc<World>, operator: &Operator, lot: &mut Lot, counts: &mut Counts) {
    let kind = kind(counts.rounds);
    let cluster = Cluster::of(kind, world, "c");
    println!("round {}: {kind}", counts.rounds);
    disturbed(&cluster, operator, lot, "create", Deed::Create(whole(kind))).await;
    let auditor = cluster.audit_at(rate()).await;
    let audited = Instant::now();
    cluster.whole(&auditor).await;
    cluster.written(&auditor, 400).await;
    for (text, spec) in changes(kind, lot) {
        let robin = (kind == Kind::RedkeyCluster).then(|| Robin::kill_in(world, lot));
        disturbed(&cluster, operator, lot, text, Deed::Change(spec)).await;
        counts.robins += robin.map_or(0, Robin::kills);
        cluster.whole(&auditor).await;
        cluster.written(&auditor, 400).await;
        counts.operations += 1;
    }
    let audit = auditor.finish().await;
    let attended = |spell: &Spell| {
        let late = audited + spell.from.0 + spell.lasted.saturating_sub(spell.beyond);
        operator.attended(late, late + spell.beyond)
    };
    let spells: Vec<Duration> = audit.truth.spells.iter().map(attended).collect();
    let noticed = spells.iter().map(|spell| spell.saturating_sub(audit.unobserved));
    let beyond: Duration = noticed.sum();
    counts.false_ready += beyond;
    counts.acknowledged += audit.writes.acknowledged;
    counts.lost += audit.writes.lost;
    let (lost, unread) = (audit.writes.lost, audit.writes.unread_slots);
    if lost > 0 || unread > 0 || !beyond.is_zero() {
        let text = format!(
            "round {}: {lost} acknowledged writes lost, {unread} slots not read back, {beyond:?} of false Ready\n{}",
            counts.rounds,
            contract::details(&audit)
        );
        counts.wrong.push(text);
    }
    disturbed(&cluster, operator, lot, "delete", Deed::Delete).await;
    counts.operations += 2;
}

/// Performs an action during a fault, and waits until it completes.
async fn disturbed(cluster: &Cluster<'_>, operator: &Operator, lot: &mut Lot, text: &str, deed: Deed) {
    let mishap = operator.disturb(lot);
    let begun = Instant::now();
    match deed {
        Deed::Create(spec) => {
            cluster.create(spec).await;
            cluster.ready().await;
        }
        Deed::Change(spec) => {
            cluster.change(spec).await;
            cluster.ready().await;
        }
        Deed::Delete => cluster.delete().await,
    }
    println!("  {text}: {:.1} s; {mishap}", begun.elapsed().as_secs_f64());
    operator.calm();
}

/// An action of a user.
enum Deed {
    Create(Value),
    Change(Value),
    Delete,
}
