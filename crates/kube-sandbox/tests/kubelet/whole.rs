//! The whole sandbox with pods: scheduler, controllers and kubelet together, over HTTPS.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, AttachParams, ListParams, LogParams, PostParams};
use kube_sandbox::Sandbox;
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statefulset_gets_running_pods_with_volumes_logs_and_exec() {
    let sandbox = Sandbox::builder().nodes(2).zones(["a", "b"]).start().await.unwrap();
    let sets: Api<StatefulSet> = Api::default_namespaced(sandbox.client());
    let set = json!({
        "metadata": {"name": "s"},
        "spec": {
            "replicas": 2, "serviceName": "s", "selector": {"matchLabels": {"app": "s"}},
            "template": {
                "metadata": {"labels": {"app": "s"}},
                "spec": {"terminationGracePeriodSeconds": 1, "volumes": [{"name": "data", "emptyDir": {}}], "containers": [{
                    "name": "c", "image": "busybox", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "command": ["sh", "-c", "echo I am $(hostname); touch /data/mark; trap 'exit 0' TERM; while :; do sleep 0.1; done"],
                }]},
            },
        },
    });
    let begun = Instant::now();
    sets.create(&PostParams::default(), &serde_json::from_value(set).unwrap())
        .await
        .unwrap();
    let ready = || async {
        sets.get("s")
            .await
            .unwrap()
            .status
            .and_then(|status| status.ready_replicas)
            .unwrap_or(0)
    };
    while ready().await < 2 {
        if begun.elapsed() > Duration::from_secs(60) {
            let pods: Api<Pod> = Api::default_namespaced(sandbox.client());
            panic!("{:#?}", pods.list(&ListParams::default()).await.unwrap().items);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("2 ordered pods ready after {:?}", begun.elapsed());
    let pods: Api<Pod> = Api::default_namespaced(sandbox.client());
    // Ready without a probe: the process may not have printed yet.
    while pods.logs("s-1", &LogParams::default()).await.unwrap() != "I am s-1\n" {
        assert!(begun.elapsed() < Duration::from_secs(60), "s-1 has no log");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let command = ["sh", "-c", "ls /data"];
    let mut process = pods.exec("s-0", command, &AttachParams::default()).await.unwrap();
    let mut out = String::new();
    process.stdout().unwrap().read_to_string(&mut out).await.unwrap();
    assert_eq!(out, "mark\n");
    assert_eq!(
        process.take_status().unwrap().await.unwrap().status.as_deref(),
        Some("Success")
    );
}
