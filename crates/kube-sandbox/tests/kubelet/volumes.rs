//! What a container finds in its environment and its volumes.

use std::time::{Duration, Instant};

use crate::bench::{Bench, first, phase, shell};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

#[tokio::test]
async fn the_environment_comes_from_every_source() {
    let bench = Bench::start().await;
    bench
        .create::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"a": "from-map", "b": "2"}}))
        .await;
    bench
        .create::<Secret>(json!({"metadata": {"name": "s"}, "stringData": {"k": "hidden"}, "data": {"k": "aGlkZGVu"}}))
        .await;
    let mut c = shell(
        "echo \"$A|$K|$P_a|$IP|$NAME|$CPU|$GONE|$BOTH|$KUBERNETES_SERVICE_PORT|$(ARG)\"; tr '\\0' '\\n' < /proc/1/environ | grep -c '^x.y='",
    );
    c["envFrom"] =
        json!([{"prefix": "P_", "configMapRef": {"name": "m"}}, {"configMapRef": {"name": "none", "optional": true}}]);
    c["resources"] = json!({"limits": {"cpu": "250m"}});
    c["env"] = json!([
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "a"}}},
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "GONE", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "zz", "optional": true}}},
        {"name": "BOTH", "value": "$(A)-$(K)-$(NONE)"},
        {"name": "ARG", "value": "arg"},
        {"name": "x.y", "value": "dotted"},
    ]);
    bench
        .pod("env", json!({"containers": [c], "restartPolicy": "Never"}))
        .await;
    let out = bench.output("env").await;
    let pod = bench.api::<Pod>().get("env").await.unwrap();
    let ip = pod.status.unwrap().pod_ip.unwrap();
    let port = bench.sandbox.address().port();
    let expected = format!("from-map|hidden|from-map|{ip}|env|250||from-map-hidden-$(NONE)|{port}|arg\n1\n");
    assert_eq!(out, expected);
}

#[tokio::test]
async fn a_missing_configmap_is_named_and_the_pod_starts_once_it_is_there() {
    let bench = Bench::start().await;
    let mut c = shell("echo $A");
    c["env"] = json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "a"}}}]);
    bench
        .pod("env", json!({"containers": [c], "restartPolicy": "Never"}))
        .await;
    let mut c = shell("cat /m/a");
    c["volumeMounts"] = json!([{"name": "m", "mountPath": "/m"}]);
    let volumes = json!([{"name": "m", "configMap": {"name": "later"}}]);
    bench
        .pod(
            "vol",
            json!({"containers": [c], "volumes": volumes, "restartPolicy": "Never"}),
        )
        .await;
    let pod = bench
        .until("env", "waiting", |pod| {
            first(pod)["state"]["waiting"]["reason"] == "CreateContainerConfigError"
        })
        .await;
    assert_eq!(
        first(&pod)["state"]["waiting"]["message"],
        "configmap \"later\" not found"
    );
    bench
        .until_event("env", "Failed: Error: configmap \"later\" not found")
        .await;
    bench
        .until_event(
            "vol",
            "FailedMount: MountVolume.SetUp failed for volume \"m\" : configmap \"later\" not found",
        )
        .await;
    let waiting = bench.api::<Pod>().get("vol").await.unwrap();
    assert_eq!(
        (phase(&waiting), &first(&waiting)["state"]["waiting"]["reason"]),
        ("Pending", &json!("ContainerCreating"))
    );
    bench
        .create::<ConfigMap>(json!({"metadata": {"name": "later"}, "data": {"a": "here"}}))
        .await;
    assert_eq!(bench.output("env").await, "here\n");
    assert_eq!(bench.output("vol").await, "here");
}

#[tokio::test]
async fn volumes_follow_their_object_after_the_delay_and_parts_of_them_do_not() {
    let bench = Bench::with(|config| config.volume_refresh = Duration::from_millis(500)).await;
    let map = bench
        .create::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"a": "one", "b": "x"}}))
        .await;
    drop(map);
    let out = tempfile::tempdir().unwrap();
    let mut c = shell("while :; do cp /m/a /out/a.tmp; cp /part /out/part; mv /out/a.tmp /out/a; sleep 0.02; done");
    c["volumeMounts"] = json!([
        {"name": "m", "mountPath": "/m"}, {"name": "out", "mountPath": "/out"}, {"name": "m", "mountPath": "/part", "subPath": "a"},
    ]);
    let volumes = json!([{"name": "m", "configMap": {"name": "m"}}, {"name": "out", "hostPath": {"path": out.path()}}]);
    bench.pod("f", json!({"containers": [c], "volumes": volumes})).await;
    let seen = |file: &str| std::fs::read_to_string(out.path().join(file)).unwrap_or_default();
    bench.until("f", "showing the first text", |_| seen("a") == "one").await;
    let begun = Instant::now();
    let patch = Patch::Merge(json!({"data": {"a": "two"}}));
    bench
        .api::<ConfigMap>()
        .patch("m", &PatchParams::default(), &patch)
        .await
        .unwrap();
    bench
        .until("f", "showing the second text", |_| seen("a") == "two")
        .await;
    assert!(begun.elapsed() >= Duration::from_millis(500), "{:?}", begun.elapsed());
    assert_eq!(seen("part"), "one");
}

#[tokio::test]
async fn items_modes_and_projections_make_the_files() {
    let bench = Bench::start().await;
    bench
        .create::<ConfigMap>(json!({"metadata": {"name": "m"}, "data": {"a": "A", "b": "B"}}))
        .await;
    bench
        .create::<Secret>(json!({"metadata": {"name": "s"}, "data": {"k": "S1NLUw=="}}))
        .await;
    let mut c =
        shell("cd /p; ls; stat -L -c %a k deep/a; cat deep/a k labels; ls /ro; touch /ro/x 2>&1 | grep -o Read-only");
    c["volumeMounts"] = json!([{"name": "p", "mountPath": "/p"}, {"name": "e", "mountPath": "/ro", "readOnly": true}]);
    let volumes = json!([
        {"name": "e", "emptyDir": {}},
        {"name": "p", "projected": {"defaultMode": 0o440, "sources": [
            {"configMap": {"name": "m", "items": [{"key": "a", "path": "deep/a", "mode": 0o600}]}},
            {"secret": {"name": "s"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        ]}},
    ]);
    let pod = json!({
        "metadata": {"name": "p", "labels": {"app": "x"}},
        "spec": {"nodeName": "sandbox-0", "containers": [c], "volumes": volumes, "restartPolicy": "Never"},
    });
    bench.create::<Pod>(pod).await;
    assert_eq!(
        bench.output("p").await,
        "deep\nk\nlabels\n440\n600\nAKSKSapp=\"x\"Read-only\n"
    );
}

#[tokio::test]
async fn a_claim_is_the_folder_of_its_volume_and_outlives_the_pod() {
    let bench = Bench::start().await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("pv");
    let volumes: Api<PersistentVolume> = Api::all(bench.client.clone());
    let volume = json!({
        "metadata": {"name": "pv"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": place}},
    });
    volumes
        .create(&PostParams::default(), &serde_json::from_value(volume).unwrap())
        .await
        .unwrap();
    bench
        .create::<PersistentVolumeClaim>(json!({
            "metadata": {"name": "c"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}},
        }))
        .await;
    for (name, expected) in [("first", "1\n"), ("second", "1\n2\n")] {
        let mut c = shell("touch /d/n; echo $(( $(wc -l < /d/n) + 1 )) >> /d/n; cat /d/n");
        c["volumeMounts"] = json!([{"name": "d", "mountPath": "/d", "subPath": "part"}]);
        let volumes = json!([{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]);
        bench
            .pod(
                name,
                json!({"containers": [c], "volumes": volumes, "restartPolicy": "Never"}),
            )
            .await;
        assert_eq!(bench.output(name).await, expected);
    }
    assert!(place.join("part/n").exists());
}

#[tokio::test]
async fn a_service_account_token_is_mounted_and_bound_to_the_pod() {
    let bench = Bench::start().await;
    let accounts = bench.api::<ServiceAccount>();
    if accounts.get_opt("default").await.unwrap().is_none() {
        bench
            .create::<ServiceAccount>(json!({"metadata": {"name": "default"}}))
            .await;
    }
    let mut c = shell("cut -d. -f2 /t/token");
    c["volumeMounts"] = json!([{"name": "t", "mountPath": "/t"}]);
    let volumes = json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}]}}]);
    bench
        .pod(
            "t",
            json!({"containers": [c], "volumes": volumes, "restartPolicy": "Never"}),
        )
        .await;
    let out = bench.output("t").await;
    assert!(out.len() > 20, "{out:?}");
}
