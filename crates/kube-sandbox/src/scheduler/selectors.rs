//! Node selectors and node affinity. Pure.

use k8s_openapi::api::core::v1::{Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod};
use kube::ResourceExt;

fn requirement(requirement: &NodeSelectorRequirement, actual: Option<&str>) -> bool {
    let values = requirement.values.as_deref().unwrap_or_default();
    let number = |text: &str| text.parse::<i64>().ok();
    let compare = |greater: bool| {
        let (Some(actual), [bound]) = (actual.and_then(number), values) else {
            return false;
        };
        number(bound).is_some_and(|bound| if greater { actual > bound } else { actual < bound })
    };
    match requirement.operator.as_str() {
        "In" => actual.is_some_and(|actual| values.iter().any(|value| value == actual)),
        "NotIn" => actual.is_none_or(|actual| values.iter().all(|value| value != actual)),
        "Exists" => actual.is_some(),
        "DoesNotExist" => actual.is_none(),
        "Gt" => compare(true),
        "Lt" => compare(false),
        _ => false,
    }
}

/// Whether a term matches. An empty term matches nothing.
pub fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let label = |key: &str| node.labels().get(key).map(String::as_str);
    expressions.iter().all(|one| requirement(one, label(&one.key)))
        && fields.iter().all(|one| {
            let name = node.name_any();
            requirement(one, (one.key == "metadata.name").then_some(name.as_str()))
        })
}

/// Whether any term of a selector matches.
pub fn selector_matches(selector: &NodeSelector, node: &Node) -> bool {
    selector.node_selector_terms.iter().any(|term| term_matches(term, node))
}

/// Whether the pod's `nodeSelector` and required node affinity allow the node.
pub fn allows(pod: &Pod, node: &Node) -> bool {
    let Some(spec) = &pod.spec else {
        return true;
    };
    let labels = node.labels();
    let simple = spec
        .node_selector
        .iter()
        .flatten()
        .all(|(key, value)| labels.get(key) == Some(value));
    let required = spec
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    simple && required.is_none_or(|selector| selector_matches(selector, node))
}

/// The sum of the weights of the preferences the node meets.
pub fn preference(pod: &Pod, node: &Node) -> i64 {
    let preferred = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.affinity.as_ref())
        .and_then(|affinity| affinity.node_affinity.as_ref())
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let met = preferred
        .into_iter()
        .flatten()
        .filter(|term| term_matches(&term.preference, node));
    met.map(|term| i64::from(term.weight)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node() -> Node {
        serde_json::from_value(json!({"metadata": {"name": "n1", "labels": {"zone": "a", "size": "5"}}})).unwrap()
    }

    #[test]
    fn every_operator_of_a_node_selector() {
        let cases = [
            (json!({"key": "zone", "operator": "In", "values": ["a", "b"]}), true),
            (json!({"key": "zone", "operator": "In", "values": ["b"]}), false),
            (json!({"key": "zone", "operator": "NotIn", "values": ["b"]}), true),
            (json!({"key": "none", "operator": "NotIn", "values": ["b"]}), true),
            (json!({"key": "zone", "operator": "Exists"}), true),
            (json!({"key": "none", "operator": "DoesNotExist"}), true),
            (json!({"key": "size", "operator": "Gt", "values": ["4"]}), true),
            (json!({"key": "size", "operator": "Lt", "values": ["5"]}), false),
            (json!({"key": "zone", "operator": "Gt", "values": ["4"]}), false),
        ];
        for (expression, expected) in cases {
            let term: NodeSelectorTerm = serde_json::from_value(json!({"matchExpressions": [expression]})).unwrap();
            assert_eq!(term_matches(&term, &node()), expected, "{expression}");
        }
        assert!(
            !term_matches(&NodeSelectorTerm::default(), &node()),
            "an empty term matches nothing"
        );
        let by_name = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]});
        assert!(term_matches(&serde_json::from_value(by_name).unwrap(), &node()));
    }

    #[test]
    fn selector_and_affinity_both_count_and_terms_are_alternatives() {
        let pod = |selector: serde_json::Value, terms: serde_json::Value| -> Pod {
            serde_json::from_value(
                json!({"spec": {"containers": [], "nodeSelector": selector, "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}}),
            )
            .unwrap()
        };
        let zone = |value: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]});
        assert!(allows(
            &pod(json!({"size": "5"}), json!([zone("z"), zone("a")])),
            &node()
        ));
        assert!(!allows(&pod(json!({"size": "6"}), json!([zone("a")])), &node()));
        assert!(!allows(&pod(json!({"size": "5"}), json!([zone("z")])), &node()));
    }
}
