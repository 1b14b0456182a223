//! What a `PodDisruptionBudget` allows now. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::controllers::runtime::{after_seconds, seconds_between};
use crate::controllers::{deployment, pods};

/// A pod that was to be evicted but is still there after so long was not evicted.
const DELETION_TIMEOUT: i64 = 120;

/// The status, and seconds until a promised eviction would be late.
pub struct Outcome {
    /// To be written.
    pub status: PodDisruptionBudgetStatus,
    /// When to reconcile again.
    pub again: Option<i64>,
    /// Pods that were to be deleted and were not.
    pub late: Vec<Arc<Pod>>,
}

/// Counts. `scale` is the sum of the sizes of the pods' controllers, or why it is not known.
pub fn status(budget: &PodDisruptionBudget, pods: &[Arc<Pod>], scale: &Result<i32, String>, now: &Time) -> Outcome {
    let (disrupted, late) = promised(budget, pods, now);
    let generation = budget.metadata.generation;
    let old = budget.status.clone().unwrap_or_default();
    let healthy = pods
        .iter()
        .filter(|pod| !pods::is_terminating(pod) && !disrupted.contains_key(&pod.name_any()) && pods::is_ready(pod));
    let healthy = i32::try_from(healthy.count()).unwrap_or(i32::MAX);
    let soonest = disrupted
        .values()
        .map(|since| DELETION_TIMEOUT - seconds_between(since, now) + 1)
        .min();
    let mut status = PodDisruptionBudgetStatus {
        current_healthy: healthy,
        disrupted_pods: (!disrupted.is_empty()).then_some(disrupted),
        observed_generation: generation,
        ..old
    };
    let (allowed, reason, message) = match needed(budget, pods.len(), scale) {
        Ok((expected, desired)) => {
            status.expected_pods = expected;
            status.desired_healthy = desired;
            status.disruptions_allowed = if expected <= 0 { 0 } else { (healthy - desired).max(0) };
            let allowed = status.disruptions_allowed > 0;
            (
                allowed,
                if allowed { "SufficientPods" } else { "InsufficientPods" },
                String::new(),
            )
        }
        Err(trouble) => {
            // An unknown number allows no disruption.
            status.disruptions_allowed = 0;
            (false, "SyncFailed", trouble)
        }
    };
    let word = if allowed { "True" } else { "False" };
    let conditions = status.conditions.get_or_insert_default();
    let known = conditions
        .iter()
        .find(|known| known.type_ == "DisruptionAllowed" && known.status == word);
    let since = known.map_or_else(|| now.clone(), |known| known.last_transition_time.clone());
    conditions.retain(|known| known.type_ != "DisruptionAllowed");
    conditions.push(Condition {
        type_: "DisruptionAllowed".into(),
        status: word.into(),
        reason: reason.into(),
        message,
        last_transition_time: since,
        observed_generation: generation,
    });
    Outcome {
        status,
        again: soonest,
        late,
    }
}

/// Evictions that were granted and have not happened yet, and those that are overdue.
fn promised(budget: &PodDisruptionBudget, pods: &[Arc<Pod>], now: &Time) -> (BTreeMap<String, Time>, Vec<Arc<Pod>>) {
    let granted = budget
        .status
        .clone()
        .unwrap_or_default()
        .disrupted_pods
        .unwrap_or_default();
    let mut open = BTreeMap::new();
    let mut late = Vec::new();
    for pod in pods.iter().filter(|pod| !pods::is_terminating(pod)) {
        if let Some(since) = granted.get(&pod.name_any()) {
            if after_seconds(since, DELETION_TIMEOUT) < *now {
                late.push(pod.clone());
            } else {
                open.insert(pod.name_any(), since.clone());
            }
        }
    }
    (open, late)
}

/// How many pods are expected, and how many of them must stay healthy.
fn needed(budget: &PodDisruptionBudget, pods: usize, scale: &Result<i32, String>) -> Result<(i32, i32), String> {
    let spec = budget.spec.clone().unwrap_or_default();
    let part = |value: &IntOrString, total: i32| {
        deployment::resolve(value, total, true).ok_or_else(|| format!("invalid value for IntOrString: {value:?}"))
    };
    match (spec.max_unavailable, spec.min_available) {
        (Some(unavailable), _) => {
            let expected = scale.clone()?;
            Ok((expected, (expected - part(&unavailable, expected)?).max(0)))
        }
        (None, Some(IntOrString::Int(least))) => Ok((i32::try_from(pods).unwrap_or(i32::MAX), least)),
        (None, Some(share)) => {
            let expected = scale.clone()?;
            Ok((expected, part(&share, expected)?))
        }
        (None, None) => Ok((0, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap()
    }

    fn budget(spec: &Value, status: &Value) -> PodDisruptionBudget {
        serde_json::from_value(json!({"metadata": {"name": "b", "generation": 7}, "spec": spec, "status": status}))
            .unwrap()
    }

    fn pods(ready: usize, unready: usize) -> Vec<Arc<Pod>> {
        let pod = |number: usize, state: &str| {
            Arc::new(
                serde_json::from_value(
                    json!({"metadata": {"name": format!("p{number}")}, "spec": {"containers": []},
                    "status": {"conditions": [{"type": "Ready", "status": state}]}}),
                )
                .unwrap(),
            )
        };
        let good = (0..ready).map(|number| pod(number, "True"));
        good.chain((ready..ready + unready).map(|number| pod(number, "False")))
            .collect()
    }

    #[test]
    fn a_budget_allows_what_is_healthy_beyond_what_must_be() {
        let cases = [
            (json!({"maxUnavailable": 1}), 3, 0, Ok(3), (3, 2, 1)),
            (json!({"maxUnavailable": 1}), 2, 1, Ok(3), (3, 2, 0)),
            (json!({"maxUnavailable": "50%"}), 3, 0, Ok(3), (3, 1, 2)),
            (json!({"minAvailable": 2}), 3, 0, Ok(9), (3, 2, 1)),
            (json!({"minAvailable": "100%"}), 3, 0, Ok(3), (3, 3, 0)),
            (json!({"minAvailable": 0}), 0, 0, Ok(0), (0, 0, 0)),
            (json!({"maxUnavailable": 5}), 3, 0, Ok(3), (3, 0, 3)),
        ];
        for (spec, ready, unready, scale, (expected, desired, allowed)) in cases {
            let status = status(&budget(&spec, &json!(null)), &pods(ready, unready), &scale, &now()).status;
            assert_eq!(
                (status.expected_pods, status.desired_healthy, status.disruptions_allowed),
                (expected, desired, allowed),
                "{spec}"
            );
            assert_eq!(status.observed_generation, Some(7));
            let condition = &status.conditions.unwrap()[0];
            let reason = if allowed > 0 {
                "SufficientPods"
            } else {
                "InsufficientPods"
            };
            assert_eq!(condition.reason, reason);
        }
    }

    #[test]
    fn a_granted_eviction_counts_as_deleted_until_it_is_late() {
        let granted = |at: &str| {
            json!({"currentHealthy": 3, "desiredHealthy": 2, "disruptionsAllowed": 0, "expectedPods": 3,
                "disruptedPods": {"p0": at}})
        };
        let spec = json!({"maxUnavailable": 1});
        let fresh = status(
            &budget(&spec, &granted("2026-01-01T00:59:00Z")),
            &pods(3, 0),
            &Ok(3),
            &now(),
        );
        assert_eq!((fresh.status.current_healthy, fresh.status.disruptions_allowed), (2, 0));
        assert_eq!(fresh.again, Some(61));
        let late = status(
            &budget(&spec, &granted("2026-01-01T00:57:00Z")),
            &pods(3, 0),
            &Ok(3),
            &now(),
        );
        assert_eq!((late.status.current_healthy, late.status.disruptions_allowed), (3, 1));
        assert_eq!(late.late.len(), 1);
        assert_eq!(late.status.disrupted_pods, None);
    }

    #[test]
    fn an_unknown_scale_allows_no_disruption_and_gives_the_reason() {
        let trouble = Err("found no controllers for pod \"p0\"".to_owned());
        let status = status(
            &budget(&json!({"maxUnavailable": 1}), &json!(null)),
            &pods(3, 0),
            &trouble,
            &now(),
        )
        .status;
        assert_eq!(status.disruptions_allowed, 0);
        let condition = &status.conditions.unwrap()[0];
        assert_eq!(
            (condition.status.as_str(), condition.reason.as_str()),
            ("False", "SyncFailed")
        );
        assert_eq!(condition.message, "found no controllers for pod \"p0\"");
    }
}
