//! Robin's Deployment, permissions and configuration.

use serde_json::{Value, json};

use super::super::robin_config::{Configuration, KEY};
use super::{Given, given};

fn with_template(template: &Value) -> Given {
    given(json!({"robin": {"template": template}}))
}

#[test]
fn robin_runs_once_and_is_limited() {
    let made = given(json!({}));
    let deployment = json!(made.objects().robin.deployment);
    assert_eq!(deployment["metadata"]["name"], "c-robin");
    let spec = &deployment["spec"];
    assert_eq!(
        (&spec["replicas"], &spec["revisionHistoryLimit"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(spec["strategy"], json!({"type": "Recreate"}));
    let container = &spec["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["name"], &container["image"]),
        (&json!("robin"), &json!("candor:1"))
    );
    assert_eq!(
        container["resources"]["limits"],
        json!({"cpu": "100m", "memory": "100Mi"})
    );
    assert_eq!(container["args"][0], "robin");
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(
            container[probe]["httpGet"],
            json!({"path": "/health", "port": 8080}),
            "{probe}"
        );
    }
}

#[test]
fn a_template_is_kept_but_for_image_and_command() {
    let made = with_template(&json!({
        "metadata": {"labels": {"x": "y"}, "annotations": {"scrape": "true"}},
        "spec": {
            "serviceAccountName": "mine",
            "containers": [
                {
                    "name": "robin", "image": "redkey-robin:0.1.0", "imagePullPolicy": "Always",
                    "command": ["/robin"],
                    "ports": [{"containerPort": 8080, "name": "prometheus", "protocol": "TCP"}],
                    "volumeMounts": [{"mountPath": "/opt/conf/configmap", "name": "c-robin-config"}],
                    "resources": {"requests": {"cpu": "500m", "memory": "100Mi"}},
                },
                {"name": "proxy", "image": "proxy:1"},
            ],
            "volumes": [{"name": "c-robin-config", "configMap": {"name": "c-robin", "defaultMode": 420}}],
        },
    }));
    let pod = made.robin();
    assert_eq!(pod["metadata"]["annotations"]["scrape"], "true");
    assert_eq!(
        pod["metadata"]["labels"]["redis.redkeycluster.operator/component"],
        "robin"
    );
    let container = &pod["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&json!("candor:1"), &json!("Always"))
    );
    assert!(container.get("command").is_none());
    assert_eq!(container["args"][0], "robin");
    assert_eq!(
        container["resources"],
        json!({"requests": {"cpu": "500m", "memory": "100Mi"}})
    );
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|one| one["mountPath"] == "/opt/conf/configmap"));
    assert_eq!((mounts.len(), container["ports"].as_array().unwrap().len()), (3, 2));
    assert_eq!(pod["spec"]["containers"][1]["name"], "proxy");
    assert_eq!(
        made.notes(),
        [
            "spec.robin.template.spec.containers[0].command is replaced: Robin is part of the operator",
            "spec.robin.template.spec.containers[0].image is replaced: Robin is part of the operator",
        ]
    );
    let binding = json!(made.objects().robin.role_binding);
    assert_eq!(
        binding["subjects"],
        json!([{"kind": "ServiceAccount", "name": "mine", "namespace": "ns"}])
    );
}

#[test]
fn robin_can_read_pods_and_its_own_cluster_and_nothing_else() {
    let robin = given(json!({})).objects().robin;
    assert_eq!(
        json!(robin.role)["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["redkey.inditex.dev"], "resourceNames": ["c"], "resources": ["redkeyclusters"], "verbs": ["get"]},
        ])
    );
    let binding = json!(robin.role_binding);
    assert_eq!(binding["roleRef"]["name"], json!(robin.role)["metadata"]["name"]);
    assert_eq!(
        binding["subjects"][0]["name"],
        json!(robin.service_account)["metadata"]["name"]
    );
}

fn configuration(spec: Value) -> String {
    let data = given(spec).objects().robin.config_map.data.unwrap();
    data[KEY].clone()
}

#[test]
fn the_configuration_has_the_keys_of_the_contract() {
    assert_eq!(
        configuration(json!({"primaries": 5, "replicasPerPrimary": 1})),
        "metadata:
  namespace: ns
redis:
  standalone: false
  reconciler:
    interval_seconds: 30
    operation_cleanup_interval_seconds: 30
  cluster:
    namespace: ns
    name: c
    primaries: 5
    replicas_per_primary: 1
    status: Ready
    ephemeral: true
    health_probe_interval_seconds: 60
    healing_time_seconds: 60
    max_retries: 10
    back_off: 10s
  metrics:
    interval_seconds: 60
    redis_info_keys: []
"
    );
}

#[test]
fn the_configuration_takes_the_values_of_the_spec_and_is_read_back() {
    let text = configuration(json!({"robin": {"config": {
        "reconciler": {"intervalSeconds": 5},
        "cluster": {"backOff": "500ms", "maxRetries": 3},
        "metrics": {"redisInfoKeys": ["used_memory"]},
    }}}));
    let read = Configuration::parse(&text).unwrap();
    assert_eq!(read.redis.reconciler.interval_seconds, 5);
    assert_eq!(read.redis.reconciler.operation_cleanup_interval_seconds, 30);
    assert_eq!(
        (read.redis.cluster.back_off.as_str(), read.redis.cluster.max_retries),
        ("500ms", 3)
    );
    assert_eq!(read.redis.metrics.redis_info_keys, ["used_memory"]);
    let seconds = configuration(json!({"robin": {"config": {"cluster": {"backOff": "7"}}}}));
    assert!(seconds.contains("back_off: 7s"));
    assert!(Configuration::parse("redis: 3").is_err());
}
