//! What pods ask for and what nodes have. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::quantity::thousandths;

/// Amounts by resource name, in thousandths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    fn read(quantities: Option<&BTreeMap<String, Quantity>>) -> Self {
        let read = quantities.into_iter().flatten();
        Self(
            read.filter_map(|(name, quantity)| Some((name.clone(), thousandths(quantity)?)))
                .collect(),
        )
    }

    /// The amount of one resource.
    pub fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(name.clone()).or_default() += amount;
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
    }
}

fn of_container(container: &Container) -> Amounts {
    Amounts::read(
        container
            .resources
            .as_ref()
            .and_then(|resources| resources.requests.as_ref()),
    )
}

/// What a pod needs: its containers together, or the dearest moment of its start, plus the overhead.
pub fn of_pod(pod: &Pod) -> Amounts {
    let Some(spec) = &pod.spec else {
        return Amounts::default();
    };
    let mut running = Amounts::default();
    for container in &spec.containers {
        running.add(&of_container(container));
    }
    let mut sidecars = Amounts::default();
    let mut starting = Amounts::default();
    for container in spec.init_containers.iter().flatten() {
        let mut moment = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars.add(&moment);
            running.add(&moment);
            moment = sidecars.clone();
        } else {
            moment.add(&sidecars);
        }
        starting.raise_to(&moment);
    }
    running.raise_to(&starting);
    running.add(&Amounts::read(spec.overhead.as_ref()));
    running
}

/// What a node has for pods.
pub fn of_node(node: &Node) -> Amounts {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
    Amounts::read(allocatable)
}

/// A resource that a node lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The scheduler's message.
    pub message: String,
    /// Whether the node would lack it even if it were empty.
    pub always: bool,
}

/// What is missing for a pod on a node with `used` taken by `pods` others.
pub fn lacks(requested: &Amounts, node: &Amounts, used: &Amounts, pods: usize) -> Vec<Lack> {
    let mut lacks = Vec::new();
    let places = node.get("pods");
    if i128::try_from(pods + 1).unwrap_or(i128::MAX) * 1000 > places {
        lacks.push(Lack {
            message: "Too many pods".into(),
            always: false,
        });
    }
    let first = ["cpu", "memory", "ephemeral-storage"];
    let rest = requested
        .0
        .keys()
        .map(String::as_str)
        .filter(|name| !first.contains(name));
    for name in first.into_iter().chain(rest) {
        let amount = requested.get(name);
        if amount > 0 && amount > node.get(name) - used.get(name) {
            lacks.push(Lack {
                message: format!("Insufficient {name}"),
                always: amount > node.get(name),
            });
        }
    }
    lacks
}

/// How free a node stays with the pod on it, 0 to 100: the mean over cpu and memory.
pub fn freedom(requested: &Amounts, node: &Amounts, used: &Amounts) -> i64 {
    // A pod that asks for nothing still takes something; the real scheduler assumes these.
    let assumed = |name: &str| match (name, requested.get(name)) {
        ("cpu", 0) => 100,
        ("memory", 0) => 200 * 1024 * 1024 * 1000,
        (_, amount) => amount,
    };
    let share = |name: &str| {
        let (has, left) = (node.get(name), node.get(name) - used.get(name) - assumed(name));
        if has <= 0 || left <= 0 { 0 } else { left * 100 / has }
    };
    i64::try_from(i128::midpoint(share("cpu"), share("memory"))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(spec: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    fn container(cpu: &str) -> serde_json::Value {
        json!({"name": "c", "resources": {"requests": {"cpu": cpu}}})
    }

    #[test]
    fn a_pod_requests_the_maximum_of_its_start_and_its_run() {
        let mut sidecar = container("300m");
        sidecar["restartPolicy"] = json!("Always");
        let cases = [
            (json!({"containers": [container("100m"), container("200m")]}), 300),
            (
                json!({"containers": [container("100m")], "initContainers": [container("1")]}),
                1000,
            ),
            (
                json!({"containers": [container("100m")], "initContainers": [sidecar, container("500m")]}),
                800,
            ),
            (
                json!({"containers": [container("900m")], "initContainers": [sidecar, container("500m")]}),
                1200,
            ),
            (
                json!({"containers": [container("1")], "overhead": {"cpu": "50m"}}),
                1050,
            ),
            (json!({"containers": [{"name": "c"}]}), 0),
        ];
        for (spec, expected) in cases {
            assert_eq!(of_pod(&pod(&spec)).get("cpu"), expected, "{spec}");
        }
    }

    #[test]
    fn lacks_name_every_resource_and_distinguish_a_full_node_from_a_small_one() {
        let node: Node = serde_json::from_value(
            json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2", "gpu": "1"}}}),
        )
        .unwrap();
        let has = of_node(&node);
        let requests_of = |requests: serde_json::Value| {
            of_pod(&pod(
                &json!({"containers": [{"name": "c", "resources": {"requests": requests}}]}),
            ))
        };
        let used = requests_of(json!({"cpu": "1500m", "memory": "100Mi"}));
        let message = |requests: serde_json::Value, pods: usize| {
            let lacks = lacks(&requests_of(requests), &has, &used, pods);
            lacks
                .into_iter()
                .map(|lack| (lack.message, lack.always))
                .collect::<Vec<_>>()
        };
        assert_eq!(message(json!({"cpu": "500m", "memory": "100Mi", "gpu": "1"}), 1), []);
        assert_eq!(message(json!({"cpu": "1"}), 1), [("Insufficient cpu".into(), false)]);
        assert_eq!(
            message(json!({"cpu": "3", "memory": "1Gi", "gpu": "2"}), 2),
            [
                ("Too many pods".into(), false),
                ("Insufficient cpu".into(), true),
                ("Insufficient memory".into(), false),
                ("Insufficient gpu".into(), true),
            ]
        );
    }
}
