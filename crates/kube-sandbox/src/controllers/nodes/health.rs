//! From a node's conditions and its lease to taints and to conditions of status Unknown. Pure.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

/// How long a node may not renew its lease.
const GRACE: i64 = 50;

/// A condition, the status in which it taints, the taint, and whether it also evicts pods.
const RULES: [(&str, &str, &str, bool); 6] = [
    ("Ready", "False", "node.kubernetes.io/not-ready", true),
    ("Ready", "Unknown", "node.kubernetes.io/unreachable", true),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure", false),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure", false),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure", false),
    (
        "NetworkUnavailable",
        "True",
        "node.kubernetes.io/network-unavailable",
        false,
    ),
];
const CORDON: &str = "node.kubernetes.io/unschedulable";

fn condition<'a>(node: &'a Node, kind: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether the node is ready. A node without conditions counts as ready.
pub fn is_unwell(node: &Node) -> bool {
    condition(node, "Ready").is_some_and(|ready| ready.status != "True")
}

/// The taints a node should have, if it has others.
pub fn taints(node: &Node, now: &Time) -> Option<Vec<Taint>> {
    let spec = node.spec.clone().unwrap_or_default();
    let old = spec.taints.unwrap_or_default();
    let mut desired: Vec<(&str, &str)> = Vec::new();
    for (kind, status, key, evicts) in RULES {
        if condition(node, kind).is_some_and(|condition| condition.status == status) {
            desired.push((key, "NoSchedule"));
            if evicts {
                desired.push((key, "NoExecute"));
            }
        }
    }
    if spec.unschedulable == Some(true) {
        desired.push((CORDON, "NoSchedule"));
    }
    let managed = |taint: &Taint| {
        let by_rule = RULES.iter().any(|(_, _, key, evicts)| {
            *key == taint.key && (taint.effect == "NoSchedule" || (*evicts && taint.effect == "NoExecute"))
        });
        by_rule || (taint.key == CORDON && taint.effect == "NoSchedule")
    };
    let tolerates = |taint: &Taint| {
        !managed(taint)
            || desired
                .iter()
                .any(|(key, effect)| taint.key == *key && taint.effect == *effect)
    };
    let mut new: Vec<Taint> = old.iter().filter(|taint| tolerates(taint)).cloned().collect();
    for (key, effect) in desired {
        if !new.iter().any(|taint| taint.key == key && taint.effect == effect) {
            new.push(Taint {
                key: key.into(),
                effect: effect.into(),
                time_added: Some(now.clone()),
                value: None,
            });
        }
    }
    (new != old).then_some(new)
}

/// How a node's lease stands.
#[derive(Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No lease, or one that was never renewed: the state is not known.
    None,
    /// Fresh for so many seconds more.
    Fresh(i64),
    /// Expired.
    Expired,
}

/// Reads a lease.
pub fn lease_state(lease: Option<&Lease>, now: &Time) -> LeaseState {
    let spec = lease.and_then(|lease| lease.spec.as_ref());
    let Some(renewed) = spec.and_then(|spec| spec.renew_time.as_ref()) else {
        return LeaseState::None;
    };
    let grace = spec
        .and_then(|spec| spec.lease_duration_seconds)
        .map_or(GRACE, i64::from)
        .max(GRACE);
    let left = renewed.0.as_second() + grace - now.0.as_second();
    if left > 0 {
        LeaseState::Fresh(left)
    } else {
        LeaseState::Expired
    }
}

/// The conditions of a node with an expired lease, if they differ now.
pub fn unknown(node: &Node, now: &Time) -> Option<Vec<NodeCondition>> {
    let old = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.clone())
        .unwrap_or_default();
    let mut new = old.clone();
    for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
        match new.iter_mut().find(|condition| condition.type_ == kind) {
            Some(condition) if condition.status != "Unknown" => {
                condition.status = "Unknown".into();
                condition.reason = Some("NodeStatusUnknown".into());
                condition.message = Some("Kubelet stopped posting node status.".into());
                condition.last_transition_time = Some(now.clone());
            }
            Some(_) => {}
            None => new.push(NodeCondition {
                type_: kind.into(),
                status: "Unknown".into(),
                reason: Some("NodeStatusNeverUpdated".into()),
                message: Some("Kubelet never posted node status.".into()),
                last_heartbeat_time: node.metadata.creation_timestamp.clone(),
                last_transition_time: Some(now.clone()),
            }),
        }
    }
    (new != old).then_some(new)
}

/// For the messages of events.
pub fn not_ready_message(node: &Node) -> String {
    format!("Node {} status is now: NodeNotReady", node.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-01T01:00:00Z")).unwrap()
    }

    fn node(ready: &str, spec: &Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n"}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": ready}, {"type": "DiskPressure", "status": "False"}]}}))
        .unwrap()
    }

    fn keys(taints: Option<Vec<Taint>>) -> Vec<String> {
        let short = |taint: Taint| {
            format!(
                "{}:{}",
                taint.key.trim_start_matches("node.kubernetes.io/"),
                taint.effect
            )
        };
        taints.unwrap_or_default().into_iter().map(short).collect()
    }

    #[test]
    fn conditions_and_cordon_become_taints_and_go_with_them() {
        assert_eq!(keys(taints(&node("True", &json!({})), &now())), [""; 0]);
        assert_eq!(
            keys(taints(&node("False", &json!({})), &now())),
            ["not-ready:NoSchedule", "not-ready:NoExecute"]
        );
        assert_eq!(
            keys(taints(&node("Unknown", &json!({})), &now())),
            ["unreachable:NoSchedule", "unreachable:NoExecute"]
        );
        let cordoned = node("True", &json!({"unschedulable": true}));
        assert_eq!(keys(taints(&cordoned, &now())), ["unschedulable:NoSchedule"]);
        let mut healed = node("False", &json!({"taints": [{"key": "mine", "effect": "NoSchedule"}]}));
        healed.spec.as_mut().unwrap().taints = taints(&healed, &now());
        assert_eq!(taints(&healed, &now()), None, "stable");
        healed.status = node("True", &json!({})).status;
        assert_eq!(keys(taints(&healed, &now())), ["mine:NoSchedule"]);
    }

    #[test]
    fn a_lease_is_fresh_expired_or_without_a_time() {
        let lease = |renewed: &str, duration: i64| -> Lease {
            serde_json::from_value(json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": duration}})).unwrap()
        };
        assert_eq!(lease_state(None, &now()), LeaseState::None);
        assert_eq!(
            lease_state(Some(&lease("2026-01-01T00:59:50.000000Z", 40)), &now()),
            LeaseState::Fresh(40)
        );
        assert_eq!(
            lease_state(Some(&lease("2026-01-01T00:59:00.000000Z", 40)), &now()),
            LeaseState::Expired
        );
        assert_eq!(
            lease_state(Some(&lease("2026-01-01T00:59:00.000000Z", 240)), &now()),
            LeaseState::Fresh(180)
        );
    }

    #[test]
    fn all_conditions_of_a_node_with_an_expired_lease_become_unknown_once() {
        let mut node = node("True", &json!({}));
        let conditions = unknown(&node, &now()).unwrap();
        assert!(conditions.iter().all(|condition| condition.status == "Unknown"));
        assert_eq!(
            conditions[0].message.as_deref(),
            Some("Kubelet stopped posting node status.")
        );
        node.status.as_mut().unwrap().conditions = Some(conditions);
        assert_eq!(unknown(&node, &now()), None);
    }
}
