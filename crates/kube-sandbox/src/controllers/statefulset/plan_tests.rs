//! Sets of pods in given states, and the steps that must follow.

use super::*;
use serde_json::{Value, json};

const OLD: &str = "web-old";
const NEW: &str = "web-new";

/// A set, its pods in some form, and the steps.
type Case<'a, P> = (&'a StatefulSet, P, &'a [&'a str]);

fn now() -> Time {
    serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap()
}

fn set(more: &Value) -> StatefulSet {
    let mut value = json!({"metadata": {"name": "web", "namespace": "n", "uid": "s", "generation": 3},
        "spec": {"replicas": 3, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}});
    json_patch::merge(&mut value, more);
    serde_json::from_value(value).unwrap()
}

/// `state`: ready, unready, pending, failed, leaving; `fresh` is ready since two seconds.
fn pod(ordinal: i32, revision: &str, state: &str) -> Arc<Pod> {
    let (phase, ready) = match state {
        "pending" => ("Pending", "False"),
        "failed" => ("Failed", "False"),
        "unready" => ("Running", "False"),
        _ => ("Running", "True"),
    };
    let since = if state == "fresh" {
        "2026-01-01T00:59:58Z"
    } else {
        "2026-01-01T00:00:00Z"
    };
    let name = format!("web-{ordinal}");
    let labels = json!({identity::REVISION_LABEL: revision, identity::POD_NAME_LABEL: name,
        identity::INDEX_LABEL: ordinal.to_string()});
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name, "labels": labels,
                "deletionTimestamp": (state == "leaving").then_some("2026-01-01T00:59:00Z")},
            "spec": {"containers": []},
            "status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": since}]}}))
        .unwrap(),
    )
}

fn plan(set: &StatefulSet, pods: &[Arc<Pod>]) -> Plan {
    plan_with(set, pods, &|_| None)
}

fn plan_with(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    claim: &(dyn Fn(&str) -> Option<Arc<PersistentVolumeClaim>> + Sync),
) -> Plan {
    let revision = |name: &str| Revision {
        name: name.into(),
        template: set.spec.as_ref().unwrap().template.clone(),
    };
    let (current, update) = (revision(OLD), revision(NEW));
    let view = View {
        set,
        current: &current,
        update: &update,
        pods,
        claim,
        now: &now(),
    };
    view.plan()
}

fn described(plan: &Plan) -> Vec<String> {
    plan.steps
        .iter()
        .map(|step| match step {
            Step::Create(pod, claims) if claims.is_empty() => {
                format!("create {} {}", pod.name_any(), identity::revision(pod))
            }
            Step::Create(pod, claims) => format!("create {} with {}", pod.name_any(), claims[0].name_any()),
            Step::Claims(pod, claims) => format!("claim {} for {}", claims[0].name_any(), pod.name_any()),
            Step::Correct(pod) => format!("correct {}", pod.name_any()),
            Step::Own(claim, _) => format!("own {}", claim.name_any()),
            Step::Delete(pod) => format!("delete {}", pod.name_any()),
        })
        .collect()
}

#[test]
fn ordered_sets_make_one_pod_at_a_time_and_parallel_ones_all() {
    let ordered = set(&json!({}));
    let parallel = set(&json!({"spec": {"podManagementPolicy": "Parallel"}}));
    let cases: [Case<'_, &[Arc<Pod>]>; 7] = [
        (&ordered, &[], &["create web-0 web-new"]),
        (&ordered, &[pod(0, NEW, "pending")], &[]),
        (&ordered, &[pod(0, NEW, "unready")], &[]),
        (&ordered, &[pod(0, NEW, "ready")], &["create web-1 web-new"]),
        (&ordered, &[pod(0, NEW, "ready"), pod(1, NEW, "leaving")], &[]),
        (
            &parallel,
            &[],
            &["create web-0 web-new", "create web-1 web-new", "create web-2 web-new"],
        ),
        (
            &parallel,
            &[pod(1, NEW, "unready")],
            &["create web-0 web-new", "create web-2 web-new"],
        ),
    ];
    for (set, pods, expected) in cases {
        assert_eq!(described(&plan(set, pods)), expected, "{pods:?}");
    }
}

#[test]
fn scaling_down_goes_from_the_top_and_waits_for_health() {
    let one = set(&json!({"spec": {"replicas": 1}}));
    let parallel = set(&json!({"spec": {"replicas": 1, "podManagementPolicy": "Parallel"}}));
    let all = |states: [&str; 3]| {
        let pods = states.iter().zip(0..).map(|(state, ordinal)| pod(ordinal, NEW, state));
        pods.collect::<Vec<_>>()
    };
    let cases: [Case<'_, [&str; 3]>; 6] = [
        (&one, ["ready", "ready", "ready"], &["delete web-2"]),
        (&one, ["ready", "ready", "leaving"], &[]),
        (&one, ["unready", "ready", "ready"], &[]),
        (&one, ["ready", "ready", "unready"], &["delete web-2"]),
        (&one, ["ready", "unready", "unready"], &[]),
        (
            &parallel,
            ["unready", "unready", "unready"],
            &["delete web-2", "delete web-1"],
        ),
    ];
    for (set, states, expected) in cases {
        assert_eq!(described(&plan(set, &all(states))), expected, "{states:?}");
    }
}

#[test]
fn a_rolling_update_goes_down_from_the_top_to_the_partition() {
    let whole = set(&json!({}));
    let part = set(&json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}));
    let by_hand = set(&json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}));
    let old = [pod(0, OLD, "ready"), pod(1, OLD, "ready"), pod(2, OLD, "ready")];
    assert_eq!(described(&plan(&whole, &old)), ["delete web-2"]);
    assert_eq!(described(&plan(&part, &old)), ["delete web-2"]);
    assert_eq!(described(&plan(&by_hand, &old)), [""; 0]);
    let half = [pod(0, OLD, "ready"), pod(1, OLD, "ready"), pod(2, NEW, "ready")];
    assert_eq!(described(&plan(&whole, &half)), ["delete web-1"]);
    assert_eq!(described(&plan(&part, &half)), [""; 0]);
    let waiting = [pod(0, OLD, "ready"), pod(1, OLD, "ready"), pod(2, NEW, "unready")];
    assert_eq!(described(&plan(&whole, &waiting)), [""; 0]);
    let lost = [pod(1, OLD, "ready"), pod(2, NEW, "ready")];
    assert_eq!(
        described(&plan(&part, &lost)),
        ["create web-0 web-old"],
        "below the partition the old template returns"
    );
}

#[test]
fn an_update_that_broke_a_pod_is_mended_by_the_next_template() {
    // The pod of a bad revision that never becomes ready blocks an ordered set; deleting it by hand is the cure.
    let broken = [pod(0, OLD, "ready"), pod(1, OLD, "ready"), pod(2, OLD, "unready")];
    assert_eq!(described(&plan(&set(&json!({})), &broken)), [""; 0]);
    let parallel = set(&json!({"spec": {"podManagementPolicy": "Parallel"}}));
    assert_eq!(described(&plan(&parallel, &broken)), ["delete web-2"]);
}

#[test]
fn a_pod_that_ended_is_deleted_and_comes_back() {
    let pods = [pod(0, NEW, "failed")];
    assert_eq!(described(&plan(&set(&json!({})), &pods)), ["delete web-0"]);
}

#[test]
fn a_pod_counts_as_available_only_after_min_ready_seconds() {
    let patient = set(&json!({"spec": {"minReadySeconds": 10}}));
    let plan = plan(&patient, &[pod(0, NEW, "fresh")]);
    assert_eq!(described(&plan), [""; 0]);
    assert_eq!(plan.status.ready_replicas, Some(1));
    assert_eq!(plan.status.available_replicas, Some(0));
}

#[test]
fn claims_are_made_before_the_pod_and_again_when_they_are_missing() {
    let template = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}});
    assert_eq!(described(&plan(&set(&template), &[])), ["create web-0 with data-web-0"]);
    assert_eq!(
        described(&plan(&set(&template), &[pod(0, NEW, "pending")])),
        ["claim data-web-0 for web-0"]
    );
}

#[test]
fn ordinals_may_start_elsewhere() {
    let shifted = set(&json!({"spec": {"replicas": 2, "ordinals": {"start": 5}}}));
    assert_eq!(
        described(&plan(&shifted, &[pod(5, NEW, "ready")])),
        ["create web-6 web-new"]
    );
    let pods = [pod(4, NEW, "ready"), pod(5, NEW, "ready"), pod(6, NEW, "ready")];
    assert_eq!(described(&plan(&shifted, &pods)), ["delete web-4"]);
}

#[test]
fn status_counts_revisions_and_ends_the_rollout_when_all_are_new() {
    let half = [pod(0, OLD, "ready"), pod(1, OLD, "ready"), pod(2, NEW, "ready")];
    let status = plan(&set(&json!({})), &half).status;
    assert_eq!(status.replicas, 3);
    assert_eq!(
        status.current_replicas,
        Some(1),
        "one of the two is being deleted for the update"
    );
    assert_eq!(status.updated_replicas, Some(1));
    assert_eq!(status.current_revision.as_deref(), Some(OLD));
    let done = [pod(0, NEW, "ready"), pod(1, NEW, "ready"), pod(2, NEW, "ready")];
    let status = plan(&set(&json!({})), &done).status;
    assert_eq!(status.current_replicas, Some(3));
    assert_eq!(status.current_revision.as_deref(), Some(NEW));
    assert_eq!(status.observed_generation, Some(3));
}

#[test]
fn a_set_that_is_being_deleted_only_counts() {
    let leaving = set(&json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let plan = plan(&leaving, &[pod(0, NEW, "ready")]);
    assert_eq!(described(&plan), [""; 0]);
    assert_eq!(plan.status.replicas, 1);
}

#[test]
fn wrong_labels_are_put_right() {
    let mut wrong = (*pod(0, NEW, "ready")).clone();
    wrong.labels_mut().remove(identity::POD_NAME_LABEL);
    let one = set(&json!({"spec": {"replicas": 1}}));
    assert_eq!(described(&plan(&one, &[Arc::new(wrong)])), ["correct web-0"]);
}
