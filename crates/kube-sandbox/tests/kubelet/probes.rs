//! Probes, hooks, frozen processes and faults.

use std::time::{Duration, Instant};

use crate::bench::{Bench, condition, first, shell};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, Patch, PatchParams};
use kube_sandbox::kubelet::FaultError;
use serde_json::json;

#[tokio::test]
async fn readiness_follows_its_probe_both_ways() {
    let bench = Bench::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut c = shell("sleep 1000");
    c["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    c["readinessProbe"] = json!({"exec": {"command": ["cat", "/v/ready"]}, "periodSeconds": 1, "failureThreshold": 1});
    let volumes = json!([{"name": "v", "hostPath": {"path": folder.path()}}]);
    bench.pod("r", json!({"containers": [c], "volumes": volumes})).await;
    let event = bench.until_event("r", "Unhealthy: Readiness probe failed:").await;
    assert!(event.contains("No such file or directory"), "{event}");
    let pod = bench
        .until("r", "running", |pod| first(pod)["state"]["running"].is_object())
        .await;
    assert_eq!(
        (condition(&pod, "Ready"), &first(&pod)["started"]),
        ("False", &json!(true))
    );
    let message = pod
        .status
        .unwrap()
        .conditions
        .unwrap()
        .into_iter()
        .find(|c| c.type_ == "Ready")
        .unwrap()
        .message;
    assert_eq!(message.as_deref(), Some("containers with unready status: [c]"));
    std::fs::write(folder.path().join("ready"), "").unwrap();
    let pod = bench.until_ready("r").await;
    let ready = pod
        .status
        .unwrap()
        .conditions
        .unwrap()
        .into_iter()
        .find(|c| c.type_ == "Ready")
        .unwrap();
    assert_eq!((ready.reason, ready.message), (None, None));
    std::fs::remove_file(folder.path().join("ready")).unwrap();
    bench
        .until("r", "unready", |pod| condition(pod, "Ready") == "False")
        .await;
}

#[tokio::test]
async fn a_failed_liveness_probe_restarts_the_container() {
    let bench = Bench::start().await;
    let mut c = shell("sleep 1000");
    c["livenessProbe"] = json!({"tcpSocket": {"port": 9}, "periodSeconds": 1, "failureThreshold": 1});
    bench.pod("l", json!({"containers": [c]})).await;
    bench
        .until("l", "restarted", |pod| first(pod)["restartCount"].as_i64() >= Some(1))
        .await;
    let event = bench
        .until_event("l", "Unhealthy: Liveness probe failed: dial tcp 127.")
        .await;
    assert!(event.ends_with(":9: connect: connection refused"), "{event}");
    bench
        .until_event("l", "Killing: Container c failed liveness probe, will be restarted")
        .await;
}

#[tokio::test]
async fn http_probes_count_the_code_and_the_startup_probe_comes_first() {
    let bench = Bench::start().await;
    let server = r#"use IO::Socket::INET;
        my $s = IO::Socket::INET->new(LocalAddr => $ENV{IP}, LocalPort => 8080, Listen => 9) or die $!;
        my $n = 0;
        while (my $c = $s->accept) {
            my $head = '';
            while (<$c>) { $head .= $_; last if /^\r?\n$/ }
            my $code = $n++ > 0 && $head =~ /^X-A: b/im ? 200 : 503;
            print $c "HTTP/1.1 $code x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            close $c;
        }"#;
    let get = json!({"path": "/x", "port": "web", "httpHeaders": [{"name": "X-A", "value": "b"}]});
    let c = json!({
        "name": "c", "image": "debian:12", "command": ["perl", "-e", server], "ports": [{"name": "web", "containerPort": 8080}],
        "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "startupProbe": {"httpGet": get, "periodSeconds": 1, "failureThreshold": 30},
        "readinessProbe": {"httpGet": get, "periodSeconds": 1},
    });
    bench.pod("h", json!({"containers": [c]})).await;
    let pod = bench
        .until("h", "running", |pod| first(pod)["state"]["running"].is_object())
        .await;
    assert_eq!(
        (&first(&pod)["started"], &first(&pod)["ready"]),
        (&json!(false), &json!(false))
    );
    bench.until_event("h", "Unhealthy: Startup probe failed:").await;
    let pod = bench.until_ready("h").await;
    assert_eq!(first(&pod)["restartCount"], 0);
}

#[tokio::test]
async fn a_frozen_pod_fails_its_probes_and_recovers_when_thawed() {
    let bench = Bench::start().await;
    let folder = tempfile::tempdir().unwrap();
    let mut c = shell("while :; do date +%s%N > /v/tick; sleep 0.02; done");
    c["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    let volumes = json!([{"name": "v", "hostPath": {"path": folder.path()}}]);
    bench.pod("z", json!({"containers": [c], "volumes": volumes})).await;
    let tick = || std::fs::read_to_string(folder.path().join("tick")).unwrap_or_default();
    bench.until("z", "ticking", |_| !tick().is_empty()).await;
    bench.kubelet.freeze("default", "z").unwrap();
    let (mut seen, mut since) = (tick(), Instant::now());
    bench.until("z", "still for half a second", |_| true).await;
    while since.elapsed() < Duration::from_millis(500) {
        if tick() != seen {
            (seen, since) = (tick(), Instant::now());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bench.kubelet.thaw("default", "z").unwrap();
    bench.until("z", "ticking again", |_| tick() != seen).await;
}

#[tokio::test]
async fn a_pod_can_be_held_back_and_slowed_down() {
    let bench = Bench::start().await;
    bench.kubelet.never_start("default", "n", true);
    bench.kubelet.start_slowly("default", "s", Duration::from_millis(700));
    bench.pod("n", json!({"containers": [shell("sleep 1000")]})).await;
    let begun = Instant::now();
    bench.pod("s", json!({"containers": [shell("sleep 1000")]})).await;
    bench.until_ready("s").await;
    assert!(begun.elapsed() >= Duration::from_millis(700));
    let held = bench.api::<Pod>().get("n").await.unwrap();
    assert_eq!(first(&held)["state"]["waiting"]["reason"], "ContainerCreating");
    assert!(matches!(
        bench.kubelet.kill("default", "n", None),
        Err(FaultError::NotRunning { .. })
    ));
    assert!(matches!(
        bench.kubelet.kill("default", "none", None),
        Err(FaultError::NoPod { .. })
    ));
    bench.delete("n").await;
    bench.until_deleted("n").await;
}

#[tokio::test]
async fn a_readiness_gate_of_another_controller_decides_too() {
    let bench = Bench::start().await;
    bench
        .pod(
            "g",
            json!({"containers": [shell("sleep 1000")], "readinessGates": [{"conditionType": "example.com/in"}]}),
        )
        .await;
    let pod = bench
        .until("g", "with ready containers", |pod| {
            condition(pod, "ContainersReady") == "True"
        })
        .await;
    let ready = pod
        .status
        .unwrap()
        .conditions
        .unwrap()
        .into_iter()
        .find(|c| c.type_ == "Ready")
        .unwrap();
    assert_eq!(ready.reason.as_deref(), Some("ReadinessGatesNotReady"));
    let patch = json!({"status": {"conditions": [{"type": "example.com/in", "status": "True"}]}});
    bench
        .api::<Pod>()
        .patch_status("g", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
    let pod = bench.until_ready("g").await;
    assert_eq!(condition(&pod, "example.com/in"), "True");
}

#[tokio::test]
async fn a_node_has_labels_and_capacity_and_can_be_lost() {
    let bench = Bench::with(|config| config.nodes[0].zone = Some("a".into())).await;
    let nodes: Api<Node> = Api::all(bench.client.clone());
    let node = nodes.get("sandbox-0").await.unwrap();
    let labels = node.metadata.labels.clone().unwrap();
    assert_eq!(labels["topology.kubernetes.io/zone"], "a");
    assert_eq!(labels["kubernetes.io/hostname"], "sandbox-0");
    let ready = |node: &Node| {
        let conditions = node.status.as_ref().unwrap().conditions.clone().unwrap();
        conditions.into_iter().find(|c| c.type_ == "Ready").unwrap().status
    };
    assert_eq!(ready(&node), "True");
    bench.kubelet.set_node_ready("sandbox-0", false).await.unwrap();
    let node = nodes.get("sandbox-0").await.unwrap();
    assert_eq!(
        (ready(&node).as_str(), node.spec.unwrap().taints.unwrap().len()),
        ("Unknown", 2)
    );
    bench.kubelet.set_node_ready("sandbox-0", true).await.unwrap();
    assert_eq!(ready(&nodes.get("sandbox-0").await.unwrap()), "True");
}

#[tokio::test]
async fn a_failed_post_start_hook_ends_the_container() {
    let bench = Bench::start().await;
    let mut c = shell("sleep 1000");
    c["lifecycle"] = json!({"postStart": {"exec": {"command": ["false"]}}});
    bench
        .pod("h", json!({"containers": [c], "restartPolicy": "Never"}))
        .await;
    bench.until_phase("h", "Failed").await;
    bench
        .until_event("h", "FailedPostStartHook: PostStartHook failed")
        .await;
}
