//! Checks the pods that the operator builds against each rule of the `restricted` Pod Security Standard.

use serde_json::{Value, json};

use super::given;

fn containers(pod: &Value) -> &Vec<Value> {
    pod["spec"]["containers"].as_array().expect("containers")
}

/// Why a pod does not meet the standard.
pub(crate) fn violations(pod: &Value) -> Vec<String> {
    let spec = &pod["spec"];
    let mut found = Vec::new();
    let mut rule = |holds: bool, what: String| {
        if !holds {
            found.push(what);
        }
    };
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        rule(spec[host].as_bool() != Some(true), host.to_owned());
    }
    let kinds = [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ];
    for volume in spec["volumes"].as_array().into_iter().flatten() {
        let others = volume
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(key, _)| *key != "name");
        for (kind, _) in others {
            rule(kinds.contains(&kind.as_str()), format!("volume {kind}"));
        }
    }
    let pod_level = &spec["securityContext"];
    rule(pod_level.get("sysctls").is_none(), "sysctls".to_owned());
    rule(pod_level.get("windowsOptions").is_none(), "windowsOptions".to_owned());
    for container in containers(pod) {
        let own = &container["securityContext"];
        let name = &container["name"];
        let either = |key: &str| {
            own.get(key)
                .or_else(|| pod_level.get(key))
                .cloned()
                .unwrap_or(Value::Null)
        };
        rule(own["privileged"].as_bool() != Some(true), format!("{name}: privileged"));
        rule(
            own["allowPrivilegeEscalation"] == json!(false),
            format!("{name}: allowPrivilegeEscalation"),
        );
        rule(either("runAsNonRoot") == json!(true), format!("{name}: runAsNonRoot"));
        rule(either("runAsUser") != json!(0), format!("{name}: runAsUser"));
        let seccomp = either("seccompProfile")["type"].clone();
        rule(
            seccomp == "RuntimeDefault" || seccomp == "Localhost",
            format!("{name}: seccompProfile"),
        );
        let drop = own["capabilities"]["drop"].as_array().cloned().unwrap_or_default();
        rule(drop.contains(&json!("ALL")), format!("{name}: capabilities.drop"));
        let add = own["capabilities"]["add"].as_array().cloned().unwrap_or_default();
        rule(
            add.iter().all(|one| one == "NET_BIND_SERVICE"),
            format!("{name}: capabilities.add"),
        );
        let ports = container["ports"].as_array().into_iter().flatten();
        rule(
            ports.clone().all(|port| port.get("hostPort").is_none()),
            format!("{name}: hostPort"),
        );
        rule(
            own["procMount"].is_null() || own["procMount"] == "Default",
            format!("{name}: procMount"),
        );
        rule(either("seLinuxOptions").is_null(), format!("{name}: seLinuxOptions"));
        for handler in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let host = container.pointer(&format!("/{handler}/httpGet/host"));
            rule(host.is_none(), format!("{name}: host of {handler}"));
        }
    }
    found
}

#[test]
fn every_pod_meets_the_restricted_standard_unless_a_person_says_otherwise() {
    let specs = [
        json!({}),
        json!({"persistence": {"size": "1Gi"}}),
        json!({"podSecurityContext": {"fsGroup": 1000}}),
        json!({"containers": [{"name": "log", "image": "busybox"}, {"name": "server", "image": "mine"}]}),
        json!({"exporter": {"image": "e", "securityContext": {"runAsUser": 1}}}),
        json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}}),
    ];
    for spec in specs {
        assert_eq!(violations(&given(spec.clone()).pod()), Vec::<String>::new(), "{spec}");
    }
}

#[test]
fn the_check_sees_what_is_wrong() {
    let wrong = [
        (
            json!({"podSecurityContext": {"runAsNonRoot": false}, "containers": [{"name": "s", "image": "i"}]}),
            "\"s\": runAsNonRoot",
        ),
        (
            json!({"containers": [{"name": "server", "securityContext": {"privileged": true}}]}),
            "\"server\": privileged",
        ),
        (
            json!({"containers": [{"name": "s", "image": "i", "securityContext": {"capabilities": {"add": ["X"]}}}]}),
            "\"s\": capabilities.drop",
        ),
    ];
    for (spec, what) in wrong {
        let found = violations(&given(spec.clone()).pod());
        assert!(found.iter().any(|one| one == what), "{spec}: {found:?}");
    }
}

#[test]
fn no_password_stands_in_what_everyone_may_read() {
    let users = json!({"users": [{"name": "alice", "permissions": ">plain-word +get"}]});
    let given = given(users);
    let shared = given.shared().unwrap();
    let mut open = vec![given.pod(), shared["config"].clone(), shared["headless"].clone()];
    open.push(json!(format!("{:?} {:?}", given.inputs().passwords, given.passwords)));
    for object in open {
        let text = object.to_string();
        assert!(!text.contains("-secret\""), "{text}");
        assert!(
            !text.contains("operator-secret") && !text.contains("plain-word"),
            "{text}"
        );
    }
    let acl = shared["acl"].to_string();
    assert!(!acl.contains("plain-word"), "the file has hashes only");
}
