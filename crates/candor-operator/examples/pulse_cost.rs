//! What the pulse costs in steady state: CPU of its thread and memory, over simulated members.
//!
//! `cargo run --release -p candor-operator --example pulse_cost [MEMBERS...]`, 60 and 1200 unless said otherwise.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use candor_engine::model::{MemberRef, ShardIndex};
use candor_operator::monitor::Monitor;
use candor_operator::runtime::cache::{ClusterKey, ClusterKind};
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use valkey_admin::client::Endpoint;
use valkey_sim::world::PORT;
use valkey_sim::{Start, Timing, World};

/// Members of one cluster.
const SIZE: usize = 6;
/// How long the steady state is looked at.
const LOOK: Duration = Duration::from_secs(10);

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    for members in if given.is_empty() { vec![60, 1200] } else { given } {
        measure(members);
    }
}

fn measure(members: usize) {
    let (sender, receiver) = oneshot::channel();
    let (done, over) = oneshot::channel::<()>();
    let servers = std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let world = World::new(Timing::default());
            let mut addresses = Vec::new();
            for _ in 0..members {
                let ip = World::address();
                world
                    .start(ip, &Start::default())
                    .await
                    .expect("a loopback address is free");
                addresses.push(ip);
            }
            let _ = sender.send((addresses, world.clone()));
            let _ = over.await;
        });
    });
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (addresses, world) = receiver.await.expect("the servers start");
        let memory = resident();
        let (trigger, mut calls) = mpsc::unbounded_channel();
        let monitor = Monitor::new(trigger);
        let mut keys = Vec::new();
        for (number, addresses) in addresses.chunks(SIZE).enumerate() {
            let key = ClusterKey {
                kind: ClusterKind::Valkey,
                namespace: "bench".to_owned(),
                name: format!("cluster-{number}"),
            };
            let endpoints = addresses.iter().enumerate().map(|(node, ip)| {
                let at = MemberRef {
                    shard: ShardIndex(0),
                    node: u32::try_from(node).unwrap_or(u32::MAX),
                };
                (at, Endpoint::plain(*ip, PORT))
            });
            monitor.watch(&key, endpoints.collect::<BTreeMap<_, _>>());
            keys.push(key);
        }
        for key in &keys {
            monitor.scrape(key).await;
        }
        // Alertness after the first connections is over when nothing has called for a while.
        while tokio::time::timeout(Duration::from_secs(2), calls.recv()).await.is_ok() {}
        let (cpu, commands, start) = (cpu_time(), world.commands(), Instant::now());
        tokio::time::sleep(LOOK).await;
        let (spent, took) = (cpu_time().saturating_sub(cpu), start.elapsed());
        let beats = (world.commands() - commands) / 2;
        let percent = spent.as_secs_f64() / took.as_secs_f64() * 100.0;
        let each = spent.as_secs_f64() * 1e6 / f64::from(u32::try_from(beats).unwrap_or(u32::MAX));
        println!(
            "{members} members: {percent:.2} % of a core ({:.3} % per 60), {beats} beats in {took:.1?}, {each:.1} us a beat; \
             calls in steady state: {}; memory with both ends of the connections: {} KiB, {:.1} KiB a member",
            percent * 60.0 / f64::from(u32::try_from(members).unwrap_or(u32::MAX)),
            calls.len(),
            resident() - memory,
            f64::from(u32::try_from(resident() - memory).unwrap_or(0)) / f64::from(u32::try_from(members).unwrap_or(1)),
        );
        let start = Instant::now();
        let looks = keys.iter().take(200).map(|key| monitor.scrape(key));
        futures::future::join_all(looks).await;
        println!("{members} members: everything of all of them at once in {:.1?}", start.elapsed());
    });
    let _ = done.send(());
    servers.join().expect("the servers end");
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// KiB that this process holds.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
