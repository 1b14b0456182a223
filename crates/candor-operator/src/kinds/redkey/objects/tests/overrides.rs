//! `spec.override`: merged as `kubectl patch` does, without the fields that the operator owns.

use serde_json::{Value, json};

use super::super::BuildError;
use super::{Given, given};

fn over_set(over: &Value) -> Given {
    given(json!({"override": {"statefulSet": over}}))
}

fn over_service(over: &Value) -> Given {
    given(json!({"override": {"service": over}}))
}

#[test]
fn an_override_of_the_pod_is_merged_by_name() {
    let made = over_set(&json!({
        "metadata": {"annotations": {"weight": "10"}, "labels": {"x": "y"}},
        "spec": {"template": {
            "metadata": {"labels": {"x": "y"}},
            "spec": {
                "tolerations": [{"key": "test", "operator": "Exists"}],
                "terminationGracePeriodSeconds": 60,
                "containers": [
                    {"name": "nginx", "image": "nginx"},
                    {"name": "redis", "env": [{"name": "test", "value": "1"}], "image": "redis:7"},
                ],
                "initContainers": [{"name": "init", "image": "busybox"}],
                "volumes": [{"name": "extra", "emptyDir": {}}],
                "securityContext": {"runAsUser": 1000},
            },
        }},
    }));
    assert_eq!(made.notes(), Vec::<String>::new());
    let set = made.set();
    assert_eq!(set["metadata"]["annotations"]["weight"], "10");
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(set["spec"]["template"]["metadata"]["labels"]["x"], "y");
    assert_eq!(pod["tolerations"][0]["key"], "test");
    assert_eq!(pod["terminationGracePeriodSeconds"], 60);
    let names: Vec<&Value> = pod["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["redis", "nginx"], "the server is the first");
    let server = &pod["containers"][0];
    assert_eq!(server["image"], "redis:7");
    assert_eq!(server["env"].as_array().unwrap().len(), 3);
    assert_eq!(server["command"][1], "/scripts/start.sh");
    let volumes: Vec<&Value> = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(volumes, ["config", "credentials", "data", "extra"]);
    assert_eq!(
        (&pod["securityContext"]["runAsUser"], &pod["securityContext"]["fsGroup"]),
        (&json!(1000), &json!(999))
    );
}

#[test]
fn what_the_operator_owns_cannot_be_overridden_and_is_named() {
    let made = over_set(&json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "other", "labels": {"redkey-cluster-name": "other"}},
        "spec": {
            "replicas": 9,
            "selector": {"matchLabels": {"a": "b"}},
            "serviceName": "other",
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate"},
            "volumeClaimTemplates": [{"metadata": {"name": "other"}}],
            "template": {
                "metadata": {"labels": {"redis.redkeycluster.operator/component": "other"}},
                "spec": {
                    "volumes": [{"name": "config", "emptyDir": {}}, {"name": "data", "emptyDir": {"medium": "Memory"}}],
                    "containers": [{"name": "redis", "volumeMounts": [{"name": "mine", "mountPath": "/data"}]}],
                },
            },
        },
    }));
    let plain = given(json!({}));
    let (mut ours, mut theirs) = (plain.set(), made.set());
    // The revision is the only difference, because it includes the override.
    for set in [&mut ours, &mut theirs] {
        set["metadata"]["annotations"] = Value::Null;
        set["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    }
    assert_eq!(theirs, ours);
    let field = |path: &str| format!("spec.override.statefulSet.{path} is ignored: the operator owns it");
    let mut expected: Vec<String> = [
        "metadata.name",
        "metadata.labels.redkey-cluster-name",
        "spec.replicas",
        "spec.selector",
        "spec.serviceName",
        "spec.podManagementPolicy",
        "spec.updateStrategy",
        "spec.volumeClaimTemplates",
        "spec.template.metadata.labels.redis.redkeycluster.operator.component",
        "spec.template.spec.volumes[config]",
        "spec.template.spec.volumes[data]",
        "spec.template.spec.containers.0.volumeMounts[.data]",
    ]
    .map(field)
    .into();
    expected.sort();
    let mut said = made.notes();
    said.sort();
    assert_eq!(said, expected);
}

#[test]
fn equal_values_of_owned_fields_pass_in_silence() {
    let made = over_set(
        &json!({"spec": {"replicas": 3, "serviceName": "c", "selector": {}, "updateStrategy": {"type": "OnDelete"}}}),
    );
    assert_eq!(made.notes(), Vec::<String>::new());
}

#[test]
fn nulls_take_nothing_of_the_operators_away() {
    let plain = given(json!({})).set();
    for over in [
        json!({"spec": {"template": {"spec": {"containers": null, "volumes": null}}}}),
        json!({"spec": {"template": null}}),
        json!({"spec": null}),
        json!({"spec": {"template": {"spec": {"containers": [{"name": "redis", "volumeMounts": null, "env": null}]}}}}),
        json!({"spec": {"template": {"metadata": {"labels": null}}}, "metadata": {"labels": null}}),
    ] {
        let set = over_set(&over).set();
        for path in [
            "/spec/template/spec/containers/0/volumeMounts",
            "/spec/template/spec/volumes",
            "/spec/template/metadata/labels",
            "/spec/selector",
            "/spec/template/spec/containers/0/command",
        ] {
            assert_eq!(set.pointer(path), plain.pointer(path), "{over} {path}");
        }
    }
}

#[test]
fn an_unknown_field_is_ignored_and_named_and_a_wrong_type_is_an_error() {
    let made = over_set(&json!({"spec": {"template": {"spec": {"tolerance": 1, "fsGroup": 3}}}}));
    assert_eq!(
        made.notes(),
        [
            "spec.override.statefulSet.spec.template.spec.fsGroup is ignored: Kubernetes knows no such field here",
            "spec.override.statefulSet.spec.template.spec.tolerance is ignored: Kubernetes knows no such field here",
        ]
    );
    let wrong = over_set(&json!({"spec": {"template": {"spec": {"priority": "high"}}}}));
    let Err(BuildError::Shape { field, reason }) = wrong.build() else {
        panic!("accepted");
    };
    assert_eq!(field, "spec.override.statefulSet");
    assert!(reason.contains("high"), "{reason}");
    for wrong in [
        json!("text"),
        json!({"spec": 5}),
        json!({"spec": {"template": {"spec": {"containers": 5}}}}),
    ] {
        assert!(over_set(&wrong).build().is_err(), "{wrong}");
    }
}

#[test]
fn an_override_of_the_service_adds_ports_and_keeps_that_of_clients() {
    let made = over_service(&json!({
        "metadata": {"annotations": {"weight": "80"}, "labels": {"x": "y"}},
        "spec": {
            "clusterIP": "10.0.0.1",
            "selector": {"a": "b"},
            "publishNotReadyAddresses": true,
            "ports": [
                {"name": "prometheus", "port": 9090, "targetPort": 9090, "protocol": "TCP"},
                {"name": "client", "port": 7000},
            ],
        },
    }));
    let service = json!(made.objects().service);
    assert_eq!(service["metadata"]["annotations"]["weight"], "80");
    assert_eq!(service["spec"]["clusterIP"], "None");
    assert_eq!(service["spec"]["publishNotReadyAddresses"], true);
    let ports: Vec<&Value> = service["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["port"])
        .collect();
    assert_eq!(ports, [6379, 9090]);
    let field = |path: &str| format!("spec.override.service.{path} is ignored: the operator owns it");
    assert_eq!(
        made.notes(),
        ["spec.clusterIP", "spec.ports", "spec.selector"].map(field)
    );
    let bare = over_service(&json!({"spec": {"ports": null}}));
    assert_eq!(json!(bare.objects().service)["spec"]["ports"][0]["port"], 6379);
}
