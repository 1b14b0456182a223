//! What the readers say of workloads (`Deployment`, `StatefulSet` and the like) and jobs.

use kube_status::readers::{Health, read_value};
use serde_json::{Value, json};

use Health::{Failed, Progressing, Ready, Stuck};

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
fn a_deployment_is_read_in_the_order_of_its_rollout() {
    let three = json!({"replicas": 3});
    let with = |status: Value| json!({"spec": three, "status": status});
    check(
        "apps/v1",
        "Deployment",
        vec![
            (
                "done",
                with(counts(3, 3, 3, 3)),
                Ready,
                "ReplicasAvailable",
                "3 of 3 replicas available",
            ),
            (
                "scaled to nothing",
                json!({"spec": {"replicas": 0}, "status": counts(0, 0, 0, 0)}),
                Ready,
                "ReplicasAvailable",
                "0 of 0 replicas available",
            ),
            (
                "replicas left to the default of one",
                json!({"status": counts(1, 1, 1, 1)}),
                Ready,
                "ReplicasAvailable",
                "1 of 1 replicas available",
            ),
            (
                "no status at all",
                json!({"spec": three}),
                Progressing,
                "CreatingReplicas",
                "0 of 3 replicas created",
            ),
            (
                "scaled down, the surplus still there",
                with(counts(4, 4, 4, 4)),
                Progressing,
                "TerminatingReplicas",
                "1 replicas still to go",
            ),
            (
                "restored with the status of a past life",
                with(
                    json!({"observedGeneration": 7, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
                            "availableReplicas": 3}),
                ),
                Progressing,
                "GenerationNotObserved",
                "generation 2 has not been observed yet, the status is about 7",
            ),
            (
                "pods missing",
                with(counts(2, 2, 2, 2)),
                Progressing,
                "CreatingReplicas",
                "2 of 3 replicas created",
            ),
            (
                "old pods in place",
                with(counts(4, 1, 3, 3)),
                Progressing,
                "UpdatingReplicas",
                "1 of 3 replicas updated",
            ),
            (
                "old pods leaving",
                with(counts(5, 3, 5, 5)),
                Progressing,
                "TerminatingReplicas",
                "2 old replicas still to go",
            ),
            (
                "not available yet",
                with(counts(3, 3, 3, 1)),
                Progressing,
                "WaitingForReplicas",
                "1 of 3 replicas available",
            ),
            (
                "available but not ready",
                with(counts(3, 3, 2, 3)),
                Progressing,
                "WaitingForReplicas",
                "2 of 3 replicas ready",
            ),
            (
                "nobody has looked",
                json!({"spec": three, "status": {"observedGeneration": 1, "replicas": 3,
            "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}}),
                Progressing,
                "GenerationNotObserved",
                "generation 2 has not been observed yet, the status is about 1",
            ),
            (
                "paused half way",
                json!({"spec": {"replicas": 3, "paused": true}, "status": counts(4, 1, 3, 3)}),
                Stuck,
                "DeploymentPaused",
                "the rollout is paused; 1 of 3 replicas updated",
            ),
            (
                "paused when done",
                json!({"spec": {"replicas": 3, "paused": true}, "status": counts(3, 3, 3, 3)}),
                Ready,
                "ReplicasAvailable",
                "3 of 3 replicas available",
            ),
            (
                "counts without a word from the controller",
                json!({"spec": {"replicas": 0}}),
                Progressing,
                "NotYetReported",
                "the deployment controller has not reported progress yet",
            ),
        ],
    );
}

#[test]
fn a_deployment_past_its_deadline_has_failed_and_a_quota_makes_it_stuck() {
    let with = |conditions: Value| {
        let mut status = counts(2, 2, 2, 2);
        status["conditions"] = conditions;
        json!({"spec": {"replicas": 3}, "status": status})
    };
    check(
        "apps/v1",
        "Deployment",
        vec![
            (
                "too late",
                with(
                    json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            "message": "ReplicaSet \"web-1\" has timed out progressing."}]),
                ),
                Failed,
                "ProgressDeadlineExceeded",
                "ReplicaSet \"web-1\" has timed out progressing.; 2 of 3 replicas available",
            ),
            (
                "quota",
                with(
                    json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "pods \"web-1-x\" is forbidden: exceeded quota"}]),
                ),
                Stuck,
                "FailedCreate",
                "pods \"web-1-x\" is forbidden: exceeded quota",
            ),
        ],
    );
    let mut unavailable = counts(3, 3, 3, 3);
    unavailable["conditions"][0]["status"] = json!("False");
    unavailable["conditions"][0]["reason"] = json!("MinimumReplicasUnavailable");
    unavailable["conditions"][0]["message"] = json!("Deployment does not have minimum availability.");
    check(
        "apps/v1",
        "Deployment",
        vec![(
            "counts are fine, the controller disagrees",
            json!({"spec": {"replicas": 3}, "status": unavailable}),
            Progressing,
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )],
    );
}

#[test]
fn a_replica_set_counts_labelled_available_and_ready() {
    let with = |labelled: i64, ready: i64, available: i64, all: i64| {
        json!({"spec": {"replicas": 2}, "status": {
        "observedGeneration": 2, "replicas": all, "fullyLabeledReplicas": labelled, "readyReplicas": ready,
        "availableReplicas": available}})
    };
    check(
        "apps/v1",
        "ReplicaSet",
        vec![
            (
                "done",
                with(2, 2, 2, 2),
                Ready,
                "ReplicasAvailable",
                "2 of 2 replicas available",
            ),
            (
                "creating",
                with(1, 1, 1, 1),
                Progressing,
                "CreatingReplicas",
                "1 of 2 replicas created",
            ),
            (
                "waiting",
                with(2, 2, 1, 2),
                Progressing,
                "WaitingForReplicas",
                "1 of 2 replicas available",
            ),
            (
                "shrinking",
                with(2, 2, 2, 4),
                Progressing,
                "TerminatingReplicas",
                "2 replicas still to go",
            ),
            (
                "refused",
                json!({"status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": "exceeded quota"}]}}),
                Stuck,
                "FailedCreate",
                "exceeded quota",
            ),
        ],
    );
}

#[test]
fn a_stateful_set_knows_partitions_and_revisions() {
    let with = |spec: Value, all: i64, ready: i64, updated: i64, from: &str, to: &str| {
        json!({"spec": spec, "status": {"observedGeneration": 2, "replicas": all, "readyReplicas": ready,
            "availableReplicas": ready, "updatedReplicas": updated, "currentRevision": from, "updateRevision": to}})
    };
    let rolling = json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate"}});
    let partitioned =
        json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
    let by_hand = json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}});
    check(
        "apps/v1",
        "StatefulSet",
        vec![
            (
                "done",
                with(rolling.clone(), 3, 3, 3, "a", "a"),
                Ready,
                "ReplicasReady",
                "3 of 3 replicas ready",
            ),
            (
                "creating one by one",
                with(rolling.clone(), 1, 1, 1, "a", "a"),
                Progressing,
                "CreatingReplicas",
                "1 of 3 replicas created",
            ),
            (
                "one not ready",
                with(rolling.clone(), 3, 2, 3, "a", "a"),
                Progressing,
                "WaitingForReplicas",
                "2 of 3 replicas ready",
            ),
            (
                "shrinking",
                with(rolling.clone(), 5, 5, 5, "a", "a"),
                Progressing,
                "TerminatingReplicas",
                "2 replicas still to go",
            ),
            (
                "rolling",
                with(rolling.clone(), 3, 3, 1, "a", "b"),
                Progressing,
                "UpdatingReplicas",
                "1 of 3 replicas updated",
            ),
            (
                "rolled, revision not closed",
                with(rolling, 3, 3, 3, "a", "b"),
                Progressing,
                "UpdatingReplicas",
                "revision b is not complete yet",
            ),
            (
                "partition not reached",
                with(partitioned.clone(), 3, 3, 0, "a", "b"),
                Progressing,
                "UpdatingReplicas",
                "0 of 1 replicas updated",
            ),
            (
                "partition reached",
                with(partitioned, 3, 3, 1, "a", "b"),
                Ready,
                "PartitionUpdated",
                "3 of 3 replicas ready; 1 updated, 2 held by the partition",
            ),
            (
                "updated by hand, not yet",
                with(by_hand.clone(), 3, 3, 0, "a", "b"),
                Ready,
                "ReplicasReady",
                "3 of 3 replicas ready",
            ),
            (
                "updated by hand, one down",
                with(by_hand, 3, 2, 0, "a", "b"),
                Progressing,
                "WaitingForReplicas",
                "2 of 3 replicas ready",
            ),
            (
                "a controller that counts updates only while there is one",
                json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 2, "replicas": 1, "readyReplicas": 1,
                    "currentRevision": "a", "updateRevision": "a"}}),
                Ready,
                "ReplicasReady",
                "1 of 1 replicas ready",
            ),
            (
                "minReadySeconds not over",
                json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 2, "replicas": 1,
            "readyReplicas": 1, "availableReplicas": 0, "updatedReplicas": 1}}),
                Progressing,
                "WaitingForReplicas",
                "0 of 1 replicas available",
            ),
        ],
    );
}

#[test]
fn a_daemon_set_is_not_ready_before_the_nodes_were_counted() {
    let with = |expected: i64, scheduled: i64, updated: i64, available: i64, ready: i64| {
        json!({"status": {
        "observedGeneration": 2, "desiredNumberScheduled": expected, "currentNumberScheduled": scheduled,
        "updatedNumberScheduled": updated, "numberAvailable": available, "numberReady": ready}})
    };
    let mut on_delete = with(3, 3, 1, 3, 3);
    on_delete["spec"] = json!({"updateStrategy": {"type": "OnDelete"}});
    check(
        "apps/v1",
        "DaemonSet",
        vec![
            (
                "new",
                json!({}),
                Progressing,
                "NotYetReported",
                "the number of nodes to run on is not known yet",
            ),
            (
                "counted, not observed",
                json!({"status": {"desiredNumberScheduled": 0}}),
                Progressing,
                "NotYetReported",
                "the daemon set controller has not looked yet",
            ),
            (
                "done",
                with(3, 3, 3, 3, 3),
                Ready,
                "ReplicasAvailable",
                "3 of 3 pods available",
            ),
            (
                "no node fits",
                with(0, 0, 0, 0, 0),
                Ready,
                "ReplicasAvailable",
                "0 of 0 pods available",
            ),
            (
                "creating",
                with(3, 2, 2, 2, 2),
                Progressing,
                "CreatingReplicas",
                "2 of 3 nodes have a pod",
            ),
            (
                "updating",
                with(3, 3, 1, 3, 3),
                Progressing,
                "UpdatingReplicas",
                "1 of 3 pods updated",
            ),
            (
                "waiting",
                with(3, 3, 3, 2, 3),
                Progressing,
                "WaitingForReplicas",
                "2 of 3 pods available",
            ),
            (
                "updated by hand",
                on_delete,
                Ready,
                "ReplicasAvailable",
                "3 of 3 pods available",
            ),
        ],
    );
}
