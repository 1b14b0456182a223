//! `candor robin` as a process, with real servers: signals, and what it costs.

#[allow(dead_code)] // it serves other tests too
#[path = "../../../candor-operator/tests/robin/bench.rs"]
mod bench;
#[allow(dead_code)]
#[path = "../../../valkey-admin/tests/servers/mod.rs"]
mod servers;

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bench::{Bench, Operator, key, until};
use candor_engine::observation::Server;
use candor_operator::kinds::redkey::robin::link::{ObservedServer, RobinView};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use servers::{Generation, cluster};

/// A running process, which ends with the test.
struct Process(Child);

impl Process {
    fn start(bench: &Bench) -> Self {
        let account = "system:serviceaccount:default:c-robin";
        let kubeconfig = bench
            .sandbox
            .kubeconfig_for(account, &["system:serviceaccounts"])
            .unwrap();
        let path = bench.folder.path().join("kubeconfig");
        std::fs::write(&path, kubeconfig).unwrap();
        let settings = bench.settings();
        // Another build is measured with this variable.
        let program = std::env::var_os("CANDOR_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_candor").into());
        let child = Command::new(program)
            .arg("robin")
            .arg(format!("--config={}", settings.config.display()))
            .arg(format!("--credentials={}", settings.credentials.display()))
            .arg(format!("--address={}", settings.address))
            .env("KUBECONFIG", path)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }

    async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the process ends", async || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.0.id())).unwrap()
    }

    /// Its memory in kB, by kind: `VmRSS`, `RssAnon`, `RssFile`.
    fn memory(&self, kind: &str) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
    }

    /// The processor time that it has used.
    fn time(&self) -> Duration {
        let schedstat = self.proc("schedstat");
        Duration::from_nanos(schedstat.split(' ').next().unwrap().parse().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long it takes until the operator's view is so.
async fn view(operator: &Operator, what: &str, so: impl Fn(&RobinView) -> bool) -> Duration {
    let begun = Instant::now();
    until(what, async || so(&operator.links.view(&key()))).await;
    println!("{what}: {:?}", begun.elapsed());
    begun.elapsed()
}

fn live(view: &RobinView) -> bool {
    matches!(view, RobinView::Live { .. })
}

fn refused(view: &RobinView) -> bool {
    matches!(view, RobinView::Refused { .. })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_live_soon_silent_when_stopped_and_refused_when_it_ends() {
    let bench = Bench::four().await;
    let mut robin = Process::start(&bench);
    let operator = bench.operator();
    let took = view(&operator, "started: live", live).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    robin.signal(Signal::STOP);
    let silent = |view: &RobinView| matches!(view, RobinView::Silent { last: Some(_), .. });
    let took = view(&operator, "stopped: silent", silent).await;
    assert!(took < Duration::from_millis(2200), "{took:?}");
    robin.signal(Signal::CONT);
    view(&operator, "continued: live", live).await;
    robin.signal(Signal::TERM);
    let took = view(&operator, "terminated: refused", refused).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(robin.ended().await.success());
    let mut robin = Process::start(&bench);
    view(&operator, "started again: live", live).await;
    robin.signal(Signal::KILL);
    let took = view(&operator, "killed: refused", refused).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(!robin.ended().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_file_ends_it_with_a_reason() {
    let bench = Bench::of(Vec::new(), json!({"primaries": 3})).await;
    std::fs::remove_file(bench.settings().credentials.join("token")).unwrap();
    let mut robin = Process::start(&bench);
    assert!(!robin.ended().await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn six_idle_servers_cost_little() {
    let third = [Some("0-5460"), Some("5461-10922"), Some("10923-16383")];
    let shares = [third[0], third[1], third[2], None, None, None];
    let servers = cluster(Generation::Redis8, &shares).await;
    for (primary, replica) in [(0, 3), (1, 4), (2, 5)] {
        let primary = servers[primary].node().my_id().await.unwrap();
        let replica = servers[replica].node();
        until("it follows", async || replica.replicate(primary).await.is_ok()).await;
        until("it is in sync", async || replica.info(&[]).await.unwrap().in_sync()).await;
    }
    let spec = json!({"primaries": 3, "replicasPerPrimary": 1});
    let bench = Bench::of(servers, spec).await;
    let robin = Process::start(&bench);
    let mut operator = bench.operator();
    let up = |one: &ObservedServer| matches!(one.server, Server::Up(_));
    operator
        .until("all servers are up", Duration::from_secs(20), |frame| {
            frame.servers.len() == 6 && frame.servers.values().all(up)
        })
        .await;
    operator.calm().await;
    let seconds = std::env::var("CANDOR_IDLE_SECONDS").map_or(5, |text| text.parse().unwrap());
    let (before, begun) = (robin.time(), Instant::now());
    // Not a wait for a condition: what is measured is the cost of this time.
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let share = robin.time().saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64();
    let memory = robin.memory("VmRSS");
    println!(
        "idle with six servers: {:.3} % of a core, {} kB ({} anonymous, {} of files)",
        share * 100.0,
        memory,
        robin.memory("RssAnon"),
        robin.memory("RssFile")
    );
    // A debug build, on a machine that does other work too. A release build has 0.1 % and 19 MB, of which 17 MB are the
    // program itself.
    assert!(share < 0.03, "{share}");
    assert!(robin.memory("RssAnon") < 15_000, "{} kB", robin.memory("RssAnon"));
}
