//! Which container answers which probe.

use serde_json::{Value, json};

use super::given;

/// The server's container and the pod's volumes.
fn pod(spec: &Value) -> (Value, Value) {
    let pod = given(spec.clone()).pod();
    (pod["spec"]["containers"][0].clone(), pod["spec"]["volumes"].clone())
}

#[test]
fn the_exporter_answers_readiness_where_it_is_ours_and_a_command_elsewhere() {
    let ours = [
        json!({}),
        json!({"exporter": {"enabled": true, "resources": {"limits": {"memory": "32Mi"}}}}),
        json!({"containers": [{"name": "metrics-exporter", "resources": {"limits": {"memory": "32Mi"}}}]}),
        json!({"containers": [{"name": "log", "image": "busybox", "args": ["x"]}]}),
        json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}}),
    ];
    for spec in ours {
        let (server, volumes) = pod(&spec);
        let get = json!({"path": "/readyz", "port": 9121, "scheme": "HTTP"});
        assert_eq!(server["readinessProbe"]["httpGet"], get, "{spec}");
        assert_eq!(server["readinessProbe"]["periodSeconds"], 2);
        assert!(volumes.to_string().contains("exporter-password"), "{spec}: {volumes}");
    }
    let others = [
        json!({"exporter": {"enabled": false}}),
        json!({"exporter": {"image": "oliver006/redis_exporter"}}),
        json!({"exporter": {"args": ["--listen", "0.0.0.0:1"]}}),
        json!({"containers": [{"name": "metrics-exporter", "image": "mine"}]}),
        json!({"containers": [{"name": "metrics-exporter", "env": [{"name": "REDIS_USER", "value": "me"}]}]}),
        json!({"containers": [{"name": "metrics-exporter", "command": ["x"]}]}),
    ];
    for spec in others {
        let (server, volumes) = pod(&spec);
        let command = &server["readinessProbe"]["exec"]["command"];
        assert_eq!(command, &json!(["sh", "/scripts/ready.sh"]), "{spec}");
        assert!(
            !volumes.to_string().contains("exporter-password\",\"secret"),
            "{spec}: {volumes}"
        );
    }
}

/// A healthy server must not restart because its exporter crashes or the exporter's image cannot be pulled.
#[test]
fn startup_and_liveness_never_depend_on_the_exporter() {
    for spec in [json!({}), json!({"exporter": {"enabled": false}})] {
        let (server, _) = pod(&spec);
        for probe in ["startupProbe", "livenessProbe"] {
            assert_eq!(
                server[probe]["exec"]["command"][1], "/scripts/alive.sh",
                "{spec}: {probe}"
            );
        }
    }
}

#[test]
fn a_server_that_hangs_is_restarted_within_a_minute_and_not_before_it_was_silent_for_20_seconds() {
    let (server, _) = pod(&json!({}));
    let probe = &server["livenessProbe"];
    let number = |value: &Value| value.as_i64().expect("a number");
    let tries: i64 = probe["exec"]["command"][2].as_str().unwrap().parse().unwrap();
    // alive.sh: `timeout 4`, and a second between tries.
    let silent = tries * 4 + (tries - 1);
    assert!(silent >= 20, "{silent}");
    assert!(
        number(&probe["timeoutSeconds"]) > silent,
        "the script ends before the kubelet ends it"
    );
    let latest = number(&probe["periodSeconds"]) + silent + number(&probe["terminationGracePeriodSeconds"]);
    assert!(latest < 60, "{latest}");
}
