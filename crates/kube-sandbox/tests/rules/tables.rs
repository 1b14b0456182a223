//! The rows of `kubectl get`.

use jiff::Timestamp;
use kube_sandbox::kinds::{Registry, row_cells};
use serde_json::{Value, json};

fn cells(group: &str, plural: &str, object: &Value) -> Vec<Value> {
    let kind = Registry::builtin().find(group, "v1", plural).unwrap();
    let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
    let cells = row_cells(&kind, object, now);
    assert_eq!(cells.len(), kind.columns.len(), "{plural}: one cell per column");
    cells
}

fn pod(spec: &Value, status: &Value) -> Vec<Value> {
    let metadata = json!({"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"});
    cells(
        "",
        "pods",
        &json!({"metadata": metadata, "spec": spec, "status": status}),
    )[1..4]
        .to_vec()
}

#[test]
fn the_status_of_a_pod_follows_its_containers() {
    let one = json!({"containers": [{"name": "c"}]});
    let two = json!({"containers": [{"name": "c"}, {"name": "d"}]});
    let init = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "i"}, {"name": "j"}]});
    let sidecar = json!({"containers": [{"name": "c"}], "initContainers": [{"name": "s", "restartPolicy": "Always"}]});
    let running = json!({"name": "c", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let crashed = json!({"name": "c", "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"finishedAt": "2026-01-01T00:04:00Z"}}});
    for (spec, status, expected) in [
        (&one, json!({"phase": "Pending"}), ["0/1", "Pending", "0"]),
        (
            &one,
            json!({"phase": "Running", "containerStatuses": [running]}),
            ["1/1", "Running", "0"],
        ),
        (
            &one,
            json!({"phase": "Running", "containerStatuses": [crashed]}),
            ["0/1", "CrashLoopBackOff", "3 (60s ago)"],
        ),
        (
            &one,
            json!({"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
            ["0/1", "ImagePullBackOff", "0"],
        ),
        (
            &one,
            json!({"phase": "Succeeded", "containerStatuses": [{"state": {"terminated": {"reason": "Completed", "exitCode": 0}}}]}),
            ["0/1", "Completed", "0"],
        ),
        (
            &one,
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 2}}}]}),
            ["0/1", "ExitCode:2", "0"],
        ),
        (
            &one,
            json!({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9, "exitCode": 137}}}]}),
            ["0/1", "Signal:9", "0"],
        ),
        (
            &two,
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}],
                   "containerStatuses": [{"state": {"terminated": {"reason": "Completed"}}}, running]}),
            ["1/2", "NotReady", "0"],
        ),
        (
            &init,
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"running": {}}}, {"name": "j", "state": {"waiting": {}}}]}),
            ["0/1", "Init:0/2", "0"],
        ),
        (
            &init,
            json!({"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "state": {"terminated": {"exitCode": 0}}},
                {"name": "j", "restartCount": 1, "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}),
            ["0/1", "Init:Error", "1"],
        ),
        (
            &sidecar,
            json!({"phase": "Running", "initContainerStatuses": [{"name": "s", "started": true, "ready": true, "state": {"running": {}}}],
                   "containerStatuses": [running]}),
            ["2/2", "Running", "0"],
        ),
    ] {
        assert_eq!(pod(spec, &status), expected, "{status}");
    }
}

#[test]
fn a_pod_that_leaves_is_terminating_unless_it_has_ended() {
    for (phase, expected) in [("Running", "Terminating"), ("Succeeded", "Succeeded")] {
        let object =
            json!({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": phase}});
        assert_eq!(cells("", "pods", &object)[2], json!(expected));
    }
}

#[test]
fn other_kinds_have_the_cells_of_the_real_server() {
    let metadata = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let template = json!({"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j:2"}]}});
    let selector = json!({"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["2", "1"]}]});
    for (group, plural, rest, expected) in [
        (
            "apps",
            "deployments",
            json!({"spec": {"replicas": 3, "selector": selector, "template": template}, "status": {"readyReplicas": 2, "updatedReplicas": 3}}),
            json!(["x", "2/3", 3, 0, "5m", "a,b", "i:1,j:2", "app=x,k in (1,2)"]),
        ),
        (
            "apps",
            "statefulsets",
            json!({"spec": {"replicas": 3, "template": template}, "status": {"readyReplicas": 1}}),
            json!(["x", "1/3", "5m", "a,b", "i:1,j:2"]),
        ),
        (
            "",
            "services",
            json!({"spec": {"type": "ClusterIP", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "nodePort": 30000, "protocol": "UDP"}], "selector": {"a": "b"}}}),
            json!([
                "x",
                "ClusterIP",
                "10.0.0.1",
                "<none>",
                "80/TCP,81:30000/UDP",
                "5m",
                "a=b"
            ]),
        ),
        (
            "",
            "persistentvolumeclaims",
            json!({"spec": {"volumeName": "v", "storageClassName": "s", "volumeMode": "Filesystem"}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}}),
            json!(["x", "Bound", "v", "1Gi", "RWO", "s", "<unset>", "5m", "Filesystem"]),
        ),
        (
            "",
            "nodes",
            json!({"spec": {"unschedulable": true}, "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}}),
            json!([
                "x",
                "Ready,SchedulingDisabled",
                "<none>",
                "5m",
                "v1",
                "127.0.0.1",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>"
            ]),
        ),
        (
            "",
            "endpoints",
            json!({"subsets": [{"addresses": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.2"}], "ports": [{"port": 1}, {"port": 2}]}]}),
            json!(["x", "1.1.1.1:1,1.1.1.2:1,1.1.1.1:2 + 1 more...", "5m"]),
        ),
        (
            "policy",
            "poddisruptionbudgets",
            json!({"spec": {"maxUnavailable": 1}, "status": {"disruptionsAllowed": 1}}),
            json!(["x", "N/A", "1", 1, "5m"]),
        ),
    ] {
        let mut object = rest;
        object["metadata"] = metadata.clone();
        assert_eq!(json!(cells(group, plural, &object)), expected, "{plural}");
    }
}

#[test]
fn every_kind_has_as_many_cells_as_columns_even_of_nothing() {
    for kind in Registry::builtin().all() {
        cells(&kind.group, &kind.plural, &json!({"metadata": {"name": "x"}}));
    }
}

#[test]
fn the_columns_of_a_crd_come_from_its_paths() {
    let registry = Registry::builtin();
    let definition = |columns: Value| {
        json!({"metadata": {"name": "xs.e.com"}, "spec": {"group": "e.com", "scope": "Namespaced",
            "names": {"plural": "xs", "kind": "X"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "additionalPrinterColumns": columns, "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
    };
    let columns = json!([
        {"name": "Shards", "type": "integer", "jsonPath": ".spec.shards"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "None", "type": "string", "jsonPath": ".spec.none", "priority": 1},
    ]);
    registry
        .install_crd(&definition(columns), Timestamp::UNIX_EPOCH)
        .unwrap();
    let kind = registry.find("e.com", "v1", "xs").unwrap();
    let object = json!({"metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"shards": 3},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let now: Timestamp = "2026-01-01T00:05:00Z".parse().unwrap();
    assert_eq!(
        json!(row_cells(&kind, &object, now)),
        json!(["x", 3, "True", "5m", null])
    );
    registry
        .install_crd(&definition(Value::Null), Timestamp::UNIX_EPOCH)
        .unwrap();
    let kind = registry.find("e.com", "v1", "xs").unwrap();
    assert_eq!(json!(row_cells(&kind, &object, now)), json!(["x", "5m"]));
}
