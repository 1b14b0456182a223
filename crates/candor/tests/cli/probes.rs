//! The probes of a member, with the exporter that answers readiness for a real server.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::real::Real;

fn ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

fn restarts(pod: &Pod, container: &str) -> i32 {
    let statuses = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let status = statuses.and_then(|all| all.iter().find(|one| one.name == container));
    status.map_or(0, |status| status.restart_count)
}

async fn until(real: &Real, pod: &str, what: &str, within: u64, so: impl Fn(&Pod) -> bool) -> Duration {
    let begun = Instant::now();
    loop {
        let found = real.pod(pod).await;
        if so(&found) {
            return begun.elapsed();
        }
        let status = serde_json::to_string_pretty(&found.status).unwrap();
        assert!(
            begun.elapsed() < Duration::from_secs(within),
            "{pod} not {what}: {status}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The processes of a program with this address in their arguments or environment; a server overwrites both with its
/// title.
fn processes(program: &str, ip: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let of_pod = all.filter_map(|entry| {
        let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let words = [read("cmdline"), read("environ")].concat();
        let known = words
            .split(|byte| [0, b'=', b' ', b':'].contains(byte))
            .any(|word| word == ip.as_bytes());
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (read("comm").starts_with(program.as_bytes()) && known).then(|| Pid::from_raw(pid))?
    });
    of_pod.collect()
}

fn signal(pod: &Pod, program: &str, signal: Signal) {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap();
    let found = processes(program, &ip);
    assert_eq!(found.len(), 1, "{program} of {ip}: {found:?}");
    kill_process(found[0], signal).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exporter_that_hangs_or_dies_costs_readiness_and_a_server_that_hangs_is_restarted() {
    let real = Real::start().await;
    real.create("probed", json!({"shards": 1, "replicas": 1})).await;
    real.until("probed", "Ready", |cluster| {
        let conditions = cluster.status.as_ref().map(|status| &status.conditions);
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
    })
    .await;
    let name = real.pods_of("probed").await["0-1"].clone();
    until(&real, &name, "ready", 30, ready).await;
    let pod = real.pod(&name).await;
    let probe = pod.spec.as_ref().unwrap().containers[0].readiness_probe.clone();
    assert!(probe.unwrap().http_get.is_some(), "the exporter answers");

    signal(&pod, "candor", Signal::STOP);
    until(&real, &name, "unready while its exporter hangs", 15, |pod| !ready(pod)).await;
    signal(&pod, "candor", Signal::CONT);
    until(&real, &name, "ready again", 15, ready).await;
    signal(&pod, "candor", Signal::KILL);
    until(&real, &name, "ready after its exporter was restarted", 60, |pod| {
        ready(pod) && restarts(pod, "metrics-exporter") == 1
    })
    .await;
    assert_eq!(restarts(&real.pod(&name).await, "server"), 0);

    signal(&pod, "valkey-server", Signal::STOP);
    let took = until(&real, &name, "unready while its server hangs", 15, |pod| !ready(pod)).await;
    println!("unready {took:?} after its server hangs");
    let took = until(&real, &name, "restarted", 70, |pod| restarts(pod, "server") == 1).await;
    println!("restarted {took:?} later");
    until(&real, &name, "ready after its server was restarted", 60, ready).await;
    assert_eq!(restarts(&real.pod(&name).await, "metrics-exporter"), 1);
    real.end().await;
}
