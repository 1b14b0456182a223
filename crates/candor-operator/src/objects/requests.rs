//! Resources that a pod requests from a node, and by how much they exceed those of the current pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::quantity::thousandths;

/// The resources that a pod requests, in thousandths. A container with a limit but without a request requests its
/// limit.
fn room(pod: &PodSpec) -> BTreeMap<&str, u128> {
    let mut all = BTreeMap::new();
    for container in &pod.containers {
        let limits = of(container, |resources| resources.limits.as_ref());
        let requests = of(container, |resources| resources.requests.as_ref());
        let asked: BTreeMap<&str, u128> = limits.chain(requests).collect();
        for (name, room) in asked {
            *all.entry(name).or_default() += room;
        }
    }
    all
}

type Part = fn(&ResourceRequirements) -> Option<&BTreeMap<String, Quantity>>;

fn of(container: &Container, part: Part) -> impl Iterator<Item = (&str, u128)> {
    let all = container.resources.as_ref().and_then(part).into_iter().flatten();
    all.filter_map(|(name, quantity)| Some((name.as_str(), thousandths(&quantity.0)?)))
}

/// The resources that the desired pod requests beyond those of the current pod.
pub fn more<'a>(desired: &'a PodSpec, now: &PodSpec) -> BTreeMap<&'a str, u128> {
    let has = room(now);
    let beyond = |(name, room): (&'a str, u128)| {
        let more = room.saturating_sub(has.get(name).copied().unwrap_or(0));
        (more > 0).then_some((name, more))
    };
    room(desired).into_iter().filter_map(beyond).collect()
}

/// The resource requirements of a container that requests `more`. A request of zero is written explicitly, because the
/// namespace's `LimitRange` may set a default for a missing request. The container's own limit is retained, and raised
/// to the request if it is lower. A resource that nodes allocate in whole units must have a limit equal to its
/// request.
pub fn request(more: &BTreeMap<&str, u128>, container: &Container) -> ResourceRequirements {
    let none = ["cpu", "memory"].map(|name| (name.to_owned(), Quantity("0".to_owned())));
    let mut requests = BTreeMap::from(none);
    requests.extend(more.iter().map(|(name, room)| ((*name).to_owned(), quantity(*room))));
    let limit = |(name, own): (&str, u128)| {
        let asked = more.get(name).copied().unwrap_or(0);
        is_shared(name).then(|| (name.to_owned(), quantity(own.max(asked))))
    };
    let own = of(container, |resources| resources.limits.as_ref()).filter_map(limit);
    let pieces = more.iter().filter(|(name, _)| !is_shared(name));
    let pieces = pieces.map(|(name, room)| ((*name).to_owned(), quantity(*room)));
    let limits: BTreeMap<String, Quantity> = own.chain(pieces).collect();
    ResourceRequirements {
        requests: Some(requests),
        limits: (!limits.is_empty()).then_some(limits),
        ..ResourceRequirements::default()
    }
}

/// Whether a container may use more of the resource than it requests.
fn is_shared(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage")
}

fn quantity(thousandths: u128) -> Quantity {
    Quantity(if thousandths.is_multiple_of(1000) {
        (thousandths / 1000).to_string()
    } else {
        format!("{thousandths}m")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(of_containers: &[Value]) -> PodSpec {
        let named = |(index, resources): (usize, &Value)| json!({"name": format!("c{index}"), "resources": resources});
        let containers: Vec<Value> = of_containers.iter().enumerate().map(named).collect();
        serde_json::from_value(json!({"containers": containers})).unwrap()
    }

    #[test]
    fn only_what_is_beyond_the_present_room_is_asked_for() {
        let small = [json!({"requests": {"cpu": "500m", "memory": "1Gi"}})];
        let nothing = json!({"cpu": "0", "memory": "0"});
        let table: [(&[Value], &[Value], Value); 8] = [
            (&[json!({})], &[json!({})], nothing.clone()),
            (&small, &small, nothing.clone()),
            (
                &[json!({"requests": {"cpu": "0.5", "memory": "1024Mi"}})],
                &small,
                nothing.clone(),
            ),
            (
                &[json!({"requests": {"cpu": "2", "memory": "512Mi"}})],
                &small,
                json!({"cpu": "1500m", "memory": "0"}),
            ),
            (
                &[json!({"limits": {"memory": "3Gi"}, "requests": {"cpu": "500m"}})],
                &small,
                json!({"cpu": "0", "memory": "2147483648"}),
            ),
            (
                &[json!({"limits": {"cpu": "9", "memory": "9Gi"}, "requests": {"cpu": "1", "memory": "1"}})],
                &[json!({})],
                json!({"cpu": "1", "memory": "1"}),
            ),
            (
                &[json!({"limits": {"vendor.example/gpu": "1"}})],
                &[json!({})],
                json!({"cpu": "0", "memory": "0", "vendor.example/gpu": "1"}),
            ),
            // A request moves from a sidecar to the server: the total of the pod stays the same.
            (
                &[json!({"requests": {"cpu": "1"}}), json!({})],
                &[
                    json!({"requests": {"cpu": "500m"}}),
                    json!({"requests": {"cpu": "500m"}}),
                ],
                nothing.clone(),
            ),
        ];
        for (desired, now, requests) in table {
            let (desired, now) = (pod(desired), pod(now));
            let asked = request(&more(&desired, &now), &desired.containers[0]);
            assert_eq!(json!(asked)["requests"], requests, "{desired:?} after {now:?}");
        }
    }

    #[test]
    fn a_limit_is_never_below_what_is_asked_for_and_pieces_are_limited_to_it() {
        let limits = |desired: &Value, now: &Value| {
            let (desired, now) = (pod(std::slice::from_ref(desired)), pod(std::slice::from_ref(now)));
            json!(request(&more(&desired, &now), &desired.containers[0]))["limits"].clone()
        };
        let large = json!({"limits": {"memory": "9Gi"}, "requests": {"memory": "8Gi"}});
        assert_eq!(limits(&large, &json!({})), json!({"memory": "9663676416"}));
        assert_eq!(limits(&json!({"requests": {"memory": "8Gi"}}), &json!({})), Value::Null);
        let pieces = json!({"limits": {"vendor.example/gpu": "3"}});
        let one = json!({"limits": {"vendor.example/gpu": "1"}});
        assert_eq!(limits(&pieces, &one), json!({"vendor.example/gpu": "2"}));
        assert_eq!(limits(&one, &one), Value::Null);
    }
}
