//! Taints and tolerations. Pure.

use k8s_openapi::api::core::v1::{Node, Pod, Taint, Toleration};

/// Whether a toleration tolerates a taint.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let effect_matches = effect.is_empty() || effect == taint.effect;
    let key_matches = key.is_empty() || key == taint.key;
    let value = match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
        "Exists" => true,
        _ => false,
    };
    effect_matches && key_matches && value
}

/// The tolerations of a pod.
pub fn tolerations(pod: &Pod) -> &[Toleration] {
    let tolerations = pod.spec.as_ref().and_then(|spec| spec.tolerations.as_ref());
    tolerations.map_or(&[], Vec::as_slice)
}

/// The taints of a node.
pub fn taints(node: &Node) -> &[Taint] {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.map_or(&[], Vec::as_slice)
}

/// Whether a taint keeps the pod off the node.
pub fn keeps_off(pod: &Pod, node: &Node) -> bool {
    taints(node).iter().any(|taint| {
        matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
            && !tolerations(pod).iter().any(|toleration| tolerates(toleration, taint))
    })
}

/// How many `PreferNoSchedule` taints of the node the pod does not tolerate.
pub fn discourages(pod: &Pod, node: &Node) -> i64 {
    let against = taints(node).iter().filter(|taint| {
        taint.effect == "PreferNoSchedule" && !tolerations(pod).iter().any(|toleration| tolerates(toleration, taint))
    });
    i64::try_from(against.count()).unwrap_or(i64::MAX)
}

/// What a `NoExecute` taint does to a pod that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// It may stay.
    Forever,
    /// It may stay so many seconds.
    Seconds(i64),
    /// It must go.
    Never,
}

/// How long a pod may stay with these taints. Only the shortest toleration counts.
pub fn may_stay(pod: &Pod, taints: &[Taint]) -> Stay {
    let mut shortest: Option<i64> = None;
    for taint in taints.iter().filter(|taint| taint.effect == "NoExecute") {
        let bearing: Vec<_> = tolerations(pod)
            .iter()
            .filter(|toleration| tolerates(toleration, taint))
            .collect();
        if bearing.is_empty() {
            return Stay::Never;
        }
        for seconds in bearing.iter().filter_map(|toleration| toleration.toleration_seconds) {
            shortest = Some(shortest.map_or(seconds, |known| known.min(seconds)));
        }
    }
    match shortest {
        None => Stay::Forever,
        Some(seconds) if seconds <= 0 => Stay::Never,
        Some(seconds) => Stay::Seconds(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        serde_json::from_value(json!({"key": key, "value": value, "effect": effect})).unwrap()
    }

    fn pod(tolerations: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"spec": {"containers": [], "tolerations": tolerations}})).unwrap()
    }

    #[test]
    fn tolerations_match_by_key_operator_value_and_effect() {
        let cases = [
            (
                json!({"key": "a", "operator": "Equal", "value": "1", "effect": "NoSchedule"}),
                true,
            ),
            (json!({"key": "a", "value": "1"}), true),
            (json!({"key": "a", "value": "2"}), false),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"key": "b", "operator": "Exists"}), false),
            (json!({"operator": "Exists"}), true),
            (json!({"key": "a", "operator": "Exists", "effect": "NoExecute"}), false),
        ];
        for (toleration, expected) in cases {
            let read: Toleration = serde_json::from_value(toleration.clone()).unwrap();
            assert_eq!(
                tolerates(&read, &taint("a", "1", "NoSchedule")),
                expected,
                "{toleration}"
            );
        }
    }

    #[test]
    fn a_pod_may_stay_as_long_as_its_shortest_toleration() {
        let taints = [taint("x", "", "NoExecute")];
        let with = |seconds: serde_json::Value| {
            pod(&json!([{"key": "x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}]))
        };
        assert_eq!(may_stay(&pod(&json!([])), &taints), Stay::Never);
        assert_eq!(may_stay(&with(json!(null)), &taints), Stay::Forever);
        assert_eq!(may_stay(&with(json!(300)), &taints), Stay::Seconds(300));
        assert_eq!(may_stay(&with(json!(0)), &taints), Stay::Never);
        assert_eq!(
            may_stay(&pod(&json!([])), &[taint("x", "", "NoSchedule")]),
            Stay::Forever
        );
    }
}
