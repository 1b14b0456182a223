//! Each field of the spec, and where it appears in the objects.

use candor_engine::observation::About;
use serde_json::{Value, json};

use super::super::Problem;
use super::{at, given};

/// A spec, a path in the pod template of its first member, and the expected value at this path.
type Row = (Value, &'static str, Value);

fn check(rows: Vec<Row>, of: impl Fn(&super::Given) -> Value) {
    for (spec, path, expected) in rows {
        let object = of(&given(spec.clone()));
        let found = object.pointer(path).cloned().unwrap_or(Value::Null);
        assert_eq!(found, expected, "{spec} at {path} in {object:#}");
    }
}

#[test]
fn fields_of_the_spec_show_in_the_pod() {
    check(
        vec![
            (json!({}), "/spec/containers/0/image", json!("valkey/valkey:9.1")),
            (
                json!({"image": "valkey/valkey:8.0"}),
                "/spec/containers/0/image",
                json!("valkey/valkey:8.0"),
            ),
            (
                json!({"imagePullSecrets": [{"name": "r"}]}),
                "/spec/imagePullSecrets/0/name",
                json!("r"),
            ),
            (
                json!({"resources": {"limits": {"memory": "1Gi"}}}),
                "/spec/containers/0/resources/limits/memory",
                json!("1Gi"),
            ),
            (
                json!({"resources": {"requests": {"cpu": "1"}}}),
                "/spec/containers/0/resources/requests/cpu",
                json!("1"),
            ),
            (json!({}), "/spec/containers/0/resources", Value::Null),
            (json!({}), "/spec/terminationGracePeriodSeconds", json!(30)),
            (
                json!({"terminationGracePeriodSeconds": 7}),
                "/spec/terminationGracePeriodSeconds",
                json!(7),
            ),
            (
                json!({"podSecurityContext": {"runAsUser": 5}}),
                "/spec/securityContext/runAsUser",
                json!(5),
            ),
            (
                json!({"podSecurityContext": {"runAsUser": 5}}),
                "/spec/securityContext/runAsNonRoot",
                json!(true),
            ),
            (
                json!({}),
                "/spec/containers/0/env/0/valueFrom/fieldRef/fieldPath",
                json!("status.podIP"),
            ),
            (json!({}), "/spec/containers/0/env/1/value", json!("lost")),
            (
                json!({"persistence": {"size": "1Gi"}}),
                "/spec/containers/0/env/1/value",
                json!("kept"),
            ),
            (json!({}), "/spec/volumes/0/emptyDir", json!({})),
            (
                json!({"persistence": {"size": "1Gi"}}),
                "/spec/volumes/0/persistentVolumeClaim/claimName",
                json!("valkey-c-0-0-data"),
            ),
            (json!({}), "/spec/automountServiceAccountToken", json!(false)),
            (
                json!({"scheduling": {"nodeSelector": {"a": "b"}}}),
                "/spec/nodeSelector/a",
                json!("b"),
            ),
            (
                json!({"scheduling": {"priorityClassName": "high"}}),
                "/spec/priorityClassName",
                json!("high"),
            ),
            (
                json!({"scheduling": {"tolerations": [{"key": "k", "operator": "Exists"}]}}),
                "/spec/tolerations/0/key",
                json!("k"),
            ),
        ],
        super::Given::pod,
    );
}

#[test]
fn the_exporter_is_there_unless_disabled_and_is_what_the_spec_makes_of_it() {
    check(
        vec![
            (json!({}), "/spec/containers/1/name", json!("metrics-exporter")),
            (json!({}), "/spec/containers/1/image", json!("candor:1")),
            (json!({}), "/spec/containers/1/args", json!(["exporter"])),
            (
                json!({"exporter": {"args": ["--x"]}}),
                "/spec/containers/1/args",
                json!(["exporter", "--x"]),
            ),
            (
                json!({"exporter": {"image": "e:2"}}),
                "/spec/containers/1/image",
                json!("e:2"),
            ),
            (
                json!({"exporter": {"image": "e:2", "args": ["--x"]}}),
                "/spec/containers/1/args",
                json!(["--x"]),
            ),
            (
                json!({"exporter": {"enabled": false}}),
                "/spec/containers/1",
                Value::Null,
            ),
            (
                json!({"exporter": {"resources": {"limits": {"cpu": "1"}}}}),
                "/spec/containers/1/resources/limits/cpu",
                json!("1"),
            ),
            (
                json!({"exporter": {"securityContext": {"runAsUser": 4}}}),
                "/spec/containers/1/securityContext/runAsUser",
                json!(4),
            ),
            (
                json!({"exporter": {"securityContext": {"runAsUser": 4}}}),
                "/spec/containers/1/securityContext/allowPrivilegeEscalation",
                json!(false),
            ),
            (
                json!({}),
                "/spec/containers/1/env/3/value",
                json!("/config/exporter/exporter-password"),
            ),
            (
                json!({"exporter": {"image": "e:2"}}),
                "/spec/containers/1/env/3/valueFrom/secretKeyRef/name",
                json!("internal-c-system-passwords"),
            ),
        ],
        super::Given::pod,
    );
}

#[test]
fn containers_are_laid_over_by_name_and_others_added() {
    let sidecar = json!([{"name": "log", "image": "busybox"}]);
    let env = json!([{"name": "server", "env": [{"name": "A", "value": "1"}, {"name": "VALKEY_DATA", "value": "x"}]}]);
    check(
        vec![
            (
                json!({"containers": [{"name": "server", "image": "mine"}]}),
                "/spec/containers/0/image",
                json!("mine"),
            ),
            (
                json!({"containers": [{"name": "server", "args": ["--hz", "20"]}]}),
                "/spec/containers/0/args",
                json!(["--hz", "20"]),
            ),
            (
                json!({"containers": [{"name": "server", "args": ["--hz", "20"]}]}),
                "/spec/containers/0/command",
                json!(["sh", "/scripts/start.sh", "/config/valkey.conf"]),
            ),
            (
                json!({"containers": env.clone()}),
                "/spec/containers/0/env/1/value",
                json!("x"),
            ),
            (json!({"containers": env}), "/spec/containers/0/env/2/name", json!("A")),
            (
                json!({"containers": [{"name": "server", "livenessProbe": {"periodSeconds": 9}}]}),
                "/spec/containers/0/livenessProbe/exec/command/1",
                json!("/scripts/alive.sh"),
            ),
            (
                json!({"containers": [{"name": "server", "livenessProbe": {"tcpSocket": {"port": 6379}}}]}),
                "/spec/containers/0/livenessProbe/exec",
                Value::Null,
            ),
            (
                json!({"containers": [{"name": "server", "livenessProbe": null}]}),
                "/spec/containers/0/livenessProbe",
                Value::Null,
            ),
            (
                json!({"containers": [{"name": "server", "volumeMounts": [{"name": "data", "mountPath": "/more"}]}]}),
                "/spec/containers/0/volumeMounts/4/mountPath",
                json!("/more"),
            ),
            (
                json!({"containers": [{"name": "metrics-exporter", "image": "e"}], "exporter": {"enabled": false}}),
                "/spec/containers/1",
                Value::Null,
            ),
            (
                json!({"containers": sidecar.clone()}),
                "/spec/containers/2/name",
                json!("log"),
            ),
            (
                json!({"containers": sidecar}),
                "/spec/containers/2/securityContext/allowPrivilegeEscalation",
                json!(false),
            ),
        ],
        super::Given::pod,
    );
}

#[test]
fn spreading_follows_its_modes() {
    let shard = json!({"matchLabels": {"valkey.io/cluster": "c", "valkey.io/shard-index": "0"}});
    let nodes = |rule: Value| json!({"scheduling": {"node": {"spread": rule}}});
    let zones = |rule: Value| json!({"scheduling": {"zone": {"spread": rule}}});
    let anti = "/spec/affinity/podAntiAffinity";
    let wish =
        "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/topologyKey";
    check(
        vec![
            (json!({}), wish, json!("kubernetes.io/hostname")),
            (
                json!({}),
                "/spec/topologySpreadConstraints/0/topologyKey",
                json!("topology.kubernetes.io/zone"),
            ),
            (
                json!({}),
                "/spec/topologySpreadConstraints/0/whenUnsatisfiable",
                json!("ScheduleAnyway"),
            ),
            (json!({}), "/spec/topologySpreadConstraints/0/labelSelector", shard),
            (nodes(json!({"shard": {"mode": "Disabled"}})), anti, Value::Null),
            (
                nodes(json!({"shard": {"mode": "Required"}})),
                "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey",
                json!("kubernetes.io/hostname"),
            ),
            (
                zones(json!({"shard": {"mode": "Disabled"}})),
                "/spec/topologySpreadConstraints",
                Value::Null,
            ),
            (
                zones(json!({"shard": {"mode": "Required"}})),
                "/spec/topologySpreadConstraints/0/whenUnsatisfiable",
                json!("DoNotSchedule"),
            ),
            (
                nodes(json!({"pods": {"mode": "Required"}})),
                "/spec/topologySpreadConstraints/0/labelSelector/matchLabels",
                json!({"valkey.io/cluster": "c"}),
            ),
            (
                nodes(json!({"primaries": {"mode": "Preferred"}})),
                "/spec/topologySpreadConstraints/0/labelSelector/matchLabels",
                json!({"valkey.io/cluster": "c", "valkey.io/node-index": "0"}),
            ),
            (
                json!({"scheduling": {"topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]}}),
                "/spec/topologySpreadConstraints/0/topologyKey",
                json!("rack"),
            ),
        ],
        super::Given::pod,
    );
    let primaries = given(nodes(json!({"primaries": {"mode": "Required"}})));
    let replica = primaries.workload(at(0, 1)).unwrap();
    let only = &replica["spec"]["template"]["spec"]["topologySpreadConstraints"];
    assert_eq!(
        only.as_array().unwrap().len(),
        1,
        "a replica's place is not a primary's: {only}"
    );
}

#[test]
fn pinned_zones_hold_in_every_alternative_of_the_persons_own_affinity() {
    let term = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let required = json!({"nodeSelectorTerms": [term("a"), term("b")]});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let pod = given(json!({"scheduling": {"affinity": affinity, "zone": {"pinning": {"zones": ["x", "y"]}}}})).pod();
    let terms =
        &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    for index in 0..2 {
        assert_eq!(
            terms[index]["matchExpressions"][1]["key"], "topology.kubernetes.io/zone",
            "{terms}"
        );
        assert_eq!(terms[index]["matchExpressions"][1]["values"], json!(["x", "y"]));
    }
    let alone = given(json!({"scheduling": {"zone": {"pinning": {"zones": ["x"]}}}})).pod();
    let terms = &alone["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
    assert_eq!(terms[0]["matchExpressions"][0]["values"], json!(["x"]));
}

#[test]
fn tls_moves_the_port_and_mounts_the_certificates() {
    let tls = json!({"networking": {"tls": {"certificates": {"server": {"secretName": "t"}}}}});
    let whole = [("ca.crt", "a"), ("tls.crt", "b"), ("tls.key", "c")];
    let given = given(tls.clone()).secret("t", &whole);
    let pod = given.pod();
    assert_eq!(pod.pointer("/spec/volumes/4/secret/secretName"), Some(&json!("t")));
    assert_eq!(
        pod.pointer("/spec/containers/0/volumeMounts/4/mountPath"),
        Some(&json!("/tls"))
    );
    assert_eq!(
        pod.pointer("/spec/containers/1/env/1/value"),
        Some(&json!("rediss://$(POD_IP):6379"))
    );
    let conf = given.conf();
    for line in [
        "port 0",
        "tls-port 6379",
        "tls-cluster yes",
        "tls-replication yes",
        "tls-cert-file /tls/tls.crt",
    ] {
        assert!(conf.iter().any(|have| have == line), "{line} in {conf:#?}");
    }
    assert!(!conf.iter().any(|line| line == "port 6379"));
    let missing = super::given(tls.clone()).shared().unwrap_err();
    assert!(
        missing.is_missing() && missing.to_string().contains("Secret t is missing"),
        "{missing}"
    );
    let partial = super::given(tls).secret("t", &whole[..2]).shared().unwrap_err();
    assert_eq!(
        partial.to_string(),
        "Secret t has nothing under the key tls.key: spec.networking.tls asks for TLS; it needs ca.crt, tls.crt and tls.key"
    );
    let unusable = Problem::UnusableCertificates {
        name: "t".to_owned(),
        message: "no".to_owned(),
    };
    for problem in [missing, partial, unusable] {
        assert!(
            problem.is_missing(),
            "{problem}: the cluster waits for a Secret that is mended"
        );
        assert_eq!(problem.about(&given.cluster), About::Configuration, "{problem}");
    }
    let of_users = super::given(json!({"users": [{"name": "a"}]})).shared().unwrap_err();
    assert_eq!(of_users.about(&given.cluster), About::Users, "{of_users}");
}

#[test]
fn workloads_claims_and_budgets_are_as_the_contract_says() {
    let plain = given(json!({"shards": 2}));
    let deployment = plain.workload(at(1, 0)).unwrap();
    assert_eq!(deployment["kind"], "Deployment");
    assert_eq!(deployment["metadata"]["name"], "valkey-c-1-0");
    assert_eq!(deployment["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["uid"], "u");
    assert_eq!(deployment["metadata"]["labels"]["valkey.io/shard-index"], "1");
    let set = given(json!({"workloadType": "StatefulSet"}))
        .workload(at(0, 0))
        .unwrap();
    assert_eq!(set["kind"], "StatefulSet");
    assert_eq!(set["spec"]["serviceName"], "valkey-c");
    assert_eq!(set["spec"]["template"]["spec"]["volumes"][0]["emptyDir"], json!({}));

    let kept = given(json!({"persistence": {"size": "3Gi", "storageClassName": "fast"}}));
    assert_eq!(kept.workload(at(0, 0)).unwrap()["kind"], "StatefulSet");
    let claim = json!(super::member(&kept.inputs(), at(0, 0)).unwrap().claim.unwrap());
    assert_eq!(claim["metadata"]["name"], "valkey-c-0-0-data");
    assert_eq!(claim["metadata"].get("ownerReferences"), None);
    assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "3Gi");
    assert_eq!(claim["spec"]["storageClassName"], "fast");
    let deleted = given(json!({"persistence": {"size": "3Gi", "reclaimPolicy": "Delete"}}));
    let claim = json!(super::member(&deleted.inputs(), at(0, 0)).unwrap().claim.unwrap());
    assert_eq!(claim["metadata"]["ownerReferences"][0]["uid"], "u");

    let objects = plain.shared().unwrap();
    assert_eq!(objects["budget"]["spec"]["maxUnavailable"], 1);
    assert_eq!(objects["headless"]["spec"]["clusterIP"], "None");
    assert_eq!(objects["headless"]["spec"]["publishNotReadyAddresses"], true);
    assert_eq!(objects["client"]["metadata"]["name"], "valkey-c-client");
    assert_eq!(objects["client"]["spec"].get("publishNotReadyAddresses"), None);
    let none = given(json!({"podDisruptionBudget": {"mode": "Disabled"}}))
        .shared()
        .unwrap();
    assert_eq!(none["no budget"], "valkey-c");
}

#[test]
fn labels_and_annotations_are_inherited_but_for_those_of_tools() {
    let mut given = given(json!({}));
    let message = [
        ("team", "a"),
        ("valkey.io/cluster", "other"),
        ("app.kubernetes.io/name", "x"),
    ];
    given.cluster.metadata.labels = Some(message.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let notes = [
        ("note", "b"),
        ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ("valkey.io/data-loss-acknowledged", "now"),
    ];
    given.cluster.metadata.annotations = Some(notes.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let mut all: Vec<_> = given.shared().unwrap().into_values().collect();
    all.push(given.workload(at(0, 0)).unwrap());
    all.push(given.pod());
    all.push(json!(super::super::node(&given.cluster, at(0, 0))));
    for object in all {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["team"], "a", "{object}");
        assert_eq!(metadata["labels"]["valkey.io/cluster"], "c");
        assert_eq!(metadata["labels"]["app.kubernetes.io/name"], "valkey");
        assert_eq!(metadata["annotations"]["note"], "b");
        assert!(!metadata["annotations"].to_string().contains("acknowledged"));
        assert!(!metadata["annotations"].to_string().contains("last-applied"));
    }
}

#[test]
fn a_wrong_shape_in_a_preserved_object_is_reported_with_its_place() {
    let table = [
        (
            json!({"containers": [{"name": "server", "resorces": {}, "resourcez": {"a": 1}}]}),
            "spec.containers[0].resourcez",
        ),
        (
            json!({"containers": [{"name": "server", "args": "--hz"}]}),
            "spec.containers[0]",
        ),
        (json!({"containers": [{"name": "side"}]}), "spec.containers[0].image"),
        (
            json!({"imagePullSecrets": [{"nam": "x"}]}),
            "spec.imagePullSecrets[0].nam",
        ),
        (
            json!({"podSecurityContext": {"runAsUser": "root"}}),
            "spec.podSecurityContext",
        ),
        (
            json!({"podSecurityContext": {"runAsusr": 1}}),
            "spec.podSecurityContext.runAsusr",
        ),
        (
            json!({"scheduling": {"tolerations": [{"kee": "x"}]}}),
            "spec.scheduling.tolerations[0].kee",
        ),
        (
            json!({"scheduling": {"affinity": {"nodeAfinity": {"x": 1}}}}),
            "spec.scheduling.affinity.nodeAfinity",
        ),
        (
            json!({"scheduling": {"topologySpreadConstraints": [{"maxSkew": "one"}]}}),
            "spec.scheduling.topologySpreadConstraints[0]",
        ),
        (
            json!({"exporter": {"securityContext": {"privleged": true}}}),
            "spec.exporter.securityContext.privleged",
        ),
    ];
    for (spec, place) in table {
        let problem = given(spec.clone()).workload(at(0, 0)).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("{place}: ")), "{spec}: {problem}");
    }
}
