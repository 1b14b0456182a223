//! Stock kubectl on running pods: rollout, scale, wait, logs, exec, watch, cordon, drain.

use std::time::Duration;

use crate::program::{Kubectl, deployment};

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_watched_restarted_scaled_and_undone() {
    let k = Kubectl::start().await;
    k.ok_with("apply -f -", &deployment("d", 2)).await;
    let output = k.ok("rollout status deployment/d --timeout=60s").await;
    assert!(
        output.ends_with("deployment \"d\" successfully rolled out\n"),
        "{output}"
    );
    let before = k.ok("get pods -l app=d -o name").await;
    k.ok("rollout restart deployment/d").await;
    k.ok("rollout status deployment/d --timeout=60s").await;
    let after = k
        .until("get pods -l app=d -o name", |output| output.lines().count() == 2)
        .await;
    assert!(before.lines().all(|pod| !after.contains(pod)), "{before}{after}");
    assert_eq!(
        k.ok("rollout history deployment/d")
            .await
            .lines()
            .filter(|line| line.starts_with(['1', '2']))
            .count(),
        2
    );
    k.ok("scale deployment/d --replicas=3").await;
    k.ok("wait deployment/d --for=jsonpath={.status.readyReplicas}=3 --timeout=60s")
        .await;
    k.ok("wait pods -l app=d --for=condition=Ready --timeout=60s").await;
    k.ok("rollout undo deployment/d").await;
    k.ok("rollout status deployment/d --timeout=60s").await;
    k.ok("delete deployment d").await;
    k.ok("wait pods -l app=d --for=delete --timeout=60s").await;
}

const TALKER: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: talker}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: busybox
      command: [sh, -c, "echo first; while [ ! -e /data/go ]; do sleep 0.1; done; echo second; exec sleep 3600"]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn logs_follow_a_pod_and_exec_runs_beside_it() {
    let k = Kubectl::start().await;
    let mut watch = k.running("get pods -w --no-headers");
    k.ok_with("apply -f -", TALKER).await;
    watch.line(|line| line.contains("Running")).await;
    k.ok("wait pod/talker --for=condition=Ready --timeout=60s").await;
    let mut logs = k.running("logs -f talker");
    logs.line(|line| line == "first").await;
    assert_eq!(
        k.ok_of(&["exec", "talker", "--", "sh", "-c", "echo out; touch /data/go"])
            .await,
        "out\n"
    );
    logs.line(|line| line == "second").await;
    assert_eq!(k.ok("logs talker --tail=1").await, "second\n");
    assert_eq!(k.ok_with("exec -i talker -- cat", "through\n").await, "through\n");
    let output = k
        .output(
            k.command_of(&["exec", "talker", "--", "sh", "-c", "echo bad >&2; exit 7"]),
            "",
        )
        .await;
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad"));
    assert!(k.ok("get pod talker -o wide").await.contains("127."));
    assert!(k.ok("describe pod talker").await.contains("Started container main"));
    k.ok("delete pod talker --timeout=60s").await;
    assert!(k.rejected("logs talker").await.contains(r#"pods "talker" not found"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_image_fails_as_a_pull_does() {
    let k = Kubectl::start().await;
    k.ok("run unknown --image=no/such:1").await;
    k.until("get pod unknown", |output| {
        output.contains("ErrImagePull") || output.contains("ImagePullBackOff")
    })
    .await;
    k.ok("delete pod unknown --grace-period=0 --force").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cordon_and_drain_move_pods_to_the_other_node() {
    let k = Kubectl::start().await;
    let nodes = k.until("get nodes -o name", |output| output.lines().count() == 2).await;
    let nodes: Vec<&str> = nodes.lines().map(|line| line.trim_start_matches("node/")).collect();
    k.ok("wait nodes --all --for=condition=Ready --timeout=60s").await;
    let wide = k.ok("get nodes -L topology.kubernetes.io/zone").await;
    assert!(wide.contains(" a\n") && wide.contains(" b\n"), "{wide}");
    k.ok(&format!("cordon {}", nodes[0])).await;
    assert!(k.ok("get nodes").await.contains("Ready,SchedulingDisabled"));
    k.ok_with("apply -f -", &deployment("d", 2)).await;
    k.ok("rollout status deployment/d --timeout=60s").await;
    let on = "get pods -l app=d -o jsonpath={.items[*].spec.nodeName}";
    assert_eq!(k.ok(on).await, format!("{0} {0}", nodes[1]));
    k.ok(&format!("uncordon {}", nodes[0])).await;
    k.ok(&format!(
        "drain {} --ignore-daemonsets --delete-emptydir-data --timeout=60s",
        nodes[1]
    ))
    .await;
    k.ok("rollout status deployment/d --timeout=60s").await;
    let moved = k
        .until(on, |output| {
            !output.contains(nodes[1]) && output.split(' ').count() == 2
        })
        .await;
    assert_eq!(moved, format!("{0} {0}", nodes[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_for_a_disruption_budget() {
    let k = Kubectl::start().await;
    k.ok_with("apply -f -", &deployment("d", 1)).await;
    k.ok("create pdb d --selector=app=d --min-available=1").await;
    k.ok("rollout status deployment/d --timeout=60s").await;
    k.ok("wait pdb/d --for=jsonpath={.status.expectedPods}=1 --timeout=60s")
        .await;
    let node = k.ok("get pods -l app=d -o jsonpath={.items[0].spec.nodeName}").await;
    let message = k.rejected(&format!("drain {node} --timeout=3s")).await;
    assert!(
        message.contains("Cannot evict pod as it would violate the pod's disruption budget."),
        "{message}"
    );
    k.ok(&format!("uncordon {node}")).await;
    tokio::time::timeout(Duration::from_secs(60), async {
        k.ok("delete deployment d --cascade=foreground").await
    })
    .await
    .expect("deleted in time");
}
