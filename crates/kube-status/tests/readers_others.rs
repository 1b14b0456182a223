//! What the readers say of claims, services, definitions, custom resources, and of objects in a wrong shape.

use kube_status::Status;
use kube_status::readers::{Health, ReadError, Reading, read_value};
use proptest::prelude::*;
use serde_json::{Value, json};

use Health::{Failed, Progressing, Ready, Stuck, Unknown};

fn object(api_version: &str, kind: &str, body: Value) -> Value {
    let mut object = body;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": "it", "namespace": "shop", "generation": 4});
    object
}

fn of(api_version: &str, kind: &str, body: Value) -> Reading {
    read_value(&object(api_version, kind, body)).unwrap()
}

fn contents(reading: &Reading) -> (Health, &str, &str) {
    (reading.health, &reading.reason, &reading.message)
}

#[test]
fn a_claim_is_pending_bound_lost_or_being_resized() {
    let spec = json!({"storageClassName": "fast", "volumeName": "pv-1", "resources": {"requests": {"storage": "2Gi"}}});
    let with = |status: Value| of("v1", "PersistentVolumeClaim", json!({"spec": spec, "status": status}));
    let bound = |extra: Value| {
        let mut status = json!({"phase": "Bound", "capacity": {"storage": "1Gi"}});
        for (key, value) in extra.as_object().unwrap() {
            status[key] = value.clone();
        }
        with(status)
    };
    let transitioned = |type_: &str, message: &str| {
        bound(json!({"conditions": [{"type": type_, "status": "True", "message": message}]}))
    };
    assert_eq!(
        contents(&with(json!({"phase": "Bound", "capacity": {"storage": "2Gi"}}))),
        (Ready, "Bound", "bound, 2Gi")
    );
    assert_eq!(
        contents(&with(json!({"phase": "Pending"}))),
        (
            Progressing,
            "VolumePending",
            "waiting for a volume of storage class fast, 2Gi"
        )
    );
    assert_eq!(
        contents(&with(json!({"phase": "Lost"}))),
        (Failed, "VolumeLost", "the volume pv-1 is gone, and the data with it")
    );
    assert_eq!(
        contents(&transitioned("Resizing", "")),
        (Progressing, "Resizing", "resize from 1Gi to 2Gi: Resizing")
    );
    assert_eq!(
        contents(&transitioned(
            "FileSystemResizePending",
            "waiting for user to (re-)start a pod"
        )),
        (
            Progressing,
            "FileSystemResizePending",
            "resize from 1Gi to 2Gi: waiting for user to (re-)start a pod"
        )
    );
    assert_eq!(
        contents(&transitioned("ControllerResizeError", "quota")),
        (
            Stuck,
            "ControllerResizeError",
            "resize from 1Gi to 2Gi was refused: quota"
        )
    );
    assert_eq!(
        contents(&bound(
            json!({"allocatedResourceStatuses": {"storage": "NodeResizeInfeasible"}})
        )),
        (
            Stuck,
            "ResizeInfeasible",
            "resize from 1Gi to 2Gi is not possible (NodeResizeInfeasible)"
        )
    );
    assert_eq!(
        bound(json!({"allocatedResourceStatuses": {"storage": "NodeResizePending"}})).health,
        Progressing
    );
    assert_eq!(
        contents(&bound(json!({}))),
        (Progressing, "ResizePending", "resize from 1Gi to 2Gi has not begun")
    );
    for enough in ["2Gi", "2147483648", "2048Mi", "3G", "1Ti", "odd"] {
        assert_eq!(
            bound(json!({"capacity": {"storage": enough}})).health,
            Ready,
            "{enough}"
        );
    }
    for little in ["2G", "2e9", "1.9Gi", "2097151Ki"] {
        assert_eq!(
            bound(json!({"capacity": {"storage": little}})).health,
            Progressing,
            "{little}"
        );
    }
    assert_eq!(with(json!({"phase": "Odd"})).health, Unknown);
    assert_eq!(
        of("v1", "PersistentVolumeClaim", json!({"spec": {"storageClassName": ""}})).message,
        "waiting for a volume made by hand"
    );
}

#[test]
fn a_service_waits_for_its_load_balancer() {
    let with = |spec: Value, status: Value| of("v1", "Service", json!({"spec": spec, "status": status}));
    let balancer = json!({"type": "LoadBalancer"});
    assert_eq!(
        contents(&with(json!({}), json!({}))),
        (Ready, "ServiceExists", "ClusterIP service")
    );
    assert_eq!(
        contents(&with(json!({"type": "ExternalName"}), json!({}))),
        (Ready, "ServiceExists", "ExternalName service")
    );
    assert_eq!(
        contents(&with(balancer.clone(), json!({"loadBalancer": {}}))),
        (
            Progressing,
            "LoadBalancerPending",
            "waiting for an address from the cloud's load balancer controller"
        )
    );
    assert_eq!(
        with(
            json!({"type": "LoadBalancer", "loadBalancerClass": "metal.io/bgp"}),
            json!({})
        )
        .message,
        "waiting for an address from the controller of load balancer class metal.io/bgp"
    );
    assert_eq!(
        contents(&with(
            balancer.clone(),
            json!({"loadBalancer": {"ingress": [{"hostname": "lb.example"}]}})
        )),
        (Ready, "LoadBalancerReady", "reachable at lb.example")
    );
    assert_eq!(
        contents(&with(
            balancer,
            json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1", "ports": [{"port": 80, "error": "Taken"}]}]}})
        )),
        (Stuck, "LoadBalancerPortsError", "port 80: Taken")
    );
}

#[test]
fn a_crd_is_ready_when_established() {
    let with = |conditions: Value| {
        of(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({"spec": {}, "status": {"conditions": conditions}}),
        )
    };
    let accepted = json!({"type": "NamesAccepted", "status": "True"});
    assert_eq!(
        contents(&with(json!([]))),
        (Progressing, "Installing", "the definition is not served yet")
    );
    assert_eq!(
        with(json!([accepted, {"type": "Established", "status": "True", "reason": "InitialNamesAccepted"}])).health,
        Ready
    );
    assert_eq!(
        with(json!([accepted, {"type": "Established", "status": "False", "reason": "Installing"}])).health,
        Progressing
    );
    for (status, health) in [("False", Failed), ("Unknown", Progressing)] {
        let rejected = json!([accepted, {"type": "Established", "status": status, "reason": "Refused"}]);
        assert_eq!(with(rejected).health, health, "only a False is a refusal");
    }
    assert_eq!(
        contents(&with(
            json!([{"type": "NamesAccepted", "status": "False", "reason": "PluralConflict", "message": "carts is in use"}])
        )),
        (Failed, "PluralConflict", "carts is in use")
    );
}

#[test]
fn a_custom_resource_follows_the_conventions() {
    let with = |body: Value| of("shop.io/v1", "Cart", body);
    let conditions = |list: Value| with(json!({"spec": {}, "status": {"conditions": list}}));
    let ready = |status: &str| json!({"type": "Ready", "status": status, "reason": "Because", "message": "words"});
    let also = |type_: &str| json!({"type": type_, "status": "True", "reason": "R", "message": "m"});
    assert_eq!(
        contents(&conditions(json!([ready("True")]))),
        (Ready, "Because", "words")
    );
    assert_eq!(
        contents(&conditions(json!([ready("False")]))),
        (Progressing, "Because", "words")
    );
    assert_eq!(
        contents(&conditions(json!([ready("Unknown")]))),
        (Unknown, "Because", "words")
    );
    assert_eq!(
        contents(&conditions(json!([ready("True"), also("Reconciling")]))),
        (Progressing, "R", "m")
    );
    assert_eq!(
        contents(&conditions(json!([
            ready("True"),
            also("Reconciling"),
            also("Stalled")
        ]))),
        (Failed, "R", "m")
    );
    assert_eq!(
        contents(&conditions(json!([{"type": "Ready", "status": "False"}]))),
        (Progressing, "NotReady", "not ready, no cause given")
    );
    assert_eq!(contents(&conditions(json!([also("Available")]))), (Ready, "R", "m"));
    assert_eq!(
        contents(&conditions(json!([also("Synced"), also("Painted")]))),
        (Unknown, "NoReadyCondition", "no Ready condition among Synced, Painted")
    );
    assert_eq!(
        contents(&with(json!({"spec": {}}))),
        (Unknown, "NotYetReported", "no status yet: is its controller running?")
    );
    assert_eq!(with(json!({"spec": {}, "status": {}})).reason, "NoConditions");
    assert_eq!(with(json!({"data": {}})).health, Ready);
    assert_eq!(
        contents(&conditions(
            json!([{"type": "Ready", "status": "True", "observedGeneration": 3}])
        )),
        (
            Progressing,
            "GenerationNotObserved",
            "Ready speaks of generation 3, the object is at 4"
        )
    );
    assert_eq!(
        conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 4}])).health,
        Ready
    );
    assert_eq!(
        with(json!({"status": {"observedGeneration": 3, "conditions": [ready("True")]}})).reason,
        "GenerationNotObserved"
    );
}

#[test]
fn a_severity_decides_between_progress_stuck_and_failed() {
    for (severity, health) in [
        ("Error", Failed),
        ("Warning", Stuck),
        ("Info", Progressing),
        ("", Progressing),
    ] {
        let machine = of(
            "cluster.x-k8s.io/v1beta1",
            "Machine",
            json!({"spec": {}, "status": {"conditions": [
            {"type": "Ready", "status": "False", "severity": severity, "reason": "R"}]}}),
        );
        assert_eq!(machine.health, health, "{severity}");
    }
}

#[test]
fn built_in_objects_without_a_status_are_ready_when_they_exist() {
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
    ] {
        assert_eq!(of(api_version, kind, json!({"spec": {}})).reason, "Exists", "{kind}");
    }
    assert_eq!(
        of("gateway.networking.x-k8s.io/v1", "Thing", json!({"spec": {}})).health,
        Unknown
    );
    let nameless = read_value(&json!({"metadata": {}, "spec": {}})).unwrap();
    assert_eq!(
        nameless.health, Unknown,
        "an object out of a list, without kind, must speak for itself"
    );
}

#[test]
fn a_reason_of_another_controller_is_made_valid_for_a_condition() {
    for (foreign, ours) in [
        ("Fine_1", "Fine_1"),
        ("not ready!", "notready"),
        ("42", "NoReason"),
        ("Back:off:", "Back:off"),
        ("Größe", "Gre"),
    ] {
        let reading = of(
            "shop.io/v1",
            "Cart",
            json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": foreign}]}}),
        );
        let draft = reading.draft("CartReady");
        assert_eq!((draft.status, draft.reason.as_ref()), (Status::False, ours));
        assert_eq!(reading.reason, foreign);
    }
}

#[test]
fn a_wrong_type_is_an_error_that_names_object_and_field() {
    let cases = [
        (
            "apps/v1",
            "ReplicaSet",
            json!({"spec": {"replicas": i64::MIN}, "status": {"replicas": i64::MAX}}),
            "spec.replicas should be a 32-bit number, but is -9223372036854775808",
        ),
        (
            "v1",
            "Pod",
            json!({"status": []}),
            "status should be a map, but is a list",
        ),
        (
            "v1",
            "Pod",
            json!({"status": {"conditions": [{"status": "True"}]}}),
            "status.conditions[0].type is missing",
        ),
        (
            "v1",
            "Pod",
            json!({"status": {"conditions": [{"type": "Ready", "status": true}]}}),
            "status.conditions[0].status should be a string, but is a boolean",
        ),
        (
            "v1",
            "Pod",
            json!({"status": {"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": 3}}}]}}),
            "status.containerStatuses[0].state.waiting.reason should be a string, but is a number",
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": "3"}}),
            "spec.replicas should be a whole number, but is a string",
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 1.5}}),
            "spec.replicas should be a whole number, but is a fraction",
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"paused": "no"}, "status": {"replicas": 0}}),
            "spec.paused should be true or false, but is a string",
        ),
        (
            "shop.io/v1",
            "Cart",
            json!({"status": {"conditions": ["Ready"]}}),
            "status.conditions[0] should be a map, but is a string",
        ),
        (
            "shop.io/v1",
            "Cart",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "today"}]}}),
            "status.conditions[0].lastTransitionTime should be a time as in 2006-01-02T15:04:05Z, but is \"today\"",
        ),
    ];
    for (api_version, kind, body, problem) in cases {
        let error = read_value(&object(api_version, kind, body)).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("cannot read {kind} shop/it: {problem}; look at the object with `kubectl get -o yaml`")
        );
    }
    let ReadError::WrongType { object, .. } = read_value(&json!(7)).unwrap_err() else {
        panic!("a number is no object")
    };
    assert_eq!(object, "object without a name");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just("True".to_owned()),
            Just("Running".into()),
            Just("2026-02-05T10:00:00Z".into()),
            ".{0,8}".prop_map(String::from)
        ]
        .prop_map(Value::from),
    ];
    let words = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("conditions"),
        Just("containerStatuses"),
        Just("initContainerStatuses"),
        Just("state"),
        Just("lastState"),
        Just("waiting"),
        Just("terminated"),
        Just("running"),
        Just("reason"),
        Just("type"),
        Just("name"),
        Just("phase"),
        Just("replicas"),
        Just("exitCode"),
        Just("signal"),
        Just("generation"),
        Just("deletionTimestamp"),
        Just("finalizers"),
        Just("updateStrategy"),
        Just("loadBalancer"),
        Just("ingress"),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(words.clone(), inner, 0..6).prop_map(|map| map
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<serde_json::Map<_, _>>()
                .into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn no_json_makes_a_reader_panic(body in any_json(), status in any_json(), spec in any_json(), which in 0_usize..10) {
        let kinds = [("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"),
            ("batch/v1", "Job"), ("v1", "Pod"), ("v1", "PersistentVolumeClaim"), ("v1", "Service"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("shop.io/v1", "Cart")];
        let (api_version, kind) = kinds[which];
        let _ = read_value(&body);
        let whole = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec, "status": status});
        match read_value(&whole) {
            Ok(reading) => prop_assert!(!reading.reason.is_empty() && !reading.draft("Ready").reason.is_empty()),
            Err(error) => prop_assert!(error.to_string().contains(kind)),
        }
    }
}
