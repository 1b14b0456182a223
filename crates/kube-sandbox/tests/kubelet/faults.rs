//! What can be made to go wrong with networks, disks and the sandbox itself.

use std::path::Path;
use std::process::Stdio;

use crate::bench::{Bench, container, shell};
use crate::lifeline::{self, Lifeline};
use k8s_openapi::api::core::v1::Pod;
use kube_sandbox::kubelet::{ExecRequest, FaultError, PodAccess};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

/// Perl is on every Debian, and speaks TCP without more.
const SERVER: &str = "use IO::Socket::INET; \
    my $s = IO::Socket::INET->new(LocalAddr => $ENV{IP}, LocalPort => 7000, Listen => 9, ReuseAddr => 1) or die $!; \
    while (my $c = $s->accept) { print $c 'hello'; close $c }";

const CLIENT: &str = "use IO::Socket::INET; \
    my $c = IO::Socket::INET->new(PeerAddr => $ARGV[0], PeerPort => 7000, LocalAddr => $ENV{IP}, Timeout => 1); \
    if ($c) { $c->read(my $b, 9); print $b } else { print $! }";

impl Bench {
    async fn server(&self, name: &str) -> String {
        let c = json!({
            "name": "c", "image": "debian:12", "command": ["perl", "-e", SERVER],
            "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "readinessProbe": {"tcpSocket": {"port": 7000}, "periodSeconds": 1},
        });
        self.pod(name, json!({"containers": [c]})).await;
        self.until_ready(name).await.status.unwrap().pod_ip.unwrap()
    }

    /// What a process in pod `from` hears from `ip`.
    async fn dial(&self, from: &str, ip: &str) -> String {
        let command = ["perl", "-e", CLIENT, ip].map(str::to_owned).to_vec();
        let request = ExecRequest {
            command,
            stdin: false,
            tty: false,
        };
        let mut process = self.kubelet.exec(container(from), request).await.unwrap();
        let mut out = String::new();
        process.stdout.read_to_string(&mut out).await.unwrap();
        process.exit.await;
        out.trim().to_owned()
    }
}

#[tokio::test]
async fn pods_can_be_partitioned_and_traffic_of_an_address_can_be_dropped() {
    let bench = Bench::start().await;
    let (_a, b, c) = (
        bench.server("a").await,
        bench.server("b").await,
        bench.server("c").await,
    );
    assert_eq!(bench.dial("a", &b).await, "hello");
    let cut = bench.kubelet.partition("default", &["a"], &["b"]).await;
    if !rustix::process::geteuid().is_root() {
        println!("not root: partitions are rejected, and only that is tested");
        assert!(matches!(cut, Err(FaultError::NeedsRoot { .. })));
        return;
    }
    cut.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(bench.dial("a", &b).await, "Connection timed out");
    assert_eq!(bench.dial("a", &c).await, "hello");
    assert_eq!(bench.dial("c", &b).await, "hello");
    bench.kubelet.drop_traffic_of("default", "c").await.unwrap();
    bench.delete("c").await;
    bench.until_deleted("c").await;
    assert_eq!(
        bench.dial("a", &c).await,
        "Connection timed out",
        "a deleted pod's address stays silent"
    );
    bench.kubelet.reconnect().await.unwrap();
    assert_eq!(bench.dial("a", &b).await, "hello");
    assert_eq!(bench.dial("a", &c).await, "Connection refused");
}

#[tokio::test]
async fn a_shrunk_volume_is_full_soon() {
    let bench = Bench::start().await;
    bench.kubelet.shrink_volume("default", "d", "v", 64 << 10);
    let mut c = shell("head -c 200000 /dev/zero > /v/x; wc -c < /v/x");
    c["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let spec = json!({"containers": [c], "volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Never"});
    bench.pod("d", spec).await;
    let out = bench.output("d").await;
    assert!(
        out.contains("No space left on device") && out.ends_with("65536\n"),
        "{out}"
    );
}

/// Started by the test below in a separate process.
#[tokio::test]
#[ignore = "a part of the next test"]
async fn a_sandbox_to_be_killed() {
    let bench = Bench::start().await;
    let place = std::env::var("PLACE").unwrap();
    bench.pod("p", lifeline::held_by(Path::new(&place), "sleep 1000")).await;
    bench.until_ready("p").await;
    println!("pod is up");
    bench.until("p", "gone", |_: &Pod| false).await;
}

#[tokio::test]
async fn pods_die_with_a_sandbox_that_is_killed() {
    let line = Lifeline::new();
    let scratch = tempfile::tempdir().unwrap();
    let mut sandbox = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "faults::a_sandbox_to_be_killed", "--nocapture"])
        .env("PLACE", line.folder())
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sandbox.stdout.take().unwrap()).lines();
    loop {
        let line = lines.next_line().await.unwrap().expect("the sandbox ended by itself");
        if line.contains("pod is up") {
            break;
        }
    }
    line.taken_up().await;
    sandbox.kill().await.unwrap();
    line.let_go().await;
}
