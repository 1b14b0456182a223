//! Pods from their start to their end, as real processes.

use std::time::{Duration, Instant};

use crate::bench::{Bench, condition, container, first, phase, shell};
use crate::lifeline::Lifeline;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use kube_sandbox::kubelet::{ExecRequest, LogOptions, PodAccess};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_pod_runs_is_ready_and_leaves_nothing_when_deleted() {
    let bench = Bench::start().await;
    let begun = Instant::now();
    bench
        .pod(
            "p",
            json!({"containers": [shell("trap 'exit 0' TERM; echo hello; while :; do sleep 0.1; done")]}),
        )
        .await;
    let pod = bench.until_ready("p").await;
    println!("created to Ready: {:?}", begun.elapsed());
    let status = pod.status.clone().unwrap();
    assert_eq!(phase(&pod), "Running");
    assert!(status.pod_ip.as_deref().unwrap().starts_with("127."), "{status:?}");
    assert_ne!(status.pod_ip, status.host_ip);
    for kind in [
        "PodScheduled",
        "Initialized",
        "ContainersReady",
        "PodReadyToStartContainers",
    ] {
        assert_eq!(condition(&pod, kind), "True", "{kind}");
    }
    let c = first(&pod);
    assert_eq!(
        (&c["ready"], &c["started"], &c["restartCount"]),
        (&json!(true), &json!(true), &json!(0))
    );
    assert!(c["state"]["running"]["startedAt"].is_string());
    assert_eq!(c["image"], "docker.io/library/busybox:1.36");
    let events = bench.until_event("p", "Started: Started container c").await;
    assert!(!events.is_empty());
    assert_eq!(
        bench.events("p").await[..2],
        [
            "Pulled: Container image \"busybox:1.36\" already present on machine",
            "Created: Created container: c"
        ]
    );
    bench.delete("p").await;
    bench.until_deleted("p").await;
    bench.until_event("p", "Killing: Stopping container c").await;
}

#[tokio::test]
async fn a_container_sees_only_its_own_root_and_processes() {
    let bench = Bench::start().await;
    let secret = tempfile::NamedTempFile::new().unwrap();
    let script = format!(
        "id -u; hostname; echo pid $$$$; ls {} 2>&1 | tail -1; touch /usr/x 2>&1 | tail -1; touch /tmp/ok && echo tmp; cat /etc/hostname; ls /usr/local/bin | wc -l",
        secret.path().display()
    );
    bench.script("own", &script).await;
    let out = bench.output("own").await;
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], ["0", "own", "pid 1"], "{out}");
    assert!(lines[3].contains("No such file"), "{out}");
    assert!(lines[4].contains("Read-only"), "{out}");
    assert_eq!(lines[5..], ["tmp", "own", "0"], "{out}");
}

#[tokio::test]
async fn exit_codes_and_policies_make_the_phase() {
    let bench = Bench::start().await;
    for (name, script, policy, expected, code) in [
        ("ok", "exit 0", "Never", "Succeeded", 0),
        (
            "bad",
            "echo out of luck > /dev/termination-log; exit 3",
            "Never",
            "Failed",
            3,
        ),
        ("killed", "sh -c 'kill -9 1'; sleep 0.1; exit 4", "Never", "Failed", 4),
        ("once", "exit 0", "OnFailure", "Succeeded", 0),
    ] {
        bench
            .pod(name, json!({"containers": [shell(script)], "restartPolicy": policy}))
            .await;
        let pod = bench.until_phase(name, expected).await;
        let end = &first(&pod)["state"]["terminated"];
        assert_eq!(end["exitCode"], code, "{name}");
        assert_eq!(end["reason"], if code == 0 { "Completed" } else { "Error" });
        assert_eq!(condition(&pod, "Ready"), "False");
    }
    let pod = bench.api::<Pod>().get("bad").await.unwrap();
    assert_eq!(first(&pod)["state"]["terminated"]["message"], "out of luck\n");
}

#[tokio::test]
async fn a_container_that_crashes_is_restarted_with_growing_waits() {
    let bench = Bench::start().await;
    bench
        .pod("crash", json!({"containers": [shell("echo run; exit 7")]}))
        .await;
    let pod = bench.until("crash", "in back-off", |pod| {
        first(pod)["state"]["waiting"]["reason"] == "CrashLoopBackOff" && first(pod)["restartCount"].as_i64() >= Some(2)
    });
    let pod = pod.await;
    let c = first(&pod);
    let uid = pod.uid().unwrap();
    let message = c["state"]["waiting"]["message"].as_str().unwrap();
    assert!(
        message.ends_with(&format!("restarting failed container=c pod=crash_default({uid})")),
        "{message}"
    );
    assert_eq!(c["lastState"]["terminated"]["exitCode"], 7);
    assert_eq!(phase(&pod), "Running");
    bench
        .until_event(
            "crash",
            "BackOff: Back-off restarting failed container c in pod crash_default(",
        )
        .await;
    let previous = LogOptions {
        previous: true,
        ..LogOptions::default()
    };
    assert_eq!(bench.logs("crash", previous).await.unwrap(), "run\n");
    bench.delete("crash").await;
    bench.until_deleted("crash").await;
}

#[tokio::test]
async fn a_killed_container_reports_137_and_comes_back() {
    let bench = Bench::start().await;
    bench.pod("k", json!({"containers": [shell("sleep 1000")]})).await;
    bench.until_ready("k").await;
    bench.kubelet.kill("default", "k", None).unwrap();
    let pod = bench
        .until("k", "restarted", |pod| {
            first(pod)["restartCount"] == 1 && condition(pod, "Ready") == "True"
        })
        .await;
    assert_eq!(first(&pod)["lastState"]["terminated"]["exitCode"], 137);
    assert_eq!(first(&pod)["lastState"]["terminated"]["reason"], "Error");
}

#[tokio::test]
async fn an_unknown_image_fails_as_a_pull_does() {
    let bench = Bench::start().await;
    bench
        .pod("i", json!({"containers": [{"name": "c", "image": "no/such:1"}]}))
        .await;
    let pod = bench
        .until("i", "backing off", |pod| {
            first(pod)["state"]["waiting"]["reason"] == "ImagePullBackOff"
        })
        .await;
    assert_eq!(phase(&pod), "Pending");
    let message = first(&pod)["state"]["waiting"]["message"].to_string();
    assert!(message.contains("docker.io/no/such:1: not found"), "{message}");
    bench.until_event("i", "Failed: Error: ErrImagePull").await;
    bench
        .until_event(
            "i",
            "Failed: Failed to pull image \\\"no/such:1\\\""
                .replace('\\', "")
                .as_str(),
        )
        .await;
    let error = bench.logs("i", LogOptions::default()).await.unwrap_err();
    assert_eq!(
        error,
        "container \"c\" in pod \"i\" is waiting to start: trying and failing to pull image"
    );
    bench.delete("i").await;
    bench.until_deleted("i").await;
}

#[tokio::test]
async fn a_missing_program_is_a_start_error() {
    let bench = Bench::start().await;
    bench.pod("m", json!({"containers": [{"name": "c", "image": "busybox", "command": ["no-such-program"]}], "restartPolicy": "Never"})).await;
    let pod = bench.until_phase("m", "Failed").await;
    let end = &first(&pod)["state"]["terminated"];
    assert_eq!((&end["reason"], &end["exitCode"]), (&json!("StartError"), &json!(128)));
    assert!(
        end["message"]
            .as_str()
            .unwrap()
            .contains("exec: \"no-such-program\": executable file not found in $PATH")
    );
}

#[tokio::test]
async fn init_containers_run_in_order_and_sidecars_stay_until_the_others_are_done() {
    let bench = Bench::start().await;
    let mount = json!([{"name": "v", "mountPath": "/v"}]);
    let named = |name: &str, script: &str| {
        let mut c = shell(script);
        c["name"] = json!(name);
        c["volumeMounts"] = mount.clone();
        c
    };
    let mut side = named(
        "side",
        "echo side >> /v/log; trap 'echo side-end >> /v/log; exit 0' TERM; while :; do sleep 0.05; done",
    );
    side["restartPolicy"] = json!("Always");
    let spec = json!({
        "restartPolicy": "Never", "volumes": [{"name": "v", "emptyDir": {}}],
        "initContainers": [named("one", "echo one >> /v/log"), side, named("two", "echo two >> /v/log")],
        "containers": [named("c", "echo main >> /v/log; cat /v/log")],
    });
    bench.pod("init", spec).await;
    let pod = bench.until_phase("init", "Succeeded").await;
    let init = pod.status.as_ref().unwrap().init_container_statuses.clone().unwrap();
    assert!(init[0].ready && init[2].ready, "{init:?}");
    assert_eq!(condition(&pod, "Initialized"), "True");
    let log = bench.logs("init", LogOptions::default()).await.unwrap();
    let order: Vec<&str> = log.lines().filter(|line| *line != "side").collect();
    assert_eq!(order, ["one", "two", "main"]);
}

#[tokio::test]
async fn a_failing_init_container_fails_a_pod_that_never_restarts() {
    let bench = Bench::start().await;
    let mut init = shell("exit 1");
    init["name"] = json!("i");
    bench
        .pod(
            "f",
            json!({"restartPolicy": "Never", "initContainers": [init], "containers": [shell("true")]}),
        )
        .await;
    let pod = bench.until_phase("f", "Failed").await;
    assert_eq!(first(&pod)["state"]["waiting"]["reason"], "PodInitializing");
    assert_eq!(condition(&pod, "Initialized"), "False");
}

#[tokio::test]
async fn a_container_that_ignores_sigterm_is_killed_after_its_grace_and_pre_stop_runs_before() {
    let bench = Bench::start().await;
    let mut c = shell("trap '' TERM; while :; do sleep 0.1; done");
    c["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    c["lifecycle"] = json!({"preStop": {"exec": {"command": ["touch", "/v/stopped"]}}});
    let folder = tempfile::tempdir().unwrap();
    let volumes = json!([{"name": "v", "hostPath": {"path": folder.path()}}]);
    bench
        .pod(
            "g",
            json!({"containers": [c], "volumes": volumes, "terminationGracePeriodSeconds": 1}),
        )
        .await;
    bench.until_ready("g").await;
    let begun = Instant::now();
    bench.delete("g").await;
    bench.until_deleted("g").await;
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(folder.path().join("stopped").exists());
}

#[tokio::test]
async fn a_force_deleted_pod_is_removed_at_once_and_its_processes_end_within_their_grace() {
    let bench = Bench::start().await;
    let line = Lifeline::new();
    let mut spec = line.held_by("sleep 1000");
    spec["terminationGracePeriodSeconds"] = json!(2);
    bench.pod("x", spec).await;
    bench.until_ready("x").await;
    line.taken_up().await;
    bench
        .api::<Pod>()
        .delete("x", &DeleteParams::default().grace_period(0))
        .await
        .unwrap();
    assert!(bench.api::<Pod>().get_opt("x").await.unwrap().is_none());
    line.let_go().await;
}

#[tokio::test]
async fn exec_gives_streams_and_the_exit_code() {
    let bench = Bench::start().await;
    bench.pod("e", json!({"containers": [shell("sleep 1000")]})).await;
    bench.until_ready("e").await;
    let request = |command: &[&str], stdin, tty| ExecRequest {
        command: command.iter().map(ToString::to_string).collect(),
        stdin,
        tty,
    };
    let mut process = bench
        .kubelet
        .exec(
            container("e"),
            request(&["sh", "-c", "cat; echo err >&2; hostname; exit 5"], true, false),
        )
        .await
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"typed\n").await.unwrap();
    drop(stdin);
    let (mut out, mut err) = (String::new(), String::new());
    process.stdout.read_to_string(&mut out).await.unwrap();
    process.stderr.unwrap().read_to_string(&mut err).await.unwrap();
    assert_eq!(
        (out.as_str(), err.as_str(), process.exit.await),
        ("typed\ne\n", "err\n", 5)
    );

    let mut process = bench
        .kubelet
        .exec(
            container("e"),
            request(&["sh", "-c", "read x; tty -s && stty size && echo $x"], true, true),
        )
        .await
        .unwrap();
    process.resize.as_ref().unwrap().send((100, 40)).await.unwrap();
    let exit = tokio::spawn(process.exit);
    process.stdin.take().unwrap().write_all(b"hi\n").await.unwrap();
    let mut out = Vec::new();
    process.stdout.read_to_end(&mut out).await.unwrap();
    let out = String::from_utf8_lossy(&out).replace('\r', "");
    assert!(out.contains("40 100\nhi\n"), "{out:?}");
    assert_eq!(exit.await.unwrap(), 0);

    let error = bench
        .kubelet
        .exec(container("e"), request(&["nope"], false, false))
        .await
        .err()
        .unwrap();
    assert!(
        error
            .message
            .contains("exec: \"nope\": executable file not found in $PATH"),
        "{error}"
    );
}

#[tokio::test]
async fn nothing_is_left_when_the_kubelet_is_dropped() {
    let data = tempfile::tempdir().unwrap();
    let place = data.path().to_owned();
    let bench = Bench::with(|config| config.data = Some(place)).await;
    let line = Lifeline::new();
    bench
        .pod("d", line.held_by("trap '' TERM; sleep 1000 & sleep 1000"))
        .await;
    bench.until_ready("d").await;
    line.taken_up().await;
    bench.kubelet.stop().await;
    assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 0);
    line.let_go().await;
}
