//! The room that members ask for of a machine, and how much more of it than they have.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::Value;

use super::quantity::thousandths;

/// What a container asks for, in thousandths: what it does not ask for and has a limit of, it asks for in that measure.
fn asked(container: &Container) -> BTreeMap<&str, u128> {
    let resources = container.resources.as_ref();
    let of = |part: fn(&ResourceRequirements) -> Option<&BTreeMap<String, Quantity>>| {
        resources.and_then(part).into_iter().flatten()
    };
    let all = of(|all| all.limits.as_ref()).chain(of(|all| all.requests.as_ref()));
    all.filter_map(|(name, quantity)| Some((name.as_str(), thousandths(&quantity.0)?)))
        .collect()
}

/// What a template's containers ask for, in a form that is equal where the room is.
pub fn room(template: &PodTemplateSpec) -> Value {
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .map(|one| {
            let asked = asked(one).into_iter();
            let asked = asked.map(|(name, room)| (name.to_owned(), Value::from(room.to_string())));
            (one.name.clone(), Value::Object(asked.collect()))
        })
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// What a container asks for beyond what it has now. Nothing is asked for in words too: what is not mentioned may be
/// filled in by the namespace's own defaults.
pub fn more(wanted: &Container, now: Option<&Container>) -> ResourceRequirements {
    let has = now.map(asked).unwrap_or_default();
    let mut requests: BTreeMap<String, Quantity> = ["cpu", "memory"]
        .map(|name| (name.to_owned(), Quantity("0".to_owned())))
        .into();
    for (name, room) in asked(wanted) {
        let more = room.saturating_sub(has.get(name).copied().unwrap_or(0));
        if more > 0 {
            let words = if more % 1000 == 0 {
                (more / 1000).to_string()
            } else {
                format!("{more}m")
            };
            requests.insert(name.to_owned(), Quantity(words));
        }
    }
    ResourceRequirements {
        requests: Some(requests),
        ..ResourceRequirements::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(resources: &Value) -> Container {
        serde_json::from_value(json!({"name": "server", "resources": resources})).unwrap()
    }

    #[test]
    fn only_what_is_beyond_the_present_room_is_asked_for() {
        let small = json!({"requests": {"cpu": "500m", "memory": "1Gi"}});
        let table = [
            (json!({}), json!({}), json!({"cpu": "0", "memory": "0"})),
            (small.clone(), small.clone(), json!({"cpu": "0", "memory": "0"})),
            (
                json!({"requests": {"cpu": "0.5", "memory": "1024Mi"}}),
                small.clone(),
                json!({"cpu": "0", "memory": "0"}),
            ),
            (
                json!({"requests": {"cpu": "2", "memory": "512Mi"}}),
                small.clone(),
                json!({"cpu": "1500m", "memory": "0"}),
            ),
            (
                json!({"limits": {"memory": "3Gi"}, "requests": {"cpu": "500m"}}),
                small,
                json!({"cpu": "0", "memory": "2147483648"}),
            ),
            (
                json!({"limits": {"cpu": "9", "memory": "9Gi"}, "requests": {"cpu": "1", "memory": "1"}}),
                json!({}),
                json!({"cpu": "1", "memory": "1"}),
            ),
            (
                json!({"limits": {"vendor.example/gpu": "1"}}),
                json!({}),
                json!({"cpu": "0", "memory": "0", "vendor.example/gpu": "1"}),
            ),
        ];
        for (wanted, now, requests) in table {
            let more = more(&container(&wanted), Some(&container(&now)));
            assert_eq!(json!(more), json!({"requests": requests}), "{wanted} after {now}");
        }
    }
}
