//! The preflight pod of a rolling update.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};

use super::super::{WorkloadObject, member, preflight};
use super::{FIRST, Given, at, given, violations};

/// The pod template of the members of a spec.
fn template(given: &Given) -> PodTemplateSpec {
    let workload = member(&given.inputs(), FIRST).expect("a member").workload;
    workload.template().expect("a template").clone()
}

#[test]
fn what_a_trial_can_tell_anything_of_is_tried_again_when_it_changes_and_nothing_else_is() {
    let before = template(&given(json!({})));
    let changes = [
        (true, json!({"image": "valkey/valkey:8.0"})),
        (true, json!({"exporter": {"image": "other/exporter:1"}})),
        (true, json!({"containers": [{"name": "logs", "image": "busybox"}]})),
        (
            true,
            json!({"containers": [{"name": "server", "image": "mirror/valkey:9.1"}]}),
        ),
        (true, json!({"imagePullSecrets": [{"name": "registry"}]})),
        (true, json!({"podSecurityContext": {"runAsUser": 0}})),
        (true, json!({"scheduling": {"nodeSelector": {"disk": "fast"}}})),
        (
            true,
            json!({"scheduling": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
        ),
        (true, json!({"scheduling": {"priorityClassName": "high"}})),
        (true, json!({"scheduling": {"zone": {"pinning": {"zones": ["a"]}}}})),
        (
            false,
            json!({"scheduling": {"node": {"spread": {"shard": {"mode": "Required"}}}}}),
        ),
        (true, json!({"resources": {"requests": {"memory": "900Gi"}}})),
        (false, json!({"config": {"databases": "4"}})),
        (false, json!({"replicas": 2})),
        (false, json!({"persistence": {"size": "1Gi"}})),
    ];
    for (again, spec) in changes {
        let after = given(spec.clone());
        assert_eq!(
            preflight(&after.cluster, &template(&after), &before).is_some(),
            again,
            "{spec}"
        );
    }
    let (large, small) = (
        given(json!({"resources": {"requests": {"memory": "900Gi"}}})),
        given(json!({})),
    );
    let shrunk = preflight(&small.cluster, &template(&small), &template(&large));
    assert!(shrunk.is_none(), "what asks for less fits where it is");
}

#[test]
fn it_is_no_member_and_asks_for_nothing_but_what_is_beyond_a_members_room() {
    let spec = json!({"replicas": 1, "imagePullSecrets": [{"name": "registry"}],
        "resources": {"requests": {"memory": "9Gi"}},
        "scheduling": {"nodeSelector": {"disk": "fast"}, "priorityClassName": "high",
            "zone": {"pinning": {"zones": ["a"]}, "spread": {"shard": {"mode": "Required"}}}}});
    let mut given = given(spec);
    given.cluster.metadata.labels = Some([("team".to_owned(), "shop".to_owned())].into());
    let before = template(&super::given(
        json!({"replicas": 1, "resources": {"requests": {"memory": "9Gi"}}}),
    ));
    let pod = json!(preflight(&given.cluster, &template(&given), &before).expect("a trial"));
    assert_eq!(pod["metadata"]["name"], "valkey-c-trial");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"valkey.io/trial-of": "c", "app.kubernetes.io/managed-by": "candor"}),
        "what selects members, or what a person labelled, must not find it"
    );
    assert!(pod["metadata"]["annotations"]["valkey.io/tried"].is_string());
    assert_eq!(pod["metadata"]["ownerReferences"][0]["name"], "c");
    let spec = &pod["spec"];
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(spec["nodeSelector"], json!({"disk": "fast"}));
    assert_eq!(
        (&spec["priorityClassName"], &spec["restartPolicy"]),
        (&json!("high"), &json!("Never"))
    );
    let affinity = spec["affinity"].as_object().expect("an affinity");
    assert_eq!(affinity.keys().collect::<Vec<_>>(), ["nodeAffinity"]);
    for absent in ["volumes", "topologySpreadConstraints"] {
        assert!(spec.get(absent).is_none(), "{absent}");
    }
    for container in spec["containers"].as_array().expect("containers") {
        assert_eq!(
            container["resources"],
            json!({"requests": {"cpu": "0", "memory": "0"}}),
            "a member has that room already"
        );
        for absent in ["volumeMounts", "env", "args", "ports", "livenessProbe"] {
            assert!(container.get(absent).is_none_or(Value::is_null), "{absent}");
        }
        assert_eq!(container["command"], json!(["true"]));
    }
    assert_eq!(violations(&pod), Vec::<String>::new());
}

#[test]
fn every_member_is_tried_by_the_same_pod_and_by_what_the_api_server_stores_of_its_template() {
    let given = given(json!({"replicas": 1, "scheduling": {"zone": {"pinning": {"zones": ["a", "b"]}}}}));
    let desired = template(&given);
    for place in [at(0, 1), at(2, 0)] {
        let WorkloadObject::Deployment(mut stored) = member(&given.inputs(), place).expect("a member").workload else {
            panic!("a Deployment")
        };
        let spec = stored
            .spec
            .as_mut()
            .expect("a spec")
            .template
            .spec
            .as_mut()
            .expect("a pod");
        spec.restart_policy = Some("Always".to_owned());
        spec.scheduler_name = Some("default-scheduler".to_owned());
        for container in &mut spec.containers {
            container.image_pull_policy = Some("IfNotPresent".to_owned());
            container.termination_message_path = Some("/dev/termination-log".to_owned());
        }
        let stored = stored.spec.expect("a spec").template;
        assert!(preflight(&given.cluster, &desired, &stored).is_none(), "{place}");
    }
}
