//! Objects known only as JSON, as an API server might hand them over: the known places, and wrong shapes in them.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::words::percent;
use crate::{generate, words};

/// An object with a kind, a name, and whatever stands in its status.
pub fn object(rng: &mut Rng) -> Value {
    let mut content = json!({
        "apiVersion": "example.dev/v1",
        "kind": words::kind(rng),
        "metadata": {"name": "untyped"},
    });
    if percent(rng, 90) {
        content["status"] = json!({});
        if percent(rng, 75) {
            content["status"]["conditions"] = list(rng);
        }
        if percent(rng, 30) {
            content["status"]["v1beta2"] = json!({"conditions": list(rng)});
        }
    }
    content
}

fn list(rng: &mut Rng) -> Value {
    if percent(rng, 5) {
        return wrong_shape(rng);
    }
    let mut list: Vec<Value> = Vec::new();
    for _ in 0..rng.usize(..5) {
        let mut entry = serde_json::to_value(generate::stored(rng)).unwrap_or_default();
        let known = list.iter().any(|earlier| earlier["type"] == entry["type"]);
        if known && percent(rng, 90) {
            continue;
        }
        if percent(rng, 8) {
            let field = words::pick(rng, &["type", "status", "reason", "message", "lastTransitionTime"]);
            match rng.u8(..3) {
                0 => entry[field] = json!(""),
                1 => drop(entry.as_object_mut().and_then(|fields| fields.remove(field))),
                _ => entry[field] = wrong_shape(rng),
            }
        }
        if percent(rng, 4) {
            entry["lastTransitionTime"] = json!(words::pick(
                rng,
                &[
                    "yesterday",
                    "2024-01-01T00:00:00.5Z",
                    "2024-01-01T02:00:00+02:00",
                    "2024-02-30T00:00:00Z",
                    "null"
                ]
            ));
        }
        list.push(if percent(rng, 3) { wrong_shape(rng) } else { entry });
    }
    Value::Array(list)
}

fn wrong_shape(rng: &mut Rng) -> Value {
    let shapes = [
        json!(null),
        json!(7),
        json!(true),
        json!("text"),
        json!({"a": 1}),
        json!([]),
        json!(1.5),
    ];
    shapes[rng.usize(..shapes.len())].clone()
}
