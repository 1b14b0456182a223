//! What the readers say of a Pod, from the scheduler to the readiness gates.

use kube_status::readers::{Health, Reading, read_value};
use serde_json::{Value, json};

use Health::{Failed, Progressing, Ready, Stuck, Unknown};

fn pod(spec: &Value, status: &Value) -> Reading {
    read_value(
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "namespace": "shop"},
                       "spec": spec, "status": status}),
    )
    .unwrap()
}

fn contents(reading: &Reading) -> (Health, &str, &str) {
    (reading.health, &reading.reason, &reading.message)
}

/// A pod with one container in the given state.
fn container(container: Value) -> Reading {
    let mut container = container;
    container["name"] = json!("server");
    container["image"] = json!("valkey/valkey:9.1");
    pod(
        &json!({}),
        &json!({"phase": "Pending", "containerStatuses": [container]}),
    )
}

fn not_ready() -> Value {
    json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": "2026-02-05T10:00:00Z"})
}

#[test]
fn a_ready_pod_is_ready_since_its_transition_time() {
    let reading = pod(
        &json!({}),
        &json!({"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-02-05T10:00:00Z"}]}),
    );
    assert_eq!(contents(&reading), (Ready, "PodReady", "every container is ready"));
    assert_eq!(reading.since, Some("2026-02-05T10:00:00Z".parse().unwrap()));
}

#[test]
fn the_scheduler_is_quoted() {
    let with = |reason: &str| {
        pod(
            &json!({}),
            &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": reason, "message": "0/3 nodes are available: 3 Insufficient memory."}]}),
        )
    };
    assert_eq!(
        contents(&with("Unschedulable")),
        (
            Stuck,
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient memory."
        )
    );
    assert_eq!(with("SchedulingGated").health, Progressing);
    assert_eq!(
        contents(&pod(&json!({}), &json!({}))),
        (Progressing, "PodPending", "the pod has not been scheduled yet")
    );
    assert_eq!(
        contents(&pod(&json!({"nodeName": "n1"}), &json!({"phase": "Pending"}))),
        (Progressing, "ContainerCreating", "the node has not started the pod yet")
    );
}

#[test]
fn images_that_cannot_be_pulled_are_named() {
    let waits =
        |reason: &str, message: &str| container(json!({"state": {"waiting": {"reason": reason, "message": message}}}));
    assert_eq!(
        contents(&waits(
            "ImagePullBackOff",
            "Back-off pulling image \"valkey/valkey:9.1\""
        )),
        (
            Stuck,
            "ImagePullBackOff",
            "container server: Back-off pulling image \"valkey/valkey:9.1\""
        )
    );
    assert_eq!(
        contents(&waits("ErrImagePull", "not found")),
        (
            Stuck,
            "ErrImagePull",
            "container server: not found (image valkey/valkey:9.1)"
        )
    );
    assert_eq!(
        contents(&waits("InvalidImageName", "")),
        (
            Failed,
            "InvalidImageName",
            "container server: InvalidImageName (image valkey/valkey:9.1)"
        )
    );
    assert_eq!(
        contents(&waits("CreateContainerConfigError", "secret \"x\" not found")),
        (
            Stuck,
            "CreateContainerConfigError",
            "container server: secret \"x\" not found"
        )
    );
    assert_eq!(
        contents(&waits("ContainerCreating", "")),
        (Progressing, "ContainerCreating", "container server: is being created")
    );
}

#[test]
fn a_crash_loop_reports_how_the_container_last_terminated() {
    let crashes = |terminated: Value| {
        container(
            json!({"restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff",
            "message": "back-off 2m40s restarting failed container"}}, "lastState": {"terminated": terminated}}),
        )
    };
    for (terminated, exit) in [
        (
            json!({"exitCode": 1, "reason": "Error", "message": "bad config\n"}),
            "Error (exit code 1): bad config",
        ),
        (
            json!({"exitCode": 137, "reason": "OOMKilled"}),
            "OOMKilled (exit code 137, SIGKILL)",
        ),
        (json!({"exitCode": 139}), "Error (exit code 139, SIGSEGV)"),
        (
            json!({"exitCode": 0, "signal": 15, "reason": "Completed"}),
            "Completed (exit code 0, SIGTERM)",
        ),
        (json!({"exitCode": 255}), "Error (exit code 255)"),
    ] {
        let reading = crashes(terminated);
        assert_eq!((reading.health, reading.reason.as_str()), (Failed, "CrashLoopBackOff"));
        assert_eq!(
            reading.message,
            format!("container server keeps crashing: last exit {exit}; 5 restarts")
        );
    }
    let first = container(json!({"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}}));
    assert_eq!(first.message, "container server: back-off 10s");
}

#[test]
fn a_terminated_or_unready_container_is_reported() {
    let ended = container(
        json!({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-02-05T10:00:00Z"}}}),
    );
    assert_eq!(
        contents(&ended),
        (
            Failed,
            "OOMKilled",
            "container server ended: OOMKilled (exit code 137, SIGKILL)"
        )
    );
    assert_eq!(ended.since, Some("2026-02-05T10:00:00Z".parse().unwrap()));
    let done = container(json!({"state": {"terminated": {"exitCode": 0}}}));
    assert_eq!(
        contents(&done),
        (
            Progressing,
            "ContainerCompleted",
            "container server has ended with exit code 0"
        )
    );
    let slow = container(
        json!({"ready": false, "restartCount": 1, "state": {"running": {"startedAt": "2026-02-05T10:00:00Z"}},
        "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}),
    );
    assert_eq!(
        contents(&slow),
        (
            Progressing,
            "ContainerNotReady",
            "container server is running but not ready; last exit Error (exit code 2); 1 restart"
        )
    );
    let nothing = container(json!({}));
    assert_eq!(
        contents(&nothing),
        (Progressing, "ContainerCreating", "container server has not started yet")
    );
}

#[test]
fn the_worst_of_several_containers_decides() {
    let reading = pod(
        &json!({}),
        &json!({"phase": "Pending", "conditions": [not_ready()], "containerStatuses": [
        {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}},
        {"name": "b", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image x"}}, "image": "x"},
        {"name": "c", "state": {"running": {}}, "ready": true}]}),
    );
    assert_eq!(
        contents(&reading),
        (Stuck, "ErrImagePull", "container b: no such image x")
    );
}

#[test]
fn init_containers_come_before_the_containers() {
    let spec = json!({"initContainers": [{"name": "fetch"}, {"name": "proxy", "restartPolicy": "Always"}, {"name": "migrate"}]});
    let with = |fetch: Value, proxy: Value, migrate: Value| {
        pod(
            &spec,
            &json!({"phase": "Pending", "conditions": [not_ready()], "initContainerStatuses": [
            {"name": "fetch", "state": fetch},
            {"name": "proxy", "state": proxy, "started": true, "ready": true},
            {"name": "migrate", "state": migrate}],
            "containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
        )
    };
    let (done, running) = (json!({"terminated": {"exitCode": 0}}), json!({"running": {}}));
    let waiting = json!({"waiting": {"reason": "PodInitializing"}});
    assert_eq!(
        contents(&with(running.clone(), waiting.clone(), waiting.clone())),
        (
            Progressing,
            "Initializing",
            "init container fetch is running (0 of 3 init containers done)"
        )
    );
    assert_eq!(
        contents(&with(done.clone(), running.clone(), running.clone())),
        (
            Progressing,
            "Initializing",
            "init container migrate is running (2 of 3 init containers done)"
        )
    );
    assert_eq!(
        contents(&with(
            done.clone(),
            running.clone(),
            json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}})
        )),
        (Failed, "CrashLoopBackOff", "init container migrate: back-off")
    );
    assert_eq!(
        contents(&with(
            json!({"terminated": {"exitCode": 3, "reason": "Error"}}),
            waiting.clone(),
            waiting
        )),
        (Failed, "Error", "init container fetch ended: Error (exit code 3)")
    );
    assert_eq!(
        contents(&with(
            done.clone(),
            json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
            done.clone()
        )),
        (Failed, "Completed", "sidecar proxy ended: Completed (exit code 0)")
    );
    assert_eq!(
        with(done.clone(), running, done).reason,
        "PodInitializing",
        "then the containers themselves"
    );
}

#[test]
fn a_sidecar_that_is_up_but_not_ready_does_not_hide_the_containers() {
    let reading = pod(
        &json!({"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}),
        &json!({"phase": "Running", "conditions": [not_ready()],
            "initContainerStatuses": [{"name": "proxy", "state": {"running": {}}, "started": true, "ready": false}],
            "containerStatuses": [{"name": "app", "image": "x", "state": {"waiting": {"reason": "ErrImagePull", "message": "no x"}}}]}),
    );
    assert_eq!(contents(&reading), (Stuck, "ErrImagePull", "container app: no x"));
}

#[test]
fn false_readiness_gates_are_listed_with_their_messages() {
    let reading = pod(
        &json!({"readinessGates": [{"conditionType": "lb.io/attached"}, {"conditionType": "mesh.io/up"},
            {"conditionType": "fine.io/ok"}]}),
        &json!({"phase": "Running", "containerStatuses": [{"name": "app", "state": {"running": {}}, "ready": true}],
            "conditions": [not_ready(), {"type": "lb.io/attached", "status": "False", "message": "target is draining"},
                {"type": "fine.io/ok", "status": "True"}]}),
    );
    assert_eq!(
        contents(&reading),
        (
            Progressing,
            "ReadinessGatesNotReady",
            "every container is ready; waiting for the gate lb.io/attached (target is draining), mesh.io/up (not reported)"
        )
    );
}

#[test]
fn a_pod_that_ended_is_complete_or_failed_with_its_cause() {
    let ended = |status: Value| pod(&json!({}), &status);
    assert_eq!(ended(json!({"phase": "Succeeded"})).health, Ready);
    assert_eq!(
        contents(&ended(
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})
        )),
        (Failed, "Evicted", "The node was low on resource: memory.")
    );
    assert_eq!(
        contents(&ended(
            json!({"phase": "Failed", "containerStatuses": [{"name": "ok", "state": {"terminated": {"exitCode": 0}}},
            {"name": "app", "state": {"terminated": {"exitCode": 134, "reason": "Error"}}}]})
        )),
        (Failed, "Error", "container app ended: Error (exit code 134, SIGABRT)")
    );
    assert_eq!(
        contents(&ended(json!({"phase": "Failed"}))),
        (Failed, "PodFailed", "the pod has failed")
    );
    assert_eq!(
        contents(&ended(json!({"phase": "Unknown"}))),
        (Unknown, "NodeLost", "the pod's node does not answer")
    );
}
