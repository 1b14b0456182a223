//! What the readers say of jobs, of deleted objects, of typed ones, and of a workload with its pods.

use kube_status::readers::{Health, explain, read, read_value};
use serde_json::{Value, json};

use Health::{Deleting, Failed, Progressing, Ready};

type Case = (&'static str, Value, Health, &'static str, &'static str);

fn check(api_version: &str, kind: &str, cases: Vec<Case>) {
    for (case, body, health, reason, message) in cases {
        let mut object = json!({"apiVersion": api_version, "kind": kind,
                                "metadata": {"name": "web", "namespace": "shop", "generation": 2}});
        for (key, value) in body.as_object().unwrap() {
            object[key] = value.clone();
        }
        let reading = read_value(&object).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(
            (reading.health, reading.reason.as_str(), reading.message.as_str()),
            (health, reason, message),
            "{case}"
        );
        assert_eq!(reading.generation, Some(2), "{case}");
    }
}

fn counts(all: i64, updated: i64, ready: i64, available: i64) -> Value {
    json!({"observedGeneration": 2, "replicas": all, "updatedReplicas": updated, "readyReplicas": ready,
           "availableReplicas": available, "conditions": [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "ok"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "ok"}]})
}

#[test]
fn a_job_is_ready_only_when_complete() {
    let with = |condition: Value| {
        json!({"spec": {"completions": 2}, "status": {"startTime": "2026-02-05T10:00:00Z",
        "succeeded": 1, "failed": 3, "conditions": [condition]}})
    };
    check(
        "batch/v1",
        "Job",
        vec![
            (
                "new",
                json!({}),
                Progressing,
                "JobNotStarted",
                "the job has not started yet",
            ),
            (
                "running",
                json!({"status": {"startTime": "2026-02-05T10:00:00Z", "active": 1}}),
                Progressing,
                "JobRunning",
                "0 of 1 completions, 1 running, 0 failed",
            ),
            (
                "suspended",
                json!({"spec": {"suspend": true}}),
                Progressing,
                "JobSuspended",
                "the job is suspended; 0 of 1 completions, 0 running, 0 failed",
            ),
            (
                "complete",
                with(json!({"type": "Complete", "status": "True"})),
                Ready,
                "JobComplete",
                "1 of 2 completions, 0 running, 3 failed",
            ),
            (
                "failed",
                with(
                    json!({"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit"}),
                ),
                Failed,
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit; 1 of 2 completions, 0 running, 3 failed",
            ),
            (
                "about to fail",
                with(
                    json!({"type": "FailureTarget", "status": "True", "reason": "DeadlineExceeded",
            "message": "Job was active longer than specified deadline"}),
                ),
                Failed,
                "DeadlineExceeded",
                "Job was active longer than specified deadline; 1 of 2 completions, 0 running, 3 failed",
            ),
            (
                "an old failure taken back",
                with(json!({"type": "Failed", "status": "False"})),
                Progressing,
                "JobRunning",
                "1 of 2 completions, 0 running, 3 failed",
            ),
        ],
    );
}

#[test]
fn an_object_being_deleted_lists_its_finalizers() {
    for (finalizers, message) in [
        (
            json!(["shop.io/backup", "shop.io/dns"]),
            "being deleted, held by shop.io/backup, shop.io/dns",
        ),
        (json!([]), "being deleted"),
    ] {
        let going = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web",
            "deletionTimestamp": "2026-02-05T10:00:00Z", "finalizers": finalizers}, "status": counts(1, 1, 1, 1)});
        let reading = read_value(&going).unwrap();
        assert_eq!((reading.health, reading.message.as_str()), (Deleting, message));
        assert_eq!(reading.since, Some("2026-02-05T10:00:00Z".parse().unwrap()));
    }
}

#[test]
fn typed_and_untyped_objects_are_read_alike() {
    let untyped = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "generation": 1},
        "spec": {"replicas": 2, "selector": {}, "serviceName": "db", "template": {}},
        "status": {"replicas": 2, "readyReplicas": 1}});
    let typed: k8s_openapi::api::apps::v1::StatefulSet = serde_json::from_value(untyped.clone()).unwrap();
    assert_eq!(read(&typed), read_value(&untyped));
    assert_eq!(read(&typed).unwrap().message, "1 of 2 replicas ready");
}

#[test]
fn the_pods_explain_the_workload() {
    let workload = |ready: i64| {
        read_value(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 6}, "status": counts(6, 6, ready, ready)}),
        )
        .unwrap()
    };
    let pod = |reason: &str| {
        read_value(
            &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"containerStatuses": [
            {"name": "app", "image": "shop/web:9", "state": {"waiting": {"reason": reason, "message": "words"}}}]}}),
        )
        .unwrap()
    };
    let crash = || pod("CrashLoopBackOff");
    let crowd = [
        ("e", crash()),
        ("a", crash()),
        ("d", crash()),
        ("b", crash()),
        ("x", pod("ContainerCreating")),
    ];
    let why = explain(workload(1), &crowd);
    assert_eq!((why.health, why.reason.as_str()), (Failed, "CrashLoopBackOff"));
    assert_eq!(
        why.message,
        "1 of 6 replicas available; pods a, b, d, ... (1 more): container app: words"
    );

    let why = explain(
        workload(5),
        &[("x", pod("ContainerCreating")), ("y", pod("ContainerCreating"))],
    );
    assert_eq!((why.health, why.reason.as_str()), (Progressing, "ContainerCreating"));
    assert_eq!(
        why.message,
        "5 of 6 replicas available; pods x, y: container app: words"
    );

    assert_eq!(
        explain(workload(6), &crowd),
        workload(6),
        "a ready workload has nothing to explain"
    );
    assert_eq!(explain::<&str>(workload(1), &[]), workload(1));
}
